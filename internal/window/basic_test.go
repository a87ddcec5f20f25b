package window

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// turns returns a draft of n turns with a tool call each.
func turns(n int) *writer {
	w := newWriter(8)
	for i := range n {
		w.user(fmt.Sprintf("question %d", i+1))
		w.use(&pool.Result{Text: fmt.Sprintf("result %d", i+1)})
		w.assistant(fmt.Sprintf("answer %d", i+1))
	}
	return w
}

func apply(t *testing.T, d *chatctx.Draft, list ...enhancer.Enhancer) {
	t.Helper()
	for range 2 { // the second time each of them does nothing
		for _, e := range list {
			if err := e.Enhance(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func positions(d *chatctx.Draft) string {
	var b strings.Builder
	for _, m := range d.Messages {
		fmt.Fprintf(&b, "%d ", m.Position)
	}
	return strings.TrimSpace(b.String())
}

func TestInjectToolsSystem(t *testing.T) {
	d := turns(2).d
	apply(t, d, Inject("notes.txt", "remember this"), AddTools(record.Tool{Name: "a"}, record.Tool{Name: "a"}, record.Tool{Name: "b"}), SetSystem("be kind"))
	if got := positions(d); got != "1 2 3 4 0 5 6 7 8" {
		t.Errorf("injected at %s", got)
	}
	if m := d.Messages[4]; m.Kind != "injected" || m.Role != pool.User || !strings.Contains(m.Text(), "remember this") || !m.Pinned {
		t.Errorf("%+v", m)
	}
	if len(d.Tools) != 2 || d.System != "be kind" || len(d.Notes) != 4 {
		t.Errorf("%d tools, %q, notes %+v", len(d.Tools), d.System, d.Notes)
	}
	empty := &chatctx.Draft{}
	apply(t, empty, Inject("x", "y"))
	if len(empty.Messages) != 1 {
		t.Errorf("into an empty draft: %d messages", len(empty.Messages))
	}
}

func TestExcludeTakesBothHalves(t *testing.T) {
	for _, at := range []int{1, 2} { // the call, the result
		d := turns(2).d
		apply(t, d, Exclude(d.Messages[at].ID))
		if got := positions(d); got != "1 4 5 6 7 8" {
			t.Errorf("excluding %d leaves %s", at+1, got)
		}
	}
	d := turns(1).d
	d.Messages[0].State = enhancer.Excluded // as the store marks it
	apply(t, d, Exclude())
	if got := positions(d); got != "2 3 4" {
		t.Errorf("the mark leaves %s", got)
	}
}

func TestTrimTo(t *testing.T) {
	for n, want := range map[int]string{100: "1 2 3 4 5 6 7 8", 8: "1 2 3 4 5 6 7 8", 7: "5 6 7 8", 4: "5 6 7 8", 2: "6 7 8", 1: "8"} {
		d := turns(2).d
		apply(t, d, TrimTo(n))
		if got := positions(d); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	d := turns(3).d
	apply(t, d, Pin(d.Messages[2].ID), TrimTo(3)) // a result, whose call stays too
	if got := positions(d); got != "2 3 10 11 12" {
		t.Errorf("with a pin: %s", got)
	}
}

func TestPipelineRecordsAndStopsEarly(t *testing.T) {
	d := turns(30).d
	seen := 0
	own := enhancer.Func("own", func(_ context.Context, _ *chatctx.Draft) error { seen++; return nil })
	o := options(1200)
	w := o.Window(nil)
	p := &Pipeline{Window: w, Enhancers: []enhancer.Enhancer{own, enhancer.IfOver(TrimTo(40)), enhancer.IfOver(own), enhancer.IfOver(Trim(w, o))}}
	r, err := p.Run(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range r.Steps {
		names = append(names, fmt.Sprintf("%s %v %v", s.Name, s.After < s.Before, s.Skipped))
	}
	if got, want := strings.Join(names, ", "), "own false false, trim to true false, own false true, trim false true"; got != want || seen != 1 {
		t.Errorf("%s, want %s; own ran %d times", got, want, seen)
	}
	if len(r.Messages) != 120 || r.Messages[0].State != enhancer.Trimmed || r.Messages[119].State != enhancer.In || len(r.Steps[1].Notes) != 80 || r.After > r.Limit {
		t.Errorf("%d messages, first %s; %d notes; %d of %d", len(r.Messages), r.Messages[0].State, len(r.Steps[1].Notes), r.After, r.Limit)
	}
	broken := errors.New("broken")
	p.Enhancers = []enhancer.Enhancer{enhancer.Func("bad", func(context.Context, *chatctx.Draft) error { return broken })}
	if _, err := p.Run(t.Context(), d); !errors.Is(err, broken) || !strings.Contains(err.Error(), "bad: ") {
		t.Errorf("%v", err)
	}
}

func TestWithoutABudgetNothingIsChanged(t *testing.T) {
	w := newWriter(3).random(40)
	for _, m := range w.d.Messages {
		if m.State != enhancer.Pinned {
			m.State = enhancer.In
		}
	}
	before := sent(w.d)
	o := options(0)
	o.CacheTTL, o.Cache, o.PruneThreshold = "5m", false, 0
	if _, err := Standard(o, nil, nil).Run(t.Context(), w.d); err != nil {
		t.Fatal(err)
	}
	if after := sent(w.d); after != before {
		t.Errorf("%s", diff(after, before))
	}
}

func TestBudgetErrorSaysWhatIsLeft(t *testing.T) {
	w := turns(3)
	w.d.System = strings.Repeat("a long system prompt ", 100)
	w.d.Messages[0].Pinned = true
	_, err := Standard(options(200), nil, nil).Run(t.Context(), w.d)
	var over *enhancer.BudgetError
	if !errors.As(err, &over) {
		t.Fatal(err)
	}
	if over.System < 400 || over.Pinned == 0 || over.Latest == 0 || over.Size <= over.Limit || over.Limit != 180 {
		t.Errorf("%+v", over)
	}
}

func TestBlocks(t *testing.T) {
	w := newWriter(1)
	w.assistant("hello")                                                                 // 0
	w.user("one")                                                                        // 1
	w.use(&pool.Result{Text: "r"})                                                       // 2 3
	w.assistant("done")                                                                  // 4
	w.user("two")                                                                        // 5
	w.user("three")                                                                      // 6
	w.add(&pool.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "x", Tool: "t"}}}) // 7
	var got []string
	for _, b := range Blocks(w.d.Messages) {
		got = append(got, fmt.Sprintf("%d-%d", b.From, b.To))
	}
	want := "0-1, 1-5, 5-6, 6-8"
	if strings.Join(got, ", ") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
	w = newWriter(1)
	w.add(pool.NewText(pool.System, "s"))
	w.add(&pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "gone"}})
	got = nil
	for _, b := range Blocks(w.d.Messages) {
		got = append(got, fmt.Sprintf("%d-%d", b.From, b.To))
	}
	if strings.Join(got, " ") != "0-1 1-2" {
		t.Errorf("%v", got)
	}
}

func TestPrunePoliciesAndTools(t *testing.T) {
	build := func() *chatctx.Draft {
		w := newWriter(6)
		for i, tool := range []string{"a", "b", "c", "a"} {
			w.user("q")
			w.use(&pool.Result{Text: w.words(200)})
			w.d.Messages[len(w.d.Messages)-2].Calls[0].Tool = tool
			if i < 3 {
				w.assistant("ok")
			}
		}
		w.d.Tools = []record.Tool{{Name: "a"}, {Name: "b", Prune: KeepResult}, {Name: "c", Prune: SummariseResult}}
		return w.d
	}
	for _, c := range []struct {
		policy string
		budget int
		want   string
	}{
		{PruneAuto, 100_000, "3 11"}, // the model has not read the last result yet
		{KeepAll, 100_000, ""},
		{KeepAll, 900, "3 7 11"},
		{KeepNone, 100_000, "3 7 11"},
	} {
		d := build()
		o := options(c.budget)
		o.PrunePolicy, o.PruneThreshold, o.PruneKeep = c.policy, 100, 0
		if err := Prune(o.Window(nil), o).Enhance(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		var pruned []string
		for _, m := range d.Messages {
			if m.State == enhancer.Pruned {
				pruned = append(pruned, fmt.Sprint(m.Position))
				if !strings.HasPrefix(m.Result.Text, "[PRUNED: ") || !strings.Contains(m.Result.Text, m.Result.RequestID) || strings.Contains(m.Result.Text, "\n") {
					t.Errorf("the line is %q", m.Result.Text)
				}
			}
		}
		if got := strings.Join(pruned, " "); got != c.want {
			t.Errorf("%s, budget %d: %s, want %s", c.policy, c.budget, got, c.want)
		}
	}
}

func TestDigestHoldsWhatMatters(t *testing.T) {
	w := newWriter(2)
	w.user("Deploy order ORD-4711 to https://deploy.example.com/api?x=1. It must not touch the billing service.")
	w.d.Messages = append(w.d.Messages, &chatctx.DraftMessage{Entry: pool.Entry{Position: 2, Message: &pool.Message{ID: w.id(), Role: pool.Assistant,
		Calls: []pool.Call{{ID: "c", Tool: "deploy", Arguments: json.RawMessage(`{"id":7}`)}}}}})
	w.add(&pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c", Text: "HTTP 503\nError: upstream is down\nrequest 3f2504e0-4f89-41d3-9a0c-0305e82c3301"}})
	w.assistant("We decided to retry at night. The migration is done.")
	c := options(0).Window(nil).Counter
	f := gather(w.d.Messages, nil, func(m *chatctx.DraftMessage) *pool.Message { return m.Message })
	text := f.within(c, 400)
	for _, want := range []string{HistoryMark, "4 earlier messages", "asked: Deploy order ORD-4711", "ORD-4711", "https://deploy.example.com/api?x=1", "must not touch the billing",
		"http 503", "upstream is down", "3f2504e0-4f89-41d3-9a0c-0305e82c3301", "decided to retry at night", "deploy({\"id\":7})", "migration is done"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the digest:\n%s", want, text)
		}
	}
	if again := parseDigest(text).String(); again != text {
		t.Errorf("read and written again it is another:\n%s\n%s", text, again)
	}
	for limit := 400; limit > 10; limit -= 13 {
		g := parseDigest(text)
		if n := c.Text(g.within(c, limit)); n > limit && n > 20 {
			t.Errorf("%d tokens, the limit is %d", n, limit)
		}
	}
}

func TestSqueezedDigestIsUsedAgain(t *testing.T) {
	w := newWriter(4)
	for range 12 {
		w.user(w.words(40))
		w.assistant(w.words(200))
	}
	o := options(1000)
	o.Squeeze, o.KeepBlocks, o.DigestTokens = true, 4, 900
	raw := fresh(w.d)
	model := &shorter{}
	if _, err := Standard(o, nil, model).Run(t.Context(), w.d); err != nil {
		t.Fatal(err)
	}
	if model.calls == 0 {
		t.Fatal("nothing was over after the digests")
	}
	calls := model.calls
	raw.Session = w.d.Session
	if _, err := Standard(o, nil, model).Run(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	if model.calls != calls || sent(raw) != sent(w.d) {
		t.Errorf("the model was asked %d times, then %d", calls, model.calls)
	}
}

// TestADigestOfOtherMessagesIsNotUsed: a digest replaces only the messages that it was made from: if one of them is excluded afterwards, or another message is
// in its place, the rest is sent unchanged.
func TestADigestOfOtherMessagesIsNotUsed(t *testing.T) {
	w := newWriter(4)
	for range 12 {
		w.user(w.words(40))
		w.assistant(w.words(200))
	}
	o := options(1700)
	o.KeepBlocks = 4
	raw := fresh(w.d)
	if _, err := Standard(o, nil, nil).Run(t.Context(), w.d); err != nil {
		t.Fatal(err)
	}
	made := w.d.Session.Digests
	if len(made) == 0 {
		t.Fatal("no digest was made")
	}
	o.Budget = 1_000_000 // enough for all
	send := func(change func(d *chatctx.Draft)) (digests, sent int) {
		d := fresh(raw)
		d.Session.Digests = slices.Clone(made)
		change(d)
		if _, err := Standard(o, nil, nil).Run(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		for _, m := range d.Messages {
			if m.Kind == "digest" {
				digests++
			}
		}
		return digests, len(d.Messages)
	}
	all := len(raw.Messages)
	if digests, n := send(func(*chatctx.Draft) {}); digests != len(made) || n >= all {
		t.Fatalf("the same messages: %d digests of %d, %d messages", digests, len(made), n)
	}
	for name, change := range map[string]func(d *chatctx.Draft){
		"excluded": func(d *chatctx.Draft) { d.Messages[made[0].From].State = enhancer.Excluded },
		"replaced": func(d *chatctx.Draft) { d.Messages[made[0].From].Message.ID = pool.NewID() },
		"changed":  func(d *chatctx.Draft) { d.Session.Digests[0].Of[0] ^= 1 },
	} {
		digests, n := send(change)
		want := all
		if name == "excluded" {
			want--
		}
		for _, g := range made[1:] {
			want -= g.To - g.From
		}
		if digests != len(made)-1 || n != want {
			t.Errorf("%s: %d digests of %d, %d messages, want %d", name, digests, len(made), n, want)
		}
	}
}

func TestOptionsOf(t *testing.T) {
	env := map[string]string{"CHATCTX_PRUNE_KEEP": "123", "CHATCTX_COMPACT_AT": "60%", "CHATCTX_MODEL": "gpt-4o", "CHATCTX_BUDGET": "5"}
	o, err := OptionsOf(map[string]json.RawMessage{"budget": json.RawMessage("9000"), "headroom": json.RawMessage(`"5 %"`), "squeeze": json.RawMessage("true"),
		"keep_blocks": json.RawMessage("null"), "compact.max_messages": json.RawMessage(`"off"`), "resume.share": json.RawMessage("0.5")}, func(k string) string { return env[k] })
	if err != nil {
		t.Fatal(err)
	}
	if o.Budget != 9000 || o.Headroom != 0.05 || !o.Squeeze || o.KeepBlocks != 3 || o.PruneKeep != 123 || o.CompactAt != 0.6 || o.ResumeShare != 0.5 || o.Model != "gpt-4o" {
		t.Errorf("%+v", o)
	}
	if o, _ := OptionsOf(map[string]json.RawMessage{"model": json.RawMessage(`"claude-sonnet-4-5"`)}, nil); o.Budget != 136_000 {
		t.Errorf("the model's budget is %d", o.Budget)
	}
	if o, _ := OptionsOf(map[string]json.RawMessage{"model": json.RawMessage(`"mine"`)}, nil); o.Budget != 0 {
		t.Errorf("an unknown model's budget is %d", o.Budget)
	}
	for key, bad := range map[string]string{"budget": "-1", "headroom": `"lots"`, "prune.policy": `"some"`, "cache.ttl": `"2h"`, "squeeze": "3", "keep_blocks": "1.5", "prices": "7", "compact.at": "101"} {
		_, err := OptionsOf(map[string]json.RawMessage{key: json.RawMessage(bad)}, nil)
		if err == nil || !strings.Contains(err.Error(), strings.Split(key, ".")[0]) {
			t.Errorf("%s=%s: %v", key, bad, err)
		}
	}
}

func TestCachePlanAndShare(t *testing.T) {
	w := turns(20)
	w.d.Summary = made("summary", "before")
	o := options(100_000)
	o.PruneThreshold, o.PruneKeep = 50, 20
	c := o.Window(nil).Counter
	p := Standard(o, nil, nil)
	for _, m := range w.d.Messages {
		if m.Result != nil {
			m.Result.Text = w.words(60)
		}
	}
	raw := fresh(w.d)
	before := Chain(c, raw)
	if _, err := p.Run(t.Context(), w.d); err != nil {
		t.Fatal(err)
	}
	var at []int
	for _, m := range w.d.Messages {
		if m.Cache {
			at = append(at, m.Position)
		}
	}
	if len(at) != 2 || at[1] != 80 || !w.d.Summary.Cache || w.d.Messages[at[0]-1].State != enhancer.Pruned {
		t.Errorf("breakpoints after %v", at)
	}
	now := Chain(c, w.d)
	share := Share(before, now, nil)
	if share.BrokenBy != "prune" || share.Message != w.d.Messages[2].ID || share.Lost == 0 || share.Tokens >= share.Total {
		t.Errorf("%+v", share)
	}
	if same := Share(now, now, nil); same.BrokenBy != "" || same.Tokens != same.Total {
		t.Errorf("the same request: %+v", same)
	}
}

// TestPruneThreshold: results that reach the threshold stay, one token more is over it; results that the model has not read are not marked either.
func TestPruneThreshold(t *testing.T) {
	for _, c := range []struct{ more, prunedTo int }{{0, 0}, {-1, 3}} {
		w := newWriter(8)
		for range 2 {
			w.user("q")
			w.use(&pool.Result{Text: w.words(200)})
			if len(w.d.Messages) < 6 {
				w.assistant("ok")
			}
		}
		o := options(100_000)
		window := o.Window(nil)
		if err := window.Measure(t.Context(), w.d); err != nil {
			t.Fatal(err)
		}
		o.PruneKeep, o.PruneThreshold = 0, c.more
		for _, m := range w.d.Messages {
			if m.Result != nil {
				o.PruneThreshold += m.Tokens
			}
		}
		if err := Prune(window, o).Enhance(t.Context(), w.d); err != nil {
			t.Fatal(err)
		}
		if got := w.d.Session.PrunedTo; got != c.prunedTo {
			t.Errorf("threshold %+d: pruned to %d, want %d", c.more, got, c.prunedTo)
		}
	}
}
