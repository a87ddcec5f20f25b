package serve

import (
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
	"github.com/chatctx/chatctx/internal/operation"
)

// TestEachMethodNeedsItsScope calls each method with a token of each single scope. The requests need not make sense: 403 says that nothing was done.
func TestEachMethodNeedsItsScope(t *testing.T) {
	a := start(t, Options{})
	tokens := map[Scope]string{}
	for _, s := range Scopes {
		secret, err := grant.Add(t.Context(), base.Of(a.store), string(s), []string{string(s)})
		if err != nil {
			t.Fatal(err)
		}
		tokens[s] = secret
	}
	for _, m := range methods() {
		if m.Verb == "GET" != (m.Right == operation.Read) && m.Name != "tokens.list" && m.Name != "places" {
			t.Errorf("%s is a %s of the scope %s", m.Name, m.Verb, m.Right)
		}
		path := strings.NewReplacer("{context}", "x", "{branch}", "x", "{message}", "x", "{call}", "x", "{tag}", "x", "{rule}", "x", "{tool}", "x", "{token}", "x", "{sha256}", "x", "{operation}", "x").Replace(m.Path)
		if m.Name == "changes" {
			path += "?context=x"
		}
		for s, token := range tokens {
			a.token = token
			res, raw := a.send(m.Verb, apiPath+path, object{"nonsense": true}, nil)
			if forbidden := res.StatusCode == 403; forbidden == (s == Scope(m.Right)) {
				t.Errorf("%s, of the scope %s, gives %d to %s: %s", m.Name, m.Right, res.StatusCode, s, raw)
			}
		}
		for _, token := range []string{"", "chatctx_wrong", tokens[Read] + "x"} {
			a.token = token
			if res, _ := a.send(m.Verb, apiPath+path, object{}, nil); res.StatusCode != 401 {
				t.Errorf("%s gives %d to the token %q", m.Name, res.StatusCode, token)
			}
		}
	}
}

// TestSettingsThatNameHostsNeedAdmin: a token that may write cannot send requests elsewhere.
func TestSettingsThatNameHostsNeedAdmin(t *testing.T) {
	a := start(t, Options{})
	id, main := a.context("Boats")
	secret, err := grant.Add(t.Context(), base.Of(a.store), "pen", []string{"read", "write"})
	if err != nil {
		t.Fatal(err)
	}
	a.token = secret
	for _, name := range []string{"base_url", "key_env", "compact.base_url", "embedding.base_url", "calls.folder", "profile", "mode", "anthropic.metadata", "held.base_url", "unknown"} {
		for _, path := range []string{main + "/settings", "/contexts/" + id + "/settings"} {
			v := a.do(403, "POST", path, object{"settings": object{"model": "m", name: "x"}})
			a.want(v, "forbidden", "error", "kind")
		}
		a.do(403, "POST", "/contexts", object{"title": "t", "settings": object{name: "x"}})
	}
	a.post(main+"/settings", object{"settings": object{"model": "m", "temperature": 0.5}})
	a.want(a.get(main), "m", "settings", "model")
	if v := a.get(main); at(v, "settings", "base_url") != nil {
		t.Errorf("a forbidden setting is in force: %v", v)
	}
}

func TestTokensAreHashesAndGo(t *testing.T) {
	a := start(t, Options{})
	made := a.post("/tokens", object{"token": "desk", "scopes": []string{"read"}})
	secret := made["secret"].(string)
	if v := fmt.Sprint(a.get("/tokens")); !strings.Contains(v, "desk") || strings.Contains(v, secret) {
		t.Errorf("the list of tokens is %s", v)
	}
	a.want(a.get("/tokens"), "ann", "items", 0, "by")
	a.do(409, "POST", "/tokens", object{"token": "desk", "scopes": []string{"read"}})
	a.do(400, "POST", "/tokens", object{"token": "two", "scopes": []string{"root"}})
	a.do(400, "POST", "/tokens", object{"token": "two\x1b", "scopes": []string{"read"}})
	admin := a.token
	a.token = secret
	a.get("/contexts")
	a.token = admin
	a.post("/tokens/desk/remove", nil)
	a.token = secret
	a.do(401, "GET", "/contexts", nil)
}

// browser returns a browser with a session.
func (a *api) browser() *http.Client {
	a.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		a.t.Fatal(err)
	}
	c := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := c.Get(a.http.URL + a.server.Opening())
	if err != nil {
		a.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 303 || res.Header.Get("Location") != "/" {
		a.t.Fatalf("an opening gives %d and leads to %q", res.StatusCode, res.Header.Get("Location"))
	}
	return c
}

func TestAnOpeningIsUsedOnce(t *testing.T) {
	a := start(t, Options{})
	path := a.server.Opening()
	a.token = ""
	res, _ := a.send("GET", path, nil, nil)
	cookie := res.Header.Get("Set-Cookie")
	u, _ := url.Parse(a.http.URL)
	for _, part := range []string{"chatctx-" + u.Port() + "=", "HttpOnly", "SameSite=Strict", "Path=/"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("the cookie %q is without %s", cookie, part)
		}
	}
	for _, again := range []string{path, "/open", "/open?token=", "/open?token=chatctx_x"} {
		if res, _ := a.send("GET", again, nil, nil); res.StatusCode != 403 || res.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s gives %d and the cookie %q", again, res.StatusCode, res.Header.Get("Set-Cookie"))
		}
	}
	session, _, _ := strings.Cut(cookie, ";")
	if res, _ := a.send("GET", apiPath+"/contexts", nil, map[string]string{"Cookie": session}); res.StatusCode != 200 {
		t.Errorf("the session gives %d", res.StatusCode)
	}
	if res, _ := a.send("GET", apiPath+"/contexts", nil, map[string]string{"Cookie": session + "x"}); res.StatusCode != 401 {
		t.Errorf("another session gives %d", res.StatusCode)
	}
}

// TestAttacks sends what a page of another site, or a name that points here, can make a browser send.
func TestAttacks(t *testing.T) {
	a := start(t, Options{})
	_, main := a.context("Boats", "One")
	client := a.browser()
	u, _ := url.Parse(a.http.URL)
	own := map[string]string{"Origin": a.http.URL, "Content-Type": "application/json"}
	for _, c := range []struct {
		what, verb string
		status     int
		body       string
		header     map[string]string
	}{
		{"its own page", "POST", 200, `{"messages":[{"role":"user","content":"x"}]}`, own},
		{"a form of another site", "POST", 403, `{"messages":[{"role":"user","content":"x"}]}`, map[string]string{"Origin": "http://evil.example", "Content-Type": "text/plain"}},
		{"a script of another site", "POST", 403, `{"messages":[]}`, map[string]string{"Origin": "http://evil.example", "Content-Type": "application/json"}},
		{"another port of this machine", "POST", 403, `{}`, map[string]string{"Origin": "http://127.0.0.1:1", "Content-Type": "application/json"}},
		{"a page without an origin", "POST", 403, `{}`, map[string]string{"Origin": "null", "Content-Type": "application/json"}},
		{"no origin at all", "POST", 403, `{}`, map[string]string{"Content-Type": "application/json"}},
		{"a form of its own site", "POST", 415, `a=b`, map[string]string{"Origin": a.http.URL, "Content-Type": "application/x-www-form-urlencoded"}},
		{"an image of another site", "GET", 403, "", map[string]string{"Sec-Fetch-Site": "cross-site"}},
		{"a script of another port", "GET", 403, "", map[string]string{"Sec-Fetch-Site": "same-site"}},
		{"a reading script of another site", "GET", 403, "", map[string]string{"Origin": "http://evil.example"}},
		{"a name that points here", "GET", 421, "", map[string]string{"Host": "evil.example:" + u.Port()}},
		{"a name that looks like ours", "GET", 421, "", map[string]string{"Host": "127.0.0.1.evil.example"}},
		{"its own name", "GET", 200, "", map[string]string{"Host": "localhost:" + u.Port(), "Cookie": cookies(client, u)}},
		{"a question whether it may", "OPTIONS", 405, "", map[string]string{"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.verb, a.http.URL+apiPath+main+"/messages", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range c.header {
			req.Header.Set(k, v)
		}
		if h := c.header["Host"]; h != "" {
			req.Host = h
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != c.status {
			t.Errorf("%s gives %d, not %d", c.what, res.StatusCode, c.status)
		}
		for k := range res.Header {
			if strings.HasPrefix(k, "Access-Control-") {
				t.Errorf("%s gets %s", c.what, k)
			}
		}
		if p := res.Header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || strings.Contains(p, "unsafe") {
			t.Errorf("%s gets the policy %q", c.what, p)
		}
	}
	a.want(a.get(main), 2, "messages")
}

func cookies(c *http.Client, u *url.URL) string {
	var all []string
	for _, k := range c.Jar.Cookies(u) {
		all = append(all, k.String())
	}
	return strings.Join(all, "; ")
}

// TestArtifactsDoNotRun: files from models and imports are for saving, unless they are pictures.
func TestArtifactsDoNotRun(t *testing.T) {
	a := start(t, Options{})
	for _, c := range []struct{ kind, body, disposition string }{
		{"text/html", "<script>alert(1)</script>", "attachment"}, {"image/svg+xml", "<svg onload='alert(1)'/>", "attachment"}, {"", "<html>", "attachment"},
		{"image/png", "\x89PNG\r\n\x1a\n", ""}, {"text/html;charset=x", "<b>", "attachment"},
	} {
		res, raw := a.send("POST", apiPath+"/artifacts?media_type="+url.QueryEscape(c.kind), []byte(c.body), map[string]string{"Content-Type": "application/octet-stream"})
		if res.StatusCode != 200 {
			t.Fatalf("%s: %d %s", c.kind, res.StatusCode, raw)
		}
		_, hash, _ := strings.Cut(string(raw), `"sha256":"`)
		res, raw = a.send("GET", apiPath+"/artifacts/"+hash[:64], nil, nil)
		if string(raw) != c.body || res.Header.Get("Content-Disposition") != c.disposition || !strings.Contains(res.Header.Get("Content-Security-Policy"), "sandbox") || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s comes back as %q with %v", c.kind, raw, res.Header)
		}
	}
}

// TestAProgramsOwnLogin: a mounted handler asks the program what a caller may do.
func TestAProgramsOwnLogin(t *testing.T) {
	a := start(t, Options{Access: func(r *http.Request) (Caller, error) {
		if r.Header.Get("X-User") == "" {
			return Caller{}, ErrNoAccess
		}
		return Caller{Name: r.Header.Get("X-User"), Scopes: []Scope{Read}}, nil
	}})
	for user, status := range map[string]int{"": 401, "ann": 200} {
		if res, _ := a.send("GET", apiPath+"/contexts", nil, map[string]string{"X-User": user}); res.StatusCode != status {
			t.Errorf("the user %q gets %d", user, res.StatusCode)
		}
	}
	if res, _ := a.send("POST", apiPath+"/contexts", object{}, map[string]string{"X-User": "ann"}); res.StatusCode != 403 {
		t.Errorf("a user without write gets %d", res.StatusCode)
	}
}
