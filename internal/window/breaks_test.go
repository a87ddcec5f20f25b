package window

import (
	"fmt"
	"slices"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// TestBreaksByBudget: how many requests change the beginning of the one before, in a conversation of
// 100 turns with tools and without compaction, and what the requests hold: breaks are not saved by
// sending little. docs/window.md has the figures. An ordinary run measures 60 turns in the smallest
// budget.
func TestBreaksByBudget(t *testing.T) {
	testkit.Sequential(t)
	type bar struct {
		breaks   int     // at most
		tokens   int     // of a request on average, at least
		messages float64 // that stand in a request themselves, on average, at least
	}
	turns, all := 60, map[int]bar{2500: {29, 1500, 10.4}}
	if testkit.Long() {
		turns, all = 100, map[int]bar{2500: {47, 1480, 10.2}, 4000: {29, 2200, 15.2}, 8000: {42, 5040, 32.8}, 16000: {22, 9150, 107}, 40000: {11, 17100, 298}}
	}
	for budget, want := range all {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			s := simulate(t, options(budget), false, turns, nil)
			n := 0
			for _, k := range s.broken {
				n += k
			}
			tokens, messages := s.input/s.requests, float64(s.messages)/float64(s.requests)
			t.Logf("%d breaks in %d requests, by %v; %d tokens and %.1f messages in a request, %.1f of them whole; %.1f %% from the cache",
				n, s.requests, s.broken, tokens, messages, float64(s.whole)/float64(s.requests), s.share())
			if n > want.breaks || tokens < want.tokens || messages < want.messages {
				t.Errorf("want at most %d breaks, at least %d tokens and %.1f messages", want.breaks, want.tokens, want.messages)
			}
		})
	}
}

// outgrown returns a conversation of turns of some 200 tokens without outputs, which does not fit the options' limit.
func outgrown(turns int) *writer {
	w := newWriter(5)
	for range turns {
		w.user(w.words(40))
		w.assistant(w.words(100))
	}
	return w
}

// again sends the conversation again, as far as it came, with what the session keeps.
func (w *writer) again(t *testing.T, o Options) *chatctx.Draft {
	t.Helper()
	d := fresh(w.d)
	run(t, d, o)
	w.d.Session = d.Session
	return d
}

// TestOutputsThatComeAreShortened: once a conversation did not fit, a middling output of more bytes than half the limit's tokens is short from the first request
// on, and stays as it was sent. One of another size, and any in a conversation that always fitted, is whole.
func TestOutputsThatComeAreShortened(t *testing.T) {
	o := options(4000) // the limit is 3600
	for _, c := range []struct {
		turns, words int
		whole        bool
	}{{30, 500, false}, {30, 300, true}, {2, 500, true}} {
		w := outgrown(c.turns)
		w.again(t, o)
		w.use(&pool.Result{Text: w.words(c.words)})
		size := len(w.d.Messages[len(w.d.Messages)-1].Result.Text)
		var first string
		for n := range 3 {
			d := w.again(t, o)
			i := slices.IndexFunc(d.Messages, func(m *chatctx.DraftMessage) bool { return m.Result != nil })
			got := d.Messages[i].Result.Text
			if whole := len(got) == size; whole != c.whole || n > 0 && got != first {
				t.Errorf("%d turns, an output of %d bytes, request %d: %d bytes: %.60q", c.turns, size, n, len(got), got)
			}
			first = got
			w.assistant(w.words(20))
		}
	}
}

// TestKeptBlocksTakeAQuarter: keep_blocks, whatever it is, counts for a quarter of the limit, and the newest block stays in any case. As
// the boundary jumps by as many blocks, up to twice as many less one stay.
func TestKeptBlocksTakeAQuarter(t *testing.T) {
	for _, c := range []struct{ budget, keep, stay int }{{4000, 0, 1}, {4000, 1, 1}, {4000, 3, 4}, {4000, 1000, 6}, {1500, 3, 3}, {800, 3, 1}} {
		o := options(c.budget)
		o.KeepBlocks = c.keep
		w := outgrown(30)
		w.user("And now?")
		d := fresh(w.d)
		run(t, d, o)
		blocks := Blocks(slices.DeleteFunc(d.Messages, func(m *chatctx.DraftMessage) bool { return m.Kind == "digest" }))
		if len(blocks) != c.stay {
			t.Errorf("a budget of %d, keep_blocks %d: %d blocks stay, not %d", c.budget, c.keep, len(blocks), c.stay)
		}
	}
}
