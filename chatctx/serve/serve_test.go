package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// api is a server with a store in memory, and a client of it.
type api struct {
	t      *testing.T
	store  *chatctx.Store
	server *Server
	http   *httptest.Server
	token  string

	recorded []spoken // requests and answers, which have to match the description
}

// spoken is a request with its answer.
type spoken struct {
	verb, path string
	body       any
	res        *http.Response
	raw        []byte
}

func start(t *testing.T, o Options) *api {
	t.Helper()
	store, err := chatctx.OpenMemory(chatctx.Options{Program: "test", By: "ann", Judge: approval.Rules{}})
	if err != nil {
		t.Fatal(err)
	}
	return over(t, store, o)
}

// over serves a store. The end of the test checks and closes it.
func over(t *testing.T, store *chatctx.Store, o Options) *api {
	t.Helper()
	s := New(store, o)
	h := httptest.NewServer(s)
	a := &api{t: t, store: store, server: s, http: h, token: s.RunToken()}
	t.Cleanup(func() {
		s.Close()
		h.Close()
		a.asDescribed()
		storetest.Close(t, store)
	})
	return a
}

// send sends a request unchanged, and returns the response with its body.
func (a *api) send(verb, path string, body any, header map[string]string) (*http.Response, []byte) {
	a.t.Helper()
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		r = bytes.NewReader(b)
	case string:
		r = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			a.t.Fatal(err)
		}
		r = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(a.t.Context(), verb, a.http.URL+path, r)
	if err != nil {
		a.t.Fatal(err)
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range header {
		if req.Header.Set(k, v); v == "" {
			req.Header.Del(k)
		}
		if k == "Host" {
			req.Host = v
		}
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		if err := testkit.UniqueNames(raw); err != nil {
			a.t.Errorf("%s %s: %v: %s", verb, path, err, raw)
		}
	}
	a.recorded = append(a.recorded, spoken{verb, path, body, res, raw})
	return res, raw
}

// do sends a request that has to answer with a status, and returns its JSON.
func (a *api) do(status int, verb, path string, body any) map[string]any {
	a.t.Helper()
	res, raw := a.send(verb, apiPath+path, body, nil)
	if res.StatusCode != status {
		a.t.Fatalf("%s %s gives %d, not %d: %s", verb, path, res.StatusCode, status, raw)
	}
	var v map[string]any
	if err := json.Unmarshal(raw, &v); err != nil {
		a.t.Fatalf("%s %s: %v: %s", verb, path, err, raw)
	}
	return v
}

func (a *api) get(path string) map[string]any { a.t.Helper(); return a.do(200, "GET", path, nil) }
func (a *api) post(path string, body any) map[string]any {
	a.t.Helper()
	if body == nil {
		body = object{}
	}
	return a.do(200, "POST", path, body)
}

type object = map[string]any

// at returns a value inside JSON: names of objects, and numbers of lists from 0.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p < 0 || p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

// want fails if a value is different.
func (a *api) want(v any, is any, path ...any) {
	a.t.Helper()
	if got := at(v, path...); fmt.Sprint(got) != fmt.Sprint(is) {
		a.t.Errorf("%v is %v, not %v, in %v", path, got, is, v)
	}
}

// context creates a conversation with messages on main, and returns the path of main.
func (a *api) context(title string, texts ...string) (id, main string) {
	a.t.Helper()
	id = a.post("/contexts", object{"title": title})["context"].(string)
	main = "/contexts/" + id + "/branches/main"
	for i, text := range texts {
		role := []string{"user", "assistant"}[i%2]
		a.post(main+"/messages", object{"messages": []object{{"role": role, "content": text}}})
	}
	return id, main
}

func TestAStoryOverHTTP(t *testing.T) {
	a := start(t, Options{})
	id, main := a.context("Boats", "A name?", "Ada", "Another?", "Bea")
	if info, err := a.store.Context(t.Context(), ""); err == nil {
		t.Errorf("a request made %s the current conversation", info.ID)
	}

	list := a.get("/contexts")
	a.want(list, "Boats", "items", 0, "title")
	page := a.get(main + "/messages?from=-2")
	a.want(page, 4, "messages")
	a.want(page, "Another?", "items", 0, "content", 0, "text")
	back := a.get(main + "/messages?from=-1&to=1&limit=3")
	a.want(back, "Bea", "items", 0, "content", 0, "text")
	a.want(back, 1, "next")
	a.want(a.get(main+"/messages?range=@2.."), 3, "items", 0, "position")

	fork := a.post(main+"/fork", object{"name": "other", "at": "@2"})
	a.want(fork, 2, "messages")
	a.want(a.get(main), true, "active")
	other := "/contexts/" + id + "/branches/other"
	a.post(other+"/messages", object{"messages": []object{{"role": "user", "content": "Shorter?"}}})
	siblings := a.get(main + "/siblings")
	a.want(siblings, 3, "items", 0, "position")
	a.want(siblings, 1, "items", 0, "index")
	a.want(siblings, "other", "items", 0, "siblings", 1, "branch")
	a.want(siblings, "user", "items", 0, "siblings", 1, "role")
	a.want(siblings, "Shorter?", "items", 0, "siblings", 1, "words")
	a.post(main+"/fork", object{"name": "answered"})
	answered := "/contexts/" + id + "/branches/answered"
	a.post(answered+"/messages", object{"messages": []object{{"role": "assistant", "content": "Cat.\n\nOr Eve.", "metadata": object{"model_id": "red"}}}})
	open := a.get(main + "/siblings?from=5") // where main ends and another branch goes on
	a.want(open, 5, "items", 0, "position")
	a.want(open, 0, "items", 0, "index")
	a.want(open, "answered", "items", 0, "siblings", 0, "branch")
	a.want(open, "assistant", "items", 0, "siblings", 0, "role")
	a.want(open, "red", "items", 0, "siblings", 0, "model")
	a.want(open, "Cat. Or Eve.", "items", 0, "siblings", 0, "words")
	a.want(a.get(main+"/siblings?to=4"), 3, "items", 0, "position")
	a.post("/contexts/"+id+"/branches/answered/remove", object{})
	tree := a.get("/contexts/" + id + "/tree")
	a.want(tree, 2, "rows")
	a.want(tree, 2, "items", 1, "shared")
	a.want(a.get("/contexts/"+id+"/diff?a=main&b=other"), "Ada", "ancestor", "content", 0, "text")

	edit := a.post(main+"/edit", object{"message": "@3", "text": "Yet another?"})
	a.want(edit, "main.2", "branch")
	a.want(a.get("/search?text=yet"), "main.2", "items", 0, "branches", 0, "branch")
	a.post(main+"/rewind", object{"message": "@2"})
	a.want(a.get(main), 2, "messages")
	a.want(a.post(main+"/undo", nil), "rewind", "undid", "what")
	a.want(a.get(main), 4, "messages")
	a.want(a.post(other+"/pick", object{"from": "main", "messages": []string{"@3"}}), 4, "messages")
	a.post(main+"/tags", object{"tag": "good", "message": "@1"})
	a.want(a.get("/contexts/"+id+"/tags"), "good", "items", 0, "tag")
	a.post(main+"/activate", nil)
	a.post(other+"/remove", nil)
	a.want(a.get("/contexts/"+id+"/operations?limit=1"), "branch rm", "items", 0, "what")
}

func TestRevisionsAndKeys(t *testing.T) {
	a := start(t, Options{})
	_, main := a.context("Boats", "One")
	res, _ := a.send("GET", apiPath+main, nil, nil)
	tag := res.Header.Get("ETag")
	if res, _ := a.send("GET", apiPath+main, nil, map[string]string{"If-None-Match": tag}); res.StatusCode != 304 {
		t.Errorf("an unchanged branch gives %d", res.StatusCode)
	}
	two := object{"messages": []object{{"role": "assistant", "content": "Two"}}}
	once := map[string]string{"If-Match": tag, "Idempotency-Key": "k1"}
	first, body := a.send("POST", apiPath+main+"/messages", two, once)
	again, same := a.send("POST", apiPath+main+"/messages", two, once)
	if first.StatusCode != 200 || again.StatusCode != 200 || !bytes.Equal(body, same) || again.Header.Get("Idempotency-Replayed") == "" {
		t.Errorf("a request with a key gave %d %s and then %d %s", first.StatusCode, body, again.StatusCode, same)
	}
	three := object{"messages": []object{{"role": "user", "content": "Three"}}}
	if res, raw := a.send("POST", apiPath+main+"/messages", three, map[string]string{"If-Match": tag}); res.StatusCode != 412 || !strings.Contains(string(raw), `"conflict"`) {
		t.Errorf("an old revision gives %d: %s", res.StatusCode, raw)
	}
	if res, raw := a.send("POST", apiPath+main+"/messages", three, map[string]string{"Idempotency-Key": "k1"}); res.StatusCode != 409 {
		t.Errorf("another request with the key gives %d: %s", res.StatusCode, raw)
	}
	if res, _ := a.send("POST", apiPath+main+"/messages", three, map[string]string{"If-Match": first.Header.Get("ETag")}); res.StatusCode != 200 {
		t.Errorf("the tag of the answer gives %d", res.StatusCode)
	}
	a.want(a.get(main), 3, "messages")
}

func TestRefusals(t *testing.T) {
	a := start(t, Options{})
	id, main := a.context("Boats", "One")
	for _, c := range []struct {
		verb, path string
		body       any
		status     int
		kind       string
		has        string
	}{
		{"GET", "/contexts/nothing", nil, 404, "not_found", "nothing"},
		{"GET", "/contexts/" + id + "/branches/none", nil, 404, "not_found", "none"},
		{"GET", main + "/messages?fro=1", nil, 400, "usage", `knows no parameter "fro"`},
		{"GET", main + "/messages?from=x", nil, 400, "usage", "has to be a number"},
		{"GET", main + "/messages?from=1&from=2", nil, 400, "usage", "given twice"},
		{"GET", main + "/messages?range=@1..@2&from=1", nil, 400, "usage", "range"},
		{"GET", main + "/messages?limit=5000", nil, 400, "usage", "limit"},
		{"GET", "/contexts?after=zzz", nil, 400, "usage", "no cursor"},
		{"GET", "/contexts/" + id + "/operations?after=zzz", nil, 404, "not_found", "zzz"},
		{"GET", "/operations?after=zzz", nil, 404, "not_found", "zzz"},
		{"GET", "/contexts/" + id + "/export?branch=zz", nil, 404, "not_found", "zz"},
		{"GET", "/search?text=%ff", nil, 400, "usage", "UTF-8"},
		{"POST", "/contexts", "{\"title\":\"\xff\"}", 400, "usage", "UTF-8"},
		{"POST", main, object{}, 405, "usage", "takes GET"},
		{"DELETE", main + "/messages", nil, 405, "usage", "takes GET or POST"},
		{"PUT", "/openapi.json", nil, 405, "usage", "takes GET"},
		{"POST", "/contexts", object{"key": strings.Repeat("k", 1<<20)}, 400, "usage", "at most 1000 bytes"},
		{"GET", "/search", nil, 400, "usage", "word"},
		{"POST", main + "/messages", object{"messages": []any{nil}}, 400, "usage", "null"},
		{"POST", main + "/messages", object{"messages": []object{{"role": "user"}}}, 400, "usage", ""},
		{"POST", main + "/messages", object{}, 400, "usage", "needs messages"},
		{"POST", main + "/messages", object{"messages": 3}, 400, "usage", "messages cannot be a number"},
		{"POST", main + "/messages", `[1]`, 400, "usage", "no JSON object"},
		{"POST", main + "/messages", `null`, 400, "usage", "no JSON object"},
		{"POST", main + "/messages?key=1", object{}, 400, "usage", "in the body"},
		{"POST", main + "/fork", object{"name": "main"}, 409, "conflict", "main"},
		{"POST", main + "/fork", object{"name": "a", "branch": "b"}, 400, "usage", "given twice"},
		{"POST", main + "/fork", object{"name": "a", "unknown": 1}, 400, "usage", "unknown"},
		{"POST", main + "/remove", object{}, 409, "conflict", "active"},
		{"POST", main + "/rewind", object{"message": "@9"}, 404, "not_found", "@9"},
		{"POST", main + "/redo", object{}, 404, "not_found", ""},
		{"POST", main + "/marks", object{"messages": []string{"@1"}, "mark": "loved"}, 400, "usage", "pinned or excluded"},
		{"POST", "/import", object{"uploads": []string{"../../etc/passwd"}}, 404, "not_found", "upload"},
		{"GET", "/artifacts/zz", nil, 400, "usage", "64 hexadecimal"},
		{"GET", "/artifacts/" + strings.Repeat("ab", 32), nil, 404, "not_found", ""},
		{"POST", "/contexts/" + id + "/rename", object{"title": ""}, 400, "usage", "needs title"},
		{"GET", "/contexts/" + id + "/export?branch=main&format=none", nil, 400, "usage", "no format"},
		{"GET", "/nothing", nil, 404, "not_found", "route"},
		{"POST", "/settings", object{"settings": object{"modle": "x"}}, 400, "usage", "modle"},
	} {
		v := a.do(c.status, c.verb, c.path, c.body)
		a.want(v, c.kind, "error", "kind")
		if text := fmt.Sprint(at(v, "error", "message")); !strings.Contains(text, c.has) {
			t.Errorf("%s %s says %q, without %q", c.verb, c.path, text, c.has)
		}
	}
	if res, _ := a.send("POST", apiPath+main+"/fork", object{"name": "x"}, map[string]string{"Content-Type": "text/plain"}); res.StatusCode != 415 {
		t.Errorf("a body of text gives %d", res.StatusCode)
	}
	if res, _ := a.send("POST", apiPath+main+"/undo", object{}, map[string]string{"If-Match": `"99"`}); res.StatusCode != 412 {
		t.Errorf("undo at another revision gives %d", res.StatusCode)
	}
}

func TestCallsAreDecidedByName(t *testing.T) {
	a := start(t, Options{})
	_, main := a.context("Boats")
	a.post(main+"/messages", object{"messages": []object{{"role": "user", "content": "Sail"}, {"role": "assistant", "tool_calls": []object{{"id": "c1", "tool_name": "sail", "arguments": object{"to": "Riga"}}}}}})
	secret, err := grant.Add(t.Context(), base.Of(a.store), "watch", []string{"read", "decide", "run"})
	if err != nil {
		t.Fatal(err)
	}
	a.token = secret
	list := a.get("/calls?state=pending")
	a.want(list, "sail", "items", 0, "tool_name")
	call := main + "/calls/" + at(list, "items", 0, "call").(string)
	shown := a.get(call)
	a.want(shown, "ask", "ruling", "effect")
	if offers, _ := shown["offers"].([]any); len(offers) < 2 {
		t.Errorf("the call has the offers %v", offers)
	}
	a.want(a.do(403, "POST", call+"/approve", object{"always": at(shown, "offers", 0)}), "forbidden", "error", "kind")
	if _, err := a.store.PutTool(t.Context(), record.Tool{Name: "sail", Command: []string{"x"}, Schema: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}}}`)}); err != nil {
		t.Fatal(err)
	}
	a.want(a.do(400, "POST", call+"/approve", object{"arguments": object{"to": 7}}), "usage", "error", "kind")
	deny, err := a.store.AddRule(t.Context(), record.Rule{Effect: record.Deny, Tool: "sail", When: []record.Condition{{Argument: "to", Op: "equals", Value: "Kiel"}}})
	if err != nil {
		t.Fatal(err)
	}
	a.want(a.do(409, "POST", call+"/approve", object{"arguments": object{"to": "Kiel"}}), "conflict", "error", "kind")
	if _, err := a.store.RemoveRule(t.Context(), deny.Last().Rule.ID.String()); err != nil {
		t.Fatal(err)
	}
	a.want(a.get(call), "pending", "approval_status")
	done := a.post(call+"/approve", object{"arguments": object{"to": "Oslo"}, "reason": "nearer"})
	a.want(done, "watch", "by", "claimed")
	a.want(done, "Oslo", "effective_arguments", "to")
	a.want(a.do(409, "POST", call+"/deny", object{}), "conflict", "error", "kind")
	claim := a.post(call+"/claim", nil)
	a.want(claim, "Oslo", "run_arguments", "to")
	a.want(a.do(409, "POST", call+"/claim", object{}), "conflict", "error", "kind")
	answer := a.post(call+"/resolve", object{"text": "there", "token": claim["token"]})
	a.want(answer, 3, "position")
	a.want(a.get(main+"/messages?from=-1"), pool.ToolRole, "items", 0, "role")
}

// TestCallsComeInPages: all waiting calls are reached, in order, each once, while some are decided.
func TestCallsComeInPages(t *testing.T) {
	a := start(t, Options{})
	var want []string
	for i := range 3 {
		_, main := a.context(fmt.Sprint("Boats ", i), "Sail")
		var calls []object
		for k := range 40 {
			id := fmt.Sprintf("c%d-%d", i, k)
			calls, want = append(calls, object{"id": id, "tool_name": "sail", "arguments": object{}}), append(want, id)
		}
		a.post(main+"/messages", object{"messages": []object{{"role": "assistant", "tool_calls": calls}}})
	}
	var got []string
	after := ""
	for {
		page := a.get("/calls?state=pending&limit=7" + after)
		items := page["items"].([]any)
		for i := range items {
			got = append(got, at(items, i, "id").(string))
		}
		if page["next"] == nil {
			break
		}
		first := "/contexts/" + at(items, 0, "context").(string) + "/branches/main/calls/" + at(items, 0, "call").(string)
		a.post(first+"/deny", nil)
		after = "&after=" + page["next"].(string)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the pages have %d calls of %d: %v", len(got), len(want), got)
	}
	a.do(400, "GET", "/calls?after=zzz", nil)
}
