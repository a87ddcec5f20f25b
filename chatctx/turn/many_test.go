package turn

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// TestAskKeepsWhatIsAnAnswer: a stopped answer stays as far as it arrived; one that failed, or of which nothing arrived, leaves no branch. One undo takes back
// a whole ask.
func TestAskKeepsWhatIsAnAnswer(t *testing.T) {
	fails := func(w *writer, _ *http.Request) {
		http.Error(w, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, 529)
	}
	for _, test := range []struct {
		what   string
		answer func(*writer, *http.Request)
		stops  func(Event) bool
		stays  bool
	}{
		{"stopped", begins("Once upon", nil), func(e Event) bool { return e.Delta != nil }, true},
		{"stopped before a word", begins("Once upon", nil), func(e Event) bool { return e.Request != nil }, false},
		{"failed", fails, func(Event) bool { return false }, false},
		{"whole", says("A name."), func(Event) bool { return false }, true},
	} {
		t.Run(test.what, func(t *testing.T) {
			turn := newTurn(t, newProvider(t, test.answer))
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			turn.Show = func(e Event) {
				if test.stops(e) {
					stop()
				}
			}
			own := *turn
			own.Branch = "apart"
			answers, err := Ask(ctx, "main", user("Name it"), "", []*Turn{&own}, func() {}, func(*Answer) {})
			if err != nil || len(answers) != 1 {
				t.Fatal(answers, err)
			}
			list, err := turn.Context.Branches(t.Context())
			if err != nil || len(list) == 2 != test.stays {
				t.Fatalf("%d branches, %v; the answer is %+v", len(list), err, answers[0])
			}
			if a := answers[0]; (a.Err == nil || a.Stopped) != test.stays {
				t.Errorf("stopped %t, %v", a.Stopped, a.Err)
			}
			if claim, err := view.Running(t.Context(), base.ContextOf(turn.Context.Store(), turn.Context.ID), "main"); claim != nil || err != nil {
				t.Errorf("a claim is left: %+v, %v", claim, err)
			}
			if _, err := turn.Context.Store().Undo(t.Context(), turn.Context.ID.String(), "main", ""); err != nil {
				t.Fatal(err)
			}
			want(t, turn.Context)
			if list, err := turn.Context.Branches(t.Context()); err != nil || len(list) != 1 {
				t.Errorf("after undo there are %d branches, %v", len(list), err)
			}
		})
	}
}

// TestAskTakesTheNextName: where another program has just taken the name that was meant for an answer, the answer gets the next free one.
func TestAskTakesTheNextName(t *testing.T) {
	turn := newTurn(t, newProvider(t, says("One."), says("Two."), says("Three.")))
	for _, name := range []string{"apart", "main.2", "main.3"} {
		own := *turn
		own.Branch = "apart"
		answers, err := Ask(t.Context(), "main", user("Name it"), "", []*Turn{&own}, nil, nil)
		if err != nil || answers[0].Err != nil {
			t.Fatal(answers, err)
		}
		if own.Branch != name || answers[0].Outcome.Branch != name {
			t.Errorf("the answer is on %q and %q, want %q", own.Branch, answers[0].Outcome.Branch, name)
		}
	}
}

// TestApartKeepsWhatIsAnAnswer: a branch that was made for an answer goes if that fails, whatever had come of its first reply; the active branch changes only to an answer
// that is kept. One undo takes back all of it.
func TestApartKeepsWhatIsAnAnswer(t *testing.T) {
	cut := func(w *writer, _ *http.Request) {
		w.begin()
		w.words("Once upon")
	}
	refuses := func(w *writer, _ *http.Request) { http.Error(w, "{}", http.StatusBadRequest) }
	for _, test := range []struct {
		what   string
		answer func(*writer, *http.Request)
		stops  bool
		stay   bool
		list   string
	}{
		{"cut", cut, false, false, "main*"},
		{"refused", refuses, false, false, "main*"},
		{"cut after calls", calls, false, false, "main main.2*"},
		{"stopped", begins("Once upon", nil), true, false, "main main.2*"},
		{"whole", says("A name."), false, false, "main main.2*"},
		{"whole, and nobody goes there", says("A name."), false, true, "main* main.2"},
	} {
		t.Run(test.what, func(t *testing.T) {
			turn := newTurn(t, newProvider(t, test.answer, cut))
			turn.Branch = "main"
			turn.Calls = answersCalls(turn)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			turn.Show = func(e Event) {
				if test.stops && e.Delta != nil {
					stop()
				}
			}
			if _, err := turn.Context.Append(ctx, "", user("Name it"), pool.NewText(pool.Assistant, "No.")); err != nil {
				t.Fatal(err)
			}
			snap, err := turn.Context.Snapshot(ctx, "")
			if err != nil {
				t.Fatal(err)
			}
			question, _, err := Question(ctx, snap)
			if err != nil {
				t.Fatal(err)
			}
			list := func() string {
				all, err := turn.Context.Branches(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, b := range all {
					name := b.Name
					if b.Active {
						name += "*"
					}
					names = append(names, name)
				}
				slices.Sort(names)
				return strings.Join(names, " ")
			}
			before := *turn
			a, err := turn.Beside(ctx, "", question)
			if err != nil {
				t.Fatal(err)
			}
			if turn.Branch != before.Branch || turn.PartOf != before.PartOf {
				t.Errorf("the turn is on %q now", turn.Branch)
			}
			if a.Ask(ctx, test.stay); (a.Err == nil) != (!test.stops && !strings.HasPrefix(test.what, "cut") && test.what != "refused") || a.Kept() != (test.list != "main*") {
				t.Errorf("kept %t, stopped %t, %v", a.Kept(), a.Stopped, a.Err)
			}
			if got := list(); got != test.list {
				t.Errorf("the branches are %s, want %s", got, test.list)
			}
			undone, err := turn.Context.Store().Undo(t.Context(), turn.Context.ID.String(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			if want := map[bool]string{true: "append", false: "retry"}[test.list == "main*"]; undone.Undid.What != want {
				t.Errorf("undo took back %q, want %q: what nobody saw leaves nothing to undo", undone.Undid.What, want)
			}
			if got := list(); got != "main*" {
				t.Errorf("after undo the branches are %s", got)
			}
		})
	}
}
