package gemini

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/internal/jsontree"
)

// Client talks to the Gemini API.
type Client struct{ sender *wire.Sender }

// NewClient returns a Client with the address and key of o, else those of GOOGLE_GEMINI_BASE_URL, and GEMINI_API_KEY or GOOGLE_API_KEY. An address without a
// path gets /v1beta.
func NewClient(o wire.Options) (*Client, error) {
	s, err := o.Sender(place(), func(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) })
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(s.Base); err == nil && u.Path == "" {
		s.Base += "/v1beta"
	}
	return &Client{s}, nil
}

// place returns the API's address, and the variables that change it.
func place() wire.Place {
	return wire.Place{Provider: Provider, Base: "https://generativelanguage.googleapis.com", BaseEnv: []string{"GOOGLE_GEMINI_BASE_URL"},
		KeyEnv: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}}
}

func init() { adapter.Register(adapter.NewService(place(), Adapter, NewClient)) }

// path returns the path of a method of a model, whose name may begin with models/ or tunedModels/.
func path(model, method string) string {
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	return "/" + (&url.URL{Path: model}).EscapedPath() + ":" + method
}

// Send asks for a reply.
func (c *Client) Send(ctx context.Context, r wire.Request) (*wire.Stream, error) {
	if r.Whole {
		return c.sender.Stream(ctx, path(r.Model, "generateContent"), r, wire.SSE, NewFold())
	}
	return c.sender.Stream(ctx, path(r.Model, "streamGenerateContent")+"?alt=sse", r, wire.SSE, NewFold())
}

// Count returns the number of input tokens of a body.
func (c *Client) Count(ctx context.Context, r wire.Request) (int64, error) {
	o, err := jsontree.ParseObject(r.Body)
	if err != nil {
		return 0, err
	}
	model := r.Model
	if !strings.Contains(model, "/") {
		model = "models/" + model
	}
	inner := append(jsontree.Members{{Name: "model", Value: jsontree.Quote(model)}}, o.Without("model")...)
	body := jsontree.Members{{Name: "generateContentRequest", Value: inner.Bytes()}}.Bytes()
	var v struct {
		Tokens int64 `json:"totalTokens"`
	}
	err = c.sender.JSON(ctx, path(r.Model, "countTokens"), r.Header, body, &v)
	return v.Tokens, err
}

// Models returns the models that generate content.
func (c *Client) Models(ctx context.Context) ([]wire.Model, error) {
	var all []wire.Model
	next := ""
	for {
		var page struct {
			Models []struct {
				Name    string   `json:"name"`
				Display string   `json:"displayName"`
				Input   int64    `json:"inputTokenLimit"`
				Output  int64    `json:"outputTokenLimit"`
				Methods []string `json:"supportedGenerationMethods"`
			} `json:"models"`
			Next string `json:"nextPageToken"`
		}
		if err := c.sender.JSON(ctx, "/models?pageSize=1000"+next, nil, nil, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Models {
			if len(m.Methods) == 0 || strings.Contains(strings.Join(m.Methods, " "), "generateContent") {
				all = append(all, wire.Model{ID: strings.TrimPrefix(m.Name, "models/"), Name: m.Display, InputLimit: m.Input, OutputLimit: m.Output})
			}
		}
		token := "&pageToken=" + url.QueryEscape(page.Next)
		if page.Next == "" || token == next {
			return all, nil
		}
		next = token
	}
}
