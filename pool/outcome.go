package pool

import (
	"slices"
	"strings"
)

// Outcome says how a complete reply ended.
type Outcome string

// The outcomes of a reply. Answered means that it is as it should be.
const (
	Answered    Outcome = ""
	WasRefused  Outcome = "refused"   // the model declined
	WasFiltered Outcome = "filtered"  // the provider withheld the answer, or the rest of it
	CutShort    Outcome = "cut_short" // a limit of tokens ended it
	LostCall    Outcome = "lost_call" // a call of a tool could not be read
	Empty       Outcome = "empty"     // neither words nor calls
)

// Refused reports whether the same request will end in the same way: the model or its provider will not answer it.
func (o Outcome) Refused() bool { return o == WasRefused || o == WasFiltered }

// Words says it in a few words, "" for Answered.
func (o Outcome) Words() string { return outcomeWords[o] }

var outcomeWords = map[Outcome]string{
	WasRefused:  "refused by the model",
	WasFiltered: "kept back by the provider's filter",
	CutShort:    "cut short by a limit of tokens",
	LostCall:    "without a tool call that could not be read",
	Empty:       "empty",
}

// reasons are the providers' words for why a reply ended, in lower case.
var reasons = map[string]Outcome{
	"refusal": WasRefused,

	"content_filter": WasFiltered, "safety": WasFiltered, "recitation": WasFiltered, "blocklist": WasFiltered, "prohibited_content": WasFiltered, "spii": WasFiltered,
	"image_safety": WasFiltered, "image_prohibited_content": WasFiltered, "image_recitation": WasFiltered, "language": WasFiltered, "sensitive": WasFiltered,

	"length": CutShort, "max_tokens": CutShort, "max_output_tokens": CutShort, "model_context_window_exceeded": CutShort, "model_length": CutShort,

	"tool_calls": LostCall, "tool_use": LostCall, "function_call": LostCall, // without a call, although they announce one
	"malformed_function_call": LostCall, "unexpected_tool_call": LostCall, "malformed_tool_call": LostCall, "too_many_tool_calls": LostCall,
}

// lostCall begins the texts of CutCall.
const lostCall = "a call of "

// CutCall returns the text for a message's metadata that says that a call was left out because its arguments were cut off.
func CutCall(tool string) string {
	return lostCall + tool + " was left out: the limit of output tokens cut its arguments off"
}

// RefusalPart is the type of a part with the text of a model that declines.
const RefusalPart = "refusal"

// OutcomeOf returns the outcome of a reply.
func OutcomeOf(m *Message) Outcome {
	said := reasons[strings.ToLower(m.Meta.FinishReason)]
	refuses := slices.ContainsFunc(m.Content, func(p Part) bool { return p.Type == RefusalPart })
	switch {
	case refuses || said == WasRefused:
		return WasRefused
	case said == WasFiltered:
		return said
	case strings.HasPrefix(m.Meta.Error, lostCall) || said == LostCall && len(m.Calls) == 0:
		return LostCall
	case said == CutShort:
		return said
	case len(m.Calls) == 0 && !m.Unfinished && !slices.ContainsFunc(m.Content, says):
		return Empty
	}
	return Answered
}

// says reports whether a part is visible to the reader.
func says(p Part) bool {
	return p.Type != ThinkingPart && (p.Type != TextPart || strings.TrimSpace(p.Text) != "")
}

// Refusal says who refused an answer; "" if the message is no answer or was not refused.
func (m *Message) Refusal() string {
	if o := OutcomeOf(m); m.Role == Assistant && o.Refused() {
		return o.Words()
	}
	return ""
}
