package approval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// servers are the MCP servers that an Executor has started or reached. They stay open for further calls.
type servers struct {
	mu   sync.Mutex
	open map[string]*server
}

// server is one MCP server.
type server struct {
	session *mcp.ClientSession
	group   *group // of a command; nil: the server is reached by a URL
	calls   atomic.Int32
}

// endGrace is how long to wait for a server that was told to end.
const endGrace = 2 * time.Second

// connect starts or reaches the server of a tool.
func connect(ctx context.Context, t *record.Tool, helper []string) (*server, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "chatctx", Version: "1"}, nil)
	s := &server{}
	var transport mcp.Transport
	if t.URL != "" {
		sent, err := headers(t)
		if err != nil {
			return nil, err
		}
		transport = &mcp.StreamableClientTransport{Endpoint: t.URL, HTTPClient: &http.Client{Transport: sent}, DisableStandaloneSSE: true}
	} else {
		if len(t.Command) == 0 {
			return nil, fmt.Errorf("the MCP server %s has no command and no URL", t.Name)
		}
		cmd := exec.Command(t.Command[0], t.Command[1:]...)
		if err := folderOf(t); err != nil {
			return nil, err
		}
		cmd.Dir, cmd.Env = t.Dir, environment(t, nil)
		s.group = newGroup(cmd, helper)
		transport = &started{&mcp.CommandTransport{Command: cmd, TerminateDuration: endGrace}, s.group}
	}
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		s.close()
		return nil, fmt.Errorf("the MCP server %s: %w", t.Name, err)
	}
	s.session = session
	return s, nil
}

// headed adds headers to requests to one server, but not to others to which that redirects.
type headed struct {
	to     *url.URL
	values http.Header
}

// headers reads the values of a tool's headers from the environment. They are not stored.
func headers(t *record.Tool) (http.RoundTripper, error) {
	to, err := url.Parse(t.URL)
	if err != nil {
		return nil, fmt.Errorf("the MCP server %s: its address cannot be read", t.Name)
	}
	h := &headed{to, http.Header{}}
	for name, variable := range t.Headers {
		v := os.Getenv(variable)
		switch {
		case v == "":
			return nil, fmt.Errorf("the MCP server %s: the environment variable %s for its header %s is not set", t.Name, variable, name)
		case strings.ContainsAny(v, "\r\n\x00"):
			return nil, fmt.Errorf("the MCP server %s: the environment variable %s holds a value that no header can have", t.Name, variable)
		}
		h.values.Set(name, v)
	}
	return h, nil
}

func (h *headed) RoundTrip(req *http.Request) (*http.Response, error) {
	if len(h.values) > 0 && req.URL.Scheme == h.to.Scheme && req.URL.Host == h.to.Host {
		req = req.Clone(req.Context())
		for name, values := range h.values {
			req.Header[name] = values
		}
	}
	return http.DefaultTransport.RoundTrip(req)
}

// started starts a group after its command was started.
type started struct {
	*mcp.CommandTransport
	group *group
}

func (t *started) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.CommandTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.group.started(); err != nil {
		return nil, errors.Join(err, t.group.kill(), c.Close())
	}
	return c, nil
}

// close ends a server. It waits endGrace at most.
func (s *server) close() {
	if s.group != nil {
		defer s.group.close()
		defer s.group.kill() // ends what the server left behind
	}
	if s.session == nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.session.Close() // a server that ends by a signal returns an error
	}()
	select {
	case <-ended:
	case <-time.After(2 * endGrace):
	}
}

// get returns the server of a tool and starts it if needed. ctx bounds the start, not the server's life.
func (s *servers) get(ctx context.Context, t *record.Tool, helper []string) (*server, string, error) {
	key := fmt.Sprintf("%q %q %q %q %q", t.URL, t.Dir, t.Command, t.Headers, t.Env)
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.open[key]; known != nil {
		return known, key, nil
	}
	made, err := connect(ctx, t, helper)
	if err != nil {
		return nil, key, err
	}
	if s.open == nil {
		s.open = map[string]*server{}
	}
	s.open[key] = made
	return made, key, nil
}

// drop forgets a server whose connection is broken, so that the next call starts a new one.
func (s *servers) drop(key string, gone *server) {
	s.mu.Lock()
	known := s.open[key] == gone
	if known {
		delete(s.open, key)
	}
	s.mu.Unlock()
	if known {
		if gone.group != nil {
			_ = gone.group.kill() // it may not notice that the call was given up
		}
		gone.close()
	}
}

func (s *servers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.open {
		one.close()
	}
	s.open = nil
}

// call calls a tool of a server.
func (s *servers) call(ctx context.Context, t *record.Tool, in Invocation, helper []string) (a record.CallAnswer, err error) {
	one, key, err := s.get(ctx, t, helper)
	if err != nil {
		return a, err
	}
	arguments := in.Arguments
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage(`{}`)
	}
	one.calls.Add(1)
	res, err := one.session.CallTool(ctx, &mcp.CallToolParams{Name: t.Remote, Arguments: arguments})
	others := one.calls.Add(-1) > 0
	if err != nil {
		if one.broken(ctx, err, others) {
			s.drop(key, one)
		}
		return a, err
	}
	a.Result, err = resultOf(res)
	return a, err
}

// pingWait is how long a server may take to answer a ping after a call to it was given up.
var pingWait = 2 * time.Second

// broken reports whether a server is useless after a call's error. A server that answered with an error lives, and so does one for which other calls wait.
// After a call that was given up, a ping decides.
func (s *server) broken(ctx context.Context, err error, others bool) bool {
	var answered *jsonrpc.Error
	switch {
	case errors.Is(err, mcp.ErrConnectionClosed), errors.Is(err, mcp.ErrSessionMissing):
		return true
	case errors.As(err, &answered), others:
		return false
	case ctx.Err() == nil: // the connection or the server's answer is faulty
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingWait)
	defer cancel()
	return s.session.Ping(ctx, nil) != nil
}

// resultOf makes a result from a server's answer.
func resultOf(res *mcp.CallToolResult) (pool.Result, error) {
	r := pool.Result{IsError: res.IsError}
	for _, c := range res.Content {
		p, err := partOf(c)
		if err != nil {
			return r, err
		}
		r.Parts = append(r.Parts, p)
	}
	if len(r.Parts) == 1 && r.Parts[0].Type == pool.TextPart {
		r.Text, r.Parts = r.Parts[0].Text, nil
	}
	if len(r.Parts) == 0 && r.Text == "" && res.StructuredContent != nil {
		raw, err := json.Marshal(res.StructuredContent)
		if err != nil {
			return r, err
		}
		r.JSON = raw
	}
	if len(r.Parts) == 0 && r.Text == "" && r.JSON == nil {
		r.Text = "(no output)"
	}
	return r, nil
}

// partOf makes a part from a piece of a server's answer.
func partOf(c mcp.Content) (pool.Part, error) {
	switch c := c.(type) {
	case *mcp.TextContent:
		return pool.Part{Type: pool.TextPart, Text: strings.ToValidUTF8(c.Text, "\uFFFD")}, nil
	case *mcp.ImageContent:
		return pool.Part{Type: pool.ImagePart, MediaType: c.MIMEType, Data: c.Data}, nil
	case *mcp.AudioContent:
		return pool.Part{Type: pool.DocumentPart, MediaType: c.MIMEType, Data: c.Data}, nil
	case *mcp.EmbeddedResource:
		if c.Resource != nil && c.Resource.Blob == nil {
			return pool.Part{Type: pool.TextPart, Text: strings.ToValidUTF8(c.Resource.Text, "\uFFFD")}, nil
		}
		if c.Resource != nil {
			return pool.Part{Type: pool.DocumentPart, MediaType: c.Resource.MIMEType, Name: c.Resource.URI, Data: c.Resource.Blob}, nil
		}
	}
	raw, err := c.MarshalJSON()
	return pool.Part{Type: pool.TextPart, Text: string(raw)}, err
}

// LeftOut names a tool of an MCP server that models cannot be given, and says why.
type LeftOut struct{ Name, Why string }

// Discover asks an MCP server for its tools and returns them by name. Tools with broken schemas are left out and named.
func Discover(ctx context.Context, t *record.Tool) (out []record.Remote, leftOut []LeftOut, err error) {
	s, err := connect(ctx, t, nil)
	if err != nil {
		return nil, nil, err
	}
	defer s.close()
	for tool, err := range s.session.Tools(ctx, nil) {
		if err != nil {
			return nil, nil, fmt.Errorf("the MCP server %s: %w", t.Name, err)
		}
		schema, err := json.Marshal(tool.InputSchema)
		if err == nil {
			err = checkSchema(schema)
		}
		if err != nil {
			leftOut = append(leftOut, LeftOut{tool.Name, err.Error()})
			continue
		}
		out = append(out, record.Remote{Name: tool.Name, Description: tool.Description, Schema: schema})
	}
	slices.SortFunc(out, func(a, b record.Remote) int { return strings.Compare(a.Name, b.Name) })
	return out, leftOut, nil
}
