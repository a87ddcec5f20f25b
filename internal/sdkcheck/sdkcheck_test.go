// Package sdkcheck shows that the bodies of the adapters go through the official SDKs: their types read them without loss, and their
// clients send them as they are. It is a module of its own, since the SDKs are larger than everything else together.
package sdkcheck

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"sync"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	anthropicparam "github.com/anthropics/anthropic-sdk-go/packages/param"
	ollamaapi "github.com/ollama/ollama/api"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	openaiparam "github.com/openai/openai-go/v3/packages/param"
	openairesponses "github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/adaptertest"
	_ "github.com/chatctx/chatctx/adapter/all"
	"github.com/chatctx/chatctx/internal/testkit"
)

// server keeps the last body that came and answers with what the client's type reads.
type server struct {
	*httptest.Server
	mu   sync.Mutex
	body []byte
}

func serve(t testing.TB, answer string) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.body, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintln(w, answer)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) last() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body
}

// random calls f with the bodies of random drafts.
func random(t *testing.T, provider, model string, f func(body []byte)) {
	for seed := range testkit.Seeds(t, 300) {
		body, err := adaptertest.Bytes(provider, adaptertest.Random(seed, provider, model))
		if err == nil {
			f(body)
		} else if _, refused := err.(*adapter.SettingError); !refused {
			t.Fatal(err)
		}
	}
}

// same compares JSON by value.
func same(t *testing.T, what string, sent, came []byte) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(sent, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(came, &b); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, came)
	}
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("%s changed\n%s\ninto\n%s", what, sent, came)
	}
}

// through reads a body into an SDK's type and writes it again.
func through(t *testing.T, body []byte, params any) {
	t.Helper()
	if err := json.Unmarshal(body, params); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	again, err := json.Marshal(params)
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	sameType(t, body, again)
}

// sameType compares what went into an SDK's type with what came out, but for what the types cannot say: a null, an object
// that is empty, an id that is not there; and OpenAI's tool_choice, whose union forgets the name of the tool. It is why
// bodies are sent as they are, and not read into these types first.
func sameType(t *testing.T, sent, came []byte) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(sent, &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(came, &b); err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{a, b} {
		if o, ok := v.(map[string]any); ok {
			delete(o, "tool_choice")
		}
	}
	if !reflect.DeepEqual(said(a), said(b)) {
		t.Fatalf("the SDK's type changed\n%s\ninto\n%s", sent, came)
	}
}

// said is a value without the members that say nothing.
func said(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			value = said(value)
			if o, ok := value.(map[string]any); value == nil || ok && len(o) == 0 || key == "id" && value == "" {
				delete(v, key)
			} else {
				v[key] = value
			}
		}
	case []any:
		for i := range v {
			v[i] = said(v[i])
		}
	}
	return v
}

func TestAnthropic(t *testing.T) {
	s := serve(t, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
	client := anthropic.NewClient(anthropicoption.WithBaseURL(s.URL), anthropicoption.WithAPIKey("key"), anthropicoption.WithMaxRetries(0))
	random(t, adapter.Anthropic, "claude-opus-4-6", func(body []byte) {
		var params anthropic.MessageNewParams
		through(t, body, &params)
		if _, err := client.Messages.New(context.Background(), anthropicparam.Override[anthropic.MessageNewParams](json.RawMessage(body))); err != nil {
			t.Fatal(err)
		}
		same(t, "the client", body, s.last())
	})
}

func TestOpenAI(t *testing.T) {
	s := serve(t, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"x"}}]}`)
	client := openai.NewClient(openaioption.WithBaseURL(s.URL), openaioption.WithAPIKey("key"), openaioption.WithMaxRetries(0))
	random(t, adapter.OpenAI, "gpt-5", func(body []byte) {
		var params openai.ChatCompletionNewParams
		through(t, body, &params)
		if _, err := client.Chat.Completions.New(context.Background(), openaiparam.Override[openai.ChatCompletionNewParams](json.RawMessage(body))); err != nil {
			t.Fatal(err)
		}
		same(t, "the client", body, s.last())
	})
}

func TestResponses(t *testing.T) {
	s := serve(t, `{"id":"r","object":"response","model":"m","status":"completed","output":[]}`)
	client := openai.NewClient(openaioption.WithBaseURL(s.URL), openaioption.WithAPIKey("key"), openaioption.WithMaxRetries(0))
	random(t, adapter.Responses, "gpt-5", func(body []byte) {
		var params openairesponses.ResponseNewParams
		through(t, body, &params)
		if _, err := client.Responses.New(context.Background(), openaiparam.Override[openairesponses.ResponseNewParams](json.RawMessage(body))); err != nil {
			t.Fatal(err)
		}
		same(t, "the client", body, s.last())
	})
}

// TestGemini reads the contents into the SDK's types, which has none for a body as a whole, and sends a body in place of
// what the client made.
func TestGemini(t *testing.T) {
	s := serve(t, `{"candidates":[{"content":{"role":"model","parts":[{"text":"x"}]},"finishReason":"STOP"}]}`)
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{APIKey: "key", Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: s.URL}})
	if err != nil {
		t.Fatal(err)
	}
	random(t, adapter.Gemini, "gemini-3-pro", func(body []byte) {
		var parts struct {
			Contents          json.RawMessage
			SystemInstruction json.RawMessage
		}
		if err := json.Unmarshal(body, &parts); err != nil {
			t.Fatal(err)
		}
		var contents []*genai.Content
		decoder := json.NewDecoder(bytes.NewReader(parts.Contents))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&contents); err != nil {
			t.Fatalf("%v\n%s", err, parts.Contents)
		}
		again, err := json.Marshal(contents)
		if err != nil {
			t.Fatal(err)
		}
		sameType(t, parts.Contents, again)
		whole := func(map[string]any) map[string]any {
			var m map[string]any
			_ = json.Unmarshal(body, &m)
			return m
		}
		_, err = client.Models.GenerateContent(context.Background(), "gemini-3-pro", contents,
			&genai.GenerateContentConfig{HTTPOptions: &genai.HTTPOptions{ExtrasRequestProvider: whole}})
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the client", body, s.last())
	})
}

// TestOllama reads bodies into the SDK's request, which is what its server reads them into, and sends that.
func TestOllama(t *testing.T) {
	s := serve(t, `{"model":"m","message":{"role":"assistant","content":"x"},"done":true}`)
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := ollamaapi.NewClient(base, s.Client())
	random(t, adapter.Ollama, "llama3.2", func(body []byte) {
		var request ollamaapi.ChatRequest
		if err := json.Unmarshal(body, &request); err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		if err := client.Chat(context.Background(), &request, func(ollamaapi.ChatResponse) error { return nil }); err != nil {
			t.Fatal(err)
		}
		var sent, came struct {
			Messages []struct {
				Role, Content, Thinking string
				Images                  [][]byte
				ToolName                string `json:"tool_name"`
			}
		}
		if err := json.Unmarshal(body, &sent); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(s.last(), &came); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(sent, came) {
			t.Fatalf("the client sent\n%s\nfor\n%s", s.last(), body)
		}
	})
}
