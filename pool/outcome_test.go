package pool

import "testing"

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
		{"a reply that broke off says so elsewhere", Message{Unfinished: true}, Answered},
	} {
		if got := OutcomeOf(&c.m); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
