package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
)

// Limits of a conversation over standard input and output.
const (
	mostLine    = 16 << 20  // bytes of a line in either direction
	chunk       = 256 << 10 // bytes of content in a notification
	mostRunning = 1000      // requests at a time
	endTime     = 700 * time.Millisecond
)

// The codes of JSON-RPC itself; errors of methods have those of the command line.
const (
	codeParse   = -32700
	codeInvalid = -32600
	codeMethod  = -32601
	codeFirst   = -32002 // initialize has to come first
)

// rpcMessage is a line.
type rpcMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    *contract.Error `json:"data,omitempty"`
}

// initialized answers initialize.
type initialized struct {
	Protocol int        `json:"protocol"`
	Program  string     `json:"program"`
	Format   int        `json:"format"` // version of the store's
	Store    chatctx.ID `json:"store"`
	Methods  []string   `json:"methods"`
}

// rpc is one conversation.
type rpc struct {
	server *Server
	ctx    context.Context
	begun  bool // initialize came

	out   sync.Mutex // a line at a time
	w     io.Writer
	lost  context.CancelFunc // of ctx, where nothing can be written any more
	mu    sync.Mutex
	stops map[string]context.CancelFunc // of the requests that run, by their ids
	ended bool
	work  sync.WaitGroup
}

// ServeStdio answers JSON-RPC 2.0, one message a line, until in or ctx ends; then what runs is stopped, and it returns within a second. The other side may do
// everything. Nothing but answers and notifications is written to out.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := contextOf(ctx, s.ctx)
	defer stop()
	c := &rpc{server: s, ctx: ctx, w: out, lost: stop, stops: map[string]context.CancelFunc{}}
	ended := make(chan error, 1)
	go func() { ended <- readLines(in, c.line) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done(): // the reader ends with its next line
	}
	stop()
	c.mu.Lock() // from here on no request begins
	c.ended = true
	c.mu.Unlock()
	done := make(chan struct{})
	go func() { c.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(endTime): // whoever does not read our answers does not hold us up
	}
	return err
}

// readLines takes the lines of in, nil for one that is too long.
func readLines(in io.Reader, take func(line []byte)) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		var line []byte
		long := false
		for {
			part, err := r.ReadSlice('\n')
			if long = long || len(line)+len(part) > mostLine; !long {
				line = append(line, part...)
			}
			if err == nil {
				break
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err == io.EOF {
				return nil // a line without an end was cut off
			}
			return err
		}
		if long {
			line = nil
		} else if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		take(line)
	}
}

// send writes a message. Whoever does not read holds up those that write, which hold little.
func (c *rpc) send(m rpcMessage) error {
	m.Version = "2.0"
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(raw) >= mostLine {
		if m.ID == nil {
			return fmt.Errorf("a notification of %d bytes is too large", len(raw))
		}
		return c.send(rpcMessage{ID: m.ID, Error: &rpcError{Code: contract.Failed, Message: "the answer is larger than 16 MB: ask for less at once"}})
	}
	c.out.Lock()
	defer c.out.Unlock()
	if _, err = c.w.Write(append(raw, '\n')); err != nil {
		c.lost()
	}
	return err
}

func (c *rpc) fail(id json.RawMessage, code int, text string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	_ = c.send(rpcMessage{ID: id, Error: &rpcError{Code: code, Message: text}})
}

// line takes a line from the other side.
func (c *rpc) line(line []byte) {
	var m rpcMessage
	switch {
	case line == nil:
		c.fail(nil, codeInvalid, "a line has at most 16 MB: larger content goes in parts by uploads.add")
	case line[0] != '{':
		c.fail(nil, codeInvalid, "a line is one JSON object")
	case json.Unmarshal(line, &m) != nil:
		c.fail(nil, codeParse, "the line is no JSON object of JSON-RPC")
	case m.Version != "2.0" || m.Method == "" || len(m.ID) > 0 && m.ID[0] == '{' || len(m.ID) > 0 && m.ID[0] == '[':
		c.fail(m.ID, codeInvalid, `a request has "jsonrpc": "2.0", a method and an id that is a number or a text`)
	case m.Method == "$/cancel":
		c.cancel(m.Params)
	case m.Method == "initialize":
		c.initialize(&m)
	case !c.begun:
		c.fail(m.ID, codeFirst, "initialize comes first")
	default:
		c.begin(&m)
	}
}

func (c *rpc) initialize(m *rpcMessage) {
	id, err := c.server.store.ID(c.ctx)
	if err != nil {
		c.answer(m.ID, nil, err)
		return
	}
	c.begun = true
	v := initialized{Protocol: 1, Program: c.server.store.Program(), Format: chatctx.FormatVersion, Store: id}
	for _, m := range methods {
		v.Methods = append(v.Methods, m.name)
	}
	c.answer(m.ID, v, nil)
}

// cancel stops a request, which then answers with what came of it.
func (c *rpc) cancel(params json.RawMessage) {
	var in struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(params, &in) // a notification is not answered
	c.mu.Lock()
	defer c.mu.Unlock()
	if stop := c.stops[string(in.ID)]; stop != nil {
		stop()
	}
}

// begin runs a request beside the others.
func (c *rpc) begin(m *rpcMessage) {
	method := methodNamed(m.Method)
	if method == nil {
		c.fail(m.ID, codeMethod, fmt.Sprintf("no method %q", m.Method))
		return
	}
	ctx, stop := context.WithCancel(c.ctx)
	key := string(m.ID)
	c.mu.Lock()
	_, twice := c.stops[key]
	full := len(c.stops) >= mostRunning
	if !twice && !full && !c.ended {
		if m.ID != nil {
			c.stops[key] = stop
		}
		c.work.Add(1)
	}
	ended := c.ended
	c.mu.Unlock()
	switch {
	case ended:
		stop()
		return
	case twice:
		stop()
		c.fail(m.ID, codeInvalid, "a request with this id is running")
		return
	case full:
		stop()
		c.fail(m.ID, contract.Failed, "too many requests are running")
		return
	}
	go func() {
		defer c.work.Done()
		v, err := c.run(ctx, method, m)
		c.mu.Lock()
		delete(c.stops, key)
		c.mu.Unlock()
		stop()
		c.answer(m.ID, v, err)
	}()
}

// run does a method. Bytes that it takes come as base64 in the parameter data; those that it gives go in notifications before its answer.
func (c *rpc) run(ctx context.Context, m *method, in *rpcMessage) (any, error) {
	r := &request{ctx: ctx, server: c.server, store: c.server.store, who: Caller{Scopes: Scopes}}
	params := in.Params
	if m.upload {
		var err error
		if params, r.body, err = takeData(m, params); err != nil {
			return nil, err
		}
	}
	r.tell = func(event string, v any) error {
		return c.notify("$/event", map[string]any{"id": in.ID, "event": event, "data": v})
	}
	r.write = func(string, string) (io.Writer, error) { return &chunks{c: c, id: in.ID}, nil }
	return m.run(r, params)
}

// takeData takes the bytes out of parameters.
func takeData(m *method, params json.RawMessage) (json.RawMessage, io.Reader, error) {
	all := map[string]json.RawMessage{}
	if len(params) > 0 && json.Unmarshal(params, &all) != nil {
		return nil, nil, chatctx.Invalid("%s: the parameters are one JSON object", m.name)
	}
	var data []byte
	if err := json.Unmarshal(all["data"], &data); err != nil || len(data) == 0 {
		return nil, nil, chatctx.Invalid("%s needs data, in base64", m.name)
	}
	delete(all, "data")
	rest, err := json.Marshal(all)
	return rest, bytes.NewReader(data), err
}

// chunks sends bytes in notifications.
type chunks struct {
	c  *rpc
	id json.RawMessage
}

func (w *chunks) Write(p []byte) (int, error) {
	for n := 0; n < len(p); n += chunk {
		part := p[n:min(n+chunk, len(p))]
		if err := w.c.notify("$/data", map[string]any{"id": w.id, "data": base64.StdEncoding.EncodeToString(part)}); err != nil {
			return n, err
		}
	}
	return len(p), nil
}

func (c *rpc) notify(method string, params any) error {
	raw, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.send(rpcMessage{Method: method, Params: raw})
}

// answer answers a request; a notification gets none.
func (c *rpc) answer(id json.RawMessage, v any, err error) {
	if id == nil {
		return
	}
	m := rpcMessage{ID: id}
	if err == nil {
		m.Result, err = json.Marshal(v)
	}
	if err != nil {
		code, kind, _ := kindOf(err)
		e := contract.ErrorOf(err, code, kind)
		m.Result, m.Error = nil, &rpcError{Code: code, Message: e.Message, Data: &e}
	}
	_ = c.send(m) // who is gone gets no answer
}
