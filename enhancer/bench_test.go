package enhancer

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer/tokens"
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
	c, err := s.New(tb.Context(), chatctx.NewContext{System: "You are an assistant."})
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
				var over *BudgetError
				if err != nil && !errors.As(err, &over) {
					b.Fatal(err)
				}
			}
		})
	}
}
