package screen

import "github.com/chatctx/chatctx/chatctx"

// OutcomeText words the outcome of a reply, with the provider's term for it; "" if the reply is as it should be.
func OutcomeText(m *chatctx.Message) string {
	return Clean(m.Ending())
}
