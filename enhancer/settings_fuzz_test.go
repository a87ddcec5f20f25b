package enhancer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
)

// extremes are the values of each setting of the window that it is tried with.
var extremes = map[string][]string{
	"budget": {"0", "1", "50", "300", "1000", "4000", "20000", "9223372036854775807"}, "headroom": {"0", "10", `"99 %"`, `"100 %"`},
	"keep_blocks": {"0", "1", "2", "7", "9223372036854775807"}, "digest_tokens": {"0", "1", "40", "400", "100000"}, "squeeze": {"true", "false"},
	"prune.threshold": {"0", "1", "500", "9223372036854775807"}, "prune.keep": {"0", "1", "500", "9223372036854775807"},
	"prune.policy": {`"auto"`, `"keep_all"`, `"keep_none"`}, "compact.at": {"0", "1", `"100 %"`}, "compact.keep": {"0", "1", "4000", "9223372036854775807"},
	"compact.max_messages": {"0", "1", "5", "9223372036854775807"}, "compact.keep_messages": {"0", "1", "9223372036854775807"}, "resume.share": {"0", "1"},
	"cache": {"true", "false"}, "cache.ttl": {`"5m"`, `"1h"`},
}

// anySettings are some of the settings, with some of their extremes.
func anySettings(rng *rand.Rand) map[string]json.RawMessage {
	out := map[string]json.RawMessage{"model": json.RawMessage(`"gpt-4o"`)}
	names := make([]string, 0, len(extremes))
	for name := range extremes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if rng.Intn(3) > 0 {
			out[name] = json.RawMessage(extremes[name][rng.Intn(len(extremes[name]))])
		}
	}
	return out
}

// Whatever the settings, the branch and the budget, a request is one that fits or an error that says what cannot go, and so is the next one with what the session remembers.
func FuzzSettings(f *testing.F) {
	for seed := range int64(40) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) {
		rng := rand.New(rand.NewSource(seed))
		settings := anySettings(rng)
		o, err := OptionsOf(settings, nil)
		if err != nil {
			t.Fatalf("%s: %v", settings, err)
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
		} else if !errors.Is(err, ErrNothingToCompact) {
			t.Errorf("%s: %v", settings, err)
		}
	})
}

func fits(t *testing.T, d *chatctx.Draft, o Options) {
	t.Helper()
	r, err := Standard(o, nil, &shorter{}).Run(t.Context(), d)
	var over *BudgetError
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

// A branch of two messages that are too long keeps what the model has to answer, or the error says what cannot go.
func TestKeepNoBlocks(t *testing.T) {
	for budget, want := range map[int]string{300: "3", 2000: "1 2 3", 30: "refused"} {
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
		} else if over := (*BudgetError)(nil); !errors.As(err, &over) {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("budget %d: %s, want %s", budget, got, want)
		}
	}
}
