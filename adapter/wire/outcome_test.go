package wire

import (
	"testing"

	"github.com/chatctx/chatctx/pool"
)

func TestOutcomeOf(t *testing.T) {
	text, thought := pool.Part{Type: pool.TextPart, Text: "Yes."}, pool.Part{Type: pool.ThinkingPart, Text: "Hm."}
	call := []pool.Call{{ID: "1", Tool: "now"}}
	for _, c := range []struct {
		name string
		m    pool.Message
		want Outcome
	}{
		{"an answer", pool.Message{Content: []pool.Part{thought, text}, Meta: pool.Metadata{FinishReason: "stop"}}, Answered},
		{"calls alone", pool.Message{Calls: call, Meta: pool.Metadata{FinishReason: "tool_calls"}}, Answered},
		{"a picture alone", pool.Message{Content: []pool.Part{{Type: pool.ImagePart}}}, Answered},
		{"Anthropic declines", pool.Message{Content: []pool.Part{text}, Meta: pool.Metadata{FinishReason: "refusal"}}, WasRefused},
		{"OpenAI declines in words of its own", pool.Message{Content: []pool.Part{{Type: RefusalPart, Text: "No."}}, Meta: pool.Metadata{FinishReason: "stop"}}, WasRefused},
		{"OpenAI filters", pool.Message{Content: []pool.Part{text}, Meta: pool.Metadata{FinishReason: "content_filter"}}, WasFiltered},
		{"Gemini filters", pool.Message{Meta: pool.Metadata{FinishReason: "PROHIBITED_CONTENT"}}, WasFiltered},
		{"OpenAI's limit", pool.Message{Content: []pool.Part{text}, Meta: pool.Metadata{FinishReason: "length"}}, CutShort},
		{"Gemini's limit, all of it thought", pool.Message{Content: []pool.Part{thought}, Meta: pool.Metadata{FinishReason: "MAX_TOKENS"}}, CutShort},
		{"the window is full", pool.Message{Content: []pool.Part{text}, Meta: pool.Metadata{FinishReason: "model_context_window_exceeded"}}, CutShort},
		{"half a call", pool.Message{Meta: pool.Metadata{FinishReason: "length", Error: CutCall("write")}}, LostCall},
		{"a call that Gemini could not read", pool.Message{Meta: pool.Metadata{FinishReason: "MALFORMED_FUNCTION_CALL"}}, LostCall},
		{"a call that was announced and did not come", pool.Message{Content: []pool.Part{text}, Meta: pool.Metadata{FinishReason: "tool_calls"}}, LostCall},
		{"nothing", pool.Message{Meta: pool.Metadata{FinishReason: "stop"}}, Empty},
		{"white space", pool.Message{Content: []pool.Part{{Type: pool.TextPart, Text: " \n"}}}, Empty},
		{"thoughts alone", pool.Message{Content: []pool.Part{thought}, Meta: pool.Metadata{FinishReason: "end_turn"}}, Empty},
		{"a reply that broke off says so elsewhere", pool.Message{Unfinished: true}, Answered},
	} {
		if got := OutcomeOf(&c.m); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestErrorsUnder200: the provider's words count, not the status 200.
func TestErrorsUnder200(t *testing.T) {
	for _, c := range []struct {
		body string
		want Kind
	}{
		{`{"type":"error","error":{"type":"invalid_request_error","message":"messages.1: bad"}}`, Invalid},
		{`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, Overloaded},
		{`{"error":{"code":400,"message":"bad tool"}}`, Invalid},
		{`{"error":{"code":429,"message":"slow"}}`, RateLimit},
		{`{"error":{"code":"400","message":"bad tool"}}`, Invalid},
		{`{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}`, Overloaded},
		{`{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}`, Invalid},
		{`{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED"}}`, Authentication},
		{`{"error":{"code":"invalid_image_format","message":"no image"}}`, Invalid},
		{`{"error":{"code":"image_content_policy_violation","message":"no"}}`, Refused},
		{`{"error":{"code":"unsupported_image_media_type","message":"no"}}`, Invalid},
		{`{"error":{"code":"rate_limit_exceeded","message":"slow"}}`, RateLimit},
		{`{"error":{"type":"BadRequestError","message":"bad","code":400}}`, Invalid},
		{`{"error":"something"}`, Overloaded},
		{`{"error":"prompt is too long: 9 tokens"}`, TooLong},
	} {
		e := Classify("x", 200, nil, []byte(c.body))
		if e.Kind != c.want || e.Temporary() != (c.want == RateLimit || c.want == Overloaded) {
			t.Errorf("%s is %s, want %s", c.body, e.Kind, c.want)
		}
	}
	if e := Classify("x", 401, nil, []byte(`{"error":{"type":"invalid_request_error","message":"no key"}}`)); e.Kind != Authentication {
		t.Errorf("a 401 is %s", e.Kind)
	}
}
