package window

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// conversation stores n turns, each with a tool call, in a store in memory.
func conversation(t *testing.T, n int) *chatctx.ChatContext {
	t.Helper()
	s, err := chatctx.OpenMemory(chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	c, err := s.New(t.Context(), record.NewContext{System: "You help.", Settings: map[string]json.RawMessage{"model": json.RawMessage(`"gpt-4o"`)}})
	if err != nil {
		t.Fatal(err)
	}
	w := newWriter(5)
	for range n {
		w.user(w.words(30))
		w.use(&pool.Result{Text: w.words(100)})
		w.assistant(w.words(60))
	}
	for _, m := range w.d.Messages {
		m.Message.ID = pool.ID{}
		if _, err := c.Append(t.Context(), "", m.Message); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func draftFrom(t *testing.T, c *chatctx.ChatContext) *chatctx.Draft {
	t.Helper()
	d, err := c.Draft(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// request returns what would be sent, with the summary.
func request(t *testing.T, c *chatctx.ChatContext, o Options) string {
	t.Helper()
	d := draftFrom(t, c)
	if _, err := Standard(o, c, nil).Run(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if d.Summary != nil {
		return string(content(d.Summary.Message)) + sent(d)
	}
	return sent(d)
}

func history(t *testing.T, c *chatctx.ChatContext) []pool.ID {
	t.Helper()
	s, err := c.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.IDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// answers is a Completer that returns a text or an error, and keeps its prompt.
type answers struct {
	text   string
	err    error
	prompt string
	do     func()
}

func (*answers) Name() string { return "test" }

func (a *answers) Complete(_ context.Context, p enhancer.Prompt) (*pool.Message, error) {
	a.prompt = p.Text
	if a.do != nil {
		a.do()
	}
	if a.err != nil {
		return nil, a.err
	}
	return pool.NewText(pool.Assistant, a.text), nil
}

func TestCompactAndUndo(t *testing.T) {
	c := conversation(t, 30)
	o := options(0)
	o.CompactKeep = 1500
	before, ids := request(t, c, o), history(t, c)
	model := &answers{text: "The user asked for things; ORD-1 is open."}
	done, err := Compact(t.Context(), c, "", o, Request{Completer: model})
	if err != nil {
		t.Fatal(err)
	}
	d := draftFrom(t, c)
	if d.Summary == nil || SummaryText(d.Summary.Message) != model.text || done.By != "model" || done.Session != 2 {
		t.Fatalf("%+v", done)
	}
	if !startsTurn(d.Messages[0]) || d.Messages[0].Position != done.Start || done.Messages != done.Start-1 {
		t.Errorf("the tail begins with a %s at %d: %+v", d.Messages[0].Role, d.Messages[0].Position, done)
	}
	w := o.Window(c)
	if err := w.Measure(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	if size := w.Size(d); size != done.After || done.Kept > o.CompactKeep || done.After >= done.Before {
		t.Errorf("the request is %d tokens now: %+v", size, done)
	}
	if fmt.Sprint(history(t, c)) != fmt.Sprint(ids) {
		t.Errorf("the history changed")
	}
	if _, err := c.Store().Undo(t.Context(), c.ID.String(), "", ""); err != nil {
		t.Fatal(err)
	}
	if after := request(t, c, o); after != before {
		t.Errorf("undo did not bring the request back: %s", diff(after, before))
	}
}

// TestCompactionIsDueOverTheShare: exactly at the share of the budget no compaction is due, and one token over it one is; the limits of messages and turns work
// the same way.
func TestCompactionIsDueOverTheShare(t *testing.T) {
	d := turns(20).d
	o := options(0)
	w := o.Window(nil)
	if err := w.Measure(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	used := Used(w, d)
	o.CompactAt = 0.5
	for budget, want := range map[int]bool{2*used + 1: false, 2 * used: false, 2*used - 1: true} {
		o.Budget, w.Budget = budget, budget
		if got := Due(w, o, d); got != want {
			t.Errorf("%d tokens of %d, due over half: %v", used, budget, got)
		}
	}
	o.Budget, w.Budget = 0, 0
	for over, want := range map[int]bool{0: false, 1: true} {
		o.CompactMessages, o.CompactTurns = len(d.Messages)-over, 0
		if got := Due(w, o, d); got != want {
			t.Errorf("%d messages, at most %d: due %v", len(d.Messages), o.CompactMessages, got)
		}
		o.CompactMessages, o.CompactTurns = 0, 20-over
		if got := Due(w, o, d); got != want {
			t.Errorf("20 turns, at most %d: due %v", o.CompactTurns, got)
		}
	}
}

func TestSecondCompactionGivesTheFirstAlong(t *testing.T) {
	c := conversation(t, 20)
	o := options(0)
	o.CompactKeep = 1000
	if _, err := Compact(t.Context(), c, "", o, Request{Text: "first summary"}); err != nil {
		t.Fatal(err)
	}
	w := newWriter(9)
	for range 10 {
		if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, w.words(100)), pool.NewText(pool.Assistant, w.words(100))); err != nil {
			t.Fatal(err)
		}
	}
	model := &answers{text: "second summary"}
	if _, err := Compact(t.Context(), c, "", o, Request{Completer: model}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(model.prompt, "first summary") {
		t.Error("the model was not given the earlier summary")
	}
	d := draftFrom(t, c)
	if text := d.Summary.Text(); !strings.Contains(text, "first summary") || SummaryText(d.Summary.Message) != "second summary" {
		t.Errorf("the summary is %q", text)
	}
	list, err := ListSessions(t.Context(), c, "", o)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 3 || list[0].Summary != "first summary" || list[1].Summary != "second summary" || !list[2].Current || list[2].Before != "second summary" {
		t.Errorf("%+v", list)
	}
	if n := list[0].Messages + list[1].Messages + list[2].Messages; n != 100 {
		t.Errorf("the sessions hold %d messages of 100", n)
	}
}

func TestFailedOrEmptySummaryChangesNothing(t *testing.T) {
	c := conversation(t, 20)
	o := options(0)
	o.CompactKeep = 1000
	before := request(t, c, o)
	for _, a := range []*answers{{err: errors.New("refused")}, {text: ""}, {text: " \n"}} {
		if _, err := Compact(t.Context(), c, "", o, Request{Completer: a}); err == nil {
			t.Error("it was compacted")
		}
	}
	if info, _ := c.Branch(t.Context(), ""); len(info.Sessions) != 0 || request(t, c, o) != before {
		t.Error("something changed")
	}
	o.CompactKeep = 1_000_000
	if _, err := Compact(t.Context(), c, "", o, Request{Text: "x"}); !errors.Is(err, enhancer.ErrNothingToCompact) {
		t.Errorf("nothing to compact: %v", err)
	}
}

func TestCompactionRunsWhileTheConversationGoesOn(t *testing.T) {
	c := conversation(t, 20)
	o := options(0)
	o.CompactKeep = 1000
	model := &answers{text: "so far", do: func() {
		if _, err := c.Append(context.Background(), "", pool.NewText(pool.User, "meanwhile")); err != nil {
			t.Error(err)
		}
	}}
	if _, err := Compact(t.Context(), c, "", o, Request{Completer: model}); err != nil {
		t.Fatal(err)
	}
	if d := draftFrom(t, c); d.Messages[len(d.Messages)-1].Text() != "meanwhile" || SummaryText(d.Summary.Message) != "so far" {
		t.Error("the message that came meanwhile is not in the new session")
	}
	w := newWriter(2)
	for range 20 {
		if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, w.words(100))); err != nil {
			t.Fatal(err)
		}
	}
	model.do = func() {
		b := c.Begin("")
		b.Rewind("@5")
		if _, err := b.Commit(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if _, err := Compact(t.Context(), c, "", o, Request{Completer: model}); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("the history was cut meanwhile: %v", err)
	}
}

// TestTwoCompactionsAtOnce: the history is unchanged, but another program compacted it while the summary was made: its session stays, and this one is refused.
func TestTwoCompactionsAtOnce(t *testing.T) {
	c := conversation(t, 30)
	o := options(0)
	o.CompactKeep = 1500
	model := &answers{text: "so far"}
	model.do = func() {
		model.do = nil
		if _, err := Compact(t.Context(), c, "", o, Request{Completer: model}); err != nil {
			t.Error(err)
		}
	}
	if _, err := Compact(t.Context(), c, "", o, Request{Completer: model}); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("somebody else compacted meanwhile: %v", err)
	}
	if s, err := c.Snapshot(t.Context(), ""); err != nil || len(s.Info.Sessions) != 2 {
		t.Errorf("%v: %d sessions, want 2", err, len(s.Info.Sessions))
	}
}

func TestPinnedMessagesOutliveCompaction(t *testing.T) {
	c := conversation(t, 20)
	o := options(0)
	o.CompactKeep = 1000
	ids := history(t, c)
	b := c.Begin("")
	b.Mark("@5", enhancer.Pinned) // a user message
	b.Mark("@11", enhancer.Pinned)
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := Compact(t.Context(), c, "", o, Request{Text: "sum"}); err != nil {
		t.Fatal(err)
	}
	d := draftFrom(t, c)
	var front []int
	for _, m := range d.Messages {
		if m.Position < d.Session.Start {
			front = append(front, m.Position)
		}
	}
	if want := []int{5, 10, 11}; fmt.Sprint(front) != fmt.Sprint(want) { // 11 is a result, 10 its call
		t.Errorf("before the session stand %v, want %v", front, want)
	}
	if d.Messages[0].ID != ids[4] || !d.Messages[0].Pinned {
		t.Errorf("the first is %s", d.Messages[0].ID)
	}
}

func TestCutsNeverPartCallAndResult(t *testing.T) {
	o := options(0)
	for s := range testkit.Seeds(t, 60) {
		seed := int(s)
		w := newWriter(int64(seed)).random(3 + seed%40)
		o.CompactKeep = 200 + 300*(seed%10)
		o.CompactMessages, o.CompactKeepMessages = []int{0, 10}[seed%2], 1+seed%7
		win := o.Window(kept)
		p, err := PlanCompaction(t.Context(), win, o, w.d)
		if errors.Is(err, enhancer.ErrNothingToCompact) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		side := map[pool.ID]bool{}
		for _, m := range p.Gone {
			side[m.ID] = true
			if m.Pinned {
				t.Fatalf("seed %d: a pinned message would go", seed)
			}
		}
		for i, at := range partner(w.d.Messages) {
			if at >= 0 && side[w.d.Messages[i].ID] != side[w.d.Messages[at].ID] {
				t.Fatalf("seed %d: a call and its result would be parted", seed)
			}
		}
		if len(p.Kept) == 0 || p.Kept[len(p.Kept)-1] != w.d.Messages[len(w.d.Messages)-1] {
			t.Fatalf("seed %d: the newest message would go", seed)
		}
	}
}

func sessions(t *testing.T, c *chatctx.ChatContext, o Options) []SessionInfo {
	t.Helper()
	list, err := ListSessions(t.Context(), c, "", o)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestResume(t *testing.T) {
	c := conversation(t, 12)
	o := options(100_000)
	o.CompactKeep = 800
	for i, text := range []string{"one", "two"} {
		if _, err := Compact(t.Context(), c, "", o, Request{Text: text}); err != nil {
			t.Fatal(err)
		}
		w := newWriter(int64(i))
		for range 8 {
			if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, w.words(100)), pool.NewText(pool.Assistant, w.words(50))); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := request(t, c, o)
	r, err := Resume(t.Context(), c, "", o, "1")
	if err != nil {
		t.Fatal(err)
	}
	if !r.Whole || r.Session != 4 || r.Of != 1 {
		t.Errorf("%+v", r)
	}
	d := draftFrom(t, c)
	if _, err := Standard(o, c, nil).Run(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	last := d.Messages[len(d.Messages)-1]
	if d.Messages[0].Position != 1 || last.Kind != "digest" || !strings.Contains(last.Text(), "two") {
		t.Errorf("resumed: first at %d, last %q", d.Messages[0].Position, last.Text())
	}
	info, err := c.Branch(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	total := info.Messages
	left := sessions(t, c, o)[2]
	if left.End != total || left.Messages != total-left.Start+1 || left.Summary != "" {
		t.Errorf("the session that was left: #%d to #%d of %d, %q", left.Start, left.End, total, left.Summary)
	}
	if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, "go on")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Store().Undo(t.Context(), c.ID.String(), "", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Store().Undo(t.Context(), c.ID.String(), "", ""); err != nil {
		t.Fatal(err)
	}
	if after := request(t, c, o); after != before {
		t.Errorf("undo did not bring the request back: %s", diff(after, before))
	}
	o.Budget = 1000 // now session 1 does not fit
	if r, err = Resume(t.Context(), c, "", o, "1"); err != nil || r.Whole {
		t.Fatalf("%+v %v", r, err)
	}
	if d := draftFrom(t, c); len(d.Messages) != 0 || SummaryText(d.Summary.Message) != "one" {
		t.Errorf("%d messages and %q", len(d.Messages), SummaryText(d.Summary.Message))
	}
	list := sessions(t, c, o)
	if list[2].Summary != "" || list[0].Summary != "one" {
		t.Errorf("the summaries are %q and %q", list[0].Summary, list[2].Summary)
	}
	info, err = c.Branch(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if summarised, gone := branchstore.Covered(info.Sessions, 3); summarised != list[0].End || gone != total {
		t.Errorf("the summary tells of #1 to #%d of %d, and up to #%d nothing goes", summarised, list[0].End, gone)
	}
	if r, err := Resume(t.Context(), c, "", o, "3"); err != nil || !r.Whole {
		t.Errorf("a session without a summary: %+v, %v", r, err)
	}
	for _, ref := range []string{"9", "5"} {
		if _, err := Resume(t.Context(), c, "", o, ref); err == nil {
			t.Errorf("session %s was resumed", ref)
		}
	}
}

// TestResumeAfterResume: a digest stands for what came after the session that is gone back to, also where that session is later than the one resumed before.
func TestResumeAfterResume(t *testing.T) {
	c := conversation(t, 12)
	o := options(100_000)
	o.CompactKeep = 800
	add := func(seed int64) {
		w := newWriter(seed)
		for range 8 {
			if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, w.words(100)), pool.NewText(pool.Assistant, w.words(50))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := Compact(t.Context(), c, "", o, Request{Text: "one"}); err != nil {
		t.Fatal(err)
	}
	add(1)
	for i, ref := range []string{"1", "2"} {
		if _, err := Resume(t.Context(), c, "", o, ref); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			add(2)
		}
	}
	second := sessions(t, c, o)[1]
	d := draftFrom(t, c)
	if _, err := Standard(o, c, nil).Run(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	last := d.Messages[len(d.Messages)-1]
	if d.Messages[0].Position != second.Start || d.Messages[len(d.Messages)-2].Position != second.End || last.Kind != "digest" {
		t.Errorf("from #%d to #%d of #%d to #%d, then %q", d.Messages[0].Position, d.Messages[len(d.Messages)-2].Position, second.Start, second.End, last.Kind)
	}
}

// TestResumeKeepsWhatItTells: the digest after a session tells what messages without a summary said, and stays if the resumed session is resumed again.
func TestResumeKeepsWhatItTells(t *testing.T) {
	c := conversation(t, 12)
	o := options(100_000)
	o.CompactKeep = 800
	if _, err := Compact(t.Context(), c, "", o, Request{Text: "one"}); err != nil {
		t.Fatal(err)
	}
	say := func(text string) {
		if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, text), pool.NewText(pool.Assistant, "Yes.")); err != nil {
			t.Fatal(err)
		}
	}
	say("We decided to call the boat Petrel, in src/names/boat.go.")
	digests := func(resume string, wants ...string) {
		t.Helper()
		if _, err := Resume(t.Context(), c, "", o, resume); err != nil {
			t.Fatal(err)
		}
		d := draftFrom(t, c)
		if _, err := Standard(o, c, nil).Run(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, m := range d.Messages {
			if m.Kind == "digest" {
				texts = append(texts, m.Text())
			}
		}
		if len(texts) != len(wants) {
			t.Fatalf("resume %s: the digests are %q", resume, texts)
		}
		for i, want := range wants {
			if !strings.Contains(texts[i], want) {
				t.Errorf("resume %s: digest %d is %q, without %q", resume, i+1, texts[i], want)
			}
		}
	}
	digests("1", "src/names/boat.go")
	say("And the sails are red, see sails/red.go.")
	o.CompactKeep = 1
	if _, err := Compact(t.Context(), c, "", o, Request{Text: "three"}); err != nil {
		t.Fatal(err)
	}
	say("Its anchor is in anchor/iron.go.")
	digests("3", "src/names/boat.go", "anchor/iron.go")
}

func TestPruneOnCommand(t *testing.T) {
	c := conversation(t, 10)
	o := options(0)
	o.PruneKeep = 300
	p, err := SetPruned(t.Context(), c, "", o)
	if err != nil {
		t.Fatal(err)
	}
	if p.Results == 0 || p.After >= p.Before || p.Operation == "" || p.RequestAfter >= p.RequestBefore {
		t.Errorf("%+v", p)
	}
	d := draftFrom(t, c)
	if d.Session.PrunedTo != p.Position || d.Session.Start != 1 {
		t.Errorf("the session is %+v", d.Session)
	}
	again, err := SetPruned(t.Context(), c, "", o)
	if err != nil || again.Operation != "" {
		t.Errorf("a second time: %+v %v", again, err)
	}
}
