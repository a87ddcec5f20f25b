package serve

import (
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/testkit"
)

// TestStepsInPaths: no path is read as another one, by a redirect or without: each leads to what it names, or is answered with JSON.
func TestStepsInPaths(t *testing.T) {
	a := start(t, Options{})
	id, main := a.context("Boats", "One")
	for _, path := range []string{
		"/contexts/" + id + "/branches/../settings", "/contexts/" + id + "/branches/./settings", "/contexts/" + id + "/branches//settings", "/contexts/" + id + "/branches/main/..",
		"/contexts/" + id + "/branches/%2e%2e/settings", "/contexts/" + id + "/branches/.%2E/settings", "/contexts/" + id + "/branches/%2e/settings", "/.", "/..", "/../v1/contexts", "//contexts", "",
		"/contexts//" + id, "/contexts/" + id + "/./branches/main/messages",
	} {
		for _, verb := range []string{"GET", "POST", "DELETE"} {
			var body any
			if verb == "POST" {
				body = object{}
			}
			res, raw := a.send(verb, apiPath+path, body, nil)
			if res.StatusCode != 404 || res.Header.Get("Location") != "" || !strings.Contains(string(raw), `"kind":"not_found"`) || res.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s gives %d to %q: %s", verb, path, res.StatusCode, res.Header.Get("Location"), raw)
			}
		}
	}
	if res, _ := a.send("GET", "/../api/v1/contexts", nil, nil); res.StatusCode != 404 {
		t.Errorf("a path above the root gives %d", res.StatusCode)
	}
	a.get(main + "/messages/u1")
	a.do(404, "GET", "/contexts/"+id+"/branches/a%2F..%2Fb", nil) // one name, of which no part is a step
}

// TestNamesHaveAddresses: what a path names cannot be called . or .., and any other name leads to it.
func TestNamesHaveAddresses(t *testing.T) {
	a := start(t, Options{})
	id, main := a.context("Boats", "One")
	for _, name := range []string{".", ".."} {
		for path, body := range map[string]object{
			main + "/fork": {"name": name}, main + "/rename": {"name": name}, main + "/tags": {"message": "u1", "tag": name}, "/contexts/" + id + "/labels": {"label": name},
			"/tools": {"tool": name, "command": []string{"true"}}, "/tokens": {"token": name, "scopes": []string{"read"}}, main + "/edit": {"message": "u1", "text": "x", "name": name},
		} {
			res, raw := a.send("POST", apiPath+path, body, nil)
			if res.StatusCode != 400 || !strings.Contains(string(raw), "address") && !strings.Contains(string(raw), "ranges") {
				t.Errorf("%s %v gives %d: %s", path, body, res.StatusCode, raw)
			}
		}
	}
	for name, path := range map[string]string{"...": "...", ".a": ".a", "a.": "a.", "%2e": "%252e", "a/b": "a%2Fb", "?x#y": "%3Fx%23y", "settings": "settings", `a\b`: "a%5Cb", "%": "%25", "a//b": "a%2F%2Fb"} {
		if name == "..." {
			continue // it has two dots, as ranges do
		}
		a.post(main+"/fork", object{"name": name})
		a.want(a.get("/contexts/"+id+"/branches/"+path), name, "branch")
		a.post(main+"/tags", object{"message": "u1", "tag": "t" + name})
		a.post("/contexts/"+id+"/tags/t"+path+"/remove", object{})
		a.post("/contexts/"+id+"/labels", object{"label": name})
		a.post("/contexts/"+id+"/labels/"+path+"/remove", object{})
	}
}

// TestNoStoreOverStdio: each request is answered with the reason, and the conversation goes on until its input ends.
func TestNoStoreOverStdio(t *testing.T) {
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize"}
{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}
nonsense
{"jsonrpc":"2.0","id":"b","method":"contexts.list","params":{}}`)
	var out strings.Builder
	if err := RefuseStdio(t.Context(), in, &out, chatctx.ErrNotExist); err != nil {
		t.Fatal(err)
	}
	if err := testkit.UniqueNames([]byte(out.String())); err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("it answers %q", lines)
	}
	for want, n := range map[string]int{`"id":1,"error":{"code":10,`: 1, `"id":"b","error":{"code":10,`: 1, `"id":null,"error":{"code":-32700`: 1, `"kind":"no_store"`: 2} {
		if strings.Count(out.String(), want) != n {
			t.Errorf("not %d times %s in %s", n, want, out.String())
		}
	}
}
