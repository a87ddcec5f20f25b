package sdkcheck

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/chatctx/chatctx/adapter"
	_ "github.com/chatctx/chatctx/adapter/anthropic" // registers itself
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// A program that has Anthropic's client already sends a branch through it: the body stands in for the parameters, and the
// client's authentication, retries and streaming stay.
func Example() {
	ctx := context.Background()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Messages []struct{ Content []struct{ Text string } }
		}
		raw, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(raw, &asked)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"You said: %s"}]}`, asked.Messages[0].Content[0].Text)
	}))
	defer server.Close()
	client := anthropic.NewClient(option.WithBaseURL(server.URL), option.WithAPIKey("key"))

	store, err := chatctx.OpenMemory(chatctx.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	conversation, err := store.New(ctx, record.NewContext{
		Settings: map[string]json.RawMessage{"model": json.RawMessage(`"claude-opus-4-6"`)},
		Messages: []*chatctx.Message{pool.NewText(pool.User, "Hello")},
	})
	if err != nil {
		log.Fatal(err)
	}

	draft, err := conversation.Draft(ctx, "main")
	if err != nil {
		log.Fatal(err)
	}
	service, err := adapter.ServiceOf(adapter.Anthropic)
	if err != nil {
		log.Fatal(err)
	}
	body, err := service.Adapter.Adapt(draft)
	if err != nil {
		log.Fatal(err)
	}
	raw, err := body.MarshalJSON()
	if err != nil {
		log.Fatal(err)
	}
	reply, err := client.Messages.New(ctx, param.Override[anthropic.MessageNewParams](json.RawMessage(raw)))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Content[0].Text)
	// Output: You said: Hello
}
