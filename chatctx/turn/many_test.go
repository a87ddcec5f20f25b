package turn

import (
	"context"
	"net/http"
	"testing"
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
			if claim, err := turn.Context.Running(t.Context(), "main"); claim != nil || err != nil {
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
