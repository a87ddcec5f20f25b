package turn

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

// paidFor returns how many answers of a kind cost knows.
func paidFor(t *testing.T, turn *Turn, kind string) int {
	t.Helper()
	report, err := cost.Spent(context.WithoutCancel(t.Context()), turn.Context.Store(), cost.Query{By: cost.ByKind})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range report.Kinds {
		if g.Kind == kind {
			return g.Replies
		}
	}
	return 0
}

// TestUnusableDigestsArePaidOnce: answers that are longer, empty, cut or refused are counted, change nothing, and their questions are not asked again.
func TestUnusableDigestsArePaidOnce(t *testing.T) {
	for name, answer := range map[string]string{"longer": "end_turn " + strings.Repeat("and so on ", 2000), "empty": "end_turn ", "cut": "max_tokens They coun", "refused": "refusal I cannot."} {
		t.Run(name, func(t *testing.T) {
			reason, text, _ := strings.Cut(answer, " ")
			p, asked, busy := newProvider(t), 0, true
			for i := range 30 {
				p.answers = append(p.answers, func(w *writer, r *http.Request) {
					p.mu.Lock()
					body := p.bodies[i]
					p.mu.Unlock()
					if squeezes(body) {
						asked++
						w.begin()
						w.words(text)
						w.end(reason)
						return
					}
					if busy { // so that nothing of the request is stored
						http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`, http.StatusBadRequest)
						return
					}
					says("Yes.")(w, r)
				})
			}
			turn := crowded(t, p)
			if _, err := turn.Send(t.Context(), user("and now?")); err == nil {
				t.Fatal("the provider was to fail")
			}
			if first := asked; first == 0 || paidFor(t, turn, "digest") != first {
				t.Errorf("asked %d times, %d are counted", first, paidFor(t, turn, "digest"))
			}
			first := asked
			busy = false
			if _, err := turn.Send(t.Context()); err != nil {
				t.Fatal(err)
			}
			if asked != first || paidFor(t, turn, "digest") != first {
				t.Errorf("the same questions were asked %d times again, %d are counted", asked-first, paidFor(t, turn, "digest"))
			}
			for _, body := range p.bodies {
				if !squeezes(body) && (strings.Contains(body, "They coun") || strings.Contains(body, "I cannot")) {
					t.Errorf("an answer that is not whole went into a request: %.300s", body)
				}
			}
		})
	}
}

// TestAFailureLosesNoDigest: what a model shortened is stored and counted before the next step of the request can fail or the program can be stopped, and is used by
// the next request.
func TestAFailureLosesNoDigest(t *testing.T) {
	for name, stop := range map[string]bool{"a step fails": false, "it is stopped": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &squeezer{}
			turn := crowded(t, s.provider(t, 20))
			turn.Enhancers = []enhancer.Enhancer{enhancer.After("squeeze", enhancer.Func("own", func(ctx context.Context, _ *chatctx.Draft) error {
				if cancel(); stop {
					return ctx.Err()
				}
				return errors.New("no")
			}))}
			if _, err := turn.Send(ctx, user("and now?")); err == nil || s.squeeze == 0 || paidFor(t, turn, "digest") != s.squeeze {
				t.Fatalf("%v; asked %d times, %d are counted", err, s.squeeze, paidFor(t, turn, "digest"))
			}
			first := s.squeeze
			turn.Enhancers = nil
			if _, err := turn.Send(t.Context()); err != nil || s.squeeze != first {
				t.Errorf("%v; asked %d times, then %d", err, first, s.squeeze)
			}
		})
	}
}

// TestAutomaticCompactionGivesUp: a summary that is not whole changes nothing, is reported once, and is not asked for again until the session has grown.
func TestAutomaticCompactionGivesUp(t *testing.T) {
	p, asked := newProvider(t), 0
	for range 9 {
		p.answers = append(p.answers, func(w *writer, _ *http.Request) {
			asked++
			w.begin()
			w.words("Partial summ")
			w.end("max_tokens")
		})
	}
	turn := newTurn(t, p)
	talked(t, turn, 30)
	set(t, turn, `{"budget":1500,"compact.keep":200}`)
	_, err := turn.Compact(t.Context())
	var o *pool.OutcomeError
	if !errors.As(err, &o) || o.Outcome != pool.CutShort || asked != 1 || paidFor(t, turn, "summary") != 1 {
		t.Fatalf("%v, asked %d times, %d are counted", err, asked, paidFor(t, turn, "summary"))
	}
	for range 2 {
		b := turn.Context.Begin("")
		b.Append(user("And one more thing?"), pool.NewText(pool.Assistant, "Yes, that too, of course."))
		if _, err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if done, err := turn.Compact(t.Context()); done != nil || err != nil || asked != 1 {
			t.Errorf("%v, %v, asked %d times", done, err, asked)
		}
		if req, err := turn.Fit(t.Context()); err != nil || window.Of(req).Forecast.Due {
			t.Errorf("a compaction is due that nobody will make: %v", err)
		}
	}
	list, err := window.ListSessions(t.Context(), turn.Context, "", window.DefaultOptions())
	if err != nil || len(list) != 1 {
		t.Errorf("%d sessions, %v", len(list), err)
	}
	turn.Settings = map[string]json.RawMessage{"compact.max_tokens": json.RawMessage("5000")}
	if _, err := turn.Compact(t.Context()); err == nil || asked != 2 {
		t.Errorf("with a larger limit: %v, asked %d times", err, asked)
	}
}

// TestALostSummaryIsCounted: a summary that is whole and can no longer be stored, since the history changed, is counted.
func TestALostSummaryIsCounted(t *testing.T) {
	p := newProvider(t)
	turn := newTurn(t, p)
	p.answers = append(p.answers, func(w *writer, r *http.Request) {
		b := turn.Context.Begin("")
		b.Clear()
		if _, err := b.Commit(t.Context()); err != nil {
			t.Error(err)
		}
		says("They talked.")(w, r)
	})
	talked(t, turn, 30)
	set(t, turn, `{"budget":1500,"compact.keep":200}`)
	if done, err := turn.Compact(t.Context()); done != nil || !errors.Is(err, chatctx.ErrConflict) || paidFor(t, turn, "summary") != 1 {
		t.Errorf("%+v, %v; %d are counted", done, err, paidFor(t, turn, "summary"))
	}
}
