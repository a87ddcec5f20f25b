package serve

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
)

// as gives the following requests a token with only these scopes.
func (a *api) as(scopes ...string) {
	a.t.Helper()
	secret, err := grant.Add(a.t.Context(), base.Of(a.store), strings.Join(scopes, "-"), scopes)
	if err != nil {
		a.t.Fatal(err)
	}
	a.token = secret
}

// TestUndoNeedsTheScopesOfWhatItUndoes: undo and redo do not reach operations that the caller could not have done.
func TestUndoNeedsTheScopesOfWhatItUndoes(t *testing.T) {
	a := start(t, Options{})
	id, main := a.context("Boats", "A name?")
	own, all := main+"/undo", a.token
	rule := a.post("/rules", object{"effect": "deny", "tool": "*"})["operation"]
	inside := a.post("/rules", object{"context": id, "effect": "deny", "tool": "*"})["operation"]
	set := a.post(main+"/settings", object{"settings": object{"base_url": "http://localhost:1/v1"}})["operation"]
	a.as("read", "write")
	for _, operation := range []any{rule, inside, set, nil} {
		body := object{}
		if operation != nil {
			body["operation"] = operation
		}
		a.want(a.do(403, "POST", own, body), "forbidden", "error", "kind")
	}
	a.do(403, "POST", main+"/redo", object{})
	a.do(404, "POST", own, object{"operation": "4711"})
	added := a.post(main+"/messages", object{"messages": []object{{"role": "user", "content": "Or another?"}}})
	a.post(own, object{"operation": at(added, "items", 0, "operation")})
	a.token = all
	a.post(main+"/redo", nil)
	a.post(own, object{"operation": rule})
}

// TestAppendDecidesNothing: appended messages decide no call and answer none for a caller who may not.
func TestAppendDecidesNothing(t *testing.T) {
	a := start(t, Options{})
	_, main := a.context("Boats")
	call := object{"id": "c1", "tool_name": "sail", "arguments": object{}}
	asks := func(c object) object {
		return object{"messages": []object{{"role": "assistant", "tool_calls": []object{c}}}}
	}
	answers := func(id string) object {
		return object{"messages": []object{{"role": "tool", "tool_result": object{"request_id": id, "result": "done"}}}}
	}
	all := a.token
	a.as("read", "write", "run")
	a.do(403, "POST", main+"/messages", asks(object{"id": "c0", "tool_name": "sail", "arguments": object{}, "approval_status": "approved"}))
	a.post(main+"/messages", asks(call))
	a.do(403, "POST", main+"/messages", answers("c1")) // it waits for a decision
	a.as("read", "write")
	a.do(403, "POST", main+"/messages", answers("c1"))
	a.token = all
	a.post(main+"/calls/c1/approve", object{"arguments": nil})
	a.want(a.get(main+"/calls/c1"), nil, "effective_arguments")
	a.as("read", "run", "write")
	a.post(main+"/messages", answers("c1"))
}

// TestBoundsAndKeys: the size of a request is limited, and a key is never accepted and then ignored.
func TestBoundsAndKeys(t *testing.T) {
	a := start(t, Options{})
	_, main := a.context("Boats", "A name?")
	a.do(400, "POST", main+"/send", object{"models": []string{"a", "b", "c", "d"}, "times": json.Number("4611686018427387904")})
	if res, raw := a.send("GET", apiPath+main, nil, map[string]string{"Idempotency-Key": "k"}); res.StatusCode != 400 || !strings.Contains(string(raw), "Idempotency-Key") {
		t.Errorf("a request that reads gives %d with a key: %s", res.StatusCode, raw)
	}
}

// TestARefusedBodyIsNotWaitedFor: a caller who is refused does not hold a connection by announcing a body.
func TestARefusedBodyIsNotWaitedFor(t *testing.T) {
	a := start(t, Options{})
	for _, host := range []string{"127.0.0.1", "evil.example"} {
		conn, err := net.Dial("tcp", a.http.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(conn, "POST %s/contexts HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n", apiPath, host)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("with the host %s: %v", host, err)
		}
		res.Body.Close()
		if want := map[string]int{"127.0.0.1": 401, "evil.example": 421}[host]; res.StatusCode != want {
			t.Errorf("with the host %s it is %d, not %d", host, res.StatusCode, want)
		}
	}
}
