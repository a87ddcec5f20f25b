package window

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// longBranch stores a conversation of n messages with tool outputs and returns its context.
func longBranch(tb testing.TB, n int) *chatctx.ChatContext {
	tb.Helper()
	s, err := chatctx.Open(filepath.Join(tb.TempDir(), "s.db"), chatctx.Options{Create: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	c, err := s.New(tb.Context(), record.NewContext{System: "You are an assistant."})
	if err != nil {
		tb.Fatal(err)
	}
	w := newWriter(11)
	for len(w.d.Messages) < n {
		w.user(w.words(60))
		w.use(&pool.Result{Text: w.words(150)})
		w.assistant(w.words(120))
	}
	var messages []*chatctx.Message
	for _, m := range w.d.Messages[:n] {
		m.Message.ID = pool.ID{}
		messages = append(messages, m.Message)
	}
	if _, err := c.Append(tb.Context(), "", messages...); err != nil {
		tb.Fatal(err)
	}
	return c
}

func load(tb testing.TB, c *chatctx.ChatContext) int {
	tb.Helper()
	snapshot, err := c.Snapshot(tb.Context(), "")
	if err != nil {
		tb.Fatal(err)
	}
	n := 0
	for _, err := range snapshot.Entries(tb.Context(), 1, 0) {
		if err != nil {
			tb.Fatal(err)
		}
		n++
	}
	return n
}

// BenchmarkTenThousandMessages has these goals: counting a second time, and a draft with all four steps, each take less than twice as long as loading the branch.
func BenchmarkTenThousandMessages(b *testing.B) {
	c := longBranch(b, 10_000)
	draft := func() *chatctx.Draft {
		d, err := c.Draft(b.Context(), "")
		if err != nil {
			b.Fatal(err)
		}
		return d
	}
	o := options(0)
	if err := tokens.NewCounter(o.Model, nil, c).Fill(b.Context(), draft()); err != nil {
		b.Fatal(err)
	}
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			load(b, c)
		}
	})
	b.Run("draft", func(b *testing.B) {
		for b.Loop() {
			draft()
		}
	})
	b.Run("draft and count again", func(b *testing.B) {
		for b.Loop() {
			counter := tokens.NewCounter(o.Model, nil, c)
			d := draft()
			if err := counter.Fill(b.Context(), d); err != nil {
				b.Fatal(err)
			}
			counter.Sizes(d)
		}
	})
	for _, budget := range []int{20_000, 200_000, 10_000_000} {
		b.Run("draft and four steps, budget "+map[int]string{20_000: "20k", 200_000: "200k", 10_000_000: "10M"}[budget], func(b *testing.B) {
			o := o
			o.Budget = budget
			for b.Loop() {
				_, err := Standard(o, c, nil).Run(b.Context(), draft())
				var over *enhancer.BudgetError
				if err != nil && !errors.As(err, &over) {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDigestOfTenThousandMessages has the figures of docs/window.md: usual messages, long ones first and last, of which the digest reads as much as of any, and
// those with an error in each line of the outputs.
func BenchmarkDigestOfTenThousandMessages(b *testing.B) {
	for _, c := range []struct {
		name   string
		words  int // of the 8 first and the 100 newest messages
		errors bool
	}{{"usual", 100, false}, {"long", 3000, false}, {"long, with errors", 3000, true}} {
		b.Run(c.name, func(b *testing.B) {
			w := newWriter(12)
			for n := 0; n < 10_000; {
				words := 100
				if n < scanFirst || n >= 10_000-scanLast {
					words = c.words
				}
				w.user(w.words(words / 2))
				output := w.words(words)
				if c.errors {
					output = strings.ReplaceAll(output, "\n", fmt.Sprintf("\nsrc/rows%d.go:41:7: error: undefined: ", n))
				}
				w.use(&pool.Result{Text: output})
				w.assistant(w.words(words))
				n = len(w.d.Messages)
			}
			for b.Loop() {
				Digest(w.d.Messages)
			}
		})
	}
}
