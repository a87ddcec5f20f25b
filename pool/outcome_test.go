package pool

import (
	"errors"
	"strings"
	"testing"
)

func TestOutcomeOf(t *testing.T) {
	text, thought := Part{Type: TextPart, Text: "Yes."}, Part{Type: ThinkingPart, Text: "Hm."}
	call := []Call{{ID: "1", Tool: "now"}}
	for _, c := range []struct {
		name string
		m    Message
		want Outcome
	}{
		{"an answer", Message{Content: []Part{thought, text}, Meta: Metadata{FinishReason: "stop"}}, Answered},
		{"calls alone", Message{Calls: call, Meta: Metadata{FinishReason: "tool_calls"}}, Answered},
		{"a picture alone", Message{Content: []Part{{Type: ImagePart}}}, Answered},
		{"Anthropic declines", Message{Content: []Part{text}, Meta: Metadata{FinishReason: "refusal"}}, WasRefused},
		{"OpenAI declines in words of its own", Message{Content: []Part{{Type: RefusalPart, Text: "No."}}, Meta: Metadata{FinishReason: "stop"}}, WasRefused},
		{"OpenAI filters", Message{Content: []Part{text}, Meta: Metadata{FinishReason: "content_filter"}}, WasFiltered},
		{"Gemini filters", Message{Meta: Metadata{FinishReason: "PROHIBITED_CONTENT"}}, WasFiltered},
		{"OpenAI's limit", Message{Content: []Part{text}, Meta: Metadata{FinishReason: "length"}}, CutShort},
		{"Gemini's limit, all of it thought", Message{Content: []Part{thought}, Meta: Metadata{FinishReason: "MAX_TOKENS"}}, CutShort},
		{"the window is full", Message{Content: []Part{text}, Meta: Metadata{FinishReason: "model_context_window_exceeded"}}, CutShort},
		{"half a call", Message{Meta: Metadata{FinishReason: "length", Error: CutCall("write")}}, LostCall},
		{"a call that Gemini could not read", Message{Meta: Metadata{FinishReason: "MALFORMED_FUNCTION_CALL"}}, LostCall},
		{"a call that was announced and did not come", Message{Content: []Part{text}, Meta: Metadata{FinishReason: "tool_calls"}}, LostCall},
		{"nothing", Message{Meta: Metadata{FinishReason: "stop"}}, Empty},
		{"white space", Message{Content: []Part{{Type: TextPart, Text: " \n"}}}, Empty},
		{"thoughts alone", Message{Content: []Part{thought}, Meta: Metadata{FinishReason: "end_turn"}}, Empty},
		{"a reply that broke off", Message{Unfinished: true, Content: []Part{text}}, BrokenOff},
		{"it broke off within a refusal", Message{Unfinished: true, Content: []Part{{Type: RefusalPart, Text: "No"}}}, WasRefused},
		{"Anthropic pauses", Message{Content: []Part{text}, Meta: Metadata{FinishReason: "pause_turn"}}, BrokenOff},
		{"Gemini gives no reason", Message{Content: []Part{text}, Meta: Metadata{FinishReason: "OTHER"}}, BrokenOff},
		{"Responses is incomplete and says no more", Message{Content: []Part{text}, Meta: Metadata{FinishReason: "incomplete"}}, BrokenOff},
		{"a server's own word", Message{Content: []Part{text}, Meta: Metadata{FinishReason: "eos_token"}}, Answered},
	} {
		if got := OutcomeOf(&c.m); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// published are the reasons that the five providers' references list, each with its outcome for a reply that has text.
var published = map[string]map[string]Outcome{
	"openai":           {"stop": Answered, "length": CutShort, "content_filter": WasFiltered, "tool_calls": LostCall, "function_call": LostCall},
	"openai-responses": {"completed": Answered, "max_output_tokens": CutShort, "content_filter": WasFiltered, "incomplete": BrokenOff, "failed": BrokenOff, "cancelled": BrokenOff},
	"anthropic": {"end_turn": Answered, "stop_sequence": Answered, "max_tokens": CutShort, "tool_use": LostCall, "pause_turn": BrokenOff, "compaction": BrokenOff,
		"refusal": WasRefused, "model_context_window_exceeded": CutShort},
	"gemini": {"STOP": Answered, "MAX_TOKENS": CutShort, "SAFETY": WasFiltered, "RECITATION": WasFiltered, "LANGUAGE": WasFiltered, "BLOCKLIST": WasFiltered,
		"PROHIBITED_CONTENT": WasFiltered, "SPII": WasFiltered, "IMAGE_SAFETY": WasFiltered, "IMAGE_PROHIBITED_CONTENT": WasFiltered, "IMAGE_RECITATION": WasFiltered,
		"OTHER": BrokenOff, "FINISH_REASON_UNSPECIFIED": BrokenOff, "IMAGE_OTHER": BrokenOff, "NO_IMAGE": BrokenOff, "MALFORMED_RESPONSE": BrokenOff,
		"MISSING_THOUGHT_SIGNATURE": BrokenOff, "MALFORMED_FUNCTION_CALL": LostCall, "UNEXPECTED_TOOL_CALL": LostCall, "TOO_MANY_TOOL_CALLS": LostCall},
	"ollama": {"stop": Answered, "length": CutShort, "load": BrokenOff, "unload": BrokenOff},
}

// TestWhole: the text of a reply with any of the published reasons is an answer only after a normal end; else the error has the outcome and the provider's word.
func TestWhole(t *testing.T) {
	for provider, all := range published {
		for reason, want := range all {
			m := Message{Role: Assistant, Content: []Part{{Type: TextPart, Text: " There are sev\n"}}, Meta: Metadata{FinishReason: reason}}
			text, err := m.Whole()
			var o *OutcomeError
			switch {
			case want == Answered:
				if err != nil || text != "There are sev" {
					t.Errorf("%s %s: %q, %v", provider, reason, text, err)
				}
			case text != "" || !errors.As(err, &o) || !errors.Is(err, ErrNotWhole) || o.Outcome != want || o.Text != "There are sev" || !strings.Contains(err.Error(), "("+reason+")"):
				t.Errorf("%s %s: %q, %v, want %q", provider, reason, text, err, want)
			}
		}
	}
	if _, err := (&Message{Content: []Part{{Type: ImagePart}}}).Whole(); !errors.Is(err, ErrNotWhole) {
		t.Errorf("a picture alone has a text: %v", err)
	}
}
