package serve

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/pool"
)

// child is a program that speaks over standard input and output.
type child struct {
	a     *api
	in    *io.PipeWriter
	out   *bufio.Reader
	ended chan error
	n     int
	held  []rpcMessage // that came before what was waited for
}

func (a *api) stdio() *child {
	a.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &child{a: a, in: inW, out: bufio.NewReaderSize(outR, 1<<20), ended: make(chan error, 1)}
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

func (c *child) next() rpcMessage {
	c.a.t.Helper()
	raw, err := c.out.ReadBytes('\n')
	if err != nil {
		c.a.t.Fatal(err)
	}
	var m rpcMessage
	if err := json.Unmarshal(raw, &m); err != nil || m.Version != "2.0" {
		c.a.t.Fatalf("not JSON-RPC: %v %.200s", err, raw)
	}
	return m
}

// begin sends a request, and gives its id.
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

// answer waits for the answer to a request. Notifications on the way are given too.
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

// call does a request that has to succeed.
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
	if id, err := a.store.ID(t.Context()); err != nil || hello["store"] != id.String() || len(hello["methods"].([]any)) != len(methods) {
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
	c := a.stdio()
	c.call("initialize", nil)
	for _, l := range []struct {
		line string
		code int
		id   string
	}{
		{"nonsense", codeInvalid, "null"}, {`{"jsonrpc":"2.0","id":7`, codeParse, "null"}, {`[]`, codeInvalid, "null"}, {`{"id":7,"method":"contexts.list"}`, codeInvalid, "7"},
		{`{"jsonrpc":"2.0","id":7}`, codeInvalid, "7"}, {`{"jsonrpc":"2.0","id":{},"method":"x"}`, codeInvalid, "{}"}, {`{"jsonrpc":"2.0","id":"a","method":"rm -rf"}`, codeMethod, `"a"`},
		{`{"jsonrpc":"2.0","id":8,"method":"contexts.get","params":{"context":""}}`, 2, "8"}, {`{"jsonrpc":"2.0","id":9,"method":"contexts.get","params":[1]}`, 2, "9"},
		{`{"jsonrpc":"2.0","id":10,"method":"uploads.add","params":{"data":"%%"}}`, 2, "10"}, {`{"jsonrpc":"2.0","id":11,"method":"uploads.add","params":{}}`, 2, "11"},
		{`{"jsonrpc":"2.0","id":12,"method":"messages.list","params":{"context":"x"}}`, 2, "12"},
		{"{" + strings.Repeat(" ", mostLine), codeInvalid, "null"},
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

// TestTheEndOfInputStopsAll: also what runs, and where nobody reads the answers.
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
	if took := time.Since(began); took > time.Minute { // a second where nothing else runs
		t.Errorf("the end took %s", took)
	}
	for range changes { // what came of the answer is kept
		if at(a.get(main+"/messages?from=-1"), "items", 0, "unfinished") == true {
			break
		}
	}
}

// BenchmarkAdd compares an append over standard input and output with the library's.
func BenchmarkAdd(b *testing.B) {
	open := func(b *testing.B) (*chatctx.Store, *chatctx.ChatContext) {
		store, err := chatctx.Open(filepath.Join(b.TempDir(), "x.db"), chatctx.Options{Create: true, IdleHold: time.Millisecond, Judge: approval.Rules{}})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { store.Close() })
		c, err := store.New(b.Context(), chatctx.NewContext{Title: "x"})
		if err != nil {
			b.Fatal(err)
		}
		return store, c
	}
	b.Run("library", func(b *testing.B) {
		_, c := open(b)
		for b.Loop() {
			if _, err := c.Append(b.Context(), "main", pool.NewText(pool.User, "Hello, this is a message of some words.")); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("stdio", func(b *testing.B) {
		store, c := open(b)
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
		for b.Loop() {
			say(line)
		}
		inW.Close()
	})
}
