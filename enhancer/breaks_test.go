package enhancer

import (
	"fmt"
	"testing"

	"github.com/chatctx/chatctx/internal/testkit"
)

// TestBreaksByBudget: how many of a hundred requests change the beginning of the one before, in a
// conversation of 100 turns with tools and without compaction. docs/window.md has the figures. An
// ordinary run measures 60 turns in the smallest budget.
func TestBreaksByBudget(t *testing.T) {
	turns, all := 60, map[int]int{2500: 28}
	if testkit.Long() {
		turns, all = 100, map[int]int{2500: 27, 4000: 27, 8000: 17, 16000: 7, 40000: 4}
	}
	for budget, most := range all {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			s := simulate(t, options(budget), false, turns, nil)
			n := 0
			for _, k := range s.broken {
				n += k
			}
			t.Logf("%d breaks in %d requests, by %v", n, s.requests, s.broken)
			if (100*n+s.requests/2)/s.requests > most {
				t.Errorf("%d breaks in %d requests, more than %d of a hundred", n, s.requests, most)
			}
		})
	}
}
