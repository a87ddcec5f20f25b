package window

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pkoukk/tiktoken-go"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	counting "github.com/chatctx/chatctx/enhancer/tokens"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

func options(budget int) Options {
	o := DefaultOptions()
	o.Model, o.Budget = "gpt-4o", budget
	return o
}

// shorter is a Completer that answers with half of its prompt.
type shorter struct{ calls int }

func (*shorter) Name() string { return "test" }

func (s *shorter) Complete(_ context.Context, p enhancer.Prompt) (*pool.Message, error) {
	s.calls++
	return pool.NewText(pool.Assistant, p.Text[:runeStart(p.Text, len(p.Text)/2)]), nil
}

// drafts calls f with random drafts of many lengths and budgets.
func drafts(t *testing.T, n int, f func(t *testing.T, d *chatctx.Draft, o Options)) {
	for s := range testkit.Seeds(t, testkit.Fewer(n)) {
		seed := int(s)
		w := newWriter(int64(seed)).random(1 + seed%40)
		o := options(500 + seed%17*700)
		o.TextRules, o.Squeeze = textRules[:seed%3], seed%5 == 0
		o.KeepBlocks = seed % 5
		o.PrunePolicy = []string{PruneAuto, KeepAll, KeepNone}[seed%3]
		o.PruneThreshold, o.PruneKeep = 1000*(seed%9), 500*(seed%4)
		w.d.System = "You are an assistant."
		t.Run(fmt.Sprint(seed), func(t *testing.T) { f(t, w.d, o) })
	}
}

// kept keeps counts from test to test: messages with the same id are the same.
var kept = &memory{counts: map[string]map[pool.ID]int{}}

// run sends a draft through the standard pipeline.
func run(t *testing.T, d *chatctx.Draft, o Options) (*enhancer.Report, error) {
	t.Helper()
	r, err := Standard(o, kept, &shorter{}).Run(t.Context(), d)
	var over *enhancer.BudgetError
	if err != nil && !errors.As(err, &over) {
		t.Fatal(err)
	}
	return r, err
}

// TestLaws checks the laws that hold for every draft after the steps.
func TestLaws(t *testing.T) {
	counting.UseOfflineLoader()
	plain, err := tiktoken.GetEncoding("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	met, refused := 0, 0
	drafts(t, 60, func(t *testing.T, d *chatctx.Draft, o Options) {
		raw, before := fresh(d), d.Messages
		whole := map[pool.ID][]byte{}
		for _, m := range d.Messages {
			whole[m.ID] = content(m.Message)
		}
		r, err := run(t, d, o)
		theSameAgain(t, raw, d, o, err)
		if err != nil {
			refused++
			return
		}
		met++
		budgetIsMet(t, d, o, r, plain)
		nothingIsEdited(t, whole, raw, d)
		callsStayWithResults(t, raw, d)
		orphan(t, before, d)
	})
	t.Logf("%d met, %d refused", met, refused)
}

func budgetIsMet(t *testing.T, d *chatctx.Draft, o Options, r *enhancer.Report, plain *tiktoken.Tiktoken) {
	t.Helper()
	if r.After > r.Limit {
		t.Errorf("%d tokens, may be %d", r.After, r.Limit)
	}
	n := tokens.PerConversation + tokens.PerMessage + len(plain.EncodeOrdinary(d.System))
	for _, m := range d.Messages {
		if !m.Unsent && !m.Left {
			n += plainCount(plain, m.Message)
		}
	}
	if n > o.Budget {
		t.Errorf("%d tokens by the library's count, the budget is %d", n, o.Budget)
	}
}

// plainCount counts with nothing of this package except the formula for images.
func plainCount(enc *tiktoken.Tiktoken, m *pool.Message) int {
	n := tokens.PerMessage
	parts := func(list []pool.Part) {
		for _, p := range list {
			n += len(enc.EncodeOrdinary(p.Text))
			if p.Type == pool.ImagePart {
				n += 85 + 4*170
			}
		}
	}
	parts(m.Content)
	for _, c := range m.Calls {
		n += tokens.PerCall + len(enc.EncodeOrdinary(c.Tool)) + len(enc.EncodeOrdinary(string(c.Arguments)))
	}
	if r := m.Result; r != nil {
		n += len(enc.EncodeOrdinary(r.Text)) + len(enc.EncodeOrdinary(string(r.JSON)))
		parts(r.Parts)
	}
	return n
}

// nothingIsEdited: messages of the user and the system and pinned ones are sent unchanged, the pinned ones always, and nothing else is invented.
func nothingIsEdited(t *testing.T, whole map[pool.ID][]byte, raw, d *chatctx.Draft) {
	t.Helper()
	pinned := map[pool.ID]bool{}
	for _, m := range raw.Messages {
		if m.Pinned {
			pinned[m.ID] = true
		}
	}
	for _, m := range d.Messages {
		was, stored := whole[m.ID]
		if stored && (m.Role == pool.User || m.Role == pool.System || m.Pinned) && !bytes.Equal(was, content(m.Message)) {
			t.Errorf("%s message %s was edited", m.Role, m.ID)
		}
		if !stored && m.Kind != "digest" {
			t.Errorf("a %s message came from nowhere", m.Role)
		}
		delete(pinned, m.ID)
	}
	if len(pinned) > 0 {
		t.Errorf("%d pinned messages are gone", len(pinned))
	}
}

// callsStayWithResults: a call and its result are both sent or both left out, in order.
func callsStayWithResults(t *testing.T, raw, d *chatctx.Draft) {
	t.Helper()
	have := map[pool.ID]int{}
	for i, m := range d.Messages {
		have[m.ID] = i + 1
	}
	for i, at := range partner(raw.Messages) {
		if at < 0 {
			continue
		}
		if a, b := raw.Messages[at].ID, raw.Messages[i].ID; (have[a] > 0) != (have[b] > 0) {
			t.Errorf("a call and its result were parted: %s %s", a, b)
		}
	}
	last := 0
	for _, m := range d.Messages {
		if m.Kind == "" && m.Position < last {
			t.Errorf("the order changed at position %d", m.Position)
		}
		last = max(last, m.Position)
	}
}

// orphan fails if messages were trimmed and the rest begins with an answer, leaving aside the messages that have to stay.
func orphan(t *testing.T, before []*chatctx.DraftMessage, d *chatctx.Draft) {
	t.Helper()
	trimmed, user := false, false
	for _, m := range before {
		trimmed = trimmed || m.State == enhancer.Trimmed
		user = user || startsTurn(m)
	}
	stay := layoutOf(d.Messages).stay
	for i, m := range d.Messages {
		if !trimmed || !user || startsTurn(m) {
			return
		}
		if !stay[i] {
			t.Errorf("after the trim the first message is a %s at position %d", m.Role, m.Position)
			return
		}
	}
}

// theSameAgain: d, which the steps made from raw with that error, is the same each time, with its session remembered and when the steps run again.
func theSameAgain(t *testing.T, raw, d *chatctx.Draft, o Options, err error) {
	t.Helper()
	other := fresh(raw)
	_, err2 := run(t, other, o)
	if (err == nil) != (err2 == nil) || sent(d) != sent(other) {
		t.Fatalf("the same draft gave two requests")
	}
	if err != nil {
		return
	}
	want := sent(d)
	// The session as the request would have stored it: the next request is the same.
	later := fresh(raw)
	later.Session = d.Session
	if _, err := run(t, later, o); err != nil {
		t.Fatal(err)
	}
	if got := sent(later); got != want {
		t.Fatalf("with the session remembered the request is another:\n%s", diff(got, want))
	}
	if Changed(&d.Session, &later.Session) {
		t.Errorf("the session changed again: %+v, was %+v", later.Session, d.Session)
	}
	// And the steps once more on their result.
	if _, err := run(t, other, o); err != nil {
		t.Fatal(err)
	}
	if got := sent(other); got != want {
		t.Fatalf("the second time changed it:\n%s", diff(got, want))
	}
}

// diff returns the first line that differs.
func diff(got, want string) string {
	g, w := bytes.Split([]byte(got), []byte("\n")), bytes.Split([]byte(want), []byte("\n"))
	for i := range g {
		if i >= len(w) || !bytes.Equal(g[i], w[i]) {
			was := []byte("nothing")
			if i < len(w) {
				was = w[i]
			}
			return fmt.Sprintf("line %d: %.400s\n was: %.400s", i, g[i], was)
		}
	}
	return fmt.Sprintf("%d lines, were %d", len(g), len(w))
}

// TestMarksOfALongerHistoryDoNoHarm: a history that was rewound, or cut anywhere, below a session that remembers more of it is sent with its last message, and
// what the model has not read is whole.
func TestMarksOfALongerHistoryDoNoHarm(t *testing.T) {
	drafts(t, 30, func(t *testing.T, d *chatctx.Draft, o Options) {
		raw := fresh(d)
		if _, err := run(t, d, o); err != nil || len(raw.Messages) == 0 {
			return
		}
		for n := 1; n <= len(raw.Messages); n += 1 + len(raw.Messages)/5 {
			short := fresh(raw)
			short.Messages = short.Messages[:n]
			short.Session = d.Session
			whole := map[pool.ID][]byte{}
			for _, m := range short.Messages[unread(short.Messages):] {
				whole[m.ID] = content(m.Message)
			}
			last := short.Messages[n-1]
			report, err := run(t, short, o)
			if err != nil {
				continue
			}
			if len(short.Messages) == 0 || short.Messages[len(short.Messages)-1].ID != last.ID {
				t.Fatalf("of %d messages, %d rewound: the last one is not sent: %s by %s, %s, session %+v", len(raw.Messages), n, last.State, last.Step, last.Role, d.Session)
			}
			if report.Before > report.Limit {
				continue // an unread message may have to be shortened
			}
			for _, m := range short.Messages {
				if was, ok := whole[m.ID]; ok && !bytes.Equal(was, content(m.Message)) && m.Step == "prune" {
					t.Fatalf("rewound to %d: an unread result was pruned", n)
				}
			}
		}
	})
}

func TestRulesAreIdempotent(t *testing.T) {
	w := newWriter(7)
	for range 150 {
		r := w.output(w.size())
		text := r.Text + string(r.JSON)
		for _, rule := range OutputRules() {
			once := rule.Apply(text)
			if twice := rule.Apply(once); twice != once {
				t.Fatalf("%s (%s): %s", rule.Name, rule.Kind, diff(twice, once))
			}
		}
	}
}
