package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/exchangetest"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// commit makes one change of a branch.
func commit(t testing.TB, c *chatctx.ChatContext, branchName string, f func(b *chatctx.Batch)) {
	t.Helper()
	b := c.Begin(branchName)
	f(b)
	if _, err := b.Commit(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// richStore returns a store with one of everything that a context can have.
func richStore(t testing.TB) *chatctx.Store {
	t.Helper()
	s := memoryStore(t)
	fillRich(t, s)
	return s
}

func fillRich(t testing.TB, s *chatctx.Store) {
	t.Helper()
	ctx := context.Background()
	if _, err := s.SetSettings(ctx, map[string]json.RawMessage{"model": json.RawMessage(`"m-1"`), "app.window": json.RawMessage(` { "budget" : 1.50 } `)}); err != nil {
		t.Fatal(err)
	}
	call := &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "c1", Tool: "shell", Arguments: json.RawMessage(`{"cmd":"ls <b>"}`)}, {ID: "c2", Tool: "shell", Arguments: json.RawMessage(`{}`)}},
		Content: []pool.Part{{Type: pool.ThinkingPart, Text: "hm", Signature: "c2ln", Provider: "anthropic"}, {Type: pool.CallPart, CallID: "c1"}, {Type: pool.CallPart, CallID: "c2"}, {Type: "odd", Raw: json.RawMessage(`{"type":"odd","half":"\ud83d"}`)}}}
	image := &chatctx.Message{Role: pool.User, Content: []pool.Part{{Type: pool.TextPart, Text: "see\u2028<b>\x00"}, {Type: pool.ImagePart, Name: "p.png", MediaType: "image/png", Data: []byte(exchangetest.OnePixel)}}}
	long := &chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c2", Text: strings.Repeat("output ", 3000)}}
	imported := pool.NewText(pool.Assistant, "from elsewhere")
	imported.Source = &pool.Source{Format: "chatgpt", Conversation: "conv", Node: "n1", Raw: []byte("\xff\xfe")}
	c, err := s.New(ctx, record.NewContext{Title: "Rich <title> & more", System: "be kind", Prompt: "now", Settings: map[string]json.RawMessage{"mode": json.RawMessage(`"plan"`)},
		Messages: []*chatctx.Message{pool.NewText(pool.User, "one"), imported, image, pool.NewText(pool.Assistant, "two"), pool.NewText(pool.User, "three")}})
	if err != nil {
		t.Fatal(err)
	}
	commit(t, c, "", func(b *chatctx.Batch) { b.Fork("side way", chatctx.ForkOptions{At: "@2", Stay: true}) })
	commit(t, c, "side way", func(b *chatctx.Batch) {
		b.Append(call, long)
		b.SetSettings(map[string]json.RawMessage{"model": json.RawMessage(`"m-2"`)})
		b.SetTokens(branch.Tokens{Input: 7, Output: 8})
		b.SetBranchData("app", json.RawMessage(`[1]`))
	})
	commit(t, c, "side way", func(b *chatctx.Batch) { b.Drop("@2") })
	commit(t, c, "", func(b *chatctx.Batch) { b.Fork("cut", chatctx.ForkOptions{At: "@4", Stay: true}) })
	commit(t, c, "cut", func(b *chatctx.Batch) { b.Insert("@2", pool.NewText(pool.System, "inserted")) })
	summary := pool.NewText(pool.System, "what came before")
	summary.Kind = "summary"
	commit(t, c, "", func(b *chatctx.Batch) {
		b.PutLoose(summary)
		b.SetSessions([]branch.Session{{ID: pool.NewID(), Start: 1}, {ID: pool.NewID(), Start: 3, Summary: summary.ID, PrunedTo: 2, Created: pool.Now(),
			Digests: []branch.Digest{{From: 3, To: 4, Text: "short", Of: pool.HashOf([]byte("x"))}}, Data: map[string]json.RawMessage{"k": json.RawMessage("1")}}})
		b.Tag("start", "@1")
		b.Mark("@2", "pinned")
		b.SetContextData("editor", json.RawMessage(`{"open":true}`))
		b.Label("work")
		b.Label("archived")
	})
	if _, err := s.New(ctx, record.NewContext{Title: "child", Parent: c.ID, Stay: true}); err != nil {
		t.Fatal(err)
	}
}

// imported imports an export into an empty store.
func imported(t testing.TB, export []byte) (*chatctx.Store, *Report) {
	t.Helper()
	s := memoryStore(t)
	rep, err := imports(t, s, []string{"-"}, Options{Stdin: bytes.NewReader(export)})
	if err != nil {
		t.Fatal(err)
	}
	return s, rep
}

func TestNativeExportLosesNothing(t *testing.T) {
	s := richStore(t)
	first := exported(t, s, ExportOptions{All: true})
	other, rep := imported(t, first)
	if rep.Outcome() != Complete || rep.Contexts != 2 || rep.Branches != 4 {
		t.Errorf("%+v", rep)
	}
	storetest.Check(t, other)
	compareLines(t, exported(t, other, ExportOptions{All: true}), first)

	rep, err := imports(t, other, []string{"-"}, Options{Stdin: bytes.NewReader(first)})
	if err != nil || rep.Messages != 0 || rep.Branches != 0 || rep.Contexts != 0 {
		t.Errorf("a second time: %v %+v", err, rep)
	}
	compareLines(t, exported(t, other, ExportOptions{All: true}), first)
}

func compareLines(t testing.TB, got, want []byte) {
	t.Helper()
	g, w := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range w {
		if i >= len(g) || !bytes.Equal(g[i], w[i]) {
			t.Fatalf("line %d is\n%s\nwant\n%s", i+1, append(g, make([][]byte, len(w))...)[i], w[i])
		}
	}
	if len(g) != len(w) {
		t.Fatalf("%d lines, want %d", len(g), len(w))
	}
}

// TestNativeExportKeepsWhatWaits: a waiting call still waits in the other store, where it is decided separately.
func TestNativeExportKeepsWhatWaits(t *testing.T) {
	ctx := context.Background()
	other, _ := imported(t, exported(t, richStore(t), ExportOptions{All: true}))
	c, err := other.Context(ctx, "Rich")
	if err != nil {
		infos := []string{}
		for info := range other.Contexts(ctx, record.ListOptions{}) {
			infos = append(infos, info.Title)
		}
		if c, err = other.Context(ctx, "Rich <title> & more"); err != nil {
			t.Fatal(err, infos)
		}
	}
	snap, err := c.Snapshot(ctx, "side way")
	if err != nil {
		t.Fatal(err)
	}
	page, err := snap.Page(ctx, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	calls := page[1].Calls
	if len(calls) != 2 || calls[0].Status != pool.Pending || calls[1].Status != pool.Approved || calls[1].Execution != pool.Done {
		t.Fatalf("the calls are %+v", calls)
	}
	if _, err := c.Append(ctx, "side way", &chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c1", Text: "late"}}); err != nil {
		t.Fatal(err)
	}
	m, err := c.Message(ctx, page[1].ID)
	if err != nil || m.Calls[0].Execution != pool.Done {
		t.Errorf("after its result the call is %+v, %v", m.Calls[0], err)
	}
	storetest.Check(t, other)
}

// TestNativeExportOfRandomStores does random things to a context, and takes it to another store and back.
func TestNativeExportOfRandomStores(t *testing.T) {
	for seed := range testkit.Seeds(t, 40) {
		s := memoryStore(t)
		randomContext(t, s, rand.New(rand.NewPCG(seed, 7)))
		first := exported(t, s, ExportOptions{All: true})
		other, rep := imported(t, first)
		if rep.Outcome() != Complete {
			t.Fatalf("seed %d: %+v", seed, rep)
		}
		storetest.Check(t, other)
		compareLines(t, exported(t, other, ExportOptions{All: true}), first)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func randomContext(t testing.TB, s *chatctx.Store, r *rand.Rand) {
	t.Helper()
	ctx := context.Background()
	c, err := s.New(ctx, record.NewContext{Title: "random"})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"main"}
	for i := range 40 {
		name := names[r.IntN(len(names))]
		info, err := c.Branch(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		b := c.Begin(name)
		at := record.Ref(fmt.Sprintf("@%d", 1+r.IntN(max(info.Messages, 1))))
		switch op := r.IntN(9); {
		case info.Messages == 0 || op < 3:
			b.Append(pool.NewText([]pool.Role{pool.User, pool.Assistant}[r.IntN(2)], fmt.Sprint("text ", i)))
		case op == 3:
			names = append(names, fmt.Sprint("branch ", i))
			b.Fork(names[len(names)-1], chatctx.ForkOptions{At: at, Stay: r.IntN(2) == 0})
		case op == 4:
			b.Drop(at)
		case op == 5:
			b.Insert(at, pool.NewText(pool.User, fmt.Sprint("between ", i)))
		case op == 6:
			b.Tag(fmt.Sprint("tag ", r.IntN(5)), at)
		case op == 7:
			b.Mark(at, []string{"pinned", "excluded"}[r.IntN(2)])
		default:
			b.Rewind(at)
		}
		if _, err := b.Commit(ctx); err != nil && !errors.Is(err, chatctx.ErrConflict) {
			t.Fatal(err)
		}
	}
}

// TestNativeImportAddsWhatIsNew: an export of a context that was continued adds only the rest to a store that has its beginning.
func TestNativeImportAddsWhatIsNew(t *testing.T) {
	ctx := context.Background()
	s := richStore(t)
	other, _ := imported(t, exported(t, s, ExportOptions{All: true}))
	c, err := s.Context(ctx, "Rich <title> & more")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(ctx, "main", pool.NewText(pool.Assistant, "four"), pool.NewText(pool.User, "five")); err != nil {
		t.Fatal(err)
	}
	commit(t, c, "main", func(b *chatctx.Batch) { b.Edit("@1", "uno", record.EditOptions{Name: "edited", KeepRest: true}) })
	rep, err := imports(t, other, []string{"-"}, Options{Stdin: bytes.NewReader(exported(t, s, ExportOptions{All: true}))})
	if err != nil || rep.Branches != 1 || rep.Contexts != 1 || rep.Outcome() != Complete {
		t.Fatalf("%v %+v", err, rep)
	}
	storetest.Check(t, other)
	for _, name := range []string{"main", "edited", "side way", "cut"} {
		if got, want := textsOf(t, other, name), textsOf(t, s, name); got != want {
			t.Errorf("branch %s reads\n%s\nwant\n%s", name, got, want)
		}
	}
}

// TestAParentComesWithItsFile: a file's sub-context belongs to a parent from the same file, also from an earlier state of it, and to no other; it never
// may do more than its parent here.
func TestAParentComesWithItsFile(t *testing.T) {
	ctx := context.Background()
	s := memoryStore(t)
	root, err := s.New(ctx, record.NewContext{Title: "root"})
	if err != nil {
		t.Fatal(err)
	}
	before := exported(t, s, ExportOptions{All: true})
	task := func(parent *chatctx.ChatContext, title string, k record.Task) *chatctx.ChatContext {
		t.Helper()
		c, err := parent.StartTask(ctx, "", record.NewTask{NewContext: record.NewContext{Title: title}, Task: k})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := task(root, "first", record.Task{MaxDepth: 3})
	second := task(first, "second", record.Task{OwnRules: true, MaxDepth: 50, MaxRounds: 7})
	after := exported(t, s, ExportOptions{All: true})
	alone := exported(t, s, ExportOptions{Context: second.ID.String()})

	check := func(to *chatctx.Store, file []byte, warned bool, parents map[*chatctx.ChatContext]chatctx.ID) {
		t.Helper()
		rep, err := imports(t, to, []string{"-"}, Options{Stdin: bytes.NewReader(file)})
		if err != nil || (len(rep.Warnings) > 0) != warned || warned && !strings.Contains(rep.Warnings[0].Text, "stands alone") {
			t.Fatalf("%v %+v", err, rep)
		}
		for c, want := range parents {
			here, err := to.Context(ctx, c.ID.String())
			if err != nil {
				t.Fatal(err)
			}
			info, err := here.Info(ctx)
			if err != nil || info.Parent != want {
				t.Errorf("%q is below %s, %v, want %s", info.Title, info.Parent, err, want)
			}
			k, err := here.TaskInfo(ctx)
			if want == (chatctx.ID{}) {
				if !errors.Is(err, chatctx.ErrInvalid) {
					t.Errorf("%q is a task: %v", info.Title, err)
				}
				continue
			}
			if err != nil || k.OwnRules || k.MaxDepth > 3 {
				t.Errorf("%q may do more than here: %+v, %v", info.Title, k, err)
			}
		}
		storetest.Check(t, to)
	}
	whole := map[*chatctx.ChatContext]chatctx.ID{first: root.ID, second: first.ID}
	check(memoryStore(t), after, false, whole)
	grown, _ := imported(t, before)
	check(grown, after, false, whole)
	check(grown, after, false, whole)
	part, _ := imported(t, before)
	check(part, alone, true, map[*chatctx.ChatContext]chatctx.ID{second: {}})
	for _, c := range []*chatctx.ChatContext{second, first} {
		if _, err := s.Maintenance().PurgeContext(ctx, c.ID.String(), chatctx.PurgeOptions{Forget: true}); err != nil {
			t.Fatal(err)
		}
	}
	check(s, after, true, map[*chatctx.ChatContext]chatctx.ID{first: {}})
}

func textsOf(t *testing.T, s *chatctx.Store, branchName string) string {
	t.Helper()
	ctx := context.Background()
	c, err := s.Context(ctx, "Rich <title> & more")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := c.Snapshot(ctx, branchName)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for e, err := range snap.Entries(ctx, 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, e.Role, e.Text())
	}
	return b.String()
}

// TestNativeImportKnowsItsSources: conversations of another format in an export are known when that format is imported.
func TestNativeImportKnowsItsSources(t *testing.T) {
	path := filepath.Join("..", "..", "testdata", "chatgpt-export.json")
	s := memoryStore(t)
	if _, err := imports(t, s, []string{path}, Options{}); err != nil {
		t.Fatal(err)
	}
	other, _ := imported(t, exported(t, s, ExportOptions{All: true}))
	rep, err := imports(t, other, []string{path}, Options{})
	if err != nil || rep.Messages != 0 || rep.Branches != 0 || rep.Duplicated != 15 {
		t.Errorf("%v %+v", err, rep)
	}
	storetest.Check(t, other)
}

// TestDamagedNativeExports: a context is imported whole or not at all, and the others are imported.
func TestDamagedNativeExports(t *testing.T) {
	whole := exported(t, richStore(t), ExportOptions{All: true})
	lines := strings.SplitAfter(string(whole), "\n")
	find := func(kind string) int {
		for i, l := range lines {
			if strings.HasPrefix(l, `{"`+kind+`"`) {
				return i
			}
		}
		t.Fatalf("no line %q", kind)
		return -1
	}
	replaced := func(i int, with string) string {
		out := append([]string(nil), lines...)
		out[i] = with
		return strings.Join(out, "")
	}
	for name, c := range map[string]struct {
		text     string
		contexts int
	}{
		"a message is missing":   {replaced(find("message"), ""), 1},
		"a line is not JSON":     {replaced(find("message"), "{\"message\":{\n"), 1},
		"the artifact is other":  {replaced(find("artifact"), strings.Replace(lines[find("artifact")], `"data":"iVB`, `"data":"iVC`, 1)), 1},
		"no end":                 {replaced(find("end"), ""), 1},
		"cut off":                {strings.Join(lines[:len(lines)-3], ""), 1},
		"an unknown kind":        {replaced(find("tag"), `{"dream":{"x":1}}`+"\n"), 2},
		"a message without role": {replaced(find("message"), `{"message":{"id":"01a21f51-3119-71d8-974e-cdb6b7347076","content":[]}}`+"\n"), 1},
		"a bad branch":           {replaced(find("branch"), `{"branch":{"id":"01a21f51-3119-71d8-974e-cdb6b7347076","name":""}}`+"\n"), 1},
		"no context line":        {replaced(find("context"), ""), 1},
	} {
		s, rep := imported(t, []byte(c.text))
		storetest.Check(t, s)
		n := 0
		for _, err := range s.Contexts(context.Background(), record.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != c.contexts || (rep.Outcome() == Complete) != (c.contexts == 2) {
			t.Errorf("%s: %d contexts, want %d: outcome %d, %v", name, n, c.contexts, rep.Outcome(), rep.Warnings)
		}
	}
	s := memoryStore(t)
	rep, err := imports(t, s, []string{"-"}, Options{Stdin: strings.NewReader(`{"chatctx":99}` + "\n")})
	if err != nil || rep.Failed != 1 || !strings.Contains(rep.Warnings[0].Text, "update chatctx") {
		t.Errorf("a newer version: %v %+v", err, rep)
	}
}

func TestDryRunOfANativeExport(t *testing.T) {
	s := memoryStore(t)
	rep, err := Import(context.Background(), s, []string{"-"}, Options{DryRun: true, Stdin: bytes.NewReader(exported(t, richStore(t), ExportOptions{All: true}))})
	if err != nil || rep.Contexts != 2 || rep.Branches != 4 || rep.Messages == 0 {
		t.Errorf("%v %+v", err, rep)
	}
	for info, err := range s.Contexts(context.Background(), record.ListOptions{}) {
		t.Fatal("a dry run stored", info, err)
	}
}

func TestExportRefusals(t *testing.T) {
	s := richStore(t)
	for _, o := range []ExportOptions{{Format: "pdf"}, {Format: "markdown", All: true}, {Format: "markdown", Context: "nobody"}, {Format: "markdown", Branch: "none"}} {
		var b bytes.Buffer
		if err := Export(context.Background(), s, o, &b); err == nil || b.Len() > 0 {
			t.Errorf("%+v: %v and %d bytes", o, err, b.Len())
		}
	}
}

// TestNativeLinesAreWhole fails when a record gets a key that the export's lines lack. Those that they lack on purpose stand here.
func TestNativeLinesAreWhole(t *testing.T) {
	for typ, leftOut := range map[reflect.Type][]string{
		// What an agent's hook said of a call stays with the store in which it was decided. A message of no branch is a loose line; an import brings the call, and nobody there holds it.
		reflect.TypeFor[record.NativeCall](): {"Home", "Token", "Result", "Program", "Origin", "Gate"},
		reflect.TypeFor[record.Decision]():   {"Said"}, // an import sets it
		reflect.TypeFor[record.Task]():       nil, reflect.TypeFor[record.Runs](): nil, reflect.TypeFor[branch.Session](): nil, reflect.TypeFor[branch.Digest](): nil,
	} {
		names, written := map[string]bool{}, map[string]bool{}
		for _, f := range nativeLines.Fields(typ) {
			if names[f.Name] {
				t.Errorf("%s has two members %q", typ, f.Name)
			}
			names[f.Name], written[typ.FieldByIndex(f.Index).Name] = true, true
		}
		for _, f := range reflect.VisibleFields(typ) {
			if key, _, _ := strings.Cut(f.Tag.Get("cbor"), ","); key != "" && key != "-" && written[f.Name] == slices.Contains(leftOut, f.Name) {
				t.Errorf("%s.%s: a line of an export has it: %v", typ, f.Name, written[f.Name])
			}
		}
	}
	if rows := len(nativeLines.Lines); rows > 40 {
		t.Errorf("%d names of lines differ from those of answers", rows)
	}
}

// TestNativeCallLine: a call's line has its members in their order, and no time that is not known.
func TestNativeCallLine(t *testing.T) {
	c := record.NativeCall{Index: 1}
	c.CallID, c.Tool, c.Status, c.Execution = "c", "t", pool.Denied, pool.NotRun
	c.Decisions = []record.Decision{{From: "a", To: "b", Decider: pool.Decider{Kind: "person", Name: "n", Claimed: "c", Said: true}, Program: "p", User: "u", Reason: "<r>"}}
	const want = `{"message":"00000000-0000-0000-0000-000000000000","index":1,"call_id":"c","tool_name":"t","approval_status":"denied","execution":"none",` +
		`"decisions":[{"from":"a","to":"b","by_kind":"person","by_name":"n","program":"p","user":"u","claimed":"c","reason":"<r>"}]}`
	got, err := nativeLines.Append(nil, c)
	if err != nil || string(got) != want {
		t.Errorf("%s (%v), want %s", got, err, want)
	}
}

// miniNative is an export of one context with two messages, the second with a call. extra are more lines of it.
func miniNative(extra ...string) string {
	return `{"chatctx":1,"contexts":1}
{"context":{"id":"01a223bc-d71d-780b-aa8c-ebcba22c1b01","title":"Mini","active":"main","created_at":"2026-11-28T19:58:28Z","updated_at":"2026-11-28T19:58:28Z"}}
{"branch":{"id":"01a223bc-d71d-7980-86e6-ef7a8b2d6e01","name":"main","created_at":"2026-11-28T19:58:28Z"}}
{"message":{"id":"01a223bc-d760-7595-90cd-b8973cb5c501","role":"user","content":[{"type":"text","text":"Q"}],"created_at":"2026-11-28T19:58:28Z"}}
{"message":{"id":"01a223bc-d760-7595-90cd-b8973cb5c502","role":"assistant","content":[{"type":"text","text":"A"}],"tool_calls":[{"id":"c","tool_name":"shell","arguments":{}}],"created_at":"2026-11-28T19:58:28Z"}}
` + strings.Join(append(extra, ""), "\n") + `{"end":{"context":"01a223bc-d71d-780b-aa8c-ebcba22c1b01","messages":2,"branches":1}}
`
}

var goWords = regexp.MustCompile(`json:|Go (struct|value)|unmarshal|urn|uuid|parsing time|hex:|strconv|0000-0000-0000`)

// TestNativeLineIsLeftOutAlone: a line that is wrong, or names what is not there, is named with its number, and the rest of its context is stored. A second
// import adds nothing and says the same.
func TestNativeLineIsLeftOutAlone(t *testing.T) {
	const there, missing = "01a223bc-d760-7595-90cd-b8973cb5c502", "01a223bc-d760-7595-90cd-b8973cb5c599"
	for line, want := range map[string]string{
		`{"tag":{"name":"t","message":"` + missing + `"}}`: `the tag "t" is left out: the message ` + missing + ` is not in the file`,
		`{"tag":{"name":"t","message":null}}`:              `the tag "t" is left out: it names no message`,
		`{"tag":{"name":"t","message":7}}`:                 `the line "tag" is left out: tag.message is not an id`,
		`{"tag":{"name":["t"],"message":"` + there + `"}}`: `the line "tag" is left out: tag.name is not a text`,
		`{"tag":{"name":"","message":"` + there + `"}}`:    `the tag "" is left out: `,
		`{"tag":null}`: `the tag "" is left out: it names no message`,
		`{"mark":{"mark":"pinned","message":"` + missing + `"}}`: `the mark "pinned" is left out: the message ` + missing + ` is not in the file`,
		`{"mark":{"mark":"pinned","message":null}}`:              `the mark "pinned" is left out: it names no message`,
		`{"mark":{"mark":"pinned","message":"urn:x"}}`:           `the line "mark" is left out: mark.message is not an id`,
		`{"mark":[]}`: `the line "mark" is left out: mark is not an object`,
		`{"call":{"message":null,"index":0,"call_id":"c"}}`: `the line "call" is left out: `,
		`{"call":null}`: `the line "call" is left out: `,
		`{"call":{"message":"` + missing + `","index":0,"call_id":"c"}}`:                                             `the line "call" is left out: `,
		`{"call":{"message":"` + there + `","index":5,"call_id":"c","approval_status":"denied","execution":"none"}}`: `the line "call" is left out: `,
		`{"call":{"message":"` + there + `","index":0,"call_id":"c","execution":[]}}`:                                `the line "call" is left out: call.execution is not a text`,
		`{"call":{"message":"` + there + `","index":0,"decisions":7}}`:                                               `the line "call" is left out: call.decisions is not a list`,
		`{"call":{"message":"` + there + `","index":0,"decisions":[{"from":7,"at":"then"}]}}`:                        `call.decisions[0].from is not a text, call.decisions[0].at is not a time`,
		`{"again":["` + missing + `"]}`:         `the message ` + missing + ` is left out of the branch: the file names it before it has it`,
		`{"again":["x"]}`:                       `fields that cannot be read are left out: again[0] is not an id`,
		`{"again":7}`:                           `fields that cannot be read are left out: again is not a list`,
		`{"artifact":{"sha256":7,"data":"%%"}}`: `artifact.sha256 is not a text, artifact.data is not base64`,
		`{"branch":{"name":"b","created_at":"yesterday","at":7}}`:                      `fields that cannot be read are left out: branch.created_at is not a time like 2006-01-02T15:04:05Z, branch.at is not an id`,
		`{"branch":{"name":"b","sessions":7,"like":{"branch":"main","messages":1}}}`:   `fields that cannot be read are left out: branch.sessions is not a list`,
		`{"branch":{"name":"b","sessions":[{"start":-1}]}}`:                            `the sessions of the branch "b" are left out: `,
		`{"branch":{"name":"b","sessions":[{"start":1,"summary":"` + missing + `"}]}}`: `the summary of session 1 of the branch "b" is left out: the message ` + missing + ` is not in the file`,
	} {
		text := miniNative(line)
		s, rep := imported(t, []byte(text))
		named := func(rep *Report) bool {
			return len(rep.Warnings) == 1 && rep.Warnings[0].Line == 6 && strings.Contains(rep.Warnings[0].Text, want) && !goWords.MatchString(strings.ReplaceAll(rep.Warnings[0].Text, "an id like "+chatctx.ID{}.String(), "an id"))
		}
		if !named(rep) || rep.Messages != 2 || rep.Contexts != 1 || rep.SkippedContexts+rep.Skipped > 0 {
			t.Errorf("%s: %+v", line, rep)
		}
		first := exported(t, s, ExportOptions{All: true})
		rep, err := imports(t, s, []string{"-"}, Options{Stdin: strings.NewReader(text)})
		if err != nil || !named(rep) || rep.Messages+rep.Branches+rep.Contexts+rep.Skipped > 0 {
			t.Errorf("%s, again: %v %+v", line, err, rep)
		}
		compareLines(t, exported(t, s, ExportOptions{All: true}), first)
		storetest.Check(t, s)
	}
}

// TestNativeContextThatIsGivenUp: of a context that is damaged nothing stays, so that every import of it comes to the same and a whole file of it comes in as it is.
func TestNativeContextThatIsGivenUp(t *testing.T) {
	ctx := context.Background()
	bad := miniNative(`{"message":7}`, `{"branch":{"name":"late"}}`)
	s, rep := imported(t, []byte(bad))
	for range 2 {
		if rep.SkippedContexts != 1 || rep.Messages+rep.Branches+rep.Contexts > 0 {
			t.Fatalf("%+v", rep)
		}
		for info, err := range s.Contexts(ctx, record.ListOptions{Trash: true}) {
			t.Fatal("it is in the trash", info, err)
		}
		storetest.Check(t, s)
		var err error
		if rep, err = imports(t, s, []string{"-"}, Options{Stdin: strings.NewReader(bad)}); err != nil {
			t.Fatal(err)
		}
	}
	rep, err := imports(t, s, []string{"-"}, Options{Stdin: strings.NewReader(miniNative())})
	if err != nil || rep.Outcome() != Complete || rep.Messages != 2 || rep.Branches != 1 || len(rep.Warnings) > 0 {
		t.Errorf("%v %+v", err, rep)
	}
	fresh, _ := imported(t, []byte(miniNative()))
	compareLines(t, exported(t, s, ExportOptions{All: true}), exported(t, fresh, ExportOptions{All: true}))
	storetest.Check(t, s)
	// what the store has already stays as it is
	if _, err := imports(t, s, []string{"-"}, Options{Stdin: strings.NewReader(bad)}); err != nil {
		t.Fatal(err)
	}
	compareLines(t, exported(t, s, ExportOptions{All: true}), exported(t, fresh, ExportOptions{All: true}))
	storetest.Check(t, s)
}
