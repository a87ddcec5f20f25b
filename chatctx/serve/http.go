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
	"strconv"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
)

// base is where the API lies.
const base = "/api/v1"

// mostBody is how large the JSON of a request may be.
const mostBody = 64 << 20

// route makes the routes of the table.
func (s *Server) route() {
	s.mux = http.NewServeMux()
	for _, m := range methods {
		s.mux.HandleFunc(m.verb+" "+base+m.path, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, m) })
	}
	s.mux.HandleFunc("GET "+base+"/openapi.json", func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.caller(r); err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(OpenAPI())
	})
	s.mux.HandleFunc(base+"/", func(w http.ResponseWriter, r *http.Request) { fail(w, chatctx.NotFound("route", r.URL.Path)) })
	s.mux.HandleFunc("GET /open", s.open)
	if s.options.Page != nil {
		s.mux.Handle("/", http.FileServerFS(s.options.Page)) // the files say nothing of the store: whoever is not let in sees that
	}
}

// policy is what the page may load and do: what this server sends, and nothing inline.
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
	defer s.running.Add(-1)
	if s.running.Add(1) > int64(s.limits.requests) {
		h.Set("Retry-After", "1")
		fail(w, &refusal{http.StatusServiceUnavailable, "too_many", "too many requests are running"})
		return
	}
	s.mux.ServeHTTP(moving{w}, r)
}

// serve does a method for a request of HTTP.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, m *method) {
	who, err := s.caller(r)
	if err == nil && !who.May(m.scope) {
		err = &refusal{http.StatusForbidden, "forbidden", m.name + " needs the scope " + string(m.scope)}
	}
	r.Body = &movingBody{r.Body, http.NewResponseController(w)}
	var params json.RawMessage
	if err == nil {
		params, err = m.parameters(w, r)
	}
	if err != nil {
		fail(w, err)
		return
	}
	ctx, stop := contextOf(r.Context(), s.ctx)
	defer stop()
	if m.shape != answer || m.scope == Run {
		var leave func()
		if ctx, leave, err = s.admit(ctx, who); err != nil {
			fail(w, err)
			return
		}
		defer leave()
	}
	out := &reply{w: w, m: m}
	req := &request{ctx: ctx, server: s, store: s.store, who: who, body: r.Body, tell: out.tell, beat: out.beat, write: out.write}
	if who.Name != "" {
		req.store = s.store.As(who.Name)
	}
	o, known, err := s.keys.begin(ctx, m, who, r.Header.Get("Idempotency-Key"), params)
	if known {
		err = o.again(w, m, r.Body)
	}
	if err != nil {
		fail(w, err)
	}
	if known || err != nil {
		return
	}
	if o != nil { // what a stream did is done, even if it failed in the end
		req.body = io.TeeReader(r.Body, o.body)
		defer func() { s.keys.end(o, out.raw != nil || m.shape == events && out.err != nil, out.outcome) }()
	}
	v, err := m.run(req, params)
	if errors.Is(context.Cause(ctx), ErrNoAccess) {
		err = ErrNoAccess
	}
	if r.Header.Get("If-Match") != "" && req.moved(params, err) {
		err = &refusal{http.StatusPreconditionFailed, "conflict", err.Error()}
	}
	out.end(r, v, err)
}

// moved reports whether a change failed since its branch has another revision than it expects.
func (r *request) moved(params json.RawMessage, err error) bool {
	var in change
	if !errors.Is(err, chatctx.ErrConflict) || json.Unmarshal(params, &in) != nil || in.Expect == nil {
		return false
	}
	_, snap, err := r.snapshot(in.target)
	return err == nil && snap.Info.Revision != *in.Expect
}

// parameters are the parameters of a method as a request has them: in its path, and then in its body or its query, some in headers.
func (m *method) parameters(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	params := map[string]json.RawMessage{}
	if m.verb == http.MethodPost && !m.upload {
		if err := m.readBody(w, r, &params); err != nil {
			return nil, err
		}
	}
	text := map[string][]string{}
	if m.verb == http.MethodGet || m.upload {
		maps.Copy(text, r.URL.Query())
	} else if r.URL.RawQuery != "" {
		return nil, chatctx.Invalid("%s takes its parameters in the body, as JSON", m.name)
	}
	for _, f := range m.fields {
		if v := r.PathValue(f.name); v != "" {
			text[f.name] = append(text[f.name], v)
		}
	}
	if r.Header.Get("Idempotency-Key") != "" && m.verb != http.MethodPost {
		return nil, chatctx.Invalid("%s changes nothing and takes no Idempotency-Key", m.name)
	}
	for header, name := range map[string]string{"If-Match": "expect", "Idempotency-Key": "key", "Last-Event-ID": "after"} {
		v := r.Header.Get(header)
		switch {
		case v == "" || !m.has(name) && header != "If-Match":
		case !m.has(name):
			return nil, chatctx.Invalid("%s takes no If-Match", m.name)
		case header == "Last-Event-ID":
			text[name] = []string{v}
		default:
			text[name] = append(text[name], strings.Trim(v, `"`))
		}
	}
	if err := m.fromText(params, text); err != nil {
		return nil, err
	}
	return json.Marshal(params)
}

// readBody reads a JSON object. What a form of another site can send is refused.
func (m *method) readBody(w http.ResponseWriter, r *http.Request, params *map[string]json.RawMessage) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return &refusal{http.StatusRequestEntityTooLarge, "too_large", "a request has at most 64 MB; larger content goes by artifacts.put or uploads.add"}
		}
		return err
	}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	if kind != "application/json" {
		return &refusal{http.StatusUnsupportedMediaType, "usage", "the body has to be application/json"}
	}
	if err := json.Unmarshal(raw, params); err != nil || *params == nil {
		return chatctx.Invalid("the body is no JSON object")
	}
	if err := exact(bytes.TrimSpace(raw), m.in); err != nil { // also where a name stands there twice
		return chatctx.Invalid("%s: %s", m.name, err)
	}
	return nil
}

// movingBody is a body of which something has to come within the time for that.
type movingBody struct {
	io.ReadCloser
	conn *http.ResponseController
}

func (b *movingBody) Read(p []byte) (int, error) {
	_ = b.conn.SetReadDeadline(time.Now().Add(stallTime))
	n, err := b.ReadCloser.Read(p)
	_ = b.conn.SetReadDeadline(time.Time{})
	return n, err
}

// moving is a response of which something has to be taken within the time for that.
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
	_ = http.NewResponseController(m.ResponseWriter).SetWriteDeadline(time.Now().Add(stallTime)) // a writer without deadlines has none of ours
}

func (m moving) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// reply is the response to a request.
type reply struct {
	w     http.ResponseWriter
	m     *method
	begun bool
	outcome
}

// tell sends an event.
func (o *reply) tell(event string, v any) error {
	if !o.begun {
		o.begun = true
		o.w.Header().Set("Content-Type", "text/event-stream")
		o.w.WriteHeader(http.StatusOK)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	id := ""
	if c, ok := v.(changed); ok {
		id = "id: " + c.Cursor + "\n"
	}
	if _, err := fmt.Fprintf(o.w, "%sevent: %s\ndata: %s\n\n", id, event, raw); err != nil {
		return err
	}
	return http.NewResponseController(o.w).Flush()
}

// beat shows whoever is between that the stream goes on.
func (o *reply) beat() error {
	if _, err := io.WriteString(o.w, ":\n\n"); err != nil {
		return err
	}
	return http.NewResponseController(o.w).Flush()
}

// write begins a response of bytes. What is not an image is for saving, and nothing in it runs.
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
	o.begun = true
	return o.w, nil
}

// end sends what a method gave, or its error.
func (o *reply) end(r *http.Request, v any, err error) {
	switch {
	case err != nil && !o.begun:
		o.err = err
		fail(o.w, err)
	case err != nil && o.m.shape == content:
		panic(http.ErrAbortHandler) // a part must not look like the whole
	case err != nil:
		o.last("error", errorOf(err))
	case o.m.shape == events:
		o.last("done", v)
	case o.m.shape == answer:
		o.answer(r, v)
	}
}

// last sends the last event.
func (o *reply) last(event string, v any) {
	o.event = event
	o.raw, _ = json.Marshal(v) // of our own types there is JSON
	_ = o.tell(event, json.RawMessage(o.raw))
}

// answer sends JSON. The revision of a branch is its tag.
func (o *reply) answer(r *http.Request, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		fail(o.w, err)
		return
	}
	if t, ok := v.(interface{ etag() uint64 }); ok {
		o.tag = `"` + strconv.FormatUint(t.etag(), 10) + `"`
	}
	if o.tag != "" && r.Method == http.MethodGet && r.Header.Get("If-None-Match") == o.tag {
		o.w.Header().Set("ETag", o.tag)
		o.w.WriteHeader(http.StatusNotModified)
		return
	}
	o.raw = raw
	sendJSON(o.w, o.tag, raw)
}

// sendJSON sends an answer, with the tag of what it shows.
func sendJSON(w http.ResponseWriter, tag string, raw []byte) {
	if tag != "" {
		w.Header().Set("ETag", tag)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(raw)
	w.Write([]byte("\n"))
}

// wasteTime is how long the rest of a body may take that is not wanted: the server reads on before it lets a connection go.
const wasteTime = 2 * time.Second

// errorOf is an error as the command line prints it.
func errorOf(err error) map[string]contract.Error {
	code, kind, _ := kindOf(err)
	return map[string]contract.Error{"error": contract.ErrorOf(err, code, kind)}
}

// fail sends an error.
func fail(w http.ResponseWriter, err error) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(wasteTime))
	_, _, status := kindOf(err)
	e := errorOf(err)["error"]
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
