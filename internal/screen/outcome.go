package screen

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// OutcomeText words the outcome of a reply, with the provider's term for it; "" if the reply is as it should be.
func OutcomeText(m *chatctx.Message) string {
	text := pool.OutcomeOf(m).Words()
	if text != "" && m.Meta.FinishReason != "" {
		text += " (" + Clean(m.Meta.FinishReason) + ")"
	}
	if text != "" && m.Meta.Error != "" {
		text += ": " + Clean(m.Meta.Error)
	}
	return text
}
