package chatctx_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/serve"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/cli"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

// thing is something that a store keeps, with the doors through which it comes in and the values that each door is asked to keep.
type thing struct {
	name   string
	takes  func(method, leaf string, typ reflect.Type) bool // whether a leaf of a method's parameters is one
	member string                                           // its members in requests of the API
	checks []check
	doors  []door
	beside map[string]string // methods that take one and are no door, and why
}

// check is a value, and how doors refuse it: "" means that all keep it as it is.
type check struct{ name, value, refused string }

// door is one way for a value into a store. put returns the value as it was stored. other has what it does otherwise, by the names of checks.
type door struct {
	name  string
	put   func(*place, string) (stored string, err error)
	mends bool // it reads files of others: it may keep a value that all doors take in place of a bad one, or none
	other map[string]string
}

// place is a store with a conversation for one value.
type place struct {
	t     *testing.T
	store *chatctx.Store
	c     *chatctx.ChatContext
	api   *serve.Server
}

func newPlace(t *testing.T, s *chatctx.Store, api *serve.Server) *place {
	c, err := s.New(t.Context(), record.NewContext{Title: "before", Messages: []*chatctx.Message{pool.NewText(pool.User, "hello")}})
	if err != nil {
		t.Fatal(err)
	}
	return &place{t, s, c, api}
}

func (p *place) batch(fn func(*chatctx.Batch)) error {
	b := p.c.Begin("")
	fn(b)
	_, err := b.Commit(p.t.Context())
	return err
}

// info returns what the store has of the conversation.
func (p *place) info() *record.ContextInfo {
	info, err := p.c.Info(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return info
}

// refusal is an error that came as words: of the API, or of a command.
type refusal struct{ kind, text string }

func (r *refusal) Error() string { return r.kind + ": " + r.text }

// kindOf is the kind of an error as programs see it.
func kindOf(err error) string {
	if r := (*refusal)(nil); errors.As(err, &r) {
		return r.kind
	}
	_, kind := contract.Classify(err)
	return kind
}

// quoted is a text as a string of JSON whose bytes stay as they are.
func quoted(s string) string {
	var out strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			out.WriteString(`\` + string(c))
		case c < ' ':
			fmt.Fprintf(&out, `\u%04x`, c)
		default:
			out.WriteByte(c)
		}
	}
	return `"` + out.String() + `"`
}

// post sends a request to the API. The path is below the conversation's, or the whole one if it begins with a slash.
func (p *place) post(path, body string, out any) error {
	if !strings.HasPrefix(path, "/") {
		path = "/contexts/" + p.c.ID.String() + "/" + path
	}
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/api/v1"+path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	p.api.ServeHTTP(w, r)
	if w.Code >= 300 {
		var e struct{ Error contract.Error }
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
			p.t.Fatalf("%s: %s", path, w.Body)
		}
		return &refusal{e.Error.Kind, e.Error.Message}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(w.Body.Bytes(), out)
}

// commands runs command lines on a store of their own, and reads the JSON that the last one writes.
func (p *place) commands(out any, lines ...[]string) error {
	file := filepath.Join(p.t.TempDir(), "s.db")
	for i, args := range lines {
		var stdout, stderr bytes.Buffer
		if i >= len(lines)-2 {
			args = append([]string{"--json"}, args...)
		}
		if code := cli.Main(append([]string{"--store", file}, args...), strings.NewReader(""), &stdout, &stderr); code != 0 {
			var e struct{ Error contract.Error }
			if err := json.Unmarshal(stderr.Bytes(), &e); err != nil {
				p.t.Fatalf("%q: %d %s", args, code, &stderr)
			}
			return &refusal{e.Error.Kind, e.Error.Message}
		}
		if i == len(lines)-1 {
			return json.Unmarshal(stdout.Bytes(), out)
		}
	}
	return nil
}

// file imports a file, and makes the conversation that came in the place's. nothing came in: the report says why.
func (p *place) file(text string) error {
	name := filepath.Join(p.t.TempDir(), "in.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	report, err := exchange.Import(p.t.Context(), p.store, []string{name}, exchange.Options{})
	if err != nil {
		return err
	}
	if len(report.Imported) != 1 {
		return base.Invalid("nothing came in: %v", report.Warnings)
	}
	return p.turnTo(report.Imported[0].Context)
}

// turnTo makes another conversation the place's.
func (p *place) turnTo(id string) error {
	c, err := p.store.Context(p.t.Context(), id)
	if err == nil {
		p.c = c
	}
	return err
}

// made is the conversation that was made, as the place's.
func (p *place) made(c *chatctx.ChatContext, err error) error {
	if err == nil {
		p.c = c
	}
	return err
}

// incoming imports a conversation by the library.
func (p *place) incoming(in *record.Incoming) error {
	in.Format, in.Conversation = "f", record.Short(pool.NewID())+p.t.Name()
	if in.Nodes == nil {
		in.Nodes = []record.Node{{ID: "1", Message: pool.NewText(pool.User, "hello")}}
		in.Branches = []record.IncomingBranch{{Name: "main", Leaf: 1}}
	}
	in.Branches[0].Name = "main"
	done, err := p.store.Import(p.t.Context(), []*record.Incoming{in})
	if err != nil {
		return err
	}
	return p.turnTo(done[0].Context.String())
}

// native is a file of the store's own format: a conversation with more members, its branch with more members, and a message.
func native(context, branch, message string) string {
	at := `"2026-01-01T00:00:00Z"`
	return fmt.Sprintf("{\"chatctx\":1,\"contexts\":1}\n"+`{"context":{"id":"%[1]s","active":"main","created_at":%[3]s,"updated_at":%[3]s%[4]s}}`+"\n"+
		`{"branch":{"id":"%[2]s","name":"main","created_at":%[3]s%[5]s}}`+"\n%[6]s\n"+`{"end":{"context":"%[1]s","messages":1,"branches":1}}`+"\n",
		pool.NewID(), pool.NewID(), at, context, branch, message)
}

// nativeMessage is a line of such a file.
func nativeMessage(text string) string {
	return fmt.Sprintf(`{"message":{"id":"%s","role":"user","content":[{"type":"text","text":%s}],"created_at":"2026-01-01T00:00:00Z"}}`, pool.NewID(), quoted(text))
}

// chatGPT is a file of ChatGPT.
func chatGPT(title, text string) string {
	return fmt.Sprintf(`[{"title":%s,"create_time":1,"conversation_id":"%s","current_node":"b","mapping":{"a":{"id":"a","children":["b"]},`+
		`"b":{"id":"b","parent":"a","children":[],"message":{"id":"b","author":{"role":"user"},"create_time":1,"content":{"content_type":"text","parts":[%s]}}}}}]`,
		quoted(title), pool.NewID(), quoted(text))
}

// TestThingsByEveryDoor asks each door of each thing to keep each value: all keep the same, or refuse in the same way.
func TestThingsByEveryDoor(t *testing.T) {
	for _, thing := range things {
		for _, d := range thing.doors {
			t.Run(thing.name+"/"+d.name, func(t *testing.T) {
				s := storetest.Open(t, "", chatctx.Options{Program: "test", By: "ann", Judge: approval.Rules{}})
				api := serve.New(s, serve.Options{Access: func(*http.Request) (serve.Caller, error) {
					return serve.Caller{Name: "ann", Scopes: []serve.Scope{serve.Read, serve.Write, serve.Run, serve.Admin}}, nil
				}})
				defer api.Close()
				for _, c := range thing.checks {
					thing.holds(t, d, c, newPlace(t, s, api))
				}
			})
		}
	}
}

// holds asks one door about one value.
func (th *thing) holds(t *testing.T, d door, c check, p *place) {
	t.Helper()
	stored, err := d.put(p, c.value)
	want, kept := c.refused, c.value
	if other, ok := d.other[c.name]; ok {
		if want, kept = "", other; strings.HasPrefix(other, "!") {
			want = other[1:]
		}
	}
	switch {
	case d.mends && want != "" && err == nil && stored == "": // it kept none
	case d.mends && want != "" && err == nil: // what it kept instead is what all take
		again, err := th.doors[0].put(newPlace(t, p.store, p.api), stored)
		if err != nil || again != stored {
			t.Errorf("%s: it keeps %.60q, which %s does not: %.60q, %v", c.name, stored, th.doors[0].name, again, err)
		}
	case kindOf(err) != want:
		t.Errorf("%s: %v, as %.60q; want %q", c.name, err, stored, want)
	case err == nil && stored != kept:
		t.Errorf("%s: it keeps %.60q of %.60q", c.name, stored, kept)
	}
}

// walked are the types whose methods are asked for things that they take, and the folders that declare them.
var (
	walked = []reflect.Type{reflect.TypeFor[*chatctx.Batch](), reflect.TypeFor[*chatctx.Store](), reflect.TypeFor[*chatctx.ChatContext](), reflect.TypeFor[*chatctx.Reply](),
		reflect.TypeFor[*journal.Titles](), reflect.TypeFor[*intake.ImportRun](), reflect.TypeFor[*intake.NativeImport](), reflect.TypeFor[*chatctx.CallClaim]()}
	walkedIn = []string{"chatctx", "internal/intake", "internal/journal", "internal/toolcall"}
)

// TestEveryDoorIsInTheTable walks the parameters of all methods of the library, and the requests of the API: each that takes a thing is a door of it in the table.
func TestEveryDoorIsInTheTable(t *testing.T) {
	params := paramNames(t)
	requests := requestsOfAPI(t)
	for _, thing := range things {
		want := map[string]bool{}
		for _, typ := range walked {
			for i := range typ.NumMethod() {
				m := typ.Method(i)
				name := typ.Elem().Name() + "." + m.Name
				for j := 1; j < m.Type.NumIn(); j++ {
					if leaf(name, params[name][j-1], m.Type.In(j), nil, thing.takes) {
						want[name] = true
					}
				}
			}
		}
		for member := range strings.FieldsSeq(thing.member) {
			for name, members := range requests {
				if members[member] {
					want[name] = true
				}
			}
		}
		if len(want) < 3 {
			t.Errorf("%s: only %d doors were found: the test looks in the wrong place", thing.name, len(want))
		}
		for name := range want {
			has := slices.ContainsFunc(thing.doors, func(d door) bool { return strings.Fields(d.name)[0] == name })
			if !has && thing.beside[name] == "" {
				t.Errorf("%s takes a %s: make it a door in the table, or say beside it why it is none", name, thing.name)
			}
			if has && thing.beside[name] != "" {
				t.Errorf("%s is a door of a %s and beside", name, thing.name)
			}
		}
		for name := range thing.beside {
			if !want[name] {
				t.Errorf("the table says why %s is no door of a %s, which it does not take", name, thing.name)
			}
		}
	}
}

// leaf says whether a parameter of that type has a part that takes accepts.
func leaf(method, name string, typ reflect.Type, above []reflect.Type, takes func(method, leaf string, typ reflect.Type) bool) bool {
	if takes(method, name, typ) {
		return true
	}
	if slices.Contains(above, typ) || typ == reflect.TypeFor[chatctx.Message]() {
		return false
	}
	above = append(above, typ)
	switch typ.Kind() {
	case reflect.Pointer:
		return typ != reflect.TypeFor[*chatctx.Batch]() && leaf(method, name, typ.Elem(), above, takes)
	case reflect.Slice:
		return leaf(method, name, typ.Elem(), above, takes)
	case reflect.Struct:
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() && leaf(method, f.Name, f.Type, above, takes) {
				return true
			}
		}
	}
	return false
}

// paramNames returns the names of the parameters of all methods, by type and method.
func paramNames(t *testing.T) map[string][]string {
	out := map[string][]string{}
	for _, dir := range walkedIn {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range tree.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Recv == nil {
					continue
				}
				typ := fn.Recv.List[0].Type
				if star, ok := typ.(*ast.StarExpr); ok {
					typ = star.X
				}
				var names []string
				for _, field := range fn.Type.Params.List {
					for _, n := range field.Names {
						names = append(names, n.Name)
					}
				}
				if id, ok := typ.(*ast.Ident); ok {
					out[id.Name+"."+fn.Name.Name] = names
				}
			}
		}
	}
	return out
}

// requestsOfAPI returns the members that each method of the API takes in its body, by the method's name, from the description that it gives of itself.
func requestsOfAPI(t *testing.T) map[string]map[string]bool {
	s := storetest.Open(t, "", chatctx.Options{})
	api := serve.New(s, serve.Options{Access: func(*http.Request) (serve.Caller, error) { return serve.Caller{Scopes: []serve.Scope{serve.Read}}, nil }})
	defer api.Close()
	server := httptest.NewServer(api)
	defer server.Close()
	res, err := http.Get(server.URL + "/api/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	type schema struct {
		Ref        string `json:"$ref"`
		Properties map[string]json.RawMessage
	}
	var described struct {
		Paths map[string]map[string]struct {
			OperationID string
			RequestBody struct {
				Content map[string]struct{ Schema schema }
			}
		}
		Components struct{ Schemas map[string]schema }
	}
	if err := json.Unmarshal(raw, &described); err != nil {
		t.Fatal(err)
	}
	out := map[string]map[string]bool{}
	for _, verbs := range described.Paths {
		for _, o := range verbs {
			body := o.RequestBody.Content["application/json"].Schema
			if at := strings.LastIndexByte(body.Ref, '/'); at >= 0 {
				body = described.Components.Schemas[body.Ref[at+1:]]
			}
			out[o.OperationID] = map[string]bool{}
			for name := range body.Properties {
				out[o.OperationID][name] = true
			}
		}
	}
	return out
}
