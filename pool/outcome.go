package pool

import (
	"errors"
	"slices"
	"strings"
)

// Outcome says how a model's reply ended. Whoever uses a reply for something asks for it: only an Answered reply is a whole answer.
type Outcome string

// The outcomes of a reply. Answered means that it is as it should be.
const (
	Answered    Outcome = ""
	WasRefused  Outcome = "refused"    // the model declined
	WasFiltered Outcome = "filtered"   // the provider withheld the answer, or the rest of it
	CutShort    Outcome = "cut_short"  // a limit of tokens ended it
	LostCall    Outcome = "lost_call"  // a call of a tool could not be read
	BrokenOff   Outcome = "broken_off" // it ended before its end: the connection, the program or the provider stopped it
	Empty       Outcome = "empty"      // neither words nor calls
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
	BrokenOff:   "broken off before its end",
	Empty:       "empty",
}

// reasons are the words of all providers for why a reply ended, in lower case, and those of the servers that speak their protocols. An unknown word counts as a
// normal end, since servers have many words for it.
var reasons = map[string]Outcome{
	"stop": Answered, "end_turn": Answered, "stop_sequence": Answered, "completed": Answered,

	"refusal": WasRefused,

	"content_filter": WasFiltered, "safety": WasFiltered, "recitation": WasFiltered, "blocklist": WasFiltered, "prohibited_content": WasFiltered, "spii": WasFiltered,
	"image_safety": WasFiltered, "image_prohibited_content": WasFiltered, "image_recitation": WasFiltered, "language": WasFiltered, "sensitive": WasFiltered,

	"length": CutShort, "max_tokens": CutShort, "max_output_tokens": CutShort, "model_context_window_exceeded": CutShort, "model_length": CutShort,

	"tool_calls": LostCall, "tool_use": LostCall, "function_call": LostCall, // without a call, although they announce one
	"malformed_function_call": LostCall, "unexpected_tool_call": LostCall, "malformed_tool_call": LostCall, "too_many_tool_calls": LostCall,

	"pause_turn": BrokenOff, "compaction": BrokenOff, // Anthropic's, where the program is to send it again
	"incomplete": BrokenOff, "failed": BrokenOff, "cancelled": BrokenOff, "in_progress": BrokenOff, "queued": BrokenOff,
	"finish_reason_unspecified": BrokenOff, "other": BrokenOff, "image_other": BrokenOff, "no_image": BrokenOff, "malformed_response": BrokenOff,
	"missing_thought_signature": BrokenOff,
	"load":                      BrokenOff, "unload": BrokenOff,
	"error": BrokenOff, "abort": BrokenOff, "aborted": BrokenOff, "insufficient_system_resource": BrokenOff,
}

// lostCall begins the texts of CutCall.
const lostCall = "a call of "

// CutCall returns the text for a message's metadata that says that a call was left out because its arguments were cut off.
func CutCall(tool string) string {
	return lostCall + tool + " was left out: the limit of output tokens cut its arguments off"
}

// RefusalPart is the type of a part with the text of a model that declines.
const RefusalPart = "refusal"

// OutcomeOf returns the outcome of a reply, which is that of its worst fault.
func OutcomeOf(m *Message) Outcome {
	said := reasons[strings.ToLower(m.Meta.FinishReason)]
	refuses := slices.ContainsFunc(m.Content, func(p Part) bool { return p.Type == RefusalPart })
	switch {
	case refuses || said == WasRefused:
		return WasRefused
	case said == WasFiltered:
		return said
	case m.Unfinished:
		return BrokenOff
	case strings.HasPrefix(m.Meta.Error, lostCall) || said == LostCall && len(m.Calls) == 0:
		return LostCall
	case said == CutShort || said == BrokenOff:
		return said
	case IsBlank(m):
		return Empty
	}
	return Answered
}

// IsBlank reports whether a message has nothing for a reader: neither words nor calls, at most thoughts.
func IsBlank(m *Message) bool { return len(m.Calls) == 0 && !slices.ContainsFunc(m.Content, says) }

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

// Ending words the outcome of a reply, with the provider's term for it and what is known of the cause; "" for Answered. It is text from outside.
func (m *Message) Ending() string {
	text := OutcomeOf(m).Words()
	if text != "" && m.Meta.FinishReason != "" {
		text += " (" + m.Meta.FinishReason + ")"
	}
	if text != "" && m.Meta.Error != "" {
		text += ": " + m.Meta.Error
	}
	return text
}

// ErrNotWhole is what errors.Is finds in an *OutcomeError.
var ErrNotWhole = errors.New("the reply is not a whole answer")

// OutcomeError means that a reply cannot be used as an answer: it was cut short, refused, filtered or broken off, or it is empty.
type OutcomeError struct {
	Outcome Outcome
	Ending  string // what Message.Ending says
	Text    string // what arrived; it may be a part of an answer, or a refusal
}

// Error says how the reply ended.
func (e *OutcomeError) Error() string { return "the model's answer is " + e.Ending }

// Is reports whether target is ErrNotWhole.
func (e *OutcomeError) Is(target error) bool { return target == ErrNotWhole }

// Whole returns the text of a reply that is a whole answer. Any other reply is an *OutcomeError, and so is one without text.
func (m *Message) Whole() (string, error) {
	text := strings.TrimSpace(m.Text())
	switch o := OutcomeOf(m); {
	case o != Answered:
		return "", &OutcomeError{o, m.Ending(), text}
	case text == "":
		return "", &OutcomeError{Empty, Empty.Words(), ""}
	}
	return text, nil
}
