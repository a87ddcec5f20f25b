package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

// apiPath is the path of the API.
const apiPath = "/api/v1"

// mostBody is the largest JSON body of a request, in bytes.
const mostBody = 64 << 20

// route makes the routes of the table.
func (s *Server) route() {
	s.mux = http.NewServeMux()
	for _, m := range methods() {
		s.mux.HandleFunc(m.Verb+" "+apiPath+m.Path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, m) })
	}
	s.mux.HandleFunc("GET "+apiPath+"/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.caller(r); err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(OpenAPI())
	})
	s.mux.HandleFunc(apiPath, s.noRoute)
	s.mux.HandleFunc(apiPath+"/", s.noRoute)
	s.mux.HandleFunc("GET /open", s.open)
	if s.options.Page != nil {
		s.mux.Handle("/", http.FileServerFS(s.options.Page)) // the files contain nothing of the store, so all may read them
	}
}

// noRoute answers a request without a route. It names the verbs that have one, if there are any.
func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	var verbs []string
	for _, verb := range []string{http.MethodGet, http.MethodPost} {
		other := *r
		other.Method = verb
		if _, pattern := s.mux.Handler(&other); pattern != apiPath && pattern != apiPath+"/" {
			verbs = append(verbs, verb)
		}
	}
	if len(verbs) == 0 {
		fail(w, base.NotFound("route", r.URL.Path))
		return
	}
	w.Header().Set("Allow", strings.Join(verbs, ", "))
	fail(w, operation.Refused(http.StatusMethodNotAllowed, "usage", fmt.Sprintf("%s takes %s", r.URL.Path, strings.Join(verbs, " or "))))
}

// policy limits what the page may load and do: only files of this server, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if err := s.checkHost(r); err != nil {
		fail(w, err)
		return
	}
	if hasSteps(r.URL) {
		fail(w, base.NotFound("route", r.URL.Path))
		return
	}
	defer s.running.Add(-1)
	if s.running.Add(1) > int64(s.limits.requests) {
		fail(w, operation.Refused(http.StatusServiceUnavailable, "too_many", "too many requests are running"))
		return
	}
	s.mux.ServeHTTP(moving{w}, r)
}

// hasSteps reports whether a path has . or .. or nothing between two slashes, as it is or encoded. Programs take these out of a path, each in its own way, so
// that they would lead to something else than what was named.
func hasSteps(u *url.URL) bool {
	path := strings.TrimPrefix(u.EscapedPath(), "/")
	return slices.ContainsFunc(strings.Split(strings.TrimSuffix(path, "/"), "/"), func(segment string) bool {
		name, err := url.PathUnescape(segment)
		return err != nil || name == "" && path != "" || branchstore.IsStep(name)
	})
}

// serve calls a method for an HTTP request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, m *method) {
	who, err := s.caller(r)
	if err == nil && !who.May(Scope(m.Right)) {
		err = operation.Refused(http.StatusForbidden, "forbidden", m.Name+" needs the scope "+string(m.Right))
	}
	r.Body = &movingBody{ReadCloser: r.Body, conn: http.NewResponseController(w), limits: &s.limits, whole: m.Name != "uploads.add"}
	ctx, stop := contextOf(who.deciding(r.Context()), s.ctx)
	defer stop()
	req := s.request(ctx, r, who)
	defer req.came.free()
	defer req.lease.free()
	var in any
	if err == nil {
		in, err = req.read(r, m)
	}
	if err != nil {
		fail(w, err)
		return
	}
	if m.Shape != operation.Answer || m.Right == operation.Run {
		var leave func()
		if ctx, leave, err = s.admit(ctx, who); err != nil {
			fail(w, err)
			return
		}
		defer leave()
	}
	out := &reply{w: w, m: m, req: req}
	req.Ctx, req.Tell, req.beat, req.Write = ctx, out.tell, out.beat, out.write
	done, again := s.do(req, m, in)
	if again {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	out.end(r, done)
}

// request returns the request of an HTTP request.
func (s *Server) request(ctx context.Context, r *http.Request, who Caller) *request {
	req := &request{Request: operation.Request{Ctx: ctx, Store: s.store}, server: s, who: who, body: r.Body, room: &room{most: mostTold, of: s.room}}
	req.lease, req.came = &lease{room: s.room, patience: s.limits.patience}, &lease{room: s.shorts, patience: s.limits.patience}
	if who.Name != "" {
		req.Store = s.store.As(who.Name)
	}
	return req
}

// read reads the parameters of an HTTP request.
func (r *request) read(h *http.Request, m *method) (in any, err error) {
	if r.params, err = m.parameters(r, h); err != nil {
		return nil, err
	}
	if r.match, err = matchOf(h.Header); err == nil && r.match != nil && !m.has("expect") {
		err = base.Invalid("%s takes no If-Match", m.Name)
	}
	if err != nil {
		return nil, err
	}
	return m.read(r.params)
}

// parameters returns the parameters of a method: from the body or the query, the path, and some headers.
func (m *method) parameters(req *request, r *http.Request) (json.RawMessage, error) {
	raw := []byte("{}")
	text := map[string][]string{}
	switch {
	case m.Verb == http.MethodGet || m.Upload:
		query, err := url.ParseQuery(r.URL.RawQuery) // what cannot be read must not be left out
		if err != nil {
			return nil, base.Invalid("%s: the query cannot be read (%v): write & between parameters, and %%3B and %%25 for ; and %% in them", m.Name, err)
		}
		maps.Copy(text, query)
	case r.URL.RawQuery != "":
		return nil, base.Invalid("%s takes its parameters in the body, as JSON", m.Name)
	default:
		var err error
		if raw, err = m.readBody(req, r); err != nil {
			return nil, err
		}
	}
	for _, f := range m.fields {
		if v := r.PathValue(f.Name); v != "" {
			text[f.Name] = append(text[f.Name], v)
		}
	}
	if v := r.Header.Get("Idempotency-Key"); v != "" && m.Verb != http.MethodPost {
		return nil, base.Invalid("%s changes nothing and takes no Idempotency-Key", m.Name)
	} else if v != "" {
		text["key"] = append(text["key"], v)
	}
	if v := r.Header.Get("Last-Event-ID"); v != "" && m.Shape == operation.Events && m.has("after") {
		text["after"] = []string{v}
	}
	return m.fromText(raw, text)
}

// readBody reads a JSON object. It refuses other types, which a form of another site could send.
func (m *method) readBody(req *request, r *http.Request) ([]byte, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	raw, err := whole(req, r.Body, r.ContentLength, mostBody)
	raw = bytes.TrimSpace(raw)
	switch {
	case err != nil:
		return nil, err
	case len(raw) == 0:
		return []byte("{}"), nil
	case kind != "application/json":
		return nil, operation.Refused(http.StatusUnsupportedMediaType, "usage", "the body has to be application/json")
	case !utf8.Valid(raw):
		return nil, base.Invalid("the body is no UTF-8")
	case raw[0] != '{' || !json.Valid(raw):
		return nil, base.Invalid("the body is no JSON object")
	}
	return raw, nil
}

// whole reads a body into memory if there is room for its bytes and for their decoded form.
func whole(req *request, body io.Reader, length int64, most int) ([]byte, error) {
	var all bytes.Buffer
	if length > int64(most) {
		return nil, errLarge
	}
	if length > freely && req.came != nil {
		if 2*length > small {
			req.came.room = req.server.bodies
		}
		if err := req.came.want(req.Ctx, 2*int(length)); err != nil {
			return nil, err
		}
		all.Grow(int(length) + bytes.MinRead)
	}
	for {
		_, err := io.CopyN(&all, body, freely)
		n := all.Len()
		if n > most {
			return nil, errLarge
		}
		if n > freely && req.came != nil && 2*n > req.came.held {
			if 2*n > small && req.came.room != req.server.bodies {
				req.came.free()
				req.came.room = req.server.bodies
			}
			if err := req.came.is(2*n, false); err != nil {
				return nil, err
			}
		}
		if err == io.EOF {
			return all.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// movingBody is a body that must not stall. One that is read whole into memory, and so holds room there, must also arrive at a minimum rate.
type movingBody struct {
	io.ReadCloser
	conn   *http.ResponseController
	limits *limits
	begun  time.Time // the time of the first read
	whole  bool
	came   int // bytes that have arrived
}

func (b *movingBody) Read(p []byte) (int, error) {
	now := time.Now()
	if b.begun.IsZero() {
		b.begun = now
	}
	end := now.Add(stallTime)
	if last := b.begun.Add(b.limits.grace + time.Duration(b.came)*time.Second/time.Duration(b.limits.rate)); b.whole && last.Before(end) {
		end = last
	}
	_ = b.conn.SetReadDeadline(end)
	n, err := b.ReadCloser.Read(p)
	_ = b.conn.SetReadDeadline(time.Time{})
	b.came += n
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = operation.Refused(http.StatusRequestTimeout, "too_slow", "the body comes too slowly: a file goes in parts by uploads.add, which may take longer")
	}
	return n, err
}

// moving is a response whose reader must not stall.
type moving struct{ http.ResponseWriter }

func (m moving) Write(p []byte) (int, error) {
	m.extend()
	return m.ResponseWriter.Write(p)
}

func (m moving) WriteHeader(status int) {
	m.extend()
	m.ResponseWriter.WriteHeader(status)
}

func (m moving) extend() {
	_ = http.NewResponseController(m.ResponseWriter).SetWriteDeadline(time.Now().Add(stallTime)) // a writer without deadlines gets none
}

func (m moving) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// reply is the response to a request.
type reply struct {
	w   http.ResponseWriter
	m   *method
	req *request
}

// tell sends an event.
func (o *reply) tell(event string, v any) error {
	if !o.req.begun {
		o.req.begun = true
		o.w.Header().Set("Content-Type", "text/event-stream")
		o.w.WriteHeader(http.StatusOK)
	}
	id := ""
	if c, ok := v.(changed); ok {
		id = "id: " + c.Cursor + "\n"
	}
	raw, ok := v.(encoded)
	if !ok {
		var err error
		if raw, err = encode(v, 0); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(o.w, "%sevent: %s\ndata: ", id, event); err != nil {
		return err
	}
	if err := writeAll(o.w, raw); err != nil {
		return err
	}
	if _, err := io.WriteString(o.w, "\n\n"); err != nil {
		return err
	}
	return http.NewResponseController(o.w).Flush()
}

// beat shows proxies that the stream is alive.
func (o *reply) beat() error {
	if _, err := io.WriteString(o.w, ":\n\n"); err != nil {
		return err
	}
	return http.NewResponseController(o.w).Flush()
}

// write begins a response of bytes. Content other than images is sent as a download, and nothing in it may run.
func (o *reply) write(mediaType, name string) (io.Writer, error) {
	h := o.w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	kind, _, _ := mime.ParseMediaType(mediaType)
	shown := kind == "image/png" || kind == "image/jpeg" || kind == "image/gif" || kind == "image/webp"
	if !shown {
		disposition := map[string]string{}
		if name != "" {
			disposition["filename"] = name
		}
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", disposition))
	}
	if kind == "" {
		mediaType = "application/octet-stream"
	}
	h.Set("Content-Type", mediaType)
	o.req.begun = true
	return o.w, nil
}

// end sends the outcome of a request.
func (o *reply) end(r *http.Request, done outcome) {
	switch {
	case done.err != nil && !o.req.begun && !done.begun:
		fail(o.w, done.err)
	case done.err != nil && o.m.Shape == operation.Content:
		panic(http.ErrAbortHandler) // a part must not look like the whole
	case done.err != nil:
		_ = o.tell("error", errorOf(done.err)) // a reader that has gone gets no answer
	case o.m.Shape == operation.Events:
		_ = o.tell("done", done.raw)
	case o.m.Shape == operation.Answer:
		o.answer(r, done)
	}
}

// answer sends JSON with its tag.
func (o *reply) answer(r *http.Request, done outcome) {
	h := o.w.Header()
	tag, none, err := tagOf(done.revision, nil), true, error(nil)
	if o.m.Verb == http.MethodGet { // HEAD too
		tag = tagOf(done.revision, done.raw)
		none, err = noneMatches(r.Header, tag)
	}
	if tag != "" {
		h.Set("ETag", tag)
	}
	switch {
	case err != nil:
		fail(o.w, err)
	case !none:
		o.w.WriteHeader(http.StatusNotModified)
	default:
		h.Set("Content-Type", "application/json")
		if writeAll(o.w, done.raw) == nil {
			io.WriteString(o.w, "\n")
		}
	}
}

// writeAll writes bytes in pieces, so that the time limit holds for each piece.
func writeAll(w io.Writer, b []byte) error {
	for len(b) > 0 {
		n := min(len(b), chunk)
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// wasteTime is how long the server reads the unwanted rest of a body before it closes the connection.
const wasteTime = 2 * time.Second

// errorOf returns an error as the command line prints it.
func errorOf(err error) map[string]contract.Error {
	code, kind, _ := kindOf(err)
	return map[string]contract.Error{"error": operation.ErrorOf(err, code, kind)}
}

// fail sends an error.
func fail(w http.ResponseWriter, err error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(wasteTime))
	_, _, status := kindOf(err)
	e := errorOf(err)["error"]
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(e.RetryAfter+1)))
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	raw, _ := json.Marshal(map[string]contract.Error{"error": e})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(raw, '\n'))
}
