package serve

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
)

// TestATokenThatIsGoneEndsWhatRuns: everything that runs with a token ends when the token is removed: by the API, or by another program with the store.
func TestATokenThatIsGoneEndsWhatRuns(t *testing.T) {
	for _, by := range []string{"the API", "the store"} {
		a := start(t, Options{})
		a.provider()
		_, main := a.context("Boats")
		admin := a.token
		a.as("read", "run", "write")
		streams := map[string]*bufio.Scanner{}
		for path, body := range map[string]string{"/changes": "", main + "/send": `{"text":"x","model":"slow"}`} {
			verb := "GET"
			if body != "" {
				verb = "POST"
			}
			req, _ := http.NewRequestWithContext(t.Context(), verb, a.http.URL+apiPath+path, strings.NewReader(body))
			req.Header.Set("Authorization", "Bearer "+a.token)
			req.Header.Set("Content-Type", "application/json")
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil || res.StatusCode != 200 {
				t.Fatal(err, res)
			}
			defer res.Body.Close()
			in := bufio.NewScanner(res.Body)
			in.Scan() // it runs
			streams[path] = in
		}
		a.token = admin
		name := "read-run-write"
		if by == "the API" {
			a.post("/tokens/"+name+"/remove", nil)
		} else if err := grant.Remove(t.Context(), base.Of(a.store), name); err != nil {
			t.Fatal(err)
		}
		for path, in := range streams {
			last := ""
			for in.Scan() {
				if in.Text() != "" {
					last = in.Text()
				}
			}
			if !strings.Contains(last, `"unauthenticated"`) {
				t.Errorf("by %s: %s ends with %s", by, path, last)
			}
		}
	}
}

// TestWhatATokenDoesBearsItsName: everything done with a token has its name: in the journal, in rules, claims and decisions, also in those that an undo takes
// back.
func TestWhatATokenDoesBearsItsName(t *testing.T) {
	a := start(t, Options{})
	a.provider()
	id, main := a.context("Boats")
	a.token = func() string {
		secret, err := grant.Add(t.Context(), base.Of(a.store), "phone", []string{"read", "write", "decide", "run", "admin"})
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}()
	a.post(main+"/messages", object{"messages": []object{{"role": "user", "content": "Sail"}, {"role": "assistant", "tool_calls": []object{{"id": "c1", "tool_name": "sail", "arguments": object{}}, {"id": "c2", "tool_name": "sail", "arguments": object{}}}}}})
	for _, in := range []object{{"effect": "deny", "tool": "x"}, {"effect": "deny", "tool": "y", "context": id}} {
		a.want(a.post("/rules", in), "ann (phone)", "by")
	}
	a.post(main+"/calls/c1/approve", object{"always": object{"effect": "allow", "tool": "sail"}})
	rules := a.get("/rules?context=" + id)
	for i := range rules["items"].([]any) {
		a.want(rules, "ann (phone)", "items", i, "by")
	}
	claim := a.post(main+"/calls/c1/claim", nil)
	a.post(main+"/calls/c1/resolve", object{"text": "there", "token": claim["token"]})
	denied := a.post(main+"/calls/c2/deny", nil)
	a.post(main+"/undo", object{"operation": denied["operation"]})
	a.post("/tools", object{"tool": "t", "command": []string{"true"}})
	a.post("/settings", object{"settings": object{"temperature": 0.5}})
	a.stream(main+"/send", object{"text": "x", "models": []string{"one"}})
	for _, path := range []string{"/contexts/" + id + "/operations", "/operations"} {
		all := a.get(path)
		for i := range all["items"].([]any) {
			op := at(all, "items", i)
			if before := at(op, "operation") == "s1" || at(op, "what") == "new"; !before && at(op, "by") != "test (phone)" {
				t.Errorf("%s has %v", path, op)
			}
		}
	}
	log := a.get("/contexts/" + id + "/calls/log")
	steps := 0
	for i := range log["items"].([]any) {
		switch by := at(log, "items", i, "by"); at(by, "kind") {
		case "person":
			a.want(by, "phone", "claimed")
			steps++
		case "program":
			a.want(by, "test (phone)", "name")
			steps++
		}
	}
	if steps < 5 {
		t.Errorf("the log has %d steps: %v", steps, log)
	}
}

// visit opens a connection, and reports whether it is let in.
func visit(t *testing.T, l net.Listener) (net.Conn, bool) {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	_, err = http.ReadResponse(bufio.NewReader(conn), nil)
	return conn, err == nil
}

func TestConnectionsAreBounded(t *testing.T) {
	a := start(t, Options{})
	l, err := Listen("")
	if err != nil {
		t.Fatal(err)
	}
	a.server.limits.connections = 2
	defer a.serveOn(a.server, l, nil)()
	first, in := visit(t, l)
	_, second := visit(t, l)
	_, third := visit(t, l)
	if !in || !second || third {
		t.Errorf("two connections may be open, and of three are %v %v %v", in, second, third)
	}
	first.Close()
	until(t, "another one may come where one has gone", func() bool { _, in := visit(t, l); return in })

	c := &crowd{most: 10, each: 2}
	for i, who := range []string{"a", "a", "a", "b", "", "", ""} {
		if c.enter(who) == (i == 2) {
			t.Errorf("the connection %d, of %q, is let in: %v", i, who, i == 2)
		}
	}
	c.leave("a")
	if !c.enter("a") || c.enter("a") || c.all != 6 || c.by["a"] != 2 {
		t.Errorf("%d are open: %v", c.all, c.by)
	}
}

func TestRequestsAndUploadsAreBounded(t *testing.T) {
	a := start(t, Options{})
	a.server.limits.uploads = 10
	first := a.do(200, "POST", "/uploads?name=x", []byte("12345678"))
	a.want(a.do(413, "POST", "/uploads?name=y", []byte("123")), "too_large", "error", "kind")
	second := a.do(200, "POST", "/uploads?name=y", []byte("12"))
	a.want(a.do(413, "POST", "/uploads?upload="+second["upload"].(string), []byte("3")), "too_large", "error", "kind")
	a.server.uploads.expire(first["upload"].(string))
	// Data of a part that broke off is removed, and nothing of the parts before it.
	a.want(a.do(200, "POST", "/uploads?upload="+second["upload"].(string), []byte("3")), 3, "size")
	a.server.uploads.expire(second["upload"].(string))
	a.do(200, "POST", "/uploads?name=z", []byte("1234567890"))
	if files, err := os.ReadDir(a.server.uploads.dir); err != nil || len(files) != 1 || a.server.uploads.size != 10 {
		t.Errorf("%v are there with %d bytes: %v", files, a.server.uploads.size, err)
	}
	a.server.limits.requests = 0
	a.want(a.do(503, "GET", "/contexts", nil), "too_many", "error", "kind")
	a.server.limits.requests = 10
}

// TestAHandleOfAnotherName: As returns the same store: one handle reads what the other stores.
func TestAHandleOfAnotherName(t *testing.T) {
	a := start(t, Options{})
	c, err := a.store.As("ben").New(t.Context(), record.NewContext{Title: "x"})
	if err != nil {
		t.Fatal(err)
	}
	a.want(a.get("/contexts/"+c.ID.String()), "x", "title")
}
