package ollama

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/wire"
)

// Client talks to an Ollama server.
type Client struct{ sender *wire.Sender }

// NewClient returns a Client with the address of o, else that of OLLAMA_HOST as Ollama's own programs read it (HOST, HOST:PORT, :PORT or an address), else this
// machine. It sends OLLAMA_API_KEY if it is set.
func NewClient(o wire.Options) (*Client, error) {
	s, err := o.Sender(place(), func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) })
	if err != nil {
		return nil, err
	}
	s.Base = strings.TrimSuffix(s.Base, "/api")
	return &Client{s}, nil
}

// place returns the server's default address, and the variables that change it.
func place() wire.Place {
	return wire.Place{Provider: Provider, Base: base(""), BaseEnv: []string{"OLLAMA_HOST"}, Reads: base, KeyEnv: []string{"OLLAMA_API_KEY"}, KeyFree: true}
}

func init() { adapter.Register(adapter.NewService(place(), Adapter, NewClient)) }

// base returns an address for a value that may be less than one.
func base(host string) string {
	host = strings.Trim(strings.TrimSpace(host), `"'`)
	port := "11434"
	scheme, rest, found := strings.Cut(host, "://")
	if !found {
		scheme, rest = "http", host
	} else if port = "80"; scheme == "https" {
		port = "443"
	}
	rest, path, _ := strings.Cut(rest, "/")
	name, p, err := net.SplitHostPort(rest)
	if err != nil {
		name, p = strings.Trim(rest, "[]"), port
	}
	switch name {
	case "", "0.0.0.0", "::": // where a server listens, not where it is
		name = "127.0.0.1"
	}
	u := url.URL{Scheme: scheme, Host: net.JoinHostPort(name, p), Path: path}
	return u.String()
}

// Send asks for a reply.
func (c *Client) Send(ctx context.Context, r wire.Request) (*wire.Stream, error) {
	return c.sender.Ask(ctx, "/api/chat", r, wire.JSONLines, NewFold(), nil)
}

// Count returns wire.ErrNoCount.
func (c *Client) Count(context.Context, wire.Request) (int64, error) { return 0, wire.ErrNoCount }

// Models returns the models on the server's disk.
func (c *Client) Models(ctx context.Context) ([]wire.Model, error) {
	var list struct {
		Models []struct {
			Name     string    `json:"name"`
			Modified time.Time `json:"modified_at"`
		} `json:"models"`
	}
	if err := c.sender.JSON(ctx, "/api/tags", nil, nil, &list); err != nil {
		return nil, err
	}
	all := make([]wire.Model, 0, len(list.Models))
	for _, m := range list.Models {
		all = append(all, wire.Model{ID: m.Name, Created: m.Modified.UTC()})
	}
	return all, nil
}

// Window returns num_ctx of the model's own file, else the window with which the server has loaded it, else the largest window of the model, which is not sure,
// since a server loads it with less by default.
func (c *Client) Window(ctx context.Context, model string) (tokens int64, sure bool, err error) {
	var shown struct {
		Parameters string                     `json:"parameters"`
		Info       map[string]json.RawMessage `json:"model_info"`
	}
	body, err := json.Marshal(map[string]string{"model": model})
	if err == nil {
		err = c.sender.JSON(ctx, "/api/show", nil, body, &shown)
	}
	if err != nil {
		return 0, false, err
	}
	for line := range strings.Lines(shown.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil && n > 0 {
				return n, true, nil
			}
		}
	}
	if n := c.loaded(ctx, model); n > 0 {
		return n, true, nil
	}
	for name, raw := range shown.Info {
		var n int64
		if strings.HasSuffix(name, ".context_length") && json.Unmarshal(raw, &n) == nil {
			tokens = max(tokens, n)
		}
	}
	return tokens, false, nil
}

// loaded returns the window with which the server has loaded a model, 0 if it is not loaded or an old server does not say.
func (c *Client) loaded(ctx context.Context, model string) int64 {
	var running struct {
		Models []struct {
			Name   string `json:"name"`
			Window int64  `json:"context_length"`
		} `json:"models"`
	}
	if c.sender.JSON(ctx, "/api/ps", nil, nil, &running) != nil {
		return 0
	}
	for _, m := range running.Models {
		if m.Name == model || m.Name == model+":latest" {
			return m.Window
		}
	}
	return 0
}
