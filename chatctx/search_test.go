package chatctx

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/kvtest"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/pool"
)

// found runs a search and gives what was found, as text that can be compared.
func found(t *testing.T, s *Store, o record.SearchOptions) []string {
	t.Helper()
	var out []string
	for h, err := range s.Search(t.Context(), o) {
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		line := fmt.Sprintf("%s %s in %s of %s: %s", h.What, h.Field, h.Snippet, record.Short(h.Context), h.Snippet[h.Match.From:h.Match.To])
		for _, b := range h.Branches {
			line += fmt.Sprintf(" %s:%d", b.Name, b.Position)
		}
		out = append(out, line)
	}
	return out
}

// plainly runs a search without the index.
func plainly(t *testing.T, s *Store, o record.SearchOptions) []string {
	t.Helper()
	var out []string
	q, err := find.NewSearch(t.Context(), s.at(), o)
	if err != nil {
		t.Fatal(err)
	}
	q.Yield = func(h *record.Hit) bool {
		line := fmt.Sprintf("%s %s in %s of %s: %s", h.What, h.Field, h.Snippet, record.Short(h.Context), h.Snippet[h.Match.From:h.Match.To])
		for _, b := range h.Branches {
			line += fmt.Sprintf(" %s:%d", b.Name, b.Position)
		}
		out = append(out, line)
		return true
	}
	if err := q.Everything(); err != nil && err != kv.ErrStop {
		t.Fatal(err)
	}
	return out
}

func TestSearchFinds(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c, err := s.New(t.Context(), record.NewContext{Title: "Über Käse", System: "You are a pirate."})
		if err != nil {
			t.Fatal(err)
		}
		asks := &Message{Role: pool.Assistant, Meta: pool.Metadata{Model: "gpt-4o"}, Content: []pool.Part{{Type: pool.ThinkingPart, Text: "hmm, the weather"}},
			Calls: []pool.Call{{ID: "c1", Tool: "weather", Arguments: json.RawMessage(`{"city":"Z\u00fcrich","lines":"one\ntwo"}`)}}}
		msgs := append(says("The quick brown fox; don't panic", "東京都に住む")[:2], asks, answers("c1", "sunny in os.path.join"))
		if _, err := c.Append(t.Context(), "", msgs...); err != nil {
			t.Fatal(err)
		}
		fork := c.Begin("")
		fork.Fork("f", ForkOptions{At: "@2", Stay: true})
		commit(t, fork)
		for i, tt := range []struct {
			o    record.SearchOptions
			want string
		}{
			{record.SearchOptions{Text: "QUICK fox"}, "text quick main:1 f:1"},
			{record.SearchOptions{Text: `"quick brown"`}, "text quick brown main:1 f:1"},
			{record.SearchOptions{Text: `"brown quick"`}, ""},
			{record.SearchOptions{Text: "qui*"}, "text quick main:1 f:1"},
			{record.SearchOptions{Text: "don't"}, "text don't main:1 f:1"},
			{record.SearchOptions{Text: "京都"}, "text 京都 main:2 f:2"},
			{record.SearchOptions{Text: "都京"}, ""},
			{record.SearchOptions{Text: "ZU\u0308RICH"}, "call Zürich main:3"},
			{record.SearchOptions{Text: "two"}, "call two main:3"},
			{record.SearchOptions{Text: "ntwo"}, ""},
			{record.SearchOptions{Text: "path"}, "result path main:4"},
			{record.SearchOptions{Text: "os.path"}, "result os.path main:4"},
			{record.SearchOptions{Text: "weather"}, "thinking weather main:3"},
			{record.SearchOptions{Text: "kase"}, "title Käse"},
			{record.SearchOptions{Text: "KÄSE"}, "title Käse"},
			{record.SearchOptions{Text: "pirate"}, "prompt pirate main:0 f:0"},
			{record.SearchOptions{Text: "sunny", Role: pool.ToolRole}, "result sunny main:4"},
			{record.SearchOptions{Text: "sunny", Role: pool.User}, ""},
			{record.SearchOptions{Text: "hmm", Model: "GPT-4o"}, "thinking hmm main:3"},
			{record.SearchOptions{Text: "hmm", Tool: "weather"}, "thinking hmm main:3"},
			{record.SearchOptions{Text: "hmm", Tool: "other"}, ""},
			{record.SearchOptions{Text: "hmm", Until: 1}, ""},
			{record.SearchOptions{Regexp: `b[a-z]+n f`}, "text brown f main:1 f:1"},
			{record.SearchOptions{Text: "fox", Best: true}, "text fox main:1 f:1"},
		} {
			if i == 12 {
				if err := s.Maintenance().Index(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
			}
			for h, err := range s.Search(t.Context(), tt.o) {
				if err != nil {
					t.Fatal(err)
				}
				got := h.Field + " " + h.Snippet[h.Match.From:h.Match.To]
				for _, b := range h.Branches {
					got += fmt.Sprintf(" %s:%d", b.Name, b.Position)
				}
				if !sameWords(got, tt.want) {
					t.Errorf("%+v gave %q, want %q", tt.o, got, tt.want)
				}
				tt.want = ""
			}
			if tt.want != "" {
				t.Errorf("%+v found nothing, want %q", tt.o, tt.want)
			}
		}
		for _, o := range []record.SearchOptions{{}, {Text: " . - "}, {Regexp: "("}} {
			for _, err := range s.Search(t.Context(), o) {
				if !errors.Is(err, ErrInvalid) {
					t.Errorf("%+v gave %v, want ErrInvalid", o, err)
				}
			}
		}
	})
}

func sameWords(a, b string) bool {
	as, bs := strings.Fields(a), strings.Fields(b)
	slices.Sort(as)
	slices.Sort(bs)
	return slices.Equal(as, bs)
}

// searched is a store under random changes.
type searched struct {
	t     *testing.T
	store *Store
	rnd   *rand.Rand
	ids   []ID
	dir   string
}

func (r *searched) word() string { return fmt.Sprintf("w%d", int(r.rnd.ExpFloat64()*8)) }

func (r *searched) text() string {
	var b strings.Builder
	for range 1 + r.rnd.IntN(12) {
		b.WriteString(r.word() + " ")
	}
	return b.String()
}

func (r *searched) context() *ChatContext {
	return &ChatContext{ID: r.ids[r.rnd.IntN(len(r.ids))], store: r.store}
}

// step makes one change. What cannot be done there fails, and nothing else.
func (r *searched) step() error {
	ctx, c := r.t.Context(), r.context()
	b := c.Begin("")
	switch r.rnd.IntN(16) {
	case 0:
		made, err := r.store.New(ctx, record.NewContext{Title: r.text(), System: r.text()})
		if err == nil {
			r.ids = append(r.ids, made.ID)
		}
		return err
	case 1:
		b.Fork(fmt.Sprintf("fork %d", r.rnd.IntN(1000)), ForkOptions{At: record.Ref(fmt.Sprintf("@%d", 1+r.rnd.IntN(4)))})
	case 2:
		b.Rewind(record.Ref(fmt.Sprintf("@-%d", r.rnd.IntN(4))))
	case 3:
		_, err := r.store.Undo(ctx, c.ID.String(), "", "")
		return err
	case 4:
		b.SetTitle(strings.TrimSpace(r.text()))
	case 5:
		text := r.text()
		b.SetSystem(text)
	case 6:
		_, err := r.store.Maintenance().PurgeMessages(ctx, c.ID.String(), "", []record.Ref{record.Ref(fmt.Sprintf("@%d", 1+r.rnd.IntN(4)))}, PurgeOptions{DryRun: r.rnd.IntN(3) == 0})
		return err
	case 7:
		_, err := r.store.Maintenance().GC(ctx, record.GCOptions{OlderThan: time.Duration(r.rnd.IntN(2)), KeepOperations: r.rnd.IntN(3)})
		return err
	case 8:
		_, err := r.store.Trash(ctx, c.ID.String())
		if r.rnd.IntN(2) == 0 {
			_, err = r.store.Restore(ctx, c.ID.String())
		}
		return err
	case 9:
		_, err := find.IndexSome(ctx, r.store.at(), 1, 1+r.rnd.IntN(20), time.Minute)
		return err
	case 10:
		b.Drop(record.Ref(fmt.Sprintf("@%d", 1+r.rnd.IntN(5))))
	case 11:
		return r.merge(ctx)
	case 12:
		b.Edit(record.Ref(fmt.Sprintf("@%d", 1+r.rnd.IntN(5))), r.text(), record.EditOptions{})
	case 13:
		if r.rnd.IntN(20) == 0 {
			return find.Reindex(ctx, base.Of(r.store), nil)
		}
		return r.imports(ctx)
	default:
		b.Append(says(r.text(), ">"+r.text())...)
	}
	_, err := b.Commit(ctx)
	return err
}

// merge does a small step of merging.
func (r *searched) merge(ctx context.Context) error {
	return r.store.at().DB.Update(ctx, func(tx kv.RwTx) error {
		st, err := index.Load(tx, words.Version)
		if st == nil || err != nil {
			return err
		}
		if err := index.Step(tx, st, 200); err != nil {
			return err
		}
		return index.Save(tx, st)
	})
}

func (r *searched) imports(ctx context.Context) error {
	in := &record.Incoming{Format: "test", Conversation: fmt.Sprint(r.rnd.IntN(3)), Title: r.text(), Branches: []record.IncomingBranch{{Name: "main"}}}
	for i := range 3 {
		m := says(r.text())[0]
		m.ID = pool.NewID()
		in.Nodes = append(in.Nodes, record.Node{ID: fmt.Sprint(i), Parent: i, Message: m})
		in.Branches[0].Leaf = i + 1
	}
	done, err := r.store.Import(ctx, []*record.Incoming{in})
	for _, d := range done {
		if d.Created {
			r.ids = append(r.ids, d.Context)
		}
	}
	return err
}

// TestSearchFindsWhatIsThere compares searches with a plain reading of everything, while a store changes in all ways.
func TestSearchFindsWhatIsThere(t *testing.T) {
	for seed := range testkit.Seeds(t, testkit.Fewer(4)) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			dir := t.TempDir()
			r := &searched{t: t, store: open(t, filepath.Join(dir, "chats.db")), rnd: rand.New(rand.NewPCG(seed, 1)), dir: dir}
			r.ids = []ID{newContext(t, r.store, "w1").ID}
			for i := range 400 {
				if err := r.step(); err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrEmpty) {
					t.Fatalf("step %d: %v", i, err)
				}
				if i%5 == 0 {
					r.compare(i)
				}
			}
			checkStore(t, r.store)
		})
	}
}

func (r *searched) compare(step int) {
	r.t.Helper()
	for _, text := range []string{r.word(), r.word() + " " + r.word(), `"` + r.word() + " " + r.word() + `"`, "w1*", `"w0 w*"`} {
		o := record.SearchOptions{Text: text, Trash: r.rnd.IntN(2) == 0, Unheld: r.rnd.IntN(2) == 0}
		if r.rnd.IntN(3) == 0 {
			o.Role = pool.User
		}
		if r.rnd.IntN(3) == 0 {
			o.Context = r.context().ID.String()
			if _, err := r.store.Context(r.t.Context(), o.Context); err != nil {
				o.Context = ""
			}
		}
		want := plainly(r.t, r.store, o)
		got := found(r.t, r.store, o)
		o.Best = true
		best := found(r.t, r.store, o)
		for name, got := range map[string][]string{"newest": got, "best": best} {
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				r.t.Fatalf("step %d: %+v, %s first\n got %s\nwant %s", step, o, name, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
		}
		r.compareFirst(step, o)
	}
}

// compareFirst holds a search that names one branch of each hit to one that names all.
func (r *searched) compareFirst(step int, o record.SearchOptions) {
	r.t.Helper()
	places := func(first bool) map[string][]record.HitBranch {
		o.First = first
		all := map[string][]record.HitBranch{}
		for h, err := range r.store.Search(r.t.Context(), o) {
			if err != nil {
				r.t.Fatal(err)
			}
			key := fmt.Sprint(h.What, h.Context, h.Snippet)
			if h.Message != nil {
				key += h.Message.ID.String()
			}
			all[key] = h.Branches
		}
		return all
	}
	all, first := places(false), places(true)
	if len(all) != len(first) {
		r.t.Fatalf("step %d: %+v gives %d hits, and %d with one branch each", step, o, len(all), len(first))
	}
	for key, one := range first {
		if len(one) != min(len(all[key]), 1) || len(one) == 1 && !slices.Contains(all[key], one[0]) {
			r.t.Fatalf("step %d: %+v: %s is on %v, not on one of %v", step, o, key, one, all[key])
		}
	}
}

// TestIndexFollows: what is stored comes into the index without anybody asking for it, beside those who store, and all of it is found at any time.
func TestIndexFollows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "s.db")
	s, err := Open(file, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.New(t.Context(), record.NewContext{Title: "T"})
	if err != nil {
		t.Fatal(err)
	}
	const goroutines, batches, each = 4, 10, 300
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := range batches {
				texts := make([]string, each)
				for j := range texts {
					texts[j] = fmt.Sprintf("word%d from g%d", i*each+j, g)
				}
				if _, err := c.Append(t.Context(), "", says(texts...)...); err != nil {
					t.Error(err)
				}
				last := fmt.Sprintf("word%d g%d", i*each+each-1, g)
				n := 0
				for _, err := range s.Search(t.Context(), record.SearchOptions{Text: last}) {
					if n++; err != nil {
						t.Error(err)
					}
				}
				if n != 1 {
					t.Errorf("%q is found %d times", last, n)
				}
			}
		})
	}
	group.Wait()
	if err := s.at().Close(); err != nil { // it waits for the step under way
		t.Fatal(err)
	}
	s = open(t, file)
	checkStore(t, s)
	if st := indexOf(t, s); st.Next < find.EnoughWaiting {
		t.Errorf("in the index: %+v", st)
	}
}

// TestSearchFindsWhatIsKept looks for the text of an attachment, a record that was kept as it came, and what was kept beside a message.
func TestSearchFindsWhatIsKept(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		m := says("see the file")[0]
		m.Content = append(m.Content, pool.Part{Type: pool.DocumentPart, MediaType: "text/plain", Name: "a.txt", Data: []byte("heron in the reeds")},
			pool.Part{Type: pool.DocumentPart, MediaType: "application/pdf", Name: "b.pdf", Data: []byte("bittern")})
		m.Source = &pool.Source{Raw: []byte(`{"odd":"avocet"}`)}
		m.Meta.ProviderData = map[string]json.RawMessage{"test": json.RawMessage(`{"beside":"curlew"}`)}
		in := &record.Incoming{Format: "test", Conversation: "c", Title: "t", Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}}, Nodes: []record.Node{{ID: "n", Message: m}}}
		m.Source.Format = "test"
		if _, err := s.Import(t.Context(), []*record.Incoming{in}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for word, n := range map[string]int{"heron": 1, "avocet": 1, "curlew": 1, "bittern": 0} {
				for _, list := range [][]string{found(t, s, record.SearchOptions{Text: word}), plainly(t, s, record.SearchOptions{Text: word})} {
					if len(list) != n {
						t.Errorf("%s: %q", word, list)
					}
				}
			}
			if err := s.Maintenance().Index(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
		}
		checkStore(t, s)
	})
}

// TestSearchReadsFewParts: in whatever portions a store was indexed, the index has at rest a number of blocks that grows with the digits of its size, and a
// search reads up to three records of each.
func TestSearchReadsFewParts(t *testing.T) {
	for name, portion := range map[string]func(i int) int{
		"a large one, then seven": func(i int) int { return 1 + 199*(1-min(i%8, 1)) },
		"alike":                   func(int) int { return 20 },
		"doubling":                func(i int) int { return 1 << (i % 9) },
	} {
		db := &kvtest.Reads{DB: memkv.New()}
		s, err := OpenDB(db, Options{Create: true, Program: "test"})
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.New(t.Context(), record.NewContext{Title: "Birds", Messages: says("a heron", ">stands", "in", ">the reeds")})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			if _, err := c.Append(t.Context(), "main", slices.Repeat(says("on", ">and on"), portion(i)/2+1)...); err != nil {
				t.Fatal(err)
			}
			if _, err := find.IndexSome(t.Context(), s.at(), 1, 1000, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Maintenance().Index(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		st := indexOf(t, s)
		if most := 3 + bits.Len64(st.Next); len(st.Blocks) > most || st.Merge != nil {
			t.Errorf("%s: %d blocks of %d documents; merging: %v", name, len(st.Blocks), st.Next, st.Merge)
		}
		db.Take()
		if list := found(t, s, record.SearchOptions{Text: "her*", First: true}); len(list) != 1 {
			t.Errorf("%s: %q", name, list)
		}
		if n := db.Take(); n > int64(8+3*len(st.Blocks)) {
			t.Errorf("%s: a search reads %d records, of %d blocks", name, n, len(st.Blocks))
		}
		checkStore(t, s)
	}
}

// indexOf reads the state of a store's index.
func indexOf(t *testing.T, s *Store) (st *index.State) {
	t.Helper()
	err := s.at().DB.View(t.Context(), func(tx kv.Tx) (err error) {
		st, err = index.Load(tx, words.Version)
		return err
	})
	if err != nil || st == nil {
		t.Fatalf("the index: %+v, %v", st, err)
	}
	return st
}

// TestSearchAny: one word of a question is enough, the passage with the most and rarest words comes first, and it is the same with and without an index.
func TestSearchAny(t *testing.T) {
	s := open(t, "")
	c := newContext(t, s)
	long := strings.Repeat("the port is one of many and the text goes on ", 40)
	for _, text := range []string{"the staging database listens on port 6543, behind the pool", long + "staging " + long + " database", "the harbour of Lisbon", "数据库连接失败，因为密码错误", "die Datenbanken antworten langsam"} {
		if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, indexed := range []bool{false, true} {
		if indexed {
			if err := find.Reindex(t.Context(), s.at(), nil); err != nil {
				t.Fatal(err)
			}
		}
		for question, want := range map[string]string{
			"Which port did we choose for the staging database?": "staging database listens on port 6543",
			"Warum war die Datenbank so langsam?":                "die Datenbanken antworten langsam",
			"为什么数据库连接不上？":                                        "数据库连接失败",
			"what of Lisbon's harbours":                          "the harbour of Lisbon",
		} {
			got := found(t, s, record.SearchOptions{Text: question, Any: true})
			if len(got) == 0 || !strings.Contains(got[0], want) {
				t.Errorf("indexed %v: %s: %q", indexed, question, got)
			}
		}
		if got := found(t, s, record.SearchOptions{Text: "zebra quagga", Any: true}); len(got) != 0 {
			t.Errorf("%q", got)
		}
		if got := found(t, s, record.SearchOptions{Text: "port staging", Any: true, Limit: 1}); len(got) != 1 {
			t.Errorf("%q", got)
		}
	}
	for _, err := range s.Search(t.Context(), record.SearchOptions{Text: "?!", Any: true}) {
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("%v", err)
		}
	}
}

// TestSearchFolder: a conversation was held in the folder of its tools, else in the one that its source names, and a sub-context where its parent was.
func TestSearchFolder(t *testing.T) {
	s := open(t, "")
	data := func(title, name, json string) *ChatContext {
		c := newContext(t, s)
		b := c.Begin("")
		b.SetTitle(title)
		b.SetContextData(name, []byte(json))
		b.Append(pool.NewText(pool.User, "okapi"))
		if _, err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		return c
	}
	claude := data("claude", "claude-code", `{"gitBranch":"main","cwd":"/srv/site/"}`)
	data("codex", "codex", `{"records":[1,{"payload":{"cwd":"/srv/site"}}]}`)
	data("pi", "pi-mono", `{"about":{"cwd":"/srv/site"}}`)
	data("gemini", "gemini", `{"projectHash":"`+fmt.Sprintf("%x", sha256.Sum256([]byte("/srv/site")))+`"}`)
	data("windows", "goose", `{"working_dir":"C:\\Work\\site"}`)
	data("below", "claude-code", `{"cwd":"/srv/site/below"}`)
	data("none", "claude-code", `{"cwd":7,"about":[],"records":{}}`)
	tools := data("tools", "claude-code", `{"cwd":"/elsewhere"}`)
	b := tools.Begin("")
	b.SetContextSettings(map[string]json.RawMessage{"calls.folder": json.RawMessage(`"/srv/site"`)})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.New(t.Context(), record.NewContext{Title: "child", Parent: claude.ID, Messages: []*Message{pool.NewText(pool.User, "okapi")}}); err != nil {
		t.Fatal(err)
	}
	for folders, want := range map[string]string{"/srv/site": "child claude codex gemini pi tools", "/nowhere /srv/site": "child claude codex gemini pi tools", `C:/Work/site/`: "windows", "/srv/site/below": "below", "/srv": "", "": "below child claude codex gemini none pi tools windows", "/elsewhere": ""} {
		for _, any := range []bool{false, true} {
			var got []string
			for h, err := range s.Search(t.Context(), record.SearchOptions{Text: "okapi", Any: any, Folders: strings.Fields(folders)}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, h.Title)
			}
			if slices.Sort(got); strings.Join(got, " ") != want {
				t.Errorf("%q, any %v: %q", folders, any, got)
			}
		}
		var listed []string
		for info, err := range s.Contexts(t.Context(), record.ListOptions{Folders: strings.Fields(folders)}) {
			if err != nil {
				t.Fatal(err)
			}
			listed = append(listed, info.Title)
		}
		if slices.Sort(listed); strings.Join(listed, " ") != want {
			t.Errorf("ls of %q: %q", folders, listed)
		}
	}
}
