package ollama

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/chatctx/chatctx/adapter/wire"
)

// Client talks to an Ollama server.
type Client struct{ sender *wire.Sender }

// NewClient finds the server: o's address, else OLLAMA_HOST as Ollama's own programs read it (HOST, HOST:PORT, :PORT or an
// address), else this machine. OLLAMA_API_KEY is sent where it is set.
func NewClient(o wire.Options) (*Client, error) {
	env := o.Getenv
	if env == nil {
		env = os.Getenv
	}
	s, err := o.Sender(wire.Place{Provider: Provider, Base: base(env("OLLAMA_HOST")), KeyEnv: wire.KeyVariables["ollama"], KeyFree: true},
		func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) })
	if err != nil {
		return nil, err
	}
	s.Base = strings.TrimSuffix(s.Base, "/api")
	return &Client{s}, nil
}

// base makes an address of what may be less than one.
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
	body, err := wire.Streaming(r)
	if err != nil {
		return nil, err
	}
	return c.sender.Stream(ctx, "/api/chat", body, wire.JSONLines, NewFold())
}

// Count gives wire.ErrNoCount.
func (c *Client) Count(context.Context, wire.Request) (int64, error) { return 0, wire.ErrNoCount }

// Models lists the models that the server has on its disk.
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
