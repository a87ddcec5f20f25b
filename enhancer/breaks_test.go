package enhancer

import (
	"fmt"
	"testing"
)

// TestBreaksByBudget: how often the beginning of a request changes, in a conversation of 100 turns
// with tools and without compaction. docs/window.md has the figures.
func TestBreaksByBudget(t *testing.T) {
	for budget, most := range map[int]int{2500: 82, 4000: 82, 8000: 52} {
		t.Run(fmt.Sprint(budget), func(t *testing.T) {
			s := simulate(t, options(budget), false, 100, nil)
			n := 0
			for _, k := range s.broken {
				n += k
			}
			t.Logf("%d breaks in %d requests, by %v", n, s.requests, s.broken)
			if n > most {
				t.Errorf("%d breaks, at most %d", n, most)
			}
		})
	}
}
