package serve

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
)

// A query that cannot be read is refused by each method, and no part of it is left out.
func TestAQueryThatCannotBeReadIsRefused(t *testing.T) {
	a := start(t, Options{})
	for _, m := range methods() {
		for _, query := range []string{"context=A;x&limit=2", "context=%zz", "x;y"} {
			path := inPath().ReplaceAllString(m.Path, "x")
			res, raw := a.send(m.Verb, apiPath+path+"?"+query, nil, nil)
			if res.StatusCode != 400 || !strings.Contains(string(raw), `"usage"`) {
				t.Errorf("%s with ?%s gives %d: %s", m.Name, query, res.StatusCode, raw)
			}
		}
	}
}

// Who only looks at the address that opens the page does not use it up.
func TestAnOpeningIsForOneGET(t *testing.T) {
	a := start(t, Options{})
	a.token = ""
	at := a.server.Opening()
	for _, c := range []struct {
		verb   string
		status int
	}{{"HEAD", 405}, {"HEAD", 405}, {"GET", 303}, {"HEAD", 405}, {"GET", 403}} {
		if res, _ := a.send(c.verb, at, nil, nil); res.StatusCode != c.status {
			t.Errorf("%s gives %d, not %d", c.verb, res.StatusCode, c.status)
		}
	}
}

// Refusals name what was written, in the words of the API.
func TestWordsOfRefusals(t *testing.T) {
	a := start(t, Options{})
	id, main := a.context("Boats", "One")
	none := strings.Repeat("ab", 32)
	for _, c := range []struct {
		verb, path string
		body       any
		match      string
		status     int
		has, not   string
	}{
		{"POST", main + "/calls/x/renew", object{"token": "x", "hold": "60s"}, "", 400, "calls.renew: hold cannot be a string", "holding"},
		{"POST", main + "/messages", object{"messages": []object{{"role": "user", "content": "x"}}, "expect": "x"}, "", 400, "messages.append: expect cannot be a string", "change"},
		{"GET", "/contexts?since=yesterday", nil, "", 400, "2026-01-31T12:00:00Z", "2006"},
		{"POST", main + "/calls/x/expire", object{"at": "tomorrow"}, "", 400, "2026-01-31T12:00:00Z", "2006"},
		{"POST", main + "/prompts", object{"system": "x"}, `W/"8"`, 412, "If-Match names no revision", "not 0"},
		{"POST", "/contexts/" + id + "/rename", object{"title": "x"}, `"abc"`, 412, "If-Match names no revision", "not 0"},
		{"POST", main + "/messages", object{"messages": []object{{"role": "user", "content": []object{{"type": "image", "sha256": none}}}}}, "", 400, "has no artifact " + none, "needs data"},
		{"POST", "/artifacts?media_type=text/plain%0D%0AX:+y", []byte("x"), "", 400, "media_type", ""},
		{"POST", "/artifacts?media_type=text/plain%0D%0A", []byte("x"), "", 400, "media_type", ""},
		{"POST", "/artifacts?media_type=%1B%5B31m", []byte("x"), "", 400, "media_type", "\x1b"},
		{"POST", "/artifacts?media_type=text/" + strings.Repeat("x", 3000), []byte("x"), "", 400, "media_type", "xxxxx"},
		{"POST", "/artifacts?media_type=text/plain;+charset=utf-8", []byte("x"), "", 400, "query", ""},
		{"POST", "/artifacts?media_type=text/plain%3B+charset%3Dutf-8", []byte("x"), "", 200, "text/plain; charset=utf-8", ""},
	} {
		var header map[string]string
		if c.match != "" {
			header = map[string]string{"If-Match": c.match}
		}
		res, raw := a.send(c.verb, apiPath+c.path, c.body, header)
		if res.StatusCode != c.status || !strings.Contains(string(raw), c.has) || c.not != "" && strings.Contains(string(raw), c.not) {
			t.Errorf("%s %.60s gives %d: %s", c.verb, c.path, res.StatusCode, raw)
		}
	}
}

// The answer of each brief change of a branch has its revision, with the exceptions that docs/api.md names.
func TestAnswersOfChangesHaveTheRevision(t *testing.T) {
	for _, m := range methods() {
		if !m.brief() || !strings.Contains(m.Path, "{branch}") {
			continue
		}
		a, params := changing(t, m.Name)
		done, _ := a.direct(t.Context(), m.Name, params, "")
		if done.err != nil || (done.revision == nil) != without[m.Name] {
			t.Errorf("%s: revision %v, %v", m.Name, done.revision, done.err)
		}
	}
}

// without are changes of a branch whose answers have no revision.
var without = map[string]bool{"calls.claim": true, "calls.renew": true, "calls.resolve": true, "tasks.start": true}

// The last line counts also without its end, and what the end of the input stops says so.
func TestTheLastLineNeedsNoEnd(t *testing.T) {
	a := start(t, Options{})
	for in, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize"}`: `"id":1`,
		`{"jsonrpc":"2.0","id":1,"met`:                   `-32700`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"contexts.list\"}": `"id":2`,
	} {
		var out strings.Builder
		if err := a.server.ServeStdio(t.Context(), strings.NewReader(in), &out); err != nil || !strings.Contains(out.String(), want) || strings.Contains(out.String(), "context canceled") {
			t.Errorf("%s gives %s %v", in, out.String(), err)
		}
	}
	if e := errorOf(http.ErrHandlerTimeout)["error"]; e.Message != http.ErrHandlerTimeout.Error() {
		t.Errorf("another error is %q", e.Message)
	}
}

// A conversation that is purged while a request runs is 410; the store keeps nothing of it, so that a later request gets 404.
func TestPurgedMeanwhileIsGone(t *testing.T) {
	var a *api
	a = start(t, Options{Turn: func(turn *turn.Turn) {
		if _, err := a.store.Maintenance().PurgeContext(t.Context(), turn.Context.ID.String(), chatctx.PurgeOptions{}); err != nil {
			t.Error(err)
		}
	}})
	id, main := a.context("Boats", "One")
	for _, want := range []struct {
		status int
		kind   string
	}{{410, `"kind":"purged"`}, {404, `"kind":"not_found"`}} {
		if res, raw := a.send("POST", apiPath+main+"/send", object{"text": "x"}, nil); res.StatusCode != want.status || !strings.Contains(string(raw), want.kind) || !strings.Contains(string(raw), `"code":3`) {
			t.Errorf("%s gives %d and not %d: %s", id, res.StatusCode, want.status, raw)
		}
	}
}
