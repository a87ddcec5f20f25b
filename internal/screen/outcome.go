package screen

import (
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// outcomes words the outcomes of replies that are not as they should be.
var outcomes = map[wire.Outcome]string{
	wire.WasRefused:  "refused by the model",
	wire.WasFiltered: "kept back by the provider's filter",
	wire.CutShort:    "cut short by a limit of tokens",
	wire.LostCall:    "without a tool call that could not be read",
	wire.Empty:       "empty",
}

// OutcomeText words the outcome of a reply, with the provider's term for it; "" if the reply is as it should be.
func OutcomeText(m *chatctx.Message) string {
	text := outcomes[wire.OutcomeOf(m)]
	if text != "" && m.Meta.FinishReason != "" {
		text += " (" + Clean(m.Meta.FinishReason) + ")"
	}
	if text != "" && m.Meta.Error != "" {
		text += ": " + Clean(m.Meta.Error)
	}
	return text
}

// Refusal says who refused an answer; "" if it is no answer or was not refused.
func Refusal(m *chatctx.Message) string {
	if outcome := wire.OutcomeOf(m); m.Role == pool.Assistant && outcome.Refused() {
		return outcomes[outcome]
	}
	return ""
}
