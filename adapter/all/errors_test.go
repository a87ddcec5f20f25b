package all_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/provider/ollama"
	"github.com/chatctx/chatctx/internal/provider/openai"
	"github.com/chatctx/chatctx/internal/provider/responses"
	"github.com/chatctx/chatctx/pool"
)

// TestErrorsInStreams: an error in place of a reply is reported with the server's words and the right kind, whatever its shape.
func TestErrorsInStreams(t *testing.T) {
	for _, c := range []struct {
		fold       func() wire.Fold
		name, data string
		kind       wire.Kind
	}{
		{ollama.NewFold, "", `{"error":"model \"said\" not found, try pulling it first"}`, wire.Invalid},
		{ollama.NewFold, "", `{"error":"said does not support tools"}`, wire.Invalid},
		{ollama.NewFold, "", `{"error":"said: input length exceeds context length"}`, wire.TooLong},
		{ollama.NewFold, "", `{"error":"said: unauthorized"}`, wire.Authentication},
		{ollama.NewFold, "", `{"error":"said: the runner has stopped"}`, wire.Overloaded},
		{openai.NewFold, "", `{"error":{"message":"said","type":"invalid_request_error"}}`, wire.Invalid},
		{openai.NewFold, "", `{"message":"said","code":400}`, wire.Invalid},
		{openai.NewFold, "", `{"object":"error","message":"said","code":401}`, wire.Authentication},
		{openai.NewFold, "", `{"detail":"said"}`, wire.Overloaded},
		{openai.NewFold, "", `{"errors":[{"message":"said","code":429}]}`, wire.RateLimit},
		{openai.NewFold, "", `[{"error":{"message":"said","code":400}}]`, wire.Invalid},
		{openai.NewFold, "error", `{"message":"said"}`, wire.Overloaded},
		{openai.NewFold, "error", `said`, wire.Overloaded},
		{openai.NewFold, "", `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"message":"said","code":402}}]}`, wire.Refused},
		{responses.NewFold, "", `{"error":{"message":"said","type":"invalid_request_error"}}`, wire.Invalid},
		{responses.NewFold, "", `{"type":"error","message":"said","code":"rate_limit_exceeded"}`, wire.RateLimit},
		{responses.NewFold, "", `[{"error":{"message":"said","code":400}}]`, wire.Invalid},
		{responses.NewFold, "error", `{"detail":"said"}`, wire.Overloaded},
		{responses.NewFold, "", `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"said"}}}`, wire.Overloaded},
	} {
		err := c.fold().Event(wire.Event{Name: c.name, Data: []byte(c.data)}, func(wire.Delta) {})
		var e *wire.Error
		if !errors.As(err, &e) || e.Kind != c.kind || !strings.Contains(e.Message, "said") {
			t.Errorf("%s %s: %v", c.name, c.data, err)
		}
	}
	err := responses.NewFold().Event(wire.Event{Data: []byte(`{"type":"response.failed","response":{"status":"failed"}}`)}, func(wire.Delta) {})
	if err == nil || !strings.Contains(err.Error(), "no reason was given") {
		t.Errorf("a failure without a reason: %v", err)
	}
}

// TestPartsOfStreamsAreNoErrors: what servers send beside the parts of a reply is not an error.
func TestPartsOfStreamsAreNoErrors(t *testing.T) {
	for _, data := range []string{`{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, `{"choices":[],"usage":{"prompt_tokens":1}}`, `{"id":"x","object":"chat.completion.chunk","choices":null,"error":null}`, `{}`} {
		if err := openai.NewFold().Event(wire.Event{Data: []byte(data)}, func(wire.Delta) {}); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
	for _, data := range []string{`{"type":"keepalive"}`, `{"type":"response.later","message":"x"}`, `{}`} {
		if err := responses.NewFold().Event(wire.Event{Data: []byte(data)}, func(wire.Delta) {}); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// TestARefusalByItsWordsAlone: some servers send no item for a refusal, and no output in the last event.
func TestARefusalByItsWordsAlone(t *testing.T) {
	f := responses.NewFold()
	for _, data := range []string{`{"type":"response.refusal.delta","output_index":0,"delta":"I will "}`, `{"type":"response.refusal.delta","output_index":0,"delta":"not."}`,
		`{"type":"response.completed","response":{"status":"completed","output":[]}}`} {
		_ = f.Event(wire.Event{Data: []byte(data)}, func(wire.Delta) {})
	}
	m := f.Message()
	if len(m.Content) != 1 || m.Content[0].Type != pool.RefusalPart || m.Content[0].Text != "I will not." {
		t.Errorf("%+v", m.Content)
	}
}
