package gemini

import (
	"testing"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/provider/wiretest"
)

func TestClient(t *testing.T) {
	chunk := `{"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"finishReason":"STOP"}]}`
	headers := map[string]string{"X-Goog-Api-Key": "k"}
	base := wiretest.Serve(t,
		wiretest.Exchange{Method: "POST", URI: "/v1beta/models/gemini-x:streamGenerateContent?alt=sse", Header: headers, Body: `{"contents":[]}`,
			Type: "text/event-stream", Answer: "data: " + chunk + "\r\n\r\n"},
		wiretest.Exchange{Method: "POST", URI: "/v1beta/tunedModels/my-own:generateContent", Header: headers, Body: `{"contents":[]}`, Type: "application/json; charset=UTF-8", Answer: chunk},
		wiretest.Exchange{Method: "POST", URI: "/v1beta/models/gemini-x:countTokens", Header: headers, Type: "application/json", Answer: `{"totalTokens":31}`,
			Body: `{"generateContentRequest":{"model":"models/gemini-x","contents":[],"tools":[]}}`},
		wiretest.Exchange{Method: "GET", URI: "/v1beta/models?pageSize=1000", Header: headers, Type: "application/json",
			Answer: `{"models":[{"name":"models/a","displayName":"A","inputTokenLimit":5,"outputTokenLimit":6,"supportedGenerationMethods":["generateContent","countTokens"]},{"name":"models/embed","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"p/2"}`},
		wiretest.Exchange{Method: "GET", URI: "/v1beta/models?pageSize=1000&pageToken=p%2F2", Header: headers, Type: "application/json", Answer: `{"models":[{"name":"models/b"}]}`},
	)
	c, err := NewClient(wire.Options{Getenv: wiretest.Env("GOOGLE_GEMINI_BASE_URL", base, "GOOGLE_API_KEY", "k")})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"contents":[]}`)
	wiretest.Says(t, c, wire.Request{Model: "gemini-x", Body: body}, "Hello")
	wiretest.Says(t, c, wire.Request{Model: "tunedModels/my-own", Body: body, Whole: true}, "Hello")
	if n, err := c.Count(t.Context(), wire.Request{Model: "gemini-x", Body: []byte(`{"contents":[],"tools":[]}`)}); err != nil || n != 31 {
		t.Errorf("%d, %v", n, err)
	}
	models, err := c.Models(t.Context())
	if err != nil || len(models) != 2 || models[0] != (wire.Model{ID: "a", Name: "A", InputLimit: 5, OutputLimit: 6}) || models[1].ID != "b" {
		t.Errorf("%+v, %v", models, err)
	}
}
