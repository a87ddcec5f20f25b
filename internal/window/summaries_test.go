package window

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/adaptertest"
	_ "github.com/chatctx/chatctx/adapter/all"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// teller is a model that states a fact in each summary of size words, and all facts of its prompt in a merged one.
type teller struct {
	n, size int
	merged  []string // the prompts of merges
}

var aFact = regexp.MustCompile(`FACT-\d+\b`)

func (*teller) Name() string { return "test" }

func (m *teller) Complete(_ context.Context, p enhancer.Prompt) (*pool.Message, error) {
	m.n++
	text := fmt.Sprintf("FACT-%d.", m.n)
	if strings.Contains(p.System, "takes their place") {
		m.merged = append(m.merged, p.Text)
		text += " " + strings.Join(aFact.FindAllString(p.Text, -1), " ")
	}
	return pool.NewText(pool.Assistant, text+strings.Repeat(" and so on", m.size/3)), nil
}

// missingFacts returns the facts from 1 to n that a text lacks.
func missingFacts(text string, n int) []string {
	have := aFact.FindAllString(text, -1)
	var out []string
	for i := 1; i <= n; i++ {
		if f := fmt.Sprintf("FACT-%d", i); !slices.Contains(have, f) {
			out = append(out, f)
		}
	}
	return out
}

// TestFactsOfThirtySessions: thirty sessions begin with a fact each. All facts are in the request while summaries take 30 % of the budget; with less room they
// are merged, and the model that merges gets all of them.
func TestFactsOfThirtySessions(t *testing.T) {
	for _, c := range []struct {
		budget, size int
		merges       bool
	}{{20_000, 190, false}, {9_000, 170, true}} {
		o := options(c.budget)
		o.CompactKeep = 300
		ctx, model, w := conversation(t, 0), &teller{size: c.size}, newWriter(3)
		for n := 1; n <= 30; n++ {
			for range 4 {
				if _, err := ctx.Append(t.Context(), "", pool.NewText(pool.User, w.words(150)), pool.NewText(pool.Assistant, w.words(150))); err != nil {
					t.Fatal(err)
				}
			}
			done, err := Compact(t.Context(), ctx, "", o, Request{Completer: model})
			if err != nil || done.Note != "" {
				t.Fatalf("%d: %v %+v", n, err, done)
			}
			if lost := missingFacts(request(t, ctx, o), n); lost != nil {
				t.Fatalf("budget %d: after session %d the request is without %v", c.budget, n, lost)
			}
			d := draftFrom(t, ctx)
			parts := SummaryParts(d.Summary.Message)
			if last := parts[len(parts)-1]; parts[0].From != 1 || last.To != done.Start-1 {
				t.Fatalf("the summaries stand for %+v, the session begins at %d", parts, done.Start)
			}
			if !strings.Contains(done.Notice(), "−") || strings.Contains(done.Notice(), "−-") {
				t.Errorf("the notice is %q", done.Notice())
			}
		}
		if (len(model.merged) > 0) != c.merges {
			t.Errorf("budget %d: %d merges", c.budget, len(model.merged))
		}
		d := draftFrom(t, ctx)
		win := o.Window(ctx)
		if err := win.Measure(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if n := win.of(d, d.Summary); !c.merges && n < c.budget*28/100 || n > c.budget*4/10 {
			t.Errorf("the summaries have %d tokens of %d", n, c.budget)
		}
	}
}

// TestSessionsSumWhatTheProviderReported: each figure of a session is the sum of that figure of its replies; one that a reply lacks adds nothing.
func TestSessionsSumWhatTheProviderReported(t *testing.T) {
	c := conversation(t, 0)
	reply := func(in, out, read, written int64) *pool.Message {
		m := pool.NewText(pool.Assistant, "an answer")
		m.Meta.InputTokens, m.Meta.OutputTokens, m.Meta.CacheRead, m.Meta.CacheWrite = &in, &out, &read, &written
		return m
	}
	if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, "a question"), reply(1, 20, 300, 4000), reply(5, 60, 700, 8000), pool.NewText(pool.Assistant, "without figures")); err != nil {
		t.Fatal(err)
	}
	list, err := ListSessions(t.Context(), c, "", options(20_000))
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
	if s := list[0]; s.Input != 6 || s.Output != 80 || s.CacheRead != 1000 || s.CacheWrite != 12000 {
		t.Errorf("input %d, output %d, cache read %d, cache write %d", s.Input, s.Output, s.CacheRead, s.CacheWrite)
	}
}

// TestSummariesOfAPersonAreShortenedAndNamed: if no model can merge summaries, each keeps its beginning, and the notice says which were shortened.
func TestSummariesOfAPersonAreShortenedAndNamed(t *testing.T) {
	o := options(4000)
	o.CompactKeep = 100
	c, w := conversation(t, 0), newWriter(3)
	var done *Compacted
	for n := 1; n <= 6; n++ {
		for range 4 {
			if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, w.words(100)), pool.NewText(pool.Assistant, w.words(100))); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if done, err = Compact(t.Context(), c, "", o, Request{Text: fmt.Sprintf("FACT-%d is so.%s", n, strings.Repeat(" detail", 500))}); err != nil {
			t.Fatal(err)
		}
		if lost := missingFacts(request(t, c, o), n); lost != nil {
			t.Fatalf("after %d the request is without %v", n, lost)
		}
	}
	if !done.Parts[0].Cut || done.Parts[5].Cut || !strings.Contains(done.Notice(), fmt.Sprintf("the summary of the messages 1 to %d, shortened for want of room", done.Parts[0].To)) {
		t.Errorf("%+v\n%s", done.Parts, done.Notice())
	}
}

// TestCompactionIsWorthIt: a compaction that saves nothing is refused, and a model's summary over its limit is not used.
func TestCompactionIsWorthIt(t *testing.T) {
	c, o := conversation(t, 4), options(0)
	o.CompactKeep = 100
	before := request(t, c, o)
	var none *enhancer.NoGainError
	if _, err := Compact(t.Context(), c, "", o, Request{Text: strings.Repeat("long ", 5000)}); !errors.As(err, &none) || none.After <= none.Before {
		t.Errorf("a summary that is longer than what it replaces: %v", err)
	}
	if request(t, c, o) != before {
		t.Error("something changed")
	}
	done, err := Compact(t.Context(), c, "", o, Request{Completer: &answers{text: strings.Repeat("long ", 5000)}})
	if err != nil || done.By != "digest" || done.Note == "" || done.After >= done.Before {
		t.Errorf("a model's summary that is longer: %+v %v", done, err)
	}
	model := &answers{text: "short"}
	o.CompactKeep = 10_000
	if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, "and?")); err != nil {
		t.Fatal(err)
	}
	o.CompactMessages, o.CompactKeepMessages = 2, 2
	if _, err := Compact(t.Context(), c, "", o, Request{Completer: model}); err == nil || model.prompt != "" {
		t.Errorf("a model was asked for what clears nothing: %v %q", err, model.prompt)
	}
}

// TestNextCompactionWaitsAndNoBudgetRefuses: after a compaction the next one is not due before freshShare of the limit is new, and no budget causes a refusal
// if turns are small.
func TestNextCompactionWaitsAndNoBudgetRefuses(t *testing.T) {
	for _, budget := range []int{400, 700, 1500, 8192, 30_000} {
		o := options(budget)
		o.CompactKeep = min(200, budget/8)
		c, w := conversation(t, 0), newWriter(int64(budget))
		last, compactions := 0, 0
		for n := range 60 {
			if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, w.words(20))); err != nil {
				t.Fatal(err)
			}
			request(t, c, o) // fails if it is refused
			if _, err := c.Append(t.Context(), "", pool.NewText(pool.Assistant, w.words(40))); err != nil {
				t.Fatal(err)
			}
			d, win := draftFrom(t, c), o.Window(c)
			if err := win.Measure(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if !Due(win, o, d) {
				continue
			}
			var none *enhancer.NoGainError
			_, err := Compact(t.Context(), c, "", o, Request{Completer: &answers{text: strings.Repeat("summary ", 440)}})
			if errors.As(err, &none) || errors.Is(err, enhancer.ErrNothingToCompact) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if compactions++; last > 0 && float64((n-last)*90) < freshShare*float64(win.Limit()) {
				t.Errorf("budget %d: compacted after turn %d and again after %d", budget, last, n)
			}
			last = n
		}
		if budget > 400 && budget < 5000 && compactions == 0 {
			t.Errorf("budget %d: never compacted", budget)
		}
	}
}

// TestNoBudgetRefusesSmallTurns: no budget causes a refusal on a branch of small turns, whatever it was compacted to under a larger one: digests and summaries
// are shortened before that, and reported.
func TestNoBudgetRefusesSmallTurns(t *testing.T) {
	for seed := range testkit.Seeds(t, 6) {
		rng := rand.New(rand.NewSource(int64(seed)))
		c, w, o := conversation(t, 0), newWriter(int64(seed)), options(100_000)
		o.CompactKeep = 100
		for range 10 + rng.Intn(30) {
			if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, w.words(1+rng.Intn(30))), pool.NewText(pool.Assistant, w.words(1+rng.Intn(30)))); err != nil {
				t.Fatal(err)
			}
			switch rng.Intn(8) {
			case 0:
				_, _ = Compact(t.Context(), c, "", o, Request{Text: w.words(1 + rng.Intn(900))})
			case 1:
				_, _ = Compact(t.Context(), c, "", o, Request{})
			case 2:
				d := draftFrom(t, c)
				_, _ = CompactStretch(t.Context(), c, "", o, Request{}, d.Session.Start+1+rng.Intn(5), d.Session.Start+6+rng.Intn(9))
			}
		}
		if _, err := c.Append(t.Context(), "", pool.NewText(pool.User, "and what now?")); err != nil {
			t.Fatal(err)
		}
		for budget := 300; budget < 100_000; budget += 1 + budget*(1+rng.Intn(4))/8 {
			d := draftFrom(t, c)
			was := ""
			if d.Summary != nil {
				was = string(content(d.Summary.Message))
			}
			r, err := Standard(options(budget), c, nil).Run(t.Context(), d)
			if err != nil {
				t.Fatalf("budget %d: %v", budget, err)
			}
			if r.After > r.Limit || len(d.Messages) == 0 || !strings.Contains(d.Messages[len(d.Messages)-1].Text(), "and what now?") {
				t.Fatalf("budget %d: %d tokens, may be %d, of %d messages", budget, r.After, r.Limit, len(d.Messages))
			}
			if d.Summary == nil || string(content(d.Summary.Message)) == was {
				continue
			}
			if parts := SummaryParts(d.Summary.Message); !slices.ContainsFunc(parts, func(p Stands) bool { return p.Cut }) || d.Summary.Step != "trim" {
				t.Fatalf("budget %d: a summary is shorter and nothing says so: %+v", budget, parts)
			}
		}
	}
}

// walk does one random thing to a conversation.
func walk(t *testing.T, rng *rand.Rand, c *chatctx.ChatContext, o Options, n int) {
	t.Helper()
	do := func(f func(b *chatctx.Batch)) {
		b := c.Begin("")
		f(b)
		if _, err := b.Commit(t.Context()); err != nil && !errors.Is(err, chatctx.ErrNotFound) && !errors.Is(err, chatctx.ErrConflict) && !errors.Is(err, chatctx.ErrInvalid) {
			t.Fatal(err)
		}
	}
	word := func() string { return fmt.Sprintf("rule %d: never say %d. ", n, rng.Intn(1000)) }
	ref := record.Ref(fmt.Sprintf("@%d", 1+rng.Intn(20)))
	switch rng.Intn(17) {
	case 12:
		do(func(b *chatctx.Batch) { b.Edit(ref, "edited "+word(), record.EditOptions{KeepRest: rng.Intn(2) == 0}) })
	case 13:
		do(func(b *chatctx.Batch) { b.Drop(ref) })
	case 14:
		do(func(b *chatctx.Batch) { b.Fork(fmt.Sprintf("aside-%d", n), chatctx.ForkOptions{At: ref}) })
	case 15:
		do(func(b *chatctx.Batch) { b.Merge("main", chatctx.MergeOptions{Summary: "on main " + word()}) })
	case 16:
		from := 1 + rng.Intn(20)
		_, _ = CompactStretch(t.Context(), c, "", o, Request{}, from, from+rng.Intn(9))
	case 0:
		m := pool.NewText(pool.System, word())
		m.Hidden, m.Kind = rng.Intn(4) == 0, []string{"", "", "injected"}[rng.Intn(3)]
		do(func(b *chatctx.Batch) { b.Append(m) })
	case 1:
		do(func(b *chatctx.Batch) { b.Append(pool.NewText(pool.System, "rule 0: be brief.")) })
	case 2, 3:
		_, _ = Compact(t.Context(), c, "", o, Request{Text: "so far " + word()})
	case 4:
		_, _ = Compact(t.Context(), c, "", o, Request{Completer: &answers{text: "so far " + word()}})
	case 5:
		_, _ = Resume(t.Context(), c, "", o, fmt.Sprint(1+rng.Intn(3)))
	case 6:
		do(func(b *chatctx.Batch) { b.Mark(ref, []string{enhancer.Pinned, enhancer.Excluded, ""}[rng.Intn(3)]) })
	case 7:
		do(func(b *chatctx.Batch) { b.SetSystem([]string{"", "You fly kites."}[rng.Intn(2)]) })
	case 8:
		_, _ = SetPruned(t.Context(), c, "", o)
	case 9:
		if rng.Intn(3) == 0 {
			_, _ = c.Store().Undo(t.Context(), c.ID.String(), "", "")
		}
	default:
		text := strings.Repeat(word(), 1+rng.Intn(20))
		do(func(b *chatctx.Batch) {
			b.Append(pool.NewText(pool.User, "asked "+text), pool.NewText(pool.Assistant, "said "+text))
		})
	}
}

// TestSystemMessagesSurvive: system text in a message is in every request, once, in the provider's place, whatever was done to the conversation.
func TestSystemMessagesSurvive(t *testing.T) {
	for seed := range testkit.Seeds(t, 25) {
		rng := rand.New(rand.NewSource(int64(seed)))
		c, o := conversation(t, 0), options(3000)
		o.CompactKeep = 100
		do := c.Begin("")
		do.SetSystem("")
		do.Append(pool.NewText(pool.System, "rule a: answer like a pirate."), pool.NewText(pool.System, "rule b: no numbers."), pool.NewText(pool.User, "hello"))
		if _, err := do.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range 40 {
			walk(t, rng, c, o, n)
			for i, provider := range settings.Providers() {
				if i == n%len(settings.Providers()) {
					systemTextIsSent(t, c, o, provider)
				}
			}
		}
	}
}

func systemTextIsSent(t *testing.T, c *chatctx.ChatContext, o Options, provider string) {
	t.Helper()
	d := draftFrom(t, c)
	_, err := Standard(o, c, nil).Run(t.Context(), d)
	var over *enhancer.BudgetError
	if errors.As(err, &over) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	d.Settings["model"] = jsontree.Quote("m")
	body, err := adaptertest.Body(provider, d)
	if errors.Is(err, chatctx.ErrEmpty) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := body.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	sent, summary := string(raw), strings.Index(string(raw), "[SUMMARY of ")
	for _, text := range systemTexts(t, c) {
		at := strings.Index(sent, text)
		if n := strings.Count(sent, text); n != 1 {
			t.Fatalf("%s: %q is in the request %d times: %.1500s", provider, text, n, sent)
		}
		if early := slices.ContainsFunc(d.Messages, func(m *chatctx.DraftMessage) bool {
			return m.Position < d.Session.Start && m.Text() == text && !(m.Leads && d.System != "")
		}); early && summary >= 0 && provider != adapter.Gemini && at > summary {
			t.Fatalf("%s: %q stands after the summary: %.1500s", provider, text, sent)
		}
	}
}

// TestSummariesOfTasksAndMergesAreHistory: a sub-context has its own system text and not its parent's. Its result, and that of a merge, is history in the
// parent: a digest and a compaction include it, and keep its content.
func TestSummariesOfTasksAndMergesAreHistory(t *testing.T) {
	c, o := conversation(t, 0), options(2500)
	o.CompactKeep = 200
	add := func(c *chatctx.ChatContext, messages ...*chatctx.Message) {
		t.Helper()
		if _, err := c.Append(t.Context(), "", messages...); err != nil {
			t.Fatal(err)
		}
	}
	add(c, pool.NewText(pool.System, "rule p: of the parent."), pool.NewText(pool.User, "hello"), pool.NewText(pool.Assistant, "hello"))
	b := c.Begin("")
	b.Fork("aside", chatctx.ForkOptions{Stay: true})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(t.Context(), "aside", pool.NewText(pool.User, "which port?"), pool.NewText(pool.Assistant, "8443")); err != nil {
		t.Fatal(err)
	}
	b = c.Begin("")
	b.Merge("aside", chatctx.MergeOptions{Summary: "The port that they agreed on is 8443, see https://example.com/merged."})
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	child, err := c.StartTask(t.Context(), "", record.NewTask{NewContext: record.NewContext{Messages: []*chatctx.Message{pool.NewText(pool.User, "look it up")}}, Task: record.Task{Goal: "look it up"}})
	if err != nil {
		t.Fatal(err)
	}
	add(child, pool.NewText(pool.System, "rule c: of the child."))
	systemTextIsSent(t, child, o, adapter.OpenAI)
	if sent := request(t, child, o); strings.Contains(sent, "rule p") || !strings.Contains(sent, "rule c") {
		t.Errorf("the child's request: %s", sent)
	}
	if _, err := child.EndTask(t.Context(), record.TaskEnd{State: record.TaskReturned, Summary: "The order is ORD-4711, see https://example.com/returned."}); err != nil {
		t.Fatal(err)
	}
	for range 25 {
		add(c, pool.NewText(pool.User, strings.Repeat("one word more ", 15)), pool.NewText(pool.Assistant, strings.Repeat("and one again ", 20)))
	}
	d := draftFrom(t, c)
	r, err := Standard(o, c, nil).Run(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	digested := 0
	for _, m := range r.Messages {
		if m.Kind == "summary" && m.State == enhancer.Digested {
			digested++
		}
	}
	text := sent(d)
	if digested != 2 || !strings.Contains(text, "example.com/merged") || !strings.Contains(text, "example.com/returned") {
		t.Errorf("%d are digested: %.1500s", digested, text)
	}
	model := &answers{text: "All of that."}
	if _, err := Compact(t.Context(), c, "", o, Request{Completer: model}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(model.prompt, "is 8443") || !strings.Contains(model.prompt, "ORD-4711") {
		t.Errorf("the model was given %.1500s", model.prompt)
	}
	if text := request(t, c, o); strings.Contains(text, "8443") || strings.Contains(text, "rule c") || !strings.Contains(text, "rule p") {
		t.Errorf("after the compaction: %.1500s", text)
	}
}

// systemTexts returns the texts that must be in a request, by the simple rule.
func systemTexts(t *testing.T, c *chatctx.ChatContext) []string {
	t.Helper()
	snap, err := c.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	marks, err := c.Marks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	leading := true
	for e, err := range snap.Entries(t.Context(), 1, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if marks[e.ID] == enhancer.Excluded {
			continue
		}
		leading = leading && e.Role == pool.System
		if e.Role == pool.System && !e.Hidden && e.Kind == "" && !(leading && snap.Info.System != "") && !slices.Contains(out, e.Text()) {
			out = append(out, e.Text())
		}
	}
	return out
}
