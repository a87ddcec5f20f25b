package window

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// simulation is a conversation over many turns, with what a program stores between the requests.
type simulation struct {
	t       *testing.T
	o       Options
	all     []*chatctx.DraftMessage
	session branch.Session
	summary *chatctx.DraftMessage

	last                           []Link
	input, shared, requests, peaks int
	messages, whole                int // that stood in the requests themselves, in any form and unshortened
	broken                         map[string]int
	pruned                         map[pool.ID]bool // in the last request
	compactions                    int
	// Money: the cost of the requests with their answers, and of summaries, at a price; nil if no cost is needed.
	price              *cost.Price
	requested, summing cost.Money
}

// request makes the request that would be sent now, checks it, and counts the beginning that it shares with the last one.
func (s *simulation) request() {
	s.t.Helper()
	d := s.draft()
	p := Standard(s.o, kept, nil)
	r, err := p.Run(s.t.Context(), d)
	if err != nil {
		s.t.Fatal(err)
	}
	if r.After > r.Limit && r.Limit > 0 {
		s.t.Fatalf("%d tokens, may be %d", r.After, r.Limit)
	}
	now := Chain(p.Window.Counter, d)
	share := Share(s.last, now, nil)
	s.input += share.Total
	s.shared += share.Tokens
	s.requests++
	s.peaks = max(s.peaks, share.Total)
	for _, m := range r.Messages {
		if m.State == enhancer.In {
			s.whole++
		}
		if m.State == enhancer.In || m.State == enhancer.Pruned {
			s.messages++
		}
	}
	if share.BrokenBy != "" {
		s.broken[share.BrokenBy]++
	}
	if s.price != nil { // the beginning of the last request is read from the cache, the rest is written to it
		s.requested += s.price.Of(cost.Usage{CacheRead: int64(share.Tokens), CacheWrite: int64(share.Total - share.Tokens), Output: answerTokens})
	}
	s.flipFlop(d)
	s.last, s.session = now, d.Session
}

// answerTokens is the average size of an answer of the simulation, with its calls.
const answerTokens = 120

// Complete answers with a summary of the requested length, and adds its cost.
func (*simulation) Name() string { return "test" }

func (s *simulation) Complete(_ context.Context, p enhancer.Prompt) (*pool.Message, error) {
	c := tokens.NewCounter(s.o.Model, nil, nil)
	s.summing += s.price.Of(cost.Usage{Input: int64(c.Text(p.System) + c.Text(p.Text)), Output: int64(p.Limit)})
	return pool.NewText(pool.Assistant, strings.TrimSpace(strings.Repeat("so ", p.Limit))), nil
}

// flipFlop fails if a result that was one line in the last request is whole again.
func (s *simulation) flipFlop(d *chatctx.Draft) {
	s.t.Helper()
	pruned := map[pool.ID]bool{}
	for _, m := range d.Messages {
		if m.State == enhancer.Pruned {
			pruned[m.ID] = true
		} else if s.pruned[m.ID] {
			s.t.Fatalf("message %d was pruned in the last request and is not in this one", m.Position)
		}
	}
	s.pruned = pruned
}

func (s *simulation) draft() *chatctx.Draft {
	d := &chatctx.Draft{System: "You are an agent that works with tools. Be brief.", Session: s.session, Summary: s.summary}
	start := max(s.session.Start, 1)
	for _, m := range s.all[start-1:] {
		n := *m
		d.Messages = append(d.Messages, &n)
	}
	return d
}

// compact does the same as Compact, without a store.
func (s *simulation) compact() {
	d := s.draft()
	w := s.o.Window(kept)
	if err := w.Measure(s.t.Context(), d); err != nil {
		s.t.Fatal(err)
	}
	if !Due(w, s.o, d) {
		return
	}
	p, err := PlanCompaction(s.t.Context(), w, s.o, d)
	if err != nil {
		return
	}
	var r Request
	if s.price != nil {
		r.Completer, r.Model = s, s.o.Model
	}
	made, err := summarise(s.t.Context(), nil, w, s.o, d, p, r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.summary = &chatctx.DraftMessage{Entry: pool.Entry{Message: made.message()}}
	s.session = branch.Session{ID: pool.NewID(), Start: p.Start}
	setData(&s.session, compactedKey, p.last)
	s.pruned = nil
	s.compactions++
}

// simulate runs turns of a conversation: a user message, up to four uses of tools, an answer; one request for each answer of the model.
func simulate(t *testing.T, o Options, compacting bool, turns int, price *cost.Price) *simulation {
	s := &simulation{t: t, o: o, broken: map[string]int{}, price: price}
	w := newWriter(42)
	for range turns {
		w.user(w.words(10 + w.rng.Intn(60)))
		s.all = w.d.Messages
		s.request()
		for range w.rng.Intn(5) {
			w.use(&pool.Result{Text: w.words(20 + w.rng.Intn(500))})
			s.all = w.d.Messages
			s.request()
		}
		w.assistant(w.words(20 + w.rng.Intn(100)))
		s.all = w.d.Messages
		if compacting {
			s.compact()
		}
	}
	return s
}

func (s *simulation) share() float64 { return 100 * float64(s.shared) / float64(s.input) }

// TestCachedShareOverFiveHundredTurns: over 500 turns most of each request is the beginning of the previous one, and pruned results stay pruned. An ordinary
// run covers the first 100.
func TestCachedShareOverFiveHundredTurns(t *testing.T) {
	testkit.Sequential(t)
	turns := 100
	if testkit.Long() {
		turns = 500
	}
	base := options(40_000)
	off := base
	off.PruneThreshold = 1 << 30
	for _, c := range []struct {
		name       string
		o          Options
		compacting bool
		least      float64
	}{
		{"prune and compaction", base, true, 93},
		{"compaction alone", off, true, 93},
		{"all steps, no compaction", base, false, 88},
		{"steps without pruning, no compaction", off, false, 85},
	} {
		n := turns
		if !c.compacting {
			n = turns / 3 // the draft grows with each turn
		}
		s := simulate(t, c.o, c.compacting, n, nil)
		t.Logf("%-38s cached share %.1f %% of %d input tokens in %d requests; largest %d; %d compactions; broken by %v",
			c.name, s.share(), s.input, s.requests, s.peaks, s.compactions, s.broken)
		if s.share() < c.least {
			t.Errorf("%s: the cached share is %.1f %%, want %.0f", c.name, s.share(), c.least)
		}
	}
}

// TestMoneyOverFiveHundredTurns computes the cost of the same conversation, at the list prices of a model, with its own window, and with a cache that always
// holds the last request. docs/window.md has the table, which a run with the switch prints; an ordinary run covers the first 40 turns in a small window.
func TestMoneyOverFiveHundredTurns(t *testing.T) {
	testkit.Sequential(t)
	const model = "claude-sonnet-4-5"
	turns, budget := 40, 12_000
	if testkit.Long() {
		turns, budget = 500, tokens.ForModel(model).Budget()
	}
	var prices *cost.Prices
	price := prices.Of("anthropic", model, time.Time{})
	spent := map[string]cost.Money{}
	for _, c := range []struct {
		name              string
		pruning, compacts bool
	}{{"neither", false, false}, {"pruning alone", true, false}, {"compaction alone", false, true}, {"both", true, true}} {
		o := DefaultOptions()
		o.Model, o.Budget = model, budget
		if !c.pruning {
			o.StepsOff = []string{"prune"}
		}
		s := simulate(t, o, c.compacts, turns, price)
		spent[c.name] = s.requested + s.summing
		t.Logf("| %s | %.1f M | %.1f %% | %d | %s | %s | **%s** |", c.name, float64(s.input)/1e6, s.share(), s.compactions, s.requested.Short(), s.summing.Short(), spent[c.name].Short())
	}
	if spent["pruning alone"] >= spent["neither"] {
		t.Errorf("pruning alone costs %s, neither %s", spent["pruning alone"], spent["neither"])
	}
	if both := spent["both"]; testkit.Long() && (2*both >= spent["neither"] || both >= spent["compaction alone"]) {
		t.Errorf("pruning and compaction together cost %s: %v", both, spent)
	}
}
