package window

import (
	"errors"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// TestTheErrorNamesWhatStays: if system messages and pins alone exceed the budget, the error lists them.
func TestTheErrorNamesWhatStays(t *testing.T) {
	w := newWriter(1)
	w.add(pool.NewText(pool.System, w.words(300)))
	w.user(w.words(20))
	w.assistant(w.words(300)).Pinned = true
	w.add(pool.NewText(pool.System, w.words(300)))
	for range 12 {
		w.user(w.words(30)).Pinned = true
	}
	w.user("and now?")
	_, err := Standard(options(500), nil, nil).Run(t.Context(), w.d)
	var over *enhancer.BudgetError
	if !errors.As(err, &over) || len(over.Systems) != 2 || len(over.Pins) != 13 {
		t.Fatalf("%v", err)
	}
	for _, part := range []string{"with the system messages #1, #4", "#3, #5, #6, #7, #8, #9, #10, #11, and 5 more"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not hold %q", err, part)
		}
	}
}

// TestTheErrorNamesWhatIsOff: a request that a step would have made fit names the steps that are switched off, and no others.
func TestTheErrorNamesWhatIsOff(t *testing.T) {
	w := newWriter(1)
	for range 20 {
		w.user(w.words(40))
		w.assistant(w.words(40))
	}
	w.user("and now?")
	o := options(500)
	o.StepsOff = []string{"trim", "history", "compact"}
	_, err := Standard(o, nil, nil).Run(t.Context(), w.d)
	var over *enhancer.BudgetError
	if !errors.As(err, &over) || !strings.HasSuffix(err.Error(), "set steps.history=true, steps.trim=true") {
		t.Errorf("%v", err)
	}
	o.StepsOff = nil
	if _, err := Standard(o, nil, nil).Run(t.Context(), w.d); err != nil {
		t.Errorf("with all steps: %v", err)
	}
}
