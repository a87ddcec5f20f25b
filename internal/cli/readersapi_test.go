//go:build unix

package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/serve"
)

// TestTheAPIReadsAndWritesNothing: every GET of the API changes nothing, also where time and crashes have brought calls and an answer into another state than is on record. That is shown.
func TestTheAPIReadsAndWritesNothing(t *testing.T) {
	eachEngine(t, func(t *testing.T, at string, state func() string) {
		message := leftBehind(t, at)
		st, err := chatctx.Open(at, chatctx.Options{Program: "test", Judge: approval.Rules{}})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		c, err := st.Context(t.Context(), "One")
		if err != nil {
			t.Fatal(err)
		}
		server := serve.New(st, serve.Options{})
		h := httptest.NewServer(server)
		defer h.Close()
		defer server.Close()
		token := server.RunToken()
		get := func(path string) (int, string) {
			t.Helper()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "GET", h.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+token)
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if strings.HasSuffix(path, "/changes") { // it goes on until it is ended
				return res.StatusCode, ""
			}
			body, err := io.ReadAll(res.Body)
			if err != nil {
				t.Fatal(err)
			}
			return res.StatusCode, string(body)
		}
		fill := strings.NewReplacer("{context}", c.ID.String(), "{branch}", "main", "{message}", message, "{call}", url.PathEscape(message+":1"), "{sha256}", strings.Repeat("0", 64), "{tool}", "none")
		query := map[string]string{"/diff": "?a=main&b=side", "/search": "?text=words", "/compare": "?with=main&with=side", "/export": "?branch=main"}
		// Of these a file keeps what they found out: words that waited for the index, tokens.
		keeps := []string{"/search", "/tokens", "/bill"}
		shown, before, asked := map[string]string{}, state(), 0
		for _, path := range readPaths(t, get) {
			end := path[strings.LastIndex(path, "/"):]
			if !strings.Contains(at, "://") && slices.Contains(keeps, end) {
				continue
			}
			asked++
			status, body := get(fill.Replace(path) + query[end])
			want := 200
			switch {
			case strings.Contains(path, "{sha256}"), strings.Contains(path, "{tool}"): // there is none
				want = 404
			case end == "/task": // the conversation is no sub-context
				want = 400
			}
			if status != want {
				t.Errorf("%s gives %d: %s", path, status, body)
			}
			if after := state(); after != before {
				t.Errorf("%s wrote: %s, before it %s", path, after, before)
				before = after
			}
			shown[path] = body
		}
		if asked < 25 {
			t.Errorf("%d paths were asked", asked)
		}
		const in, on = "/api/v1/contexts/{context}", "/api/v1/contexts/{context}/branches/{branch}"
		for of, want := range map[string]string{on + "/messages": "as far as it came", on + "/compare": "as far as it came", in + "/diff": "as far as it came", on + "/calls/{call}": "nobody decided in time", in + "/calls/log": `"expiry"`, "/api/v1/calls": "uncertain"} {
			if !strings.Contains(shown[of], want) {
				t.Errorf("%s does not show %s: %.2000s", of, want, shown[of])
			}
		}
	})
}

// readPaths are the paths of the API that are read with GET, as its description has them.
func readPaths(t *testing.T, get func(string) (int, string)) (paths []string) {
	t.Helper()
	var doc struct {
		Servers []struct{ URL string }
		Paths   map[string]map[string]json.RawMessage
	}
	status, raw := get("/api/v1/openapi.json")
	if err := json.Unmarshal([]byte(raw), &doc); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	for path, verbs := range doc.Paths {
		if verbs["get"] != nil {
			paths = append(paths, "/api/v1"+strings.TrimPrefix(path, "/api/v1"))
		}
	}
	slices.Sort(paths)
	return paths
}
