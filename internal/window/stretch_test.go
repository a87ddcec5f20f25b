package window

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// TestCompactStretch: a summary in the middle is at its place in the request, whatever the steps do before and after it, and undo brings the messages back.
func TestCompactStretch(t *testing.T) {
	c := conversation(t, 30)
	o := options(0)
	before := request(t, c, o)
	d := draftFrom(t, c)
	from, to := d.Messages[10].Position, d.Messages[30].Position
	model := &answers{text: "In the middle MIDDLE-1 was said."}
	done, err := CompactStretch(t.Context(), c, "", o, Request{Completer: model}, from, to)
	if err != nil {
		t.Fatal(err)
	}
	if done.After >= done.Before || done.By != "model" || done.Start > from || !strings.Contains(model.prompt, "The messages to summarise") {
		t.Errorf("%+v", done)
	}
	for _, budget := range []int{0, 20_000, 9_000, 5_000} {
		o := options(budget)
		d := draftFrom(t, c)
		p := Standard(o, c, nil)
		if _, err := p.Run(t.Context(), d); err != nil {
			t.Fatalf("budget %d: %v", budget, err)
		}
		at, last := -1, 0
		for i, m := range d.Messages {
			if strings.Contains(m.Text(), "MIDDLE-1") {
				if at >= 0 {
					t.Errorf("budget %d: the summary is there twice", budget)
				}
				at = i
			}
			if m.Position > 0 {
				if m.Position <= last || m.Position >= done.Start && m.Position < done.Start+done.Messages && !m.Pinned && m.Role != pool.System {
					t.Errorf("budget %d: #%d stands there, after #%d", budget, m.Position, last)
				}
				last = m.Position
			}
		}
		if at < 0 {
			t.Errorf("budget %d: the summary is gone", budget)
		}
	}
	if _, err := c.Store().Undo(t.Context(), c.ID.String(), "", ""); err != nil {
		t.Fatal(err)
	}
	if request(t, c, o) != before {
		t.Error("undo does not bring the request back")
	}
}

func TestStretchesThatCannotBe(t *testing.T) {
	c := conversation(t, 6)
	n := len(draftFrom(t, c).Messages)
	for _, at := range [][2]int{{1, n}, {n, n}, {5, 2}, {n + 1, n + 4}} {
		if _, err := CompactStretch(t.Context(), c, "", options(0), Request{Text: "so"}, at[0], at[1]); !errors.Is(err, enhancer.ErrStretch) {
			t.Errorf("%v: %v", at, err)
		}
	}
	var none *enhancer.NoGainError
	if _, err := CompactStretch(t.Context(), c, "", options(0), Request{Text: strings.Repeat("long ", 5000)}, 1, 2); !errors.As(err, &none) {
		t.Errorf("a summary that is longer than what it replaces: %v", err)
	}
}

// TestTurnsAreATrigger: a compaction is due over the limit of turns and not at it, unless its step is off; a third of the limit stays.
func TestTurnsAreATrigger(t *testing.T) {
	for _, c := range []struct {
		turns int
		off   bool
		due   bool
	}{{9, false, false}, {10, false, true}, {30, false, true}, {30, true, false}} {
		d := &chatctx.Draft{}
		for i := range c.turns {
			for _, role := range []pool.Role{pool.User, pool.Assistant} {
				m := pool.NewText(role, fmt.Sprintf("word %d of many that are said here", i))
				m.ID = pool.NewID()
				d.Messages = append(d.Messages, &chatctx.DraftMessage{Entry: chatctx.Entry{Message: m, Position: len(d.Messages) + 1}, State: enhancer.In})
			}
		}
		set := map[string]json.RawMessage{"compact.at_turns": json.RawMessage("9")}
		if c.off {
			set["steps.compact"] = json.RawMessage("false")
		}
		o, err := OptionsOf(set, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := o.Window(nil)
		if err := w.Measure(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if Due(w, o, d) != c.due {
			t.Errorf("%d turns, switched off %v: due is %v", c.turns, c.off, !c.due)
		}
		if p, err := PlanCompaction(t.Context(), w, o, d); c.due && (err != nil || turnsIn(p.Kept) != 3) {
			t.Errorf("%d turns stay: %v", turnsIn(p.Kept), err)
		}
	}
}

// TestStepsCanBeSwitchedOff: a step that is off changes nothing; without trim a draft that does not fit is an error.
func TestStepsCanBeSwitchedOff(t *testing.T) {
	testkit.Sequential(t)
	for _, step := range settings.Names("steps.") {
		o, err := OptionsOf(map[string]json.RawMessage{"steps." + step: json.RawMessage("false"), "budget": json.RawMessage("3000"), "model": json.RawMessage(`"gpt-4o"`)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if step == "trim" {
			o.Budget = 900
		}
		d := newWriter(3).random(60).d
		r, err := Standard(o, nil, nil).Run(t.Context(), d)
		var over *enhancer.BudgetError
		if (step == "trim") != errors.As(err, &over) {
			t.Errorf("%s off: %v", step, err)
		}
		for _, s := range r.Steps {
			if s.Name == step && (s.Before != s.After || len(s.Notes) > 0) {
				t.Errorf("%s is off and changes %d tokens to %d", step, s.Before, s.After)
			}
		}
	}
}
