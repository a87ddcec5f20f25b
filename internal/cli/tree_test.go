package cli

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// testRun is a run that prints into a buffer, 80 columns wide, without colour.
func testRun(ctx context.Context) (*run, *strings.Builder) {
	var b strings.Builder
	return &run{ctx: ctx, con: &console{out: newOutput(ctx, &b), err: &b, width: 80}, opened: &closers{}, executors: &executors{}}, &b
}

// builder makes a context in memory step by step.
type builder struct {
	t  testing.TB
	st *chatctx.Store
	c  *chatctx.ChatContext
}

func newBuilder(t testing.TB) *builder {
	t.Helper()
	st, err := chatctx.OpenMemory(chatctx.Options{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	c, err := st.New(t.Context(), record.NewContext{Title: "Tree"})
	if err != nil {
		t.Fatal(err)
	}
	return &builder{t, st, c}
}

func (b *builder) do(on string, fill func(*chatctx.Batch)) {
	b.t.Helper()
	batch := b.c.Begin(on)
	fill(batch)
	if _, err := batch.Commit(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// say adds n messages, users and assistants in turn.
func (b *builder) say(on string, n int, words string) {
	b.t.Helper()
	var msgs []*chatctx.Message
	for i := range n {
		role := pool.User
		if i%2 == 1 {
			role = pool.Assistant
		}
		msgs = append(msgs, pool.NewText(role, fmt.Sprintf("%s %d", words, i+1)))
	}
	b.do(on, func(x *chatctx.Batch) { x.Append(msgs...) })
}

func (b *builder) fork(from, name string, at int) {
	b.t.Helper()
	b.do(from, func(x *chatctx.Batch) {
		x.Fork(name, chatctx.ForkOptions{At: record.Ref("@" + strconv.Itoa(at)), Stay: true})
	})
}

// tree draws the context.
func (b *builder) tree() string {
	b.t.Helper()
	r, out := testRun(b.t.Context())
	r.st = b.st
	for _, o := range operation.All() {
		if o.Name == "tree" {
			if err := r.operate(o, looks()["tree"], &operation.TreeRows{Conversation: operation.Conversation{Context: b.c.ID.String()}}); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	if err := r.con.out.close(); err != nil {
		b.t.Fatal(err)
	}
	return out.String()
}

var idDigits = lazily(`\b[0-9a-f]{8}\b`)

// golden holds text against a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	text = idDigits().ReplaceAllString(text, "01234567")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != text {
		t.Errorf("%s:\n%s\nwant:\n%s", name, text, want)
	}
}

func TestTreeShapes(t *testing.T) {
	shapes := map[string]func(*builder){
		"empty":  func(*builder) {},
		"one":    func(b *builder) { b.say("main", 1, "hello") },
		"two":    func(b *builder) { b.say("main", 2, "hello") },
		"three":  func(b *builder) { b.say("main", 3, "hello") },
		"folded": func(b *builder) { b.say("main", 30, "hello") },
		"forks": func(b *builder) {
			b.say("main", 10, "main")
			b.fork("main", "a", 4)
			b.say("a", 3, "of a")
			b.fork("main", "b", 4)
			b.say("b", 1, "of b")
			b.fork("a", "a.2", 6)
			b.say("a.2", 5, "of a.2")
			b.do("main", func(x *chatctx.Batch) { x.Tag("good", "@4"); x.Switch("a") })
		},
		"same head": func(b *builder) {
			b.say("main", 4, "main")
			b.fork("main", "twin", 4)
			b.fork("main", "goes on", 4)
			b.say("goes on", 2, "further")
		},
		"two beginnings": func(b *builder) {
			b.say("main", 4, "main")
			b.do("main", func(x *chatctx.Batch) { x.Edit("@1", "another beginning", record.EditOptions{}) })
			b.say("main.2", 3, "other")
		},
		"wide": func(b *builder) {
			b.say("main", 2, strings.Repeat("漢字と🙂 ", 30))
			b.fork("main", "日本語の長い名前が続く続く続く続く続く続く続く", 1)
			b.say("日本語の長い名前が続く続く続く続く続く続く続く", 3, "한국어 텍스트")
		},
		"many names": func(b *builder) {
			b.say("main", 2, "main")
			for i := range 30 {
				b.fork("main", fmt.Sprintf("name %02d", i), 2) // a coarse clock leaves the order to the names
			}
		},
	}
	for name, build := range shapes {
		t.Run(name, func(t *testing.T) {
			b := newBuilder(t)
			build(b)
			text := b.tree()
			checkWidth(t, text)
			golden(t, "tree-"+strings.ReplaceAll(name, " ", "-")+".txt", text)
		})
	}
}

func checkWidth(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if w := uniseg.StringWidth(strings.TrimRight(line, "\n")); w > 80 {
			t.Errorf("%d columns: %s", w, line)
		}
	}
}

// TestTreeLaws: whatever the branches, every name stands in the drawing once, every message is drawn or counted once, the width is
// kept, and the nesting stays small.
func TestTreeLaws(t *testing.T) {
	for seed := range testkit.Seeds(t, 12) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		b := newBuilder(t)
		b.say("main", 1+rnd.IntN(20), "main")
		names := []string{"main"}
		branches := []int{3, 40, 300}[seed%3]
		chain := seed%2 == 0
		for i := 1; i < branches; i++ {
			from := names[rnd.IntN(len(names))]
			if chain {
				from = names[len(names)-1]
			}
			info, err := b.c.Branch(t.Context(), from)
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("<%d>", i)
			b.fork(from, name, max(1, info.Messages-rnd.IntN(8)))
			b.say(name, 1+rnd.IntN(6), "words")
			names = append(names, name)
		}
		text := b.tree()
		checkWidth(t, text)
		for _, name := range names {
			if n := strings.Count(text, "‹"+name+"›"); n != 1 {
				t.Errorf("seed %d: the name %s stands %d times", seed, name, n)
			}
		}
		if drawn, said := drawnMessages(text), saidMessages(text); drawn != said {
			t.Errorf("seed %d: %d messages are drawn or counted, there are %d", seed, drawn, said)
		}
		for line := range strings.Lines(text) {
			if strings.Count(line, "│") > 10 {
				t.Errorf("seed %d: nested too deep: %s", seed, line)
				break
			}
		}
		if lines := strings.Count(text, "\n"); lines > 12+4*branches {
			t.Errorf("seed %d: %d lines for %d branches", seed, lines, branches)
		}
	}
}

var (
	foldLine = lazily(`┆ … (\d+) message`)
	dotLine  = lazily(`[○●] [0-9a-f]{8}`)
	moreOf   = lazily(`› (?:active )?\+(\d+) `)
	headLine = lazily(`branch(?:es)?, (\d+) message`)
)

func drawnMessages(text string) int {
	n := len(dotLine().FindAllString(text, -1))
	for _, m := range foldLine().FindAllStringSubmatch(text, -1) {
		k, _ := strconv.Atoi(m[1])
		n += k
	}
	for _, m := range moreOf().FindAllStringSubmatch(text, -1) {
		k, _ := strconv.Atoi(m[1])
		n += k - 1
	}
	return n
}

func saidMessages(text string) int {
	m := headLine().FindStringSubmatch(text)
	n, _ := strconv.Atoi(m[1])
	return n
}

func BenchmarkTree300(b *testing.B) {
	x := newBuilder(b)
	x.say("main", 100, "main")
	for i := range 299 {
		name := fmt.Sprint("w", i)
		x.fork("main", name, 1+i%100)
		x.say(name, 3, "words")
	}
	for b.Loop() {
		x.tree()
	}
}
