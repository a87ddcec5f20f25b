package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/codec"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

// The limits of a conversation over standard input and output.
const (
	mostMessage = 96 << 20  // bytes of an incoming message in parts: enough for an artifact in base64
	chunk       = 256 << 10 // bytes of content in a notification
	mostRunning = 1000      // concurrent requests
	mostRefused = 1000      // refusals that wait to be read
	endTime     = 700 * time.Millisecond
)

// The codes of JSON-RPC itself; errors of methods have those of the command line.
const (
	codeParse   = -32700
	codeInvalid = -32600
	codeMethod  = -32601
	codeFirst   = -32002 // initialize must come first
)

// The lines that come in and go out.
type (
	rpcRequest struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
		size   int // of its line
	}
	rpcFailure struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   rpcError        `json:"error"`
	}
	rpcError struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    *contract.Error `json:"data,omitempty"`
	}
	rpcNotice struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}
	eventNotice struct {
		ID    json.RawMessage `json:"id"`
		Event string          `json:"event"`
		Data  json.RawMessage `json:"data"`
	}
	dataNotice struct {
		ID   json.RawMessage `json:"id"`
		Data []byte          `json:"data"` // in base64
	}
)

// initialized is the answer to initialize.
type initialized struct {
	Protocol int        `json:"protocol"`
	Program  string     `json:"program"`
	Format   int        `json:"format"` // the version of the store's format
	Store    chatctx.ID `json:"store"`
	Methods  []string   `json:"methods"`
	Line     int        `json:"line"`    // the longest line, in bytes
	Message  int        `json:"message"` // the largest message in parts, in bytes
}

// errUnread means that the other side sends requests and does not read the answers.
var errUnread = errors.New("the other side goes on asking and does not read what it is answered")

// rpc is one conversation with another program.
type rpc struct {
	server *Server
	ctx    context.Context
	lost   context.CancelCauseFunc // ends ctx when going on makes no sense
	begun  bool                    // initialize has come
	parts  parts                   // of incoming messages
	// without says why there is no store: then each request gets it as its answer.
	without error

	out  sync.Mutex // one line at a time
	w    io.Writer
	sent int // the number of messages sent in parts

	mu      sync.Mutex
	stops   map[string]context.CancelFunc // of the running requests, by their ids
	running int                           // also those without an id
	held    int                           // bytes of their lines
	refused int                           // refusals that wait to be read
	ended   bool
	work    sync.WaitGroup
}

// ServeStdio answers JSON-RPC 2.0, one message on each line, until in or ctx ends. Then it stops the running requests, and returns within a second whether the
// other side reads or not. The other side has all scopes. Only answers and notifications are written to out; if they are not read, some 64 MB of them wait, and
// fewer deltas are sent. It returns an error if the other side sends more requests than can be answered.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.serveStdio(ctx, in, out, nil)
}

// RefuseStdio answers as Server.ServeStdio does, each request with the error for which there is no store to serve.
func RefuseStdio(ctx context.Context, in io.Reader, out io.Writer, cause error) error {
	s := New(nil, Options{})
	defer s.Close()
	return s.serveStdio(ctx, in, out, cause)
}

func (s *Server) serveStdio(ctx context.Context, in io.Reader, out io.Writer, without error) error {
	ctx, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	defer context.AfterFunc(s.ctx, func() { lost(nil) })()
	c := &rpc{server: s, ctx: ctx, w: out, lost: lost, stops: map[string]context.CancelFunc{}, without: without}
	ended := make(chan error, 1)
	go func() { ended <- readLines(in, s.limits.line, c.line) }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done(): // the reader ends with its next line
		if cause := context.Cause(ctx); cause == errUnread {
			err = cause
		}
	}
	lost(nil)
	c.mu.Lock() // from here on no request begins
	c.ended = true
	c.mu.Unlock()
	done := make(chan struct{})
	go func() { c.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(endTime): // a side that does not read must not delay the end
	}
	return err
}

// readLines calls take with each line of in. Of a line of more than most bytes, it passes nil and the request's id, nil if the line shows none. take may keep
// both.
func readLines(in io.Reader, most int, take func(line []byte, id json.RawMessage)) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, id, err := readLine(r, most)
		if err != nil && err != io.EOF {
			return err
		}
		if line = bytes.TrimSpace(line); line == nil || len(line) > 0 {
			take(line, id)
		}
		if err == io.EOF {
			return nil
		}
	}
}

// readLine reads a line; at the end of the input, which may end a line too, err is io.EOF. A line of more than most bytes is nil, and id the request's.
func readLine(r *bufio.Reader, most int) (line []byte, id json.RawMessage, err error) {
	line = []byte{}
	var long *idScanner
	for {
		part, err := r.ReadSlice('\n')
		switch {
		case long != nil:
			long.scan(part)
		case len(line)+len(part) > most:
			long = &idScanner{}
			long.scan(line)
			long.scan(part)
			line = nil
		default:
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long != nil {
			return nil, long.id, err
		}
		return line, nil, err
	}
}

// lineOf returns a message as a line.
func lineOf(v any) ([]byte, error) {
	var b bytes.Buffer
	err := json.NewEncoder(&b).Encode(v) // it ends with a newline
	return b.Bytes(), err
}

// send writes a message that is not an answer. A slow reader delays the writers; the bytes that they hold are counted.
func (c *rpc) send(v any) error {
	line, err := lineOf(v)
	if err != nil {
		return err
	}
	c.server.room.add(len(line))
	defer c.server.room.add(-len(line))
	return c.sendLine(line)
}

// sendLine writes a line that comes in pieces, in parts if it is too long.
func (c *rpc) sendLine(pieces ...[]byte) error {
	rest := 0
	var all []io.Reader
	for _, p := range pieces {
		rest += len(p)
		all = append(all, bytes.NewReader(p))
	}
	if rest <= c.server.limits.line {
		return c.write(pieces...)
	}
	c.out.Lock()
	c.sent++
	of := json.RawMessage(strconv.Itoa(c.sent))
	c.out.Unlock()
	line := io.MultiReader(all...)
	buf := make([]byte, min(chunk, c.server.limits.line/2)) // in base64 it is longer by a third
	for rest > 0 {
		n, err := io.ReadFull(line, buf[:min(len(buf), rest)])
		rest -= n
		var part []byte
		if err == nil {
			part, err = lineOf(rpcNotice{"2.0", partMethod, partParams{of, buf[:n], rest == 0}})
		}
		if err == nil {
			err = c.write(part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// write writes a line, with nothing in between.
func (c *rpc) write(pieces ...[]byte) error {
	c.out.Lock()
	defer c.out.Unlock()
	for _, p := range pieces {
		if _, err := c.w.Write(p); err != nil {
			c.lost(err)
			return err
		}
	}
	return nil
}

// refuse answers a request that does not run, without waiting until that is read, since otherwise the end of the input would not be seen.
func (c *rpc) refuse(id json.RawMessage, code int, text string) {
	if id == nil {
		id = json.RawMessage("null")
	}
	c.aside(rpcFailure{"2.0", id, rpcError{Code: code, Message: text}})
}

// aside sends a small message while lines are read.
func (c *rpc) aside(v any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.refused++; c.refused > mostRefused {
		c.lost(errUnread)
	}
	if c.ended || c.refused > mostRefused {
		return
	}
	c.work.Go(func() {
		_ = c.send(v) // a side that has gone gets no answer
		c.mu.Lock()
		c.refused--
		c.mu.Unlock()
	})
}

// line handles a line from the other side. For one that was too long, line is nil and id the request's.
func (c *rpc) line(line []byte, id json.RawMessage) {
	m, code, fault := parseRequest(line)
	if line == nil {
		m.ID = id
	}
	switch {
	case c.without != nil && (fault == "" || line == nil):
		c.fail(m.ID)
	case fault != "":
		c.refuse(m.ID, code, fault)
	case m.ID != nil && (m.Method == partMethod || m.Method == "$/cancel"):
		c.refuse(m.ID, codeInvalid, m.Method+" is a notification and takes no id")
	case m.Method == partMethod:
		c.part(m.Params)
	case m.Method == "$/cancel":
		c.cancel(m.Params)
	case m.Method == "initialize":
		c.begun = true
		c.begin(m, &method{Operation: &operation.Operation{Name: m.Method, Verb: http.MethodPost}, run: initialize, read: func(json.RawMessage) (any, error) { return nil, nil }})
	case !c.begun:
		c.refuse(m.ID, codeFirst, "initialize comes first")
	case methodNamed(m.Method) == nil:
		c.refuse(m.ID, codeMethod, fmt.Sprintf("no method %q", m.Method))
	default:
		c.begin(m, methodNamed(m.Method))
	}
}

// parseRequest parses a line; fault says what is wrong with it.
func parseRequest(line []byte) (m *rpcRequest, code int, fault string) {
	m = &rpcRequest{size: len(line)}
	switch {
	case line == nil:
		return m, codeInvalid, "a line has at most 16 MB: larger content goes in parts by uploads.add, a larger message by " + partMethod
	case !utf8.Valid(line):
		return m, codeParse, "the line is no UTF-8"
	case !json.Valid(line):
		return m, codeParse, "the line is no JSON"
	case line[0] != '{':
		return m, codeInvalid, "a line is one JSON object"
	}
	version := ""
	err := codec.Members(line, func(name string, value []byte) error {
		switch name {
		case "jsonrpc":
			_ = json.Unmarshal(value, &version) // another type of value is another version
		case "id":
			m.ID = value
		case "method":
			_ = json.Unmarshal(value, &m.Method)
		case "params":
			m.Params = value
		default:
			return fmt.Errorf("a request has no member %q", name)
		}
		return nil
	})
	switch {
	case len(m.ID) > 0 && !isID(m.ID):
		return &rpcRequest{}, codeInvalid, `an id is a number or a text`
	case err != nil:
		return m, codeInvalid, err.Error()
	case version != "2.0" || m.Method == "":
		return m, codeInvalid, `a request has "jsonrpc": "2.0", a method and an id that is a number or a text`
	}
	return m, 0, ""
}

func initialize(r *request, _ any) (any, error) {
	id, err := r.Store.ID(r.Ctx)
	if err != nil {
		return nil, err
	}
	v := initialized{Protocol: 1, Program: base.Of(r.Store).Program, Format: chatctx.FormatVersion, Store: id, Line: r.server.limits.line, Message: mostMessage}
	for _, m := range methods() {
		v.Methods = append(v.Methods, m.Name)
	}
	return v, nil
}

// cancel stops a request, which then answers with its outcome.
func (c *rpc) cancel(params json.RawMessage) {
	var in struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(params, &in) // a notification gets no answer
	c.mu.Lock()
	defer c.mu.Unlock()
	if stop := c.stops[string(in.ID)]; stop != nil {
		stop()
	}
}

// begin runs a request beside the others.
func (c *rpc) begin(in *rpcRequest, m *method) {
	ctx, stop := context.WithCancel(c.ctx)
	fault := c.enter(in, stop)
	if fault != "" {
		stop()
		c.refuse(in.ID, codeInvalid, fault)
		return
	}
	go func() {
		defer c.work.Done()
		defer stop()
		l := &lease{room: c.server.room}
		defer l.free()
		done := c.run(ctx, m, in, l)
		c.leave(in)
		c.answer(in.ID, done)
	}()
}

// enter counts a request that begins; fault says why it may not.
func (c *rpc) enter(in *rpcRequest, stop context.CancelFunc) (fault string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return "the conversation has ended"
	case in.ID != nil && c.stops[string(in.ID)] != nil:
		return "a request with this id is running"
	case c.running >= mostRunning || c.running > 0 && c.held+in.size > mostHeld:
		return "too many requests are running: read answers first"
	}
	if in.ID != nil {
		c.stops[string(in.ID)] = stop
	}
	c.running++
	c.held += in.size
	c.work.Add(1)
	return ""
}

func (c *rpc) leave(in *rpcRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.stops, string(in.ID))
	c.running--
	c.held -= in.size
}

// run calls a method. Bytes for it come as base64 in the parameter data; bytes from it go in notifications before its answer.
func (c *rpc) run(ctx context.Context, m *method, in *rpcRequest, l *lease) outcome {
	r := &request{Request: operation.Request{Ctx: Caller{}.deciding(ctx), Store: c.server.store}, server: c.server, who: Caller{Scopes: Scopes}, room: c.server.room, lease: l, params: in.Params, body: http.NoBody}
	var err error
	if m.Upload {
		r.params, r.body, err = takeData(m, in.Params)
	}
	r.Tell = func(event string, v any) error {
		raw, ok := v.(encoded)
		if !ok {
			var err error
			if raw, err = encode(v, 0); err != nil {
				return err
			}
		}
		return c.send(rpcNotice{"2.0", "$/event", eventNotice{in.ID, event, json.RawMessage(raw)}})
	}
	r.Write = func(string, string) (io.Writer, error) { return &chunks{c: c, id: in.ID}, nil }
	var params any
	if err == nil {
		params, err = m.read(r.params)
	}
	if err != nil {
		return outcome{err: err}
	}
	done, _ := c.server.do(r, m, params)
	return done
}

// takeData separates the bytes from the other parameters.
func takeData(m *method, params json.RawMessage) (json.RawMessage, io.Reader, error) {
	all := map[string]json.RawMessage{}
	if len(params) > 0 && json.Unmarshal(params, &all) != nil {
		return nil, nil, base.Invalid("%s: the parameters are one JSON object", m.Name)
	}
	var data []byte
	if err := json.Unmarshal(all["data"], &data); err != nil || len(data) == 0 {
		return nil, nil, base.Invalid("%s needs data, in base64", m.Name)
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
		if err := w.c.send(rpcNotice{"2.0", "$/data", dataNotice{w.id, part}}); err != nil {
			return n, err
		}
	}
	return len(p), nil
}

// fail answers a request with the reason why there is no store.
func (c *rpc) fail(id json.RawMessage) {
	if id != nil {
		c.aside(failureOf(id, c.without))
	}
}

// failureOf returns an error of a method as an answer.
func failureOf(id json.RawMessage, err error) rpcFailure {
	e := errorOf(err)["error"]
	return rpcFailure{"2.0", id, rpcError{Code: e.Code, Message: e.Message, Data: &e}}
}

// answer answers a request; a notification gets no answer.
func (c *rpc) answer(id json.RawMessage, done outcome) {
	switch {
	case id == nil:
	case done.err != nil:
		_ = c.send(failureOf(id, done.err)) // a side that has gone gets no answer
	default:
		_ = c.sendLine(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":`, id), done.raw, []byte("}\n"))
	}
}
