package openai

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/provider/wiretest"
)

const hello = `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}

data: [DONE]

`

func TestClient(t *testing.T) {
	headers := map[string]string{"Authorization": "Bearer k", "Openai-Organization": "org-1"}
	base := wiretest.Serve(t,
		wiretest.Exchange{Method: "POST", URI: "/v1/chat/completions", Header: headers, Type: "text/event-stream", Answer: hello,
			Body: `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`},
		wiretest.Exchange{Method: "POST", URI: "/v1/chat/completions", Header: headers, Type: "application/json", Body: `{"model":"m","stream":false}`,
			Answer: `{"choices":[{"index":0,"message":{"role":"assistant","content":"Whole"},"finish_reason":"stop"}]}`},
		wiretest.Exchange{Method: "GET", URI: "/v1/models", Header: headers, Type: "application/json",
			Answer: `{"data":[{"id":"a","created":1764200000},{"id":"b","name":"B","context_length":7},{"id":"c","max_model_len":8}]}`},
	)
	c, err := NewClient(wire.Options{Getenv: wiretest.Env("OPENAI_BASE_URL", base+"/v1", "OPENAI_API_KEY", "k", "OPENAI_ORG_ID", "org-1")})
	if err != nil {
		t.Fatal(err)
	}
	wiretest.Says(t, c, wire.Request{Body: []byte(`{"model":"m"}`)}, "Hello")
	wiretest.Says(t, c, wire.Request{Body: []byte(`{"model":"m"}`), Whole: true}, "Whole")
	models, err := c.Models(t.Context())
	want := []wire.Model{{ID: "a", Created: time.Unix(1764200000, 0).UTC()}, {ID: "b", Name: "B", InputLimit: 7}, {ID: "c", InputLimit: 8}}
	if err != nil || !reflect.DeepEqual(models, want) {
		t.Errorf("%+v, %v", models, err)
	}
	if _, err := c.Count(t.Context(), wire.Request{}); !errors.Is(err, wire.ErrNoCount) {
		t.Errorf("count: %v", err)
	}
}

// TestOwnServer: a server of one's own needs no key; /v1 is added if the address has no path; the organisation is sent only to OpenAI.
func TestOwnServer(t *testing.T) {
	headers := map[string]string{"Authorization": "", "Openai-Organization": ""}
	base := wiretest.Serve(t, wiretest.Exchange{Method: "POST", URI: "/v1/chat/completions", Header: headers, Type: "text/event-stream", Answer: hello,
		Body: `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`})
	c, err := NewClient(wire.Options{BaseURL: base, Getenv: wiretest.Env("OPENAI_ORG_ID", "org-1")})
	if err != nil {
		t.Fatal(err)
	}
	wiretest.Says(t, c, wire.Request{Body: []byte(`{"model":"m"}`)}, "Hello")
}

// TestAzure: Azure takes its key in a header of its own.
func TestAzure(t *testing.T) {
	s, err := NewSender(Provider, wire.Options{BaseURL: "https://mine.openai.azure.com/openai/v1/", Getenv: wiretest.Env("AZURE_OPENAI_API_KEY", "az")})
	if err != nil || s.Header.Get("Api-Key") != "az" || s.Base != "https://mine.openai.azure.com/openai/v1" {
		t.Errorf("%+v, %v", s, err)
	}
}
