package window

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/testkit"
)

// extremes returns the values to test for each setting of the window: the ends of its range, its words, and some between.
func extremes() map[string][]string {
	out := map[string][]string{}
	for _, s := range settings.All() {
		if s.Group != settings.Fitting && s.Group != settings.Compacting && s.Name != "cache" && s.Name != "cache.ttl" {
			continue
		}
		switch s.Type {
		case settings.Count:
			out[s.Name] = []string{fmt.Sprint(int(s.Min)), "1", "2", "7", "50", "500", "4000", fmt.Sprint(int(s.Max))}
		case settings.Share:
			out[s.Name] = []string{"0", "0.5", fmt.Sprint(s.Max), fmt.Sprintf("\"%v %%\"", 100*s.Max)}
		case settings.Truth:
			out[s.Name] = []string{"true", "false"}
		case settings.Word:
			for _, w := range strings.Fields(s.Words) {
				out[s.Name] = append(out[s.Name], strconv.Quote(w))
			}
		}
	}
	out["budget"] = append(out["budget"], "300", "1000", "20000")
	return out
}

// anySettings returns some of the settings, with some of their extremes.
func anySettings(rng *rand.Rand) map[string]json.RawMessage {
	out, values := map[string]json.RawMessage{"model": json.RawMessage(`"gpt-4o"`)}, extremes()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		off := strings.HasPrefix(name, "steps.") && rng.Intn(4) > 0 // mostly the default
		if rng.Intn(3) > 0 && !off {
			out[name] = json.RawMessage(values[name][rng.Intn(len(values[name]))])
		}
	}
	return out
}

// FuzzSettings: whatever the settings, the branch and the budget, a request fits, or its error says what cannot be left out; and so does the next one with what
// the session remembers.
func FuzzSettings(f *testing.F) {
	for seed := range int64(testkit.Fewer(40)) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		rng := rand.New(rand.NewSource(seed))
		set := anySettings(rng)
		o, err := OptionsOf(set, nil)
		if err != nil {
			t.Fatalf("%s: %v", set, err)
		}
		w := newWriter(seed).random(rng.Intn(25))
		raw := fresh(w.d)
		fits(t, w.d, o)
		later := fresh(raw)
		later.Session = w.d.Session
		later.Messages = later.Messages[:rng.Intn(len(later.Messages)+1)]
		fits(t, later, o)
		win := o.Window(nil)
		if plan, err := PlanCompaction(t.Context(), win, o, raw); err == nil {
			_ = plan.GoneTokens
		} else if !errors.Is(err, enhancer.ErrNothingToCompact) {
			t.Errorf("%s: %v", set, err)
		}
	})
}

func fits(t *testing.T, d *chatctx.Draft, o Options) {
	t.Helper()
	r, err := Standard(o, nil, &shorter{}).Run(t.Context(), d)
	var over *enhancer.BudgetError
	switch {
	case errors.As(err, &over):
		if over.Size <= over.Limit && over.Limit > 0 {
			t.Errorf("refused though it fits: %v", err)
		}
	case err != nil:
		t.Error(err)
	case o.Budget > 0 && r.After > r.Limit:
		t.Errorf("%d tokens, may be %d", r.After, r.Limit)
	}
}

// TestKeepNoBlocks: a branch of two messages that are too long keeps the message that the model has to answer, or the error says what cannot be left out.
func TestKeepNoBlocks(t *testing.T) {
	for budget, want := range map[int]string{300: "3", 2000: "1 2 3", 100: "3", 30: "3", 9: "refused"} {
		w := newWriter(1)
		w.user(w.words(400))
		w.assistant(w.words(400))
		w.user("go on")
		o, err := OptionsOf(map[string]json.RawMessage{"model": json.RawMessage(`"gpt-4o"`), "budget": json.RawMessage(fmt.Sprint(budget)), "keep_blocks": json.RawMessage("0"),
			"digest_tokens": json.RawMessage("100")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := "refused"
		if _, err := Standard(o, nil, nil).Run(t.Context(), w.d); err == nil {
			w.d.Messages = slices.DeleteFunc(w.d.Messages, func(m *chatctx.DraftMessage) bool { return m.Kind == "digest" })
			got = positions(w.d)
		} else if over := (*enhancer.BudgetError)(nil); !errors.As(err, &over) {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("budget %d: %s, want %s", budget, got, want)
		}
	}
}
