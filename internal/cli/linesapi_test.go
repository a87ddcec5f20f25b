package cli

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/serve"
)

// http VERB PATH [BODY [HEADER…]]: a request to a server on the store, and its answer: the status, the body, and the
// answer's headers in place of standard error.
func (l *lineRunner) http(ts *testscript.TestScript, _ bool, args []string) {
	l.fresh(ts, l.every)
	typed := make([]string, len(args))
	for i := range args {
		typed[i] = l.names.typed(args[i])
	}
	defer l.surroundings(ts)()
	st, err := chatctx.Open(filepath.Join(l.at, "data", "chatctx", "chats.db"), chatctx.Options{Program: "test", Judge: approval.Rules{}})
	ts.Check(err)
	defer st.Close()
	server := serve.New(st, serve.Options{})
	h := httptest.NewServer(server)
	defer h.Close()
	defer server.Close()
	var body io.Reader
	if len(typed) > 2 {
		body = strings.NewReader(typed[2])
	}
	ctx, cancel := context.WithTimeout(l.t.Context(), lineTime())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, typed[0], h.URL+"/api/v1"+typed[1], body)
	ts.Check(err)
	req.Header.Set("Authorization", "Bearer "+server.RunToken())
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, line := range typed[min(3, len(typed)):] {
		name, value, _ := strings.Cut(line, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	ts.Check(err)
	got := answer{code: res.StatusCode, out: string(out), err: "Content-Type: " + res.Header.Get("Content-Type") + "\n"}
	if tag := res.Header.Get("ETag"); tag != "" {
		revision, _, has := strings.Cut(tag, "-")
		if !has {
			revision = "" // the hash alone, which covers times
		}
		got.err += "ETag: " + revision + "\n"
	}
	got.out = shortened(l.names.recorded(strings.ReplaceAll(got.out, h.URL, "http://HERE")))
	l.compare(ts, "HTTP "+quotedLine(args), got)
}

// rpc METHOD PARAMS: a request to serve --stdio, and all that it says until it has answered.
func (l *lineRunner) rpc(ts *testscript.TestScript, _ bool, args []string) {
	l.fresh(ts, l.every)
	defer l.surroundings(ts)()
	in, inWrites, err := os.Pipe()
	ts.Check(err)
	outReads, out, err := os.Pipe()
	ts.Check(err)
	errOut := l.stream("err")
	os.Stdin, os.Stdout, os.Stderr = in, out, errOut
	ended := make(chan int, 1)
	go func() {
		ended <- Main([]string{"serve", "--stdio"}, in, out, errOut)
		out.Close()
	}()
	fmt.Fprintln(inWrites, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`)
	late := time.AfterFunc(lineTime(), func() {
		l.t.Errorf("%s: stdio %s does not end", ts.Name(), quotedLine(args))
		inWrites.Close()
	})
	defer late.Stop()
	answers := bufio.NewReaderSize(outReads, 1<<20)
	_, err = answers.ReadString('\n')
	ts.Check(err)
	fmt.Fprintf(inWrites, `{"jsonrpc":"2.0","id":2,"method":%q,"params":%s}`+"\n", args[0], l.names.typed(args[1]))
	var said strings.Builder
	for {
		line, err := answers.ReadString('\n')
		said.WriteString(sentBytes().ReplaceAllStringFunc(line, decoded))
		var m struct{ ID int }
		if err != nil || json.Unmarshal([]byte(line), &m) == nil && m.ID == 2 {
			break
		}
	}
	inWrites.Close()
	_, _ = io.Copy(io.Discard, answers)
	got := answer{code: <-ended, out: shortened(l.names.recorded(said.String()))}
	got.err = l.names.recorded(contentOf(errOut))
	in.Close()
	outReads.Close()
	l.compare(ts, "stdio "+quotedLine(args), got)
}

// sentBytes matches the bytes that a method over stdio sends.
var sentBytes = lazily(`"data":"[^"]*"`)

// decoded shows those bytes as text.
func decoded(member string) string {
	b, err := base64.StdEncoding.DecodeString(member[len(`"data":"`) : len(member)-1])
	if err != nil {
		return member
	}
	return fmt.Sprintf(`"data":%s`, b)
}

// apiValues are values that the store of the examples takes, by the names of fields.
var apiValues = map[string]string{
	"context": `"{ID3}"`, "branch": `"main"`, "message": `"{ID11}"`, "messages": `["{ID11}"]`, "call": `"{ID9}:1"`,
	"title": `"Boats"`, "label": `"work"`, "name": `"extra"`,
	"text": `"Hello"`, "from": `"trains"`, "a": `"main"`, "b": `"trains"`, "tag": `"good"`,
	"sha256":   `"0000000000000000000000000000000000000000000000000000000000000000"`,
	"settings": `{"budget":5000}`, "operation": `"3"`, "effect": `"deny"`, "tool": `"shell"`, "rule": `"{ID6}"`,
	"goal": `"Count the boats"`, "uploads": `["none"]`,
	"tools": `["codex"]`, "token": `"phone"`, "scopes": `["read"]`, "with": `["main","trains"]`, "expect": `1`, "key": `"once"`,
	"limit": `2`, "since": `"2026-01-01T00:00:00Z"`,
	"until": `"2026-01-02T00:00:00Z"`, "trash": `true`, "parent": `"{ID3}"`, "labels": `["work"]`, "after": `""`,
	"word": `"Holiday"`, "system": `"Be brief."`, "prompt": `"Answer."`,
	"activate": `true`, "at": `"{ID11}"`, "keep_rest": `true`, "range": `"@1..@2"`, "around": `"{ID12}"`,
	"media_type": `"text/plain"`, "model": `"gpt-4o"`, "provider": `"openai"`,
	"models": `["gpt-4o"]`, "times": `1`, "question": `true`, "summary": `"In short"`, "mark": `"pinned"`, "brief": `true`,
	"by": `"model"`, "regexp": `"Lis.*"`, "role": `"user"`,
	"unheld": `true`, "first": `true`, "best": `true`, "state": `"pending"`, "arguments": `{"path":"notes.txt"}`,
	"reason": `"because"`, "always": `{"effect":"allow","tool":"shell"}`, "verdict": `"approve"`, "seen": `"0"`, "run": `true`, "go_on": `true`, "recent": `true`, "again": `true`, "hold": `60`,
	"json": `{}`, "is_error": `true`, "when": `[]`, "unless": `[]`, "examples": `[]`, "default": `true`,
	"expires": `"2026-01-01T00:00:00Z"`, "mode": `"ask"`, "description": `"words"`,
	"schema": `{"type":"object"}`, "command": `["cat"]`, "stdin": `true`, "dashes": `true`, "mcp": `false`,
	"url": `"http://127.0.0.1:1"`, "cwd": `"/"`, "env": `{"A":"b"}`,
	"timeout": `"5s"`, "repeatable": `true`, "prune": `"keep"`, "deep": `true`, "ended": `true`, "keep": `true`,
	"upload": `"none"`, "dry_run": `true`, "purged": `true`,
	"format": `"markdown"`, "hidden": `true`, "to": `2`,
}

// apiOwn are the values of those methods that take others.
var apiOwn = map[string]string{
	"messages.append messages": `[{"role":"user","content":"Hello"}]`, "messages.list from": `1`, "branches.siblings from": `1`,
	"tree from": `0`, "tokens from": `1`,
	"branches.remove branch": `"trains"`, "history.merge branch": `"main"`, "rules.add tool": `"write_file"`,
	"tools.put tool": `"cat"`, "tokens.add token": `"laptop"`,
	"calls.get arguments": `"{}"`, "calls.decide rule": `{"effect":"allow","tool":"shell"}`, "calls.expire at": `"2026-01-01T00:00:00Z"`, "calls.renew token": `"t"`, "calls.resolve token": `"t"`,
	"send message":         `{"role":"user","content":"Hello"}`,
	"tasks.return context": `"{ID7}"`, "tasks.abandon context": `"{ID7}"`,
}

// goesOnMethods are methods that do not end by themselves: of these only refusals are recorded.
var goesOnMethods = []string{"changes"}

// apiMethod is what the description of the API says of a method.
type apiMethod struct {
	name, verb, path string
	placed           map[string]bool // the fields that stand in the path
	query            map[string]bool // those that stand in the query
	fields, required []string
	upload           bool
}

// apiMethods reads the methods out of the description.
func apiMethods(t *testing.T, raw []byte) (list []apiMethod) {
	type parameter struct {
		Name, In string
		Required bool
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []parameter
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						Properties map[string]any
						Required   []string
					}
				}
			}
		}
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	for path, verbs := range doc.Paths {
		for verb, op := range verbs {
			m := apiMethod{name: op.OperationID, verb: strings.ToUpper(verb), path: strings.TrimPrefix(path, "/api/v1")}
			m.placed, m.query = map[string]bool{}, map[string]bool{}
			for _, p := range op.Parameters {
				if p.In == "header" {
					continue
				}
				m.fields = append(m.fields, p.Name)
				m.placed[p.Name], m.query[p.Name] = p.In == "path", p.In == "query"
				if p.Required {
					m.required = append(m.required, p.Name)
				}
			}
			_, m.upload = op.RequestBody.Content["application/octet-stream"]
			body := op.RequestBody.Content["application/json"].Schema
			for name := range body.Properties {
				m.fields = append(m.fields, name)
			}
			m.required = append(m.required, body.Required...)
			slices.Sort(m.fields)
			slices.Sort(m.required)
			list = append(list, m)
		}
	}
	slices.SortFunc(list, func(a, b apiMethod) int { return strings.Compare(a.name, b.name) })
	return list
}

// value is one that the method takes for a field.
func (m apiMethod) value(t *testing.T, field string) string {
	v := apiOwn[m.name+" "+field]
	if v == "" {
		v = apiValues[field]
	}
	if v == "" {
		t.Errorf("no value for the field %s of %s", field, m.name)
	}
	return v
}

// ask writes a request with these fields for both transports. A field of the path has to be among them over HTTP.
func (m apiMethod) ask(b *strings.Builder, fields map[string]string, headers ...string) {
	path, query, whole := m.path, []string{}, true
	body := []string{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := fields[name]
		switch {
		case m.placed[name]:
			path = strings.ReplaceAll(path, "{"+name+"}", inURL(value))
		case m.query[name] || m.verb == "GET" || m.upload:
			var list []json.RawMessage
			if json.Unmarshal([]byte(value), &list) != nil {
				list = []json.RawMessage{json.RawMessage(value)}
			}
			for _, one := range list {
				query = append(query, name+"="+inURL(string(one)))
			}
		default:
			body = append(body, fmt.Sprintf("%q:%s", name, value))
		}
	}
	for name, is := range m.placed {
		whole = whole && (!is || fields[name] != "")
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	if whole {
		words := []string{"http", m.verb, path}
		switch {
		case m.upload:
			words = append(words, "some bytes", "Content-Type: application/octet-stream")
		case m.verb == "POST":
			words = append(words, "{"+strings.Join(body, ",")+"}")
		case len(headers) > 0:
			words = append(words, "")
		}
		b.WriteString(quotedLine(append(words, headers...)) + "\n")
	}
	if len(headers) == 0 {
		m.rpc(b, fields)
	}
}

// rpc writes a request for standard input and output alone.
func (m apiMethod) rpc(b *strings.Builder, fields map[string]string) {
	params := []string{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		params = append(params, fmt.Sprintf("%q:%s", name, fields[name]))
	}
	if m.upload {
		params = append(params, `"data":"c29tZSBieXRlcw=="`)
	}
	b.WriteString(quotedLine([]string{"rpc", m.name, "{" + strings.Join(params, ",") + "}"}) + "\n")
}

// inURL is a JSON value as a part of a URL.
func inURL(value string) string {
	var s string
	if json.Unmarshal([]byte(value), &s) != nil {
		s = value
	}
	return strings.NewReplacer("%", "%25", " ", "%20", "/", "%2F", "?", "%3F", "#", "%23", "&", "%26", "+", "%2B", `"`, "%22", "[", "%5B",
		"]", "%5D", "\\", "%5C").Replace(s)
}

// linesOfAPI writes requests for each method: a good one, one with each field, one without each that is required, one
// with an unknown one, one with each of another type, one with each id unknown, with another revision, without a token
// and with another verb.
func linesOfAPI(t *testing.T, raw []byte) string {
	var b strings.Builder
	b.WriteString("every api\n")
	for _, m := range apiMethods(t, raw) {
		b.WriteString("# " + m.name + "\n")
		good := func(without string, more ...string) map[string]string {
			fields := map[string]string{}
			for _, f := range m.required {
				if f != without {
					fields[f] = m.value(t, f)
				}
			}
			for i := 0; i+1 < len(more); i += 2 {
				fields[more[i]] = more[i+1]
			}
			return fields
		}
		ends := !slices.Contains(goesOnMethods, m.name)
		if ends {
			m.ask(&b, good(""))
		}
		if !ends {
			m.ask(&b, good("", "context", `"nothing of this name"`))
			m.ask(&b, good("", "no_such_field", "1"))
			continue
		}
		for _, f := range m.required {
			m.ask(&b, good(f))
			m.ask(&b, good("", f, `"nothing of this name"`))
			m.ask(&b, good("", f, `""`))
		}
		for _, f := range m.fields {
			m.ask(&b, good("", f, `{"no":["such","type"]}`))
			m.ask(&b, good("", f, `-1`))
			if !slices.Contains(m.required, f) {
				m.ask(&b, good("", f, m.value(t, f)))
				m.rpc(&b, good("", f, `null`))
			}
		}
		m.ask(&b, good("", "no_such_field", "1"))
		m.ask(&b, good(""), "If-Match: \"9999-0\"")
		m.ask(&b, good(""), "Authorization: Bearer nobody")
		other := m
		other.verb = map[string]string{"GET": "DELETE", "POST": "PUT"}[m.verb]
		other.ask(&b, good(""), "X-Nothing: 1")
	}
	return b.String() + otherRequests
}

// describedAPI is the description of the API that a server gives.
func describedAPI(t *testing.T) []byte {
	st, err := chatctx.OpenMemory(chatctx.Options{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	server := serve.New(st, serve.Options{})
	defer server.Close()
	req := httptest.NewRequest("GET", "http://localhost/api/v1/openapi.json", nil)
	req.Header.Set("Authorization", "Bearer "+server.RunToken())
	res := httptest.NewRecorder()
	server.ServeHTTP(res, req)
	if res.Code != http.StatusOK {
		t.Fatal(res.Code, res.Body.String())
	}
	return res.Body.Bytes()
}

// otherRequests are those that belong to no method. The description lists some parameters in another order each time.
const otherRequests = `http GET /nothing
loose http GET /openapi.json
rpc nothing {}
rpc contexts.list []
rpc contexts.list 1
rpc uploads.add {}
rpc artifacts.put '{"data":"%"}'
http POST /contexts '{'
http POST /contexts '[]'
http POST /contexts ''
`
