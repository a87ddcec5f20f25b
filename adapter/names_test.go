package adapter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestMapping: whatever the names are, the sent ones are valid and unique, and do not depend on later ones.
func TestMapping(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, f := range []Form{{Extra: "_-", Max: 40}, {Extra: "_-", Max: 64}, {Max: 9, Exact: true}, {Extra: "_.:-", Max: 64, Letter: true}, {Extra: "_-", Max: 10},
		{}, {Max: 9}, {Max: 40}, {Extra: "_"}, {Extra: "_", Max: 9}, {Extra: "-", Max: 30}, {Extra: ".", Max: 12, Letter: true}, {Max: 60, Exact: true}} {
		m, longer := newMapping(f), newMapping(f)
		taken := map[string]bool{}
		var names []string
		for range 2000 {
			name := []string{"a b", "a_b", "", "ü", "call_1", "123456789"}[random.IntN(6)]
			switch random.IntN(4) {
			case 0:
				name = fmt.Sprint(name, random.IntN(500))
			case 1:
				if len(names) > 0 { // the sent form of another name
					name = names[random.IntN(len(names))]
				}
			}
			to := m.next(name)
			if taken[to] || !f.fits(to) {
				t.Fatalf("%+v: %q became %q, which is taken or does not fit", f, name, to)
			}
			if again := longer.next(name); again != to {
				t.Fatalf("%+v: %q became %q and %q", f, name, to, again)
			}
			taken[to] = true
			names = append(names, to)
		}
	}
}

// TestNoRoom: a form that leaves no room for the names ends in a word, not in a search without end.
func TestNoRoom(t *testing.T) {
	defer func() {
		if said := fmt.Sprint(recover()); !strings.Contains(said, "leaves room for") {
			t.Errorf("it said %s", said)
		}
	}()
	m := newMapping(Form{Max: 1})
	for n := range 100 {
		m.next(fmt.Sprint("name ", n))
	}
}

func TestNames(t *testing.T) {
	n := newNames(Form{Extra: "_-", Max: 64})
	for _, name := range []string{"search", "a b", "a_b", "", "a b", "search", "a.b"} {
		to := n.of(name)
		if n.of(name) != to {
			t.Errorf("%q has two names", name)
		}
		if back, changed := n.back()[to]; changed != (to != name) || changed && back != name {
			t.Errorf("%q became %q, and back %q", name, to, back)
		}
	}
	if newNames(Form{Max: 9}).back() != nil {
		t.Error("names differ where there are none")
	}
}
