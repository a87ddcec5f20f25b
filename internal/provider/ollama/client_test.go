package ollama

import (
	"errors"
	"testing"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/provider/wiretest"
)

func TestClient(t *testing.T) {
	line := `{"model":"m","message":{"role":"assistant","content":"Hello"},"done":true,"done_reason":"stop"}` + "\n"
	base := wiretest.Serve(t,
		wiretest.Exchange{Method: "POST", URI: "/api/chat", Body: `{"model":"m","stream":true}`, Type: "application/x-ndjson", Answer: line},
		// Old servers label their lines as JSON.
		wiretest.Exchange{Method: "POST", URI: "/api/chat", Body: `{"model":"m","stream":true}`, Type: "application/json", Answer: line},
		wiretest.Exchange{Method: "POST", URI: "/api/chat", Body: `{"model":"m","stream":false}`, Type: "application/json", Answer: line},
		wiretest.Exchange{Method: "GET", URI: "/api/tags", Type: "application/json", Answer: `{"models":[{"name":"llama3.2:1b","modified_at":"2026-01-02T03:04:05+02:00"}]}`},
	)
	c, err := NewClient(wire.Options{Getenv: wiretest.Env("OLLAMA_HOST", base)})
	if err != nil {
		t.Fatal(err)
	}
	for _, whole := range []bool{false, false, true} {
		wiretest.Says(t, c, wire.Request{Body: []byte(`{"model":"m"}`), Whole: whole}, "Hello")
	}
	models, err := c.Models(t.Context())
	if err != nil || len(models) != 1 || models[0].ID != "llama3.2:1b" || models[0].Created.Hour() != 1 {
		t.Errorf("%+v, %v", models, err)
	}
	if _, err := c.Count(t.Context(), wire.Request{}); !errors.Is(err, wire.ErrNoCount) {
		t.Errorf("count: %v", err)
	}
}

// TestWindow: first the model's file, then what the server loaded it with, then its maximum.
func TestWindow(t *testing.T) {
	show := func(answer string) wiretest.Exchange {
		return wiretest.Exchange{Method: "POST", URI: "/api/show", Body: `{"model":"m"}`, Type: "application/json", Answer: answer}
	}
	ps := func(answer string) wiretest.Exchange {
		return wiretest.Exchange{Method: "GET", URI: "/api/ps", Type: "application/json", Answer: answer}
	}
	const info = `"model_info":{"general.architecture":"llama","llama.context_length":131072}`
	for _, test := range []struct {
		exchanges []wiretest.Exchange
		want      int64
		sure      bool
	}{
		{[]wiretest.Exchange{show(`{"parameters":"stop \"<|eot|>\"\nnum_ctx                        8192",` + info + `}`)}, 8192, true},
		{[]wiretest.Exchange{show(`{` + info + `}`), ps(`{"models":[{"name":"other","context_length":7},{"name":"m:latest","context_length":4096}]}`)}, 4096, true},
		{[]wiretest.Exchange{show(`{` + info + `}`), ps(`{"models":[]}`)}, 131072, false},
		{[]wiretest.Exchange{show(`{}`), ps(`{"models":[]}`)}, 0, false},
	} {
		c, err := NewClient(wire.Options{Getenv: wiretest.Env("OLLAMA_HOST", wiretest.Serve(t, test.exchanges...))})
		if err != nil {
			t.Fatal(err)
		}
		if n, sure, err := c.Window(t.Context(), "m"); n != test.want || sure != test.sure || err != nil {
			t.Errorf("%d %v %v, want %d %v", n, sure, err, test.want, test.sure)
		}
	}
}

func TestHost(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "http://127.0.0.1:11434",
		"0.0.0.0":                 "http://127.0.0.1:11434",
		"0.0.0.0:8080":            "http://127.0.0.1:8080",
		":1234":                   "http://127.0.0.1:1234",
		"box.lan":                 "http://box.lan:11434",
		"box.lan:99":              "http://box.lan:99",
		"http://box.lan":          "http://box.lan:80",
		"https://ollama.com":      "https://ollama.com:443",
		"https://box.lan:1/base/": "https://box.lan:1/base",
		"[::1]":                   "http://[::1]:11434",
		"[::1]:5":                 "http://[::1]:5",
		` "box.lan" `:             "http://box.lan:11434",
	} {
		s, err := NewClient(wire.Options{Getenv: wiretest.Env("OLLAMA_HOST", in)})
		if err != nil || s.sender.Base != want {
			t.Errorf("%q became %v (%v), want %s", in, s, err, want)
		}
	}
}
