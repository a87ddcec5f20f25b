package responses

import (
	"testing"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/provider/wiretest"
)

func TestClient(t *testing.T) {
	whole := `{"id":"r","model":"m","status":"completed","output":[{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"Hello"}]}]}`
	headers := map[string]string{"Authorization": "Bearer k"}
	base := wiretest.Serve(t,
		wiretest.Exchange{Method: "POST", URI: "/v1/responses", Header: headers, Body: `{"model":"m","input":[],"stream":true}`, Type: "text/event-stream",
			Answer: `data: {"type":"response.completed","response":` + whole + "}\n\n"},
		wiretest.Exchange{Method: "POST", URI: "/v1/responses", Header: headers, Body: `{"model":"m","stream":false}`, Type: "application/json", Answer: whole},
		wiretest.Exchange{Method: "POST", URI: "/v1/responses/input_tokens", Header: headers, Body: `{"model":"m","input":[]}`, Type: "application/json",
			Answer: `{"object":"response.input_tokens","input_tokens":21}`},
		wiretest.Exchange{Method: "GET", URI: "/v1/models", Header: headers, Type: "application/json", Answer: `{"data":[{"id":"a"}]}`},
	)
	c, err := NewClient(wire.Options{Getenv: wiretest.Env("OPENAI_BASE_URL", base+"/v1", "OPENAI_API_KEY", "k")})
	if err != nil {
		t.Fatal(err)
	}
	wiretest.Says(t, c, wire.Request{Body: []byte(`{"model":"m","input":[]}`)}, "Hello")
	wiretest.Says(t, c, wire.Request{Body: []byte(`{"model":"m"}`), Whole: true}, "Hello")
	if n, err := c.Count(t.Context(), wire.Request{Body: []byte(`{"model":"m","input":[],"store":false,"include":[],"max_output_tokens":9}`)}); err != nil || n != 21 {
		t.Errorf("%d, %v", n, err)
	}
	if models, err := c.Models(t.Context()); err != nil || len(models) != 1 || models[0].ID != "a" {
		t.Errorf("%+v, %v", models, err)
	}
}
