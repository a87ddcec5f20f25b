package serve

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
)

// TestKeysOfStreamsAndBytes: a request with a key is done once, whatever it answers with: a stream repeats its last event, and bytes have to be the same.
func TestKeysOfStreamsAndBytes(t *testing.T) {
	a := start(t, Options{})
	a.provider()
	_, main := a.context("Boats")
	keyed := func(path string, body any, key string) (*http.Response, string) {
		res, raw := a.send("POST", apiPath+path, body, map[string]string{"Idempotency-Key": key})
		return res, string(raw)
	}
	ask := object{"text": "Who are you?"}
	_, first := keyed(main+"/send", ask, "one")
	res, again := keyed(main+"/send", ask, "one")
	last := first[strings.LastIndex(first, "event: done"):]
	if res.Header.Get("Idempotency-Replayed") == "" || again != last {
		t.Errorf("a stream that comes again gives %q, and its end was %q", again, last)
	}
	a.want(a.get(main), 2, "messages")
	if res, raw := keyed(main+"/send", object{"text": "And who is that?"}, "one"); res.StatusCode != 409 {
		t.Errorf("another stream with the key gives %d: %s", res.StatusCode, raw)
	}

	bad := object{"text": "And you?", "model": "bad"}
	_, first = keyed(main+"/send", bad, "two")
	if _, again := keyed(main+"/send", bad, "two"); !strings.Contains(first, "event: error") || !strings.HasSuffix(first, again) {
		t.Errorf("a stream that failed gives %q, and again %q", first, again)
	}
	a.want(a.get(main), 3, "messages")
	for range 2 { // nothing was done: it is refused again
		if res, _ := keyed(main+"/send", object{"txt": "x"}, "three"); res.StatusCode != 400 || res.Header.Get("Idempotency-Replayed") != "" {
			t.Errorf("a stream that is refused gives %d", res.StatusCode)
		}
	}
	if res, _ := keyed(main+"/send", object{"text": "Now?"}, "three"); res.StatusCode != 200 {
		t.Errorf("the key of a refusal gives %d", res.StatusCode)
	}

	made, _ := a.send("POST", apiPath+"/uploads?name=x.jsonl", []byte("one"), nil)
	up := at(a.do(200, "POST", "/uploads?name=y.jsonl", []byte("one")), "upload").(string)
	if made.StatusCode != 200 {
		t.Fatal(made.Status)
	}
	for _, c := range []struct {
		key, bytes string
		status     int
		size       string
	}{{"p1", "two", 200, `"size":6`}, {"p1", "two", 200, `"size":6`}, {"p1", "too", 409, "another request"}, {"p2", "two", 200, `"size":9`}} {
		res, raw := keyed("/uploads?upload="+up, []byte(c.bytes), c.key)
		if res.StatusCode != c.status || !strings.Contains(raw, c.size) {
			t.Errorf("the part %s with the key %s gives %d %s", c.bytes, c.key, res.StatusCode, raw)
		}
	}
}

// TestARefusedImportLeavesItsUploads: a refused import keeps the uploads that it names.
func TestARefusedImportLeavesItsUploads(t *testing.T) {
	a := start(t, Options{})
	up := at(a.do(200, "POST", "/uploads?name=x.jsonl", []byte("{\"role\":\"user\",\"content\":\"A\"}\n")), "upload").(string)
	a.do(404, "POST", "/import", object{"uploads": []string{up, "zz"}})
	a.want(a.do(400, "POST", "/import", object{"uploads": []string{up, up}}), "usage", "error", "kind")
	_, raw := a.send("POST", apiPath+"/import", object{"uploads": []string{up}}, nil)
	if !strings.Contains(string(raw), `"messages":1`) {
		t.Errorf("the import gives %s", raw)
	}
	a.do(404, "POST", "/import", object{"uploads": []string{up}})
}

// TestKeptAnswersAreBounded: the memory for answers to repeated requests is limited.
func TestKeptAnswersAreBounded(t *testing.T) {
	var k keys
	m := methodNamed("contexts.rename")
	running, _, err := k.begin(t.Context(), m, Caller{}, "runs", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * keptAnswers {
		o, _, err := k.begin(t.Context(), m, Caller{}, fmt.Sprint(i), nil)
		if err != nil {
			t.Fatal(err)
		}
		k.end(o, true, outcome{raw: bytes.Repeat([]byte("x"), keptBytes/500)})
	}
	if k.size > keptBytes || len(k.order) != 500 || len(k.all) != 501 {
		t.Errorf("%d bytes of %d answers are kept, %d by their keys", k.size, len(k.order), len(k.all))
	}
	k.end(running, true, outcome{raw: []byte("once")})
	if was, known, err := k.begin(t.Context(), m, Caller{}, "runs", nil); err != nil || !known || string(was.raw) != "once" {
		t.Errorf("a request that ran while many others came and went is begun again: %v, %v", known, err)
	}
}

// TestNamesCountInTheirLetters: names must match including their case, and appear once, in each body and query.
func TestNamesCountInTheirLetters(t *testing.T) {
	a := start(t, Options{})
	_, main := a.context("Boats", "One")
	for _, c := range []struct{ path, body, has string }{
		{"/contexts", `{"Title":"x"}`, `unknown field "Title"`},
		{"/contexts", `{"title":"x","title":"y"}`, `"title" stands there twice`},
		{"/contexts", `{"title":"x","\u0074itle":"y"}`, `"title" stands there twice`},
		{main + "/messages", `{"messages":[{"Role":"user","content":"x"}]}`, "Role"},
		{main + "/messages", `{"messages":[{"role":"user","content":"x"}],"Expect":1}`, "Expect"},
		{main + "/edit", `{"message":"@1","text":"x","KEEP_REST":true}`, "KEEP_REST"},
		{"/rules", `{"effect":"deny","tool":"x","when":[{"Path":"a"}]}`, "Path"},
		{"/rules", `{"effect":"deny","tool":"x","examples":[],"examples":[]}`, "twice"},
		{"/tools", `{"tool":"x","command":["true"],"env":{"A":"1","A":"2"}}`, "twice"},
	} {
		res, raw := a.send("POST", apiPath+c.path, c.body, nil)
		if res.StatusCode != 400 || !strings.Contains(string(raw), strings.ReplaceAll(c.has, `"`, `\"`)) {
			t.Errorf("%s with %s gives %d: %s", c.path, c.body, res.StatusCode, raw)
		}
	}
	a.do(400, "GET", main+"/messages?From=1", nil)
}

// TestPlacesAreImported: conversations of other tools on the server's machine are for admins only, and are imported by the tool's name.
func TestPlacesAreImported(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.jsonl")
	if err := os.WriteFile(file, []byte(`{"messages":[{"role":"user","content":"A"},{"role":"assistant","content":"B"}]}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := start(t, Options{Places: func() []exchange.Place { return []exchange.Place{{Tool: "desk", Path: file, Files: 1}} }})
	a.want(a.get("/places"), "desk", "items", 0, "tool")
	if all := a.stream("/places/import", object{"tools": []string{"desk"}}); all[len(all)-1].name != "done" || at(all[len(all)-1].data, "messages") != 2.0 {
		t.Errorf("the import gives %v", all)
	}
	a.do(404, "POST", "/places/import", object{"tools": []string{"desk", "/etc"}})
	secret, err := grant.Add(t.Context(), base.Of(a.store), "pen", []string{"read", "write", "run", "decide"})
	if err != nil {
		t.Fatal(err)
	}
	admin := a.token
	a.token = secret
	a.do(403, "GET", "/places", nil)
	a.do(403, "POST", "/places/import", object{"tools": []string{"desk"}})
	a.token = admin
	a.want(start(t, Options{}).get("/places"), "[]", "items")
}

// TestStoreOperationsAreUndone: operations of the store are undone separately, and so is their undo, also while the conversation is in the trash.
func TestStoreOperationsAreUndone(t *testing.T) {
	a := start(t, Options{})
	id, _ := a.context("Boats", "One")
	gone := a.post("/contexts/"+id+"/trash", nil)["operation"].(string)
	back := a.post("/operations/"+gone+"/undo", nil)
	a.want(back, "rm", "undid", "what")
	a.want(a.get("/contexts"), id, "items", 0, "context")
	a.post("/operations/"+back["operation"].(string)+"/undo", nil)
	a.want(a.get("/contexts"), "[]", "items")
	a.do(400, "POST", "/operations/1/undo", object{})
	a.do(404, "POST", "/operations/s99/undo", object{})
}
