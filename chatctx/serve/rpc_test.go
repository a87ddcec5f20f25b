package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// rpcMessage is a line that a server sent.
type rpcMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *rpcError       `json:"error"`
}

// child is a program that speaks over standard input and output.
type child struct {
	a     *api
	in    *io.PipeWriter
	out   *bufio.Reader
	ended chan error
	n     int
	held  []rpcMessage // that came before the awaited one
	parts map[string][]byte
}

func (a *api) stdio() *child {
	a.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &child{a: a, in: inW, out: bufio.NewReaderSize(outR, 1<<20), ended: make(chan error, 1), parts: map[string][]byte{}}
	go func() {
		err := a.server.ServeStdio(a.t.Context(), inR, outW)
		outW.Close()
		c.ended <- err
	}()
	a.t.Cleanup(func() { inW.Close(); outR.Close() })
	return c
}

func (c *child) line(text string) {
	c.a.t.Helper()
	if _, err := io.WriteString(c.in, text+"\n"); err != nil {
		c.a.t.Fatal(err)
	}
}

// next returns the next message, assembled from its parts.
func (c *child) next() rpcMessage {
	c.a.t.Helper()
	raw, err := c.out.ReadBytes('\n')
	if err != nil {
		c.a.t.Fatal(err)
	}
	if len(raw) > c.a.server.limits.line {
		c.a.t.Errorf("a line has %d bytes", len(raw))
	}
	for {
		var m rpcMessage
		if err := json.Unmarshal(raw, &m); err != nil || m.Version != "2.0" {
			c.a.t.Fatalf("not JSON-RPC: %v %.200s", err, raw)
		}
		if err := testkit.UniqueNames(raw); err != nil {
			c.a.t.Errorf("%v: %.2000s", err, raw)
		}
		if m.Method != partMethod {
			return m
		}
		var p partParams
		if err := json.Unmarshal(m.Params, &p); err != nil {
			c.a.t.Fatal(err)
		}
		of := string(p.Of)
		if c.parts[of] = append(c.parts[of], p.Data...); !p.Last {
			return c.next()
		}
		raw = c.parts[of]
		delete(c.parts, of)
	}
}

// begin sends a request, and returns its id.
func (c *child) begin(method string, params any) string {
	c.a.t.Helper()
	c.n++
	raw, err := json.Marshal(object{"jsonrpc": "2.0", "id": c.n, "method": method, "params": params})
	if err != nil {
		c.a.t.Fatal(err)
	}
	c.line(string(raw))
	return fmt.Sprint(c.n)
}

// answer waits for the answer to a request, and also returns the notifications before it.
func (c *child) answer(id string) (m rpcMessage, news []rpcMessage) {
	c.a.t.Helper()
	for i, held := range c.held {
		if string(held.ID) == id {
			c.held = append(c.held[:i], c.held[i+1:]...)
			return held, nil
		}
	}
	for {
		m := c.next()
		switch {
		case m.Method != "":
			news = append(news, m)
		case string(m.ID) == id:
			return m, news
		default:
			c.held = append(c.held, m)
		}
	}
}

// call makes a request that has to succeed.
func (c *child) call(method string, params any) object {
	c.a.t.Helper()
	m, _ := c.answer(c.begin(method, params))
	if m.Error != nil {
		c.a.t.Fatalf("%s: %d %s", method, m.Error.Code, m.Error.Message)
	}
	var v object
	if err := json.Unmarshal(m.Result, &v); err != nil {
		c.a.t.Fatal(err)
	}
	return v
}

func TestAStoryOverStdio(t *testing.T) {
	a := start(t, Options{})
	a.provider()
	c := a.stdio()
	if m, _ := c.answer(c.begin("contexts.list", nil)); m.Error == nil || m.Error.Code != codeFirst {
		t.Errorf("before initialize: %v", m)
	}
	hello := c.call("initialize", object{})
	if id, err := a.store.ID(t.Context()); err != nil || hello["store"] != id.String() || len(hello["methods"].([]any)) != len(methods()) {
		t.Errorf("initialize gives %v", hello)
	}
	id := c.call("contexts.new", object{"title": "Boats"})["context"]
	on := func(more object) object {
		p := object{"context": id, "branch": "main"}
		for k, v := range more {
			p[k] = v
		}
		return p
	}
	c.call("messages.append", on(object{"messages": []object{{"role": "user", "content": "Hello"}}}))
	changes := c.begin("changes", object{})
	if m := c.next(); m.Method != "$/event" || !strings.Contains(string(m.Params), "ready") {
		t.Errorf("changes begin with %v", m)
	}
	m, news := c.answer(c.begin("send", on(nil)))
	if m.Error != nil || !strings.Contains(string(m.Result), "I am plain") {
		t.Errorf("send gives %s %v", m.Result, m.Error)
	}
	text, seen := "", false
	for _, n := range news {
		var p struct {
			ID    json.RawMessage
			Event string
			Data  object
		}
		json.Unmarshal(n.Params, &p)
		if p.Event == "delta" {
			text += p.Data["text"].(string)
		}
		seen = seen || p.Event == "change" && string(p.ID) == changes
	}
	if text != "I am plain" {
		t.Errorf("the words are %q", text)
	}
	for !seen {
		seen = strings.Contains(string(c.next().Params), `"event":"change"`)
	}
	c.line(`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":` + changes + `}}`)
	if m, _ := c.answer(changes); m.Error != nil {
		t.Errorf("a cancelled watch ends with %v", m.Error)
	}

	part := c.call("uploads.add", object{"name": "x.jsonl", "data": base64.StdEncoding.EncodeToString([]byte(`{"messages":[{"role":"user","content":"A"},`))})
	part = c.call("uploads.add", object{"upload": part["upload"], "data": base64.StdEncoding.EncodeToString([]byte(`{"role":"assistant","content":"B"}]}` + "\n"))})
	rep := c.call("import", object{"uploads": []any{part["upload"]}})
	a.want(rep, 2, "messages")
	m, news = c.answer(c.begin("export", on(object{"format": "markdown"})))
	if m.Error != nil || len(news) == 0 || news[0].Method != "$/data" {
		t.Errorf("export gives %v and %v", m, news)
	}
	m, _ = c.answer(c.begin("branches.fork", on(object{"name": "main"})))
	if m.Error == nil || m.Error.Code != 5 || m.Error.Data == nil || m.Error.Data.Kind != "conflict" {
		t.Errorf("a conflict is %v", m.Error)
	}
	c.in.Close()
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
}

func TestLinesThatCannotBe(t *testing.T) {
	a := start(t, Options{})
	a.server.limits.line = 2 << 20
	c := a.stdio()
	c.call("initialize", nil)
	long := strings.Repeat("x", a.server.limits.line)
	for _, l := range []struct {
		line string
		code int
		id   string
	}{
		{`{"jsonrpc":"2.0","id":null,"method":"contexts.list"}`, codeInvalid, "null"}, {`{"jsonrpc":"2.0","id":true,"method":"contexts.list"}`, codeInvalid, "null"},
		{`{"jsonrpc":"2.0","id":17,"method":"$/cancel","params":{"id":1}}`, codeInvalid, "17"}, {`{"jsonrpc":"2.0","id":18,"method":"$/part","params":{"of":1,"data":"e30="}}`, codeInvalid, "18"},
		{"{\"jsonrpc\":\"2.0\",\"id\":19,\"method\":\"contexts.new\",\"params\":{\"title\":\"\xff\"}}", codeParse, "null"},
		{`{"jsonrpc":"2.0","id":20,"method":"contexts.new","params":{"key":"` + strings.Repeat("k", 1<<20) + `"}}`, 2, "20"},
		{"nonsense", codeParse, "null"}, {`[1`, codeParse, "null"}, {`7`, codeInvalid, "null"}, {`{"jsonrpc":"2.0","id":7`, codeParse, "null"}, {`[]`, codeInvalid, "null"}, {`{"id":7,"method":"contexts.list"}`, codeInvalid, "7"},
		{`{"jsonrpc":"2.0","id":7}`, codeInvalid, "7"}, {`{"jsonrpc":"2.0","id":{},"method":"x"}`, codeInvalid, "null"}, {`{"jsonrpc":"2.0","id":"a","method":"rm -rf"}`, codeMethod, `"a"`},
		{`{"jsonrpc":"2.0","id":8,"method":"contexts.get","params":{"context":""}}`, 2, "8"}, {`{"jsonrpc":"2.0","id":9,"method":"contexts.get","params":[1]}`, 2, "9"},
		{`{"jsonrpc":"2.0","id":10,"method":"uploads.add","params":{"data":"%%"}}`, 2, "10"}, {`{"jsonrpc":"2.0","id":11,"method":"uploads.add","params":{}}`, 2, "11"},
		{`{"jsonrpc":"2.0","id":12,"method":"messages.list","params":{"context":"x"}}`, 2, "12"}, {`{"jsonrpc":"2.0","id":13,"method":"contexts.new","Params":{}}`, codeInvalid, "13"},
		{`{"jsonrpc":"2.0","id":14,"method":"contexts.new","method":"contexts.list"}`, codeInvalid, "14"}, {`{"jsonrpc":"2.0","id":15,"method":"contexts.new","params":{"Title":"x"}}`, 2, "15"},
		{`{"jsonrpc":"2.0","id":16,"method":"contexts.new","params":{"title":"x","title":"y"}}`, 2, "16"},
		{`{"jsonrpc":"2.0","method":"$/part","params":{"data":"e30="}}`, codeInvalid, "null"}, {`{"jsonrpc":"2.0","method":"$/part","params":{"of":1,"data":"%","last":true}}`, codeInvalid, "null"},
		{`{"jsonrpc":"2.0","method":"$/part","params":{"of":1,"last":true}}`, codeInvalid, "null"}, {`{"jsonrpc":"2.0","method":"$/part","params":{"of":1,"data":"e30=","last":true}}`, codeInvalid, "null"},
		{"{" + strings.Repeat(" ", a.server.limits.line), codeInvalid, "null"},
		{`{"jsonrpc":"2.0","id":"first\"","method":"x","params":{"id":1,"x":"` + long + `"}}`, codeInvalid, `"first\""`},
		{`{"params":{"id":1,"x":["\"}",{"id":2}],"y":"` + long + `"},"i\u0064" : -21 ,"method":"x"}`, codeInvalid, "-21"},
		{`{"params":{"x":"` + long + `\\"},"id":22}`, codeInvalid, "22"},
		{`{"id":{"x":23},"x":"` + long + `"}`, codeInvalid, "null"}, {`{"id":true,"x":"` + long + `"}`, codeInvalid, "null"}, {`{"id":2x4,"x":"` + long + `"}`, codeInvalid, "null"},
		{`{"id":"` + long + `"}`, codeInvalid, "null"}, {`[{"id":25,"x":"` + long + `"}]`, codeInvalid, "null"}, {`{"id":26,"id":27,"x":"` + long + `"}`, codeInvalid, "26"},
	} {
		c.line(l.line)
		if m := c.next(); m.Error == nil || m.Error.Code != l.code || string(m.ID) != l.id {
			t.Errorf("%.80s gives %s %v", l.line, m.ID, m.Error)
		}
	}
	c.line(`{"jsonrpc":"2.0","method":"contexts.new","params":{"title":"by a notification"}}`)
	c.line(`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":99}}`)
	c.line("")
	c.call("contexts.list", nil)
}

// TestTheEndOfInputStopsAll: also running requests, even if nobody reads the answers.
func TestTheEndOfInputStopsAll(t *testing.T) {
	a := start(t, Options{})
	a.provider()
	id, main := a.context("Boats")
	c := a.stdio()
	c.call("initialize", nil)
	c.begin("send", object{"context": id, "branch": "main", "text": "x", "model": "slow"})
	for !strings.Contains(string(c.next().Params), "delta") {
	}
	changes, err := a.store.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.in.Close()
	began := time.Now()
	if err := <-c.ended; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Minute { // a second if nothing else runs
		t.Errorf("the end took %s", took)
	}
	for range changes { // what arrived of the answer is kept
		if at(a.get(main+"/messages?from=-1"), "items", 0, "unfinished") == true {
			break
		}
	}
}

// inParts sends a line in parts of a size.
func (c *child) inParts(line string, size int) {
	c.a.t.Helper()
	c.n++
	for n := 0; n < len(line); n += size {
		end := min(n+size, len(line))
		raw, err := json.Marshal(rpcNotice{"2.0", partMethod, partParams{json.RawMessage(fmt.Sprint(c.n)), []byte(line[n:end]), end == len(line)}})
		if err != nil {
			c.a.t.Fatal(err)
		}
		c.line(string(raw))
	}
}

// TestMessagesLongerThanALine go in parts, there and back.
func TestMessagesLongerThanALine(t *testing.T) {
	a := start(t, Options{})
	a.server.limits.line = 64 << 10
	id, _ := a.context("Boats")
	c := a.stdio()
	c.call("initialize", nil)
	text := strings.Repeat("É<b>\x01", 1<<14)
	raw, err := json.Marshal(object{"jsonrpc": "2.0", "id": "long", "method": "messages.append", "params": object{"context": id, "branch": "main", "messages": []object{{"role": "user", "content": text}}}})
	if err != nil || len(raw) < a.server.limits.line {
		t.Fatal(len(raw), err)
	}
	c.inParts(string(raw), 29_989)
	if m, _ := c.answer(`"long"`); m.Error != nil {
		t.Fatal(m.Error)
	}
	got := c.call("messages.list", object{"context": id, "branch": "main"})
	if back, _ := at(got, "items", 0, "content", 0, "text").(string); back != text {
		t.Errorf("%d bytes come back of %d", len(back), len(text))
	}
	whole := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("x"), 1<<17))
	c.inParts(`{"jsonrpc":"2.0","id":"bytes","method":"artifacts.put","params":{"data":"`+whole+`"}}`, 32<<10)
	m, _ := c.answer(`"bytes"`)
	var put struct {
		SHA256 string
		Size   int
	}
	if err := json.Unmarshal(m.Result, &put); err != nil || put.Size != 1<<17 {
		t.Fatalf("%v %s %v", err, m.Result, m.Error)
	}
	m, news := c.answer(c.begin("artifacts.get", object{"sha256": put.SHA256}))
	size := 0
	for _, n := range news {
		var p dataNotice
		if err := json.Unmarshal(n.Params, &p); err != nil {
			t.Fatal(err)
		}
		size += len(p.Data)
	}
	if m.Error != nil || size != put.Size {
		t.Errorf("%d bytes come back: %v", size, m.Error)
	}
}

func TestPartsAreBounded(t *testing.T) {
	var p parts
	add := func(of string, n int, last bool) ([]byte, error) {
		return p.add(&partParams{json.RawMessage(of), make([]byte, n), last})
	}
	if _, err := add("1", mostMessage-10, false); err != nil {
		t.Fatal(err)
	}
	if _, err := add("2", 11, false); err == nil || len(p.all) != 1 {
		t.Errorf("%d bytes are too much, and %d messages are kept: %v", mostMessage+1, len(p.all), err)
	}
	if line, err := add("1", 10, true); err != nil || len(line) != mostMessage || p.size != 0 {
		t.Errorf("a message of %d bytes, %d are left: %v", len(line), p.size, err)
	}
	for i := range mostParts {
		if _, err := add(fmt.Sprint(i), 1, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := add(`"more"`, 1, false); err == nil || p.size != mostParts {
		t.Errorf("more messages than %d are begun: %v", mostParts, err)
	}
}

// session is a connection whose state a test looks at.
func (a *api) session(out io.Writer) *rpc {
	ctx, lost := context.WithCancelCause(a.t.Context())
	a.t.Cleanup(func() { lost(nil) })
	return &rpc{server: a.server, ctx: ctx, w: out, lost: lost, stops: map[string]context.CancelFunc{}, begun: true}
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.After(time.Minute); !is(); {
		select {
		case <-late:
			t.Fatalf("it never came to that: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// TestAnswersThatNobodyReads: they do not pile up. Of 1,000 answers as large as a page some wait, and the other requests wait to be run. Refusals are limited
// too.
func TestAnswersThatNobodyReads(t *testing.T) {
	a := start(t, Options{})
	a.server.limits.page /= 64
	page := a.server.limits.page
	a.server.room.most = waiting * page
	id, _ := a.context("Long", strings.Repeat("x", page))
	out, w := io.Pipe()
	defer out.Close()
	c := a.session(w)
	for i := range mostRunning {
		c.line(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"messages.list","params":{"context":%q,"branch":"main"}}`, i, id), nil)
	}
	used := func() int { a.server.room.mu.Lock(); defer a.server.room.mu.Unlock(); return a.server.room.used }
	done := func() int { c.mu.Lock(); defer c.mu.Unlock(); return mostRunning - c.running }
	most := 0
	until(t, "the room is full, and what is in it is there to be read", func() bool { most = max(most, used()); return done() >= waiting-3 })
	if most > (waiting+1)*page || done() > waiting {
		t.Errorf("%d bytes of %d answers wait", most, done())
	}
	p := newPump(c.ctx, func(string, any) error { return nil }, a.server.room)
	p.Delta(operation.Delta{Branch: "b", Type: "text", Text: strings.Repeat("x", 3*page)})
	p.mu.Lock()
	if len(p.list) > 0 || !p.skipped["b"] {
		t.Error("words are taken into a full room")
	}
	p.mu.Unlock()
	p.Close()
	for range 2 * mostRefused {
		c.line([]byte("nonsense"), nil)
	}
	if cause := context.Cause(c.ctx); cause != errUnread {
		t.Errorf("refusals without end give %v", cause)
	}
}

// TestTheEndOfInputDoesNotWaitForAReader: it does not wait for a reader that stopped reading.
func TestTheEndOfInputDoesNotWaitForAReader(t *testing.T) {
	a := start(t, Options{})
	id, _ := a.context("Long", strings.Repeat("x", 500_000))
	c := a.stdio()
	c.call("initialize", nil)
	for range 50 {
		c.begin("messages.list", object{"context": id, "branch": "main"})
		c.line("nonsense")
	}
	c.begin("changes", nil)
	c.in.Close()
	select {
	case err := <-c.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute): // a second, if nothing else runs
		t.Fatal("it does not end")
	}
}

// BenchmarkAdd compares an append over standard input and output with one by the library. They take turns, on files of their own, so that both have the same
// conditions.
func BenchmarkAdd(b *testing.B) {
	open := func(name string) (*chatctx.Store, *chatctx.ChatContext) {
		store, err := chatctx.Open(filepath.Join(b.TempDir(), name), chatctx.Options{Create: true, IdleHold: time.Millisecond, Judge: approval.Rules{}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { store.Close() })
		c, err := store.New(b.Context(), record.NewContext{Title: "x"})
		if err != nil {
			b.Fatal(err)
		}
		return store, c
	}
	_, own := open("library.db")
	store, c := open("stdio.db")
	inR, inW, _ := os.Pipe()
	outR, outW, _ := os.Pipe()
	s := New(store, Options{})
	defer s.Close()
	go s.ServeStdio(b.Context(), inR, outW)
	out := bufio.NewReader(outR)
	say := func(text string) {
		if _, err := inW.WriteString(text + "\n"); err != nil {
			b.Fatal(err)
		}
		line, err := out.ReadBytes('\n')
		if err != nil || bytes.Contains(line, []byte(`"error"`)) {
			b.Fatalf("%v %s", err, line)
		}
	}
	say(`{"jsonrpc":"2.0","id":0,"method":"initialize"}`)
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"messages.append","params":{"context":%q,"branch":"main","messages":[{"role":"user","content":"Hello, this is a message of some words."}]}}`, c.ID)
	var library, stdio []time.Duration
	took := func(all *[]time.Duration, do func()) {
		begun := time.Now()
		do()
		*all = append(*all, time.Since(begun))
	}
	for b.Loop() {
		took(&library, func() {
			if _, err := own.Append(b.Context(), "main", pool.NewText(pool.User, "Hello, this is a message of some words.")); err != nil {
				b.Fatal(err)
			}
		})
		took(&stdio, func() { say(line) })
	}
	inW.Close()
	slices.Sort(library)
	slices.Sort(stdio)
	middle := func(all []time.Duration) float64 { return float64(all[len(all)/2]) / 1e6 }
	b.ReportMetric(middle(library), "ms/library")
	b.ReportMetric(middle(stdio), "ms/stdio")
	b.ReportMetric(middle(stdio)/middle(library), "times")
}
