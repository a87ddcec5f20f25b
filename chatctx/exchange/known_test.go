package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

// twoStores is a conversation in two stores: here, and there as a file brought it.
type twoStores struct {
	t           *testing.T
	here, there *chatctx.Store
	id          string
}

func newTwoStores(t *testing.T, msgs ...*chatctx.Message) *twoStores {
	t.Helper()
	p := &twoStores{t: t, here: memoryStore(t)}
	c, err := p.here.New(context.Background(), record.NewContext{Title: "T", Messages: msgs})
	if err != nil {
		t.Fatal(err)
	}
	p.id = c.ID.String()
	p.there, _ = imported(t, exported(t, p.here, ExportOptions{All: true}))
	return p
}

func (p *twoStores) of(s *chatctx.Store) *chatctx.ChatContext {
	p.t.Helper()
	c, err := s.Context(context.Background(), p.id)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// bring imports the other store's export here.
func (p *twoStores) bring(o Options) *Report {
	p.t.Helper()
	o.Stdin = bytes.NewReader(exported(p.t, p.there, ExportOptions{All: true}))
	rep, err := imports(p.t, p.here, []string{"-"}, o)
	if err != nil {
		p.t.Fatal(err)
	}
	storetest.Check(p.t, p.here)
	return rep
}

func user(text string) *chatctx.Message  { return pool.NewText(pool.User, text) }
func reply(text string) *chatctx.Message { return pool.NewText(pool.Assistant, text) }

func add(name, text string) func(*twoStores, *chatctx.Store) {
	return func(p *twoStores, s *chatctx.Store) {
		commit(p.t, p.of(s), name, func(b *chatctx.Batch) { b.Append(user(text)) })
	}
}

func fork(name string) func(*twoStores, *chatctx.Store) {
	return func(p *twoStores, s *chatctx.Store) {
		commit(p.t, p.of(s), "main", func(b *chatctx.Batch) { b.Fork(name, chatctx.ForkOptions{Stay: true}) })
	}
}

func on(name string, do func(b *chatctx.Batch)) func(*twoStores, *chatctx.Store) {
	return func(p *twoStores, s *chatctx.Store) { commit(p.t, p.of(s), name, do) }
}

func all(list ...func(*twoStores, *chatctx.Store)) func(*twoStores, *chatctx.Store) {
	return func(p *twoStores, s *chatctx.Store) {
		for _, do := range list {
			do(p, s)
		}
	}
}

// share makes the other store know what is here.
func share(p *twoStores, _ *chatctx.Store) {
	p.there, _ = imported(p.t, exported(p.t, p.here, ExportOptions{All: true}))
}

// TestOwnExportComesBack changes a conversation in two stores and brings the export of the other one: what is here changes only by what the file has anew.
func TestOwnExportComesBack(t *testing.T) {
	summary := func(b *chatctx.Batch) {
		m := pool.NewText(pool.System, "all of it")
		m.Kind = "summary"
		b.PutLoose(m)
		b.SetSessions([]branch.Session{{ID: pool.NewID(), Start: 1}, {ID: pool.NewID(), Start: 3, Summary: m.ID}})
	}
	for name, c := range map[string]struct {
		here, there func(*twoStores, *chatctx.Store)
		want        string
		says        string // in a warning; "": there is none
	}{
		"nothing":                {nil, nil, "main: q a\n", ""},
		"grown":                  {nil, add("main", "Y"), "main: q a Y\n", ""},
		"grown here":             {add("main", "X"), nil, "main: q a X\n", ""},
		"forked elsewhere":       {nil, all(fork("alt"), add("alt", "Y")), "alt: q a Y\nmain: q a\n", ""},
		"an empty fork":          {nil, fork("alt"), "alt: q a\nmain: q a\n", ""},
		"a fork on both sides":   {all(fork("alt"), add("alt", "X")), all(fork("alt"), add("alt", "Y")), "alt: q a X\nalt.2: q a Y\nmain: q a\n", ""},
		"both went on":           {add("main", "X"), add("main", "Y"), "main: q a X\nmain.2: q a Y\n", `"main" went on otherwise here: what the file has of it is on "main.2"`},
		"rewound here":           {on("main", func(b *chatctx.Batch) { b.Rewind("@1") }), nil, "main: q\n", "its history is otherwise here and stays so"},
		"rewound, and grown":     {on("main", func(b *chatctx.Batch) { b.Rewind("@1") }), add("main", "Y"), "main: q\nmain.2: q a Y\n", "went on otherwise"},
		"dropped here":           {on("main", func(b *chatctx.Batch) { b.Drop("@1") }), nil, "main: a\n", "its history is otherwise here and stays so"},
		"removed here":           {all(fork("alt"), share, on("main", func(b *chatctx.Batch) { b.RemoveBranch("alt") })), nil, "main: q a\n", "it was removed here and stays so"},
		"removed here, grown":    {all(fork("alt"), share, on("main", func(b *chatctx.Batch) { b.RemoveBranch("alt") })), add("alt", "Y"), "alt: q a Y\nmain: q a\n", ""},
		"renamed elsewhere":      {nil, on("main", func(b *chatctx.Batch) { b.RenameBranch("main", "other") }), "main: q a\n", "not taken: name"},
		"excluded elsewhere":     {nil, on("main", func(b *chatctx.Batch) { b.Mark("@1", "excluded") }), "main: q a\n", `not taken: mark "excluded"`},
		"pinned elsewhere":       {nil, on("main", func(b *chatctx.Batch) { b.Mark("@1", "pinned") }), "main: q a\n", `not taken: mark "pinned"`},
		"tagged elsewhere":       {nil, on("main", func(b *chatctx.Batch) { b.Tag("t", "@1") }), "main: q a\n", `not taken: tag "t"`},
		"a new message pinned":   {nil, all(add("main", "Y"), on("main", func(b *chatctx.Batch) { b.Mark("@3", "pinned"); b.Tag("t", "@3") })), "main: q a Y\npinned: Y\ntag t: Y\n", ""},
		"a mark here stays":      {on("main", func(b *chatctx.Batch) { b.Mark("@1", "pinned") }), on("main", func(b *chatctx.Batch) { b.Mark("@1", "excluded") }), "main: q a\npinned: q\n", `not taken: mark "excluded"`},
		"compacted elsewhere":    {nil, all(add("main", "Y"), on("main", summary)), "main: q a Y\n", "session from message 3"},
		"a prompt elsewhere":     {nil, on("main", func(b *chatctx.Batch) { b.SetSystem("obey") }), "main: q a\n", "not taken: system prompt"},
		"a setting elsewhere":    {nil, on("main", func(b *chatctx.Batch) { b.SetSettings(map[string]json.RawMessage{"model": json.RawMessage(`"m"`)}) }), "main: q a\n", "not taken: setting model"},
		"a label elsewhere":      {nil, on("main", func(b *chatctx.Batch) { b.Label("l") }), "main: q a\n", `not taken: label "l"`},
		"a title elsewhere":      {nil, on("main", func(b *chatctx.Batch) { b.SetTitle("New") }), "main: q a\ntitle: New\n", `its title follows the file; it was "T"`},
		"a title here stays":     {on("main", func(b *chatctx.Batch) { b.SetTitle("Mine") }), on("main", func(b *chatctx.Batch) { b.SetTitle("New") }), "main: q a\ntitle: Mine\n", "not taken: title"},
		"in the trash":           {trash, nil, "in the trash\n", "in the trash"},
		"in the trash, retitled": {trash, on("main", func(b *chatctx.Batch) { b.SetTitle("New") }), "in the trash\n", "in the trash"},
		"in the trash, grown":    {trash, add("main", "Y"), "main: q a Y\n", "was in the trash and is restored"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newTwoStores(t, user("q"), reply("a"))
			if c.here != nil {
				c.here(p, p.here)
			}
			before := p.state()
			if c.there != nil {
				c.there(p, p.there)
			}
			rep := p.bring(Options{})
			c.want = sortedLines(c.want)
			if got := p.state(); got != c.want {
				t.Errorf("it has\n%swant\n%s", got, c.want)
			}
			if said := warningsOf(rep); !strings.Contains(said, c.says) || c.says == "" && said != "" {
				t.Errorf("the report says %q, want %q", said, c.says)
			}
			changed := p.state() != before
			if changed != rep.Changed() {
				t.Errorf("changed: %v, the report says %v: %+v", changed, rep.Changed(), rep)
			}
			if again := p.bring(Options{}); again.Changed() || p.state() != c.want {
				t.Errorf("a second time it changes something:\n%s%+v", p.state(), again)
			}
			if !changed || before == "in the trash\n" {
				return
			}
			if _, err := p.here.Undo(context.Background(), p.id, "", ""); err != nil {
				t.Fatal(err)
			}
			if got := p.state(); got != before {
				t.Errorf("undone:\n%swant\n%s", got, before)
			}
			if p.bring(Options{}); p.state() != c.want && !strings.Contains(name, "title") { // the undo is later than the file's title
				t.Errorf("after the undo it has\n%swant\n%s", p.state(), c.want)
			}
		})
	}
}

func trash(p *twoStores, s *chatctx.Store) {
	if _, err := s.Trash(context.Background(), p.id); err != nil {
		p.t.Fatal(err)
	}
}

// state returns what is here: branches with their messages, what has marks, and the title if it is not T.
func (p *twoStores) state() string {
	p.t.Helper()
	ctx := context.Background()
	c := p.of(p.here)
	info, err := c.Info(ctx)
	if err != nil {
		return "in the trash\n"
	}
	if info.Trashed != 0 {
		return "in the trash\n"
	}
	text := sortedLines(saidOn(p.t, p.here, p.id))
	v := streamOf(p.t, c)
	words := func(id chatctx.ID) string {
		m, err := c.Message(ctx, id)
		if err != nil {
			p.t.Fatal(err)
		}
		return m.Text()
	}
	for id, mark := range v.Marks {
		text += fmt.Sprintf("%s: %s\n", mark, words(id))
	}
	for name, id := range v.Tags {
		text += fmt.Sprintf("tag %s: %s\n", name, words(id))
	}
	if info.Title != "T" {
		text += "title: " + info.Title + "\n"
	}
	for _, b := range v.Branches {
		for _, s := range b.Sessions[min(1, len(b.Sessions)):] {
			text += fmt.Sprintf("session of %s from %d\n", b.Name, s.Start)
		}
	}
	return sortedLines(text)
}

// streamed is what the stream of a context has beside messages, with its branches.
type streamed struct {
	Branches []*record.BranchInfo
	Tags     map[string]chatctx.ID
	Marks    map[chatctx.ID]string
	Calls    []*record.NativeCall
}

func streamOf(t *testing.T, c *chatctx.ChatContext) *streamed {
	t.Helper()
	out := &streamed{Tags: map[string]chatctx.ID{}, Marks: map[chatctx.ID]string{}}
	err := c.Stream(t.Context(), func(r record.Streamed) error {
		switch r := r.(type) {
		case *record.NativeTag:
			out.Tags[r.Name] = r.Message
		case *record.NativeMark:
			out.Marks[r.Message] = r.Mark
		case *record.NativeCall:
			out.Calls = append(out.Calls, r)
		}
		return nil
	})
	if err == nil {
		out.Branches, err = c.Branches(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func sortedLines(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func warningsOf(rep *Report) string {
	var out []string
	for _, w := range rep.Warnings {
		out = append(out, w.Text)
	}
	return strings.Join(out, "\n")
}

// TestBranchComesWithItsPrompt brings a fork that was made elsewhere with what it says of itself.
func TestBranchComesWithItsPrompt(t *testing.T) {
	p := newTwoStores(t, user("q"), reply("a"))
	fork("alt")(p, p.there)
	commit(t, p.of(p.there), "alt", func(b *chatctx.Batch) {
		b.SetSystem("be Y")
		b.SetSettings(map[string]json.RawMessage{"model": json.RawMessage(`"m-y"`)})
		b.Append(user("Y"))
	})
	p.bring(Options{})
	info, err := p.of(p.here).Branch(context.Background(), "alt")
	if err != nil {
		t.Fatal(err)
	}
	there, err := p.of(p.there).Branch(context.Background(), "alt")
	if err != nil {
		t.Fatal(err)
	}
	if info.ID != there.ID || info.System != "be Y" || string(info.Settings["model"]) != `"m-y"` || info.From != there.From || info.At != there.At {
		t.Errorf("%+v, want %+v", info, there)
	}
}

// TestResultOfAFileAnswersNothing brings results of calls that wait, run, were denied or were done here: none is sent, and the real ones are.
func TestResultOfAFileAnswersNothing(t *testing.T) {
	ctx := context.Background()
	for _, state := range []string{"pending", "approved", "running", "denied", "done"} {
		t.Run(state, func(t *testing.T) {
			call := &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "c1", Tool: "read", Arguments: json.RawMessage(`{}`), Status: pool.Pending}}}
			p := newTwoStores(t, user("q"))
			commit(t, p.of(p.here), "", func(b *chatctx.Batch) { b.Append(call) })
			share(p, nil)
			commit(t, p.of(p.there), "", func(b *chatctx.Batch) {
				b.Append(&chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c1", Tool: "read", Text: "FAKE"}})
			})
			c := p.of(p.here)
			decide := func(s pool.Status) {
				commit(t, c, "", func(b *chatctx.Batch) { b.Decide("c1", record.Verdict{Status: s, Reason: "so"}) })
			}
			switch state {
			case "approved":
				decide(pool.Approved)
			case "denied":
				decide(pool.Denied)
			case "running":
				decide(pool.Approved)
				if _, err := p.here.ClaimCall(ctx, p.id, "", "c1", record.ClaimOptions{}); err != nil {
					t.Fatal(err)
				}
			case "done":
				commit(t, c, "", func(b *chatctx.Batch) {
					b.Append(&chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c1", Tool: "read", Text: "REAL"}})
				})
			}
			of := func() record.NativeCall {
				v := streamOf(t, c)
				if len(v.Calls) != 1 {
					t.Fatal(v)
				}
				return *v.Calls[0]
			}
			before := of()
			p.bring(Options{})
			after := of()
			if before.Status != after.Status || before.Execution != after.Execution {
				t.Errorf("the call was %s/%s and is %s/%s", before.Status, before.Execution, after.Status, after.Execution)
			}
			snap, err := c.Snapshot(ctx, "main")
			if err != nil {
				t.Fatal(err)
			}
			for e, err := range snap.Entries(ctx, 1, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Result != nil && e.Result.Text == "FAKE" && (e.Kind != pool.Late || !e.Unsent) {
					t.Errorf("the file's result stands on main as kind %q, unsent %v", e.Kind, e.Unsent)
				}
			}
			if again := p.bring(Options{}); again.Changed() {
				t.Errorf("a second time: %+v", again)
			}
		})
	}
}

// grownFile writes a conversation of a format with its first n messages, and returns its path.
var grownFiles = map[string]func(t *testing.T, n int) string{
	"chatgpt": func(t *testing.T, n int) string {
		return fileWith(t, "conversations.json", state(1_700_000_000+n, "T", secretNodes[:n]...))
	},
	"claude-code": func(t *testing.T, n int) string {
		var out strings.Builder
		for i, node := range secretNodes[:n] {
			id, text, _ := strings.Cut(node, "=")
			parent := "null"
			if i > 0 {
				before, _, _ := strings.Cut(secretNodes[i-1], "=")
				parent = fmt.Sprintf("%q", before)
			}
			fmt.Fprintf(&out, `{"parentUuid":%s,"sessionId":"s1","type":%q,"uuid":%q,"timestamp":"2026-01-01T10:00:0%dZ","message":{"role":%q,"content":%q}}`+"\n",
				parent, roles[i%2], id, i, roles[i%2], text)
		}
		return fileWith(t, "s1.jsonl", out.String())
	},
	"openai-chat, which has no ids": func(t *testing.T, n int) string {
		var list []string
		for i, node := range secretNodes[:n] {
			_, text, _ := strings.Cut(node, "=")
			list = append(list, fmt.Sprintf(`{"role":%q,"content":%q}`, roles[i%2], text))
		}
		return fileWith(t, "chat.json", `{"messages":[`+strings.Join(list, ",")+`]}`)
	},
}

var (
	roles       = []string{"user", "assistant"}
	secretNodes = []string{"n1=my secret is ZZ4411", "n2=noted, and it is a long answer that says a good deal about what was noted here", "n3=next", "n4=end"}
)

func fileWith(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	write(t, path, text)
	return path
}

// TestPurgedStaysAway purges or redacts, and brings the same conversation again after it has grown.
func TestPurgedStaysAway(t *testing.T) {
	ctx := context.Background()
	for format, file := range grownFiles {
		for what, purge := range map[string]func(m *chatctx.Maintenance, id string, forget bool) error{
			"message": func(m *chatctx.Maintenance, id string, forget bool) error {
				_, err := m.PurgeMessages(ctx, id, "", []record.Ref{"@1"}, chatctx.PurgeOptions{Forget: forget})
				return err
			},
			"conversation": func(m *chatctx.Maintenance, id string, forget bool) error {
				_, err := m.PurgeContext(ctx, id, chatctx.PurgeOptions{Forget: forget})
				return err
			},
			"redacted": func(m *chatctx.Maintenance, id string, forget bool) error {
				_, err := m.Redact(ctx, redactZZ)
				return err
			},
		} {
			t.Run(format+"/"+what, func(t *testing.T) {
				purged := func(forget bool) *chatctx.Store {
					s := memoryStore(t)
					importInto(t, s, file(t, 2))
					if err := purge(s.Maintenance(), only(t, s).ID.String(), forget); err != nil {
						t.Fatal(err)
					}
					return s
				}
				s := purged(false)
				for n := 2; n <= len(secretNodes); n++ {
					rep := importInto(t, s, file(t, n))
					if text := string(exported(t, s, ExportOptions{All: true})); strings.Contains(text, "ZZ4411") {
						t.Fatalf("it is back with %d messages", n)
					}
					if n > 2 && what != "redacted" && (rep.Purged == 0 || !strings.Contains(warningsOf(rep), "purged here")) {
						t.Errorf("the report does not say it: %+v", rep)
					}
				}
				storetest.Check(t, s)
				if what == "redacted" {
					return
				}
				back, err := imports(t, s, []string{file(t, 4)}, Options{Purged: true})
				if err != nil {
					t.Fatal(err)
				}
				if text := string(exported(t, s, ExportOptions{All: true})); !strings.Contains(text, "ZZ4411") || !strings.Contains(warningsOf(back), "again what was purged") {
					t.Errorf("with Purged it does not come, or nothing says so: %+v", back)
				}
				storetest.Check(t, s)
				f := purged(true)
				importInto(t, f, file(t, 3))
				if text := string(exported(t, f, ExportOptions{All: true})); !strings.Contains(text, "ZZ4411") {
					t.Error("after a purge that keeps no marks it does not come back")
				}
			})
		}
	}
}

// TestPurgeForgetsEarlierPurges: a purge that is to leave no marks takes those that earlier ones left of what it is about, also of what came back meanwhile: all but
// those of texts without an id that are not here, since nothing is left that leads to them.
func TestPurgeForgetsEarlierPurges(t *testing.T) {
	for format, file := range grownFiles {
		for _, again := range []bool{false, true} {
			if !again && format == "openai-chat, which has no ids" {
				continue
			}
			t.Run(fmt.Sprint(format, " brought back ", again), func(t *testing.T) {
				s := memoryStore(t)
				importInto(t, s, file(t, 2))
				m, id := s.Maintenance(), only(t, s).ID.String()
				if _, err := m.PurgeMessages(t.Context(), id, "", []record.Ref{"@1"}, chatctx.PurgeOptions{}); err != nil {
					t.Fatal(err)
				}
				if again {
					if _, err := imports(t, s, []string{file(t, 3)}, Options{Purged: true}); err != nil {
						t.Fatal(err)
					}
				}
				for _, info := range contextsOf(t, s) {
					if _, err := m.PurgeContext(t.Context(), info.ID.String(), chatctx.PurgeOptions{Forget: true}); err != nil {
						t.Fatal(err)
					}
				}
				rep := importInto(t, s, file(t, 3))
				if text := string(exported(t, s, ExportOptions{All: true})); !strings.Contains(text, "ZZ4411") || rep.Purged != 0 {
					t.Errorf("a mark of the first purge holds: %+v", rep)
				}
				storetest.Check(t, s)
			})
		}
	}
}

// redactZZ finds the secret of secretNodes.
var redactZZ = record.RedactOptions{Find: func(text string) (out []record.Secret, err error) {
	if at := strings.Index(text, "ZZ4411"); at >= 0 {
		out = append(out, record.Secret{From: at, To: at + 6, What: "zz"})
	}
	return out, nil
}}

// sourcesOf returns the bytes of all records of imports, undoOf those of the journals.
func sourcesOf(t *testing.T, db kv.DB) map[string]string { return bucketOf(t, db, "source") }

func undoOf(t *testing.T, db kv.DB) map[string]string { return bucketOf(t, db, "operation") }

func bucketOf(t *testing.T, db kv.DB, bucket string) (all map[string]string) {
	t.Helper()
	err := db.View(t.Context(), func(tx kv.Tx) error {
		all = map[string]string{}
		return tx.Scan(bucket, kv.Range{}, func(key, value []byte) error {
			all[string(key)] = string(value)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// saidAndNoted is a session of Claude Code in which a person says something.
func saidAndNoted(text string) string {
	return fmt.Sprintf(`{"parentUuid":null,"sessionId":"s1","type":"user","uuid":"n1","timestamp":"2026-01-01T10:00:00Z","message":{"role":"user","content":%q}}`+"\n"+
		`{"parentUuid":"n1","sessionId":"s1","type":"assistant","uuid":"n2","timestamp":"2026-01-01T10:00:01Z","message":{"role":"assistant","content":"noted"}}`+"\n", text)
}

// erasures are the ways in which the words of saidAndNoted go.
func erasures(t *testing.T) map[string]func(m *chatctx.Maintenance, id string) error {
	return map[string]func(m *chatctx.Maintenance, id string) error{
		"purged": func(m *chatctx.Maintenance, id string) error {
			_, err := m.PurgeMessages(t.Context(), id, "", []record.Ref{"@1"}, chatctx.PurgeOptions{})
			if err == nil {
				_, err = m.PurgeMessages(t.Context(), id, "main.2", []record.Ref{"@1"}, chatctx.PurgeOptions{})
			}
			return err
		},
		"conversation": func(m *chatctx.Maintenance, id string) error {
			_, err := m.PurgeContext(t.Context(), id, chatctx.PurgeOptions{})
			return err
		},
		"redacted": func(m *chatctx.Maintenance, _ string) error {
			_, err := m.Redact(t.Context(), redactZZ)
			return err
		},
	}
}

// TestNoHashOfWordsStays: what an import noted of a message's words, to know it again, goes with the words, by a purge and by a redaction, also of what the same
// message said in a later file, of titles, and of whole files. Another import of the same files notes none of it again, and what it notes of the rest stays.
func TestNoHashOfWordsStays(t *testing.T) {
	first, second := "my secret is ZZ4411", "my secret is ZZ4411, not the other"
	files := []string{fileWith(t, "s1.jsonl", saidAndNoted(first)), fileWith(t, "s1.jsonl", saidAndNoted(second))}
	for what, erase := range erasures(t) {
		for _, undone := range []bool{false, true} {
			t.Run(fmt.Sprint(what, " undone before ", undone), func(t *testing.T) {
				db := memkv.New()
				s, err := chatctx.OpenDB(db, chatctx.Options{})
				if err != nil {
					t.Fatal(err)
				}
				hashes := map[string]string{}
				if undone { // of the import that is undone, the journal of the store has what it noted
					importInto(t, s, files[1])
					if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
						t.Fatal(err)
					}
				}
				for _, file := range files {
					importInto(t, s, file)
				}
				for _, text := range []string{first, second} {
					words := poolstore.Words(pool.NewText(pool.User, text))
					hashes["the words "+text] = string(words[:8])
				}
				title := pool.HashOf([]byte(second)) // as the later file has it
				hashes["the title"] = string(title[:8])
				before, has := sourcesOf(t, db), map[string]bool{}
				holds := func(all map[string]string, hash string) bool {
					for key, value := range all {
						if strings.Contains(key+"\x00"+value, hash) {
							return true
						}
					}
					return false
				}
				if undone && !holds(undoOf(t, db), hashes["the title"]) {
					t.Fatal("the journal has no hash: the test looks for another one")
				}
				for name, hash := range hashes {
					if has[name] = holds(before, hash); !has[name] {
						t.Fatalf("the import noted no hash of %s: the test looks for another one", name)
					}
				}
				if err := erase(s.Maintenance(), only(t, s).ID.String()); err != nil {
					t.Fatal(err)
				}
				for round := range 3 {
					after := sourcesOf(t, db)
					for name, hash := range hashes {
						if holds(after, hash) {
							t.Errorf("after import %d a hash of %s is there", round, name)
						}
						if holds(undoOf(t, db), hash) {
							t.Errorf("after import %d the journal has a hash of %s", round, name)
						}
					}
					for key, value := range after {
						if len(value) != 40 && before[key] == value {
							t.Errorf("after import %d %q is as it was", round, key)
						}
					}
					if noted := poolstore.Words(pool.NewText(pool.Assistant, "noted")); holds(after, string(noted[:8])) == (what == "conversation") {
						t.Error("the hash of a message that stays went too, or that of one that went is there")
					}
					for _, file := range files {
						importInto(t, s, file)
					}
					if text := string(exported(t, s, ExportOptions{All: true})); strings.Contains(text, "ZZ4411") {
						t.Fatalf("it is back: %s", text)
					}
				}
				storetest.Check(t, s)
			})
		}
	}
}

// TestShortTextsGoByTheirPlace: of a file without ids, a short text that was purged stays away in its place alone.
func TestShortTextsGoByTheirPlace(t *testing.T) {
	file := func(last string) string {
		var list []string
		for i, text := range []string{"delete it?", "yes", "go on", "well", "keep it?", "yes", "go on", last} {
			list = append(list, fmt.Sprintf(`{"role":%q,"content":%q}`, roles[i%2], text))
		}
		return fileWith(t, "chat.json", `{"messages":[`+strings.Join(list, ",")+`]}`)
	}
	s := memoryStore(t)
	importInto(t, s, file("end"))
	if _, err := s.Maintenance().PurgeMessages(t.Context(), only(t, s).ID.String(), "", []record.Ref{"@2"}, chatctx.PurgeOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, last := range []string{"end", "another end"} {
		importInto(t, s, file(last))
		for _, info := range contextsOf(t, s) {
			if said := saidOn(t, s, info.ID.String()); strings.Count(said, "yes") != 1 {
				t.Errorf("with %q at the end it has\n%s", last, said)
			}
		}
	}
	storetest.Check(t, s)
}

// TestPurgedStaysAwayFromOwnExport purges a message, a branch and a conversation, and brings an export made before.
func TestPurgedStaysAwayFromOwnExport(t *testing.T) {
	ctx := context.Background()
	for what, c := range map[string]struct {
		purge func(m *chatctx.Maintenance, id string) error
		want  string
	}{
		"message": {func(m *chatctx.Maintenance, id string) error {
			_, err := m.PurgeMessages(ctx, id, "main", []record.Ref{"@2"}, chatctx.PurgeOptions{})
			return err
		}, "alt: q secret\nmain: q more end\n"},
		"branch": {func(m *chatctx.Maintenance, id string) error {
			_, err := m.PurgeBranch(ctx, id, "alt", chatctx.PurgeOptions{})
			return err
		}, "main: q a more end\n"},
		"conversation": {func(m *chatctx.Maintenance, id string) error {
			_, err := m.PurgeContext(ctx, id, chatctx.PurgeOptions{})
			return err
		}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			p := newTwoStores(t, user("q"), reply("a"), user("more"))
			commit(t, p.of(p.here), "main", func(b *chatctx.Batch) { b.Fork("alt", chatctx.ForkOptions{At: "@1", Stay: true}) })
			add("alt", "secret")(p, p.here)
			share(p, nil)
			if err := c.purge(p.here.Maintenance(), p.id); err != nil {
				t.Fatal(err)
			}
			add("main", "end")(p, p.there)
			rep := p.bring(Options{})
			if what == "conversation" {
				if _, err := p.here.Context(ctx, p.id); err == nil {
					t.Error("it is back")
				}
			} else if got := sortedLines(saidOn(t, p.here, p.id)); got != c.want {
				t.Errorf("it has\n%swant\n%s", got, c.want)
			}
			if !strings.Contains(warningsOf(rep), "purged here") {
				t.Errorf("the report does not say it: %+v", rep)
			}
			p.bring(Options{Purged: true})
			if got := sortedLines(saidOn(t, p.here, p.id)); !strings.Contains(got, "secret") || !strings.Contains(got, "a") {
				t.Errorf("with Purged it has\n%s", got)
			}
		})
	}
}

// TestGrownAnswerKeepsItsPlace lets an answer grow that somebody has marked: it keeps its id, its marks and its tags, and says how long it was.
func TestGrownAnswerKeepsItsPlace(t *testing.T) {
	ctx := context.Background()
	s := memoryStore(t)
	importInto(t, s, fileWith(t, "conversations.json", state(1_700_000_000, "T", "q=q", "a=one")))
	c, err := s.Context(ctx, only(t, s).ID.String())
	if err != nil {
		t.Fatal(err)
	}
	commit(t, c, "main", func(b *chatctx.Batch) {
		b.Mark("@2", "pinned")
		b.Tag("here", "@2")
	})
	before := streamOf(t, c)
	importInto(t, s, fileWith(t, "conversations.json", state(1_800_000_000, "T", "q=q", "a=one and two")))
	m, err := c.Message(ctx, before.Tags["here"])
	if err != nil {
		t.Fatal(err)
	}
	after := streamOf(t, c)
	if m.Text() != "one and two" || m.Source.GrewFrom != 3 || after.Marks[m.ID] != "pinned" || after.Branches[0].Head != m.ID || after.Branches[0].Revision == before.Branches[0].Revision {
		t.Errorf("%q grew from %d, marks %v, %+v", m.Text(), m.Source.GrewFrom, after.Marks, after.Branches[0])
	}
	if _, err := s.Undo(ctx, c.ID.String(), "", ""); err != nil {
		t.Fatal(err)
	}
	if m, err = c.Message(ctx, m.ID); err != nil || m.Text() != "one" {
		t.Errorf("undone it is %q, %v", m.Text(), err)
	}
	storetest.Check(t, s)
}

// TestRowsWithOtherTools has two rows that differ in their tools alone, and one that is there twice, in two files.
func TestRowsWithOtherTools(t *testing.T) {
	row := func(tool string) string {
		return `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"tools":[{"type":"function","function":{"name":"` + tool + `"}}]}` + "\n"
	}
	s := memoryStore(t)
	rep, err := imports(t, s, []string{fileWith(t, "a.jsonl", row("one")+row("two")), fileWith(t, "b.jsonl", row("one"))}, Options{})
	if err != nil || rep.Contexts != 2 || len(rep.Imported) != 2 || rep.Messages != 4 || rep.Duplicated != 2 {
		t.Errorf("%v %+v", err, rep)
	}
}

// TestConversationInTwoFiles has a conversation in two files, the second one longer: it counts once, with all its messages.
func TestConversationInTwoFiles(t *testing.T) {
	s := memoryStore(t)
	file := grownFiles["chatgpt"]
	rep, err := imports(t, s, []string{file(t, 2), file(t, 4)}, Options{})
	if err != nil || rep.Contexts != 1 || len(rep.Imported) != 1 || rep.Imported[0].Messages != 4 || rep.Messages != 4 {
		t.Errorf("%v %+v", err, rep)
	}
}
