package anthropic

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/provider/wiretest"
)

const hello = `data: {"type":"message_start","message":{"model":"m"}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}

data: {"type":"message_stop"}

`

func TestClient(t *testing.T) {
	headers := map[string]string{"X-Api-Key": "k", "Anthropic-Version": "2023-06-01", "Content-Type": "application/json"}
	beta := map[string]string{"Anthropic-Beta": "b", "X-Api-Key": "k"}
	whole := `{"model":"m","content":[{"type":"text","text":"Whole"}],"stop_reason":"end_turn"}`
	base := wiretest.Serve(t,
		wiretest.Exchange{Method: "POST", URI: "/v1/messages", Header: headers, Body: `{"model":"m","max_tokens":9,"stream":true}`, Type: "text/event-stream; charset=utf-8", Answer: hello},
		wiretest.Exchange{Method: "POST", URI: "/v1/messages", Header: beta, Body: `{"model":"m","stream":false}`, Type: "application/json", Answer: whole},
		wiretest.Exchange{Method: "POST", URI: "/v1/messages/count_tokens", Header: beta, Body: `{"model":"m","messages":[],"thinking":{}}`, Type: "application/json", Answer: `{"input_tokens":14}`},
		wiretest.Exchange{Method: "GET", URI: "/v1/models?limit=1000", Header: headersWithout(headers), Type: "application/json",
			Answer: `{"data":[{"id":"a","display_name":"A","created_at":"2026-01-02T03:04:05Z","max_input_tokens":5,"max_tokens":6}],"has_more":true,"last_id":"a"}`},
		wiretest.Exchange{Method: "GET", URI: "/v1/models?limit=1000&after_id=a", Type: "application/json", Answer: `{"data":[{"id":"b","display_name":"B"}],"has_more":false}`},
	)
	c, err := NewClient(wire.Options{Getenv: wiretest.Env("ANTHROPIC_BASE_URL", base+"/v1/", "ANTHROPIC_API_KEY", "k")})
	if err != nil {
		t.Fatal(err)
	}
	wiretest.Says(t, c, wire.Request{Body: []byte(`{"model":"m","max_tokens":9}`)}, "Hello")
	h := http.Header{"anthropic-beta": {"b"}}
	wiretest.Says(t, c, wire.Request{Body: []byte(`{"model":"m"}`), Header: h, Whole: true}, "Whole")
	n, err := c.Count(t.Context(), wire.Request{Body: []byte(`{"model":"m","max_tokens":9,"messages":[],"temperature":1,"thinking":{}}`), Header: h})
	if err != nil || n != 14 {
		t.Errorf("%d, %v", n, err)
	}
	models, err := c.Models(t.Context())
	want := []wire.Model{{ID: "a", Name: "A", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), InputLimit: 5, OutputLimit: 6}, {ID: "b", Name: "B"}}
	if err != nil || !reflect.DeepEqual(models, want) {
		t.Errorf("%+v, %v", models, err)
	}
}

// headersWithout returns the headers of a request without a body.
func headersWithout(h map[string]string) map[string]string {
	out := map[string]string{"Content-Type": ""}
	for name, value := range h {
		if name != "Content-Type" {
			out[name] = value
		}
	}
	return out
}
