package chatctx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// fakeClock is a clock that a test moves.
type fakeClock struct{ at atomic.Int64 }

func newClock() *fakeClock {
	c := &fakeClock{}
	c.at.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixMicro())
	return c
}

func (c *fakeClock) now() time.Time               { return time.UnixMicro(c.at.Add(1)) }
func (c *fakeClock) move(d time.Duration)         { c.at.Add(d.Microseconds()) }
func (c *fakeClock) in(d time.Duration) pool.Time { return pool.Time(c.at.Load() + d.Microseconds()) }

func clocked(t *testing.T) (*Store, *fakeClock) {
	t.Helper()
	clock := newClock()
	s := openAny(t, Options{Program: "test", By: "ann", Clock: clock.now, Judge: byName{}})
	t.Cleanup(func() { closeChecked(t, s) })
	return s, clock
}

func appendTo(t *testing.T, c *ChatContext, branchName string, msgs ...*Message) *Step {
	t.Helper()
	a, err := c.Append(t.Context(), branchName, msgs...)
	if err != nil {
		t.Fatal(err)
	}
	return a.Last()
}

func findC(t *testing.T, s *Store, ctx, branchName string, ref record.CallRef) *record.Call {
	t.Helper()
	c, err := s.Call(t.Context(), ctx, branchName, ref)
	if err != nil {
		t.Fatalf("call %s: %v", ref, err)
	}
	return c
}

func decide(c *ChatContext, branchName string, ref record.CallRef, v record.Verdict) (*record.Committed, error) {
	b := c.Begin(branchName)
	b.Decide(ref, v)
	return b.Commit(context.Background())
}

func openRefs(t *testing.T, s *Store, f record.CallFilter) []string {
	t.Helper()
	var out []string
	for c, err := range s.Calls(t.Context(), f) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c.ID+" "+c.State()+" "+c.Branch)
	}
	return out
}

func TestADenialIsToldToTheModel(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "a")
		appendTo(t, c, "", asks("x"))
		done, err := decide(c, "", "x", record.Verdict{Status: pool.Denied, Reason: "not that file, please"})
		if err != nil {
			t.Fatal(err)
		}
		snap, err := c.Snapshot(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		e, err := snap.Find(t.Context(), "@")
		if err != nil {
			t.Fatal(err)
		}
		if e.Result == nil || e.Result.RequestID != "x" || !e.Result.IsError || !strings.Contains(e.Result.Text, "not that file, please") {
			t.Fatalf("the denial left %+v", e.Result)
		}
		if got := findC(t, s, "", "", "x"); got.State() != "denied/none" || got.Reason != "not that file, please" || len(got.Decisions) != 1 {
			t.Errorf("the call is %s, %q, %v", got.State(), got.Reason, got.Decisions)
		}
		if _, err := s.Undo(t.Context(), "", "", done.Operation); err != nil {
			t.Fatal(err)
		}
		got := findC(t, s, "", "", "x")
		if got.State() != "pending/none" || len(got.Decisions) != 2 || got.Decisions[1].Reason != "undo" {
			t.Errorf("after undo: %s, %v", got.State(), got.Decisions)
		}
		want(t, strings.Join(openRefs(t, s, record.CallFilter{}), ", "), "x pending/none main")
		if _, err := s.Redo(t.Context(), "", ""); err != nil {
			t.Fatal(err)
		}
		want(t, findC(t, s, "", "", "x").State(), "denied/none")
	})
}

// TestUndoOfABroughtResult: a call whose result somebody appended waits again, as it did, when that is undone; one that ran here stays done, and so does one
// that a fork holds with its result.
func TestUndoOfABroughtResult(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "a")
		appendTo(t, c, "", asks("x"), asks("y"))
		if _, err := decide(c, "", "y", record.Verdict{Status: pool.Approved}); err != nil {
			t.Fatal(err)
		}
		const before, after = "x pending/none main, y approved/none main", "approved/done, approved/failed"
		failed := answers("y", "no")
		failed.Result.IsError = true
		appendTo(t, c, "", answers("x", "yes"), failed)
		for range 2 {
			want(t, findC(t, s, "", "", "x").State()+", "+findC(t, s, "", "", "y").State(), after)
			want(t, texts(t, c, ""), "a   =yes =no")
			undoOp(t, c, "", "")
			want(t, strings.Join(openRefs(t, s, record.CallFilter{}), ", "), before)
			want(t, texts(t, c, ""), "a  ")
			redoOn(t, c, "")
		}
		undoOp(t, c, "", "")
		x := findC(t, s, "", "", "x")
		if last := x.Decisions[len(x.Decisions)-1]; last.From != "approved/done" || last.To != "pending/none" || last.Reason != "undo" {
			t.Errorf("the last step is %+v", last)
		}
		claim, err := s.ClaimCall(t.Context(), "", "", "y", record.ClaimOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := claim.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "ran"}}); err != nil {
			t.Fatal(err)
		}
		undoOp(t, c, "", "")
		want(t, findC(t, s, "", "", "y").State(), "approved/done")

		b := c.Begin("")
		b.Append(asks("z"))
		b.Append(answers("z", "at once"))
		both := commit(t, b)
		b = c.Begin("")
		b.Fork("other", ForkOptions{Stay: true})
		commit(t, b)
		undoOp(t, c, "main", both.Operation)
		want(t, findC(t, s, "", "other", "z").State(), "approved/done")
		checkStore(t, s)
	})
}

// TestALateDenialSaysSoAtTheEnd: the reason goes to the model also when the conversation went on; the old place stays as it was.
func TestALateDenialSaysSoAtTheEnd(t *testing.T) {
	s, _ := clocked(t)
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	appendTo(t, c, "", says("go on")...)
	if _, err := decide(c, "", "x", record.Verdict{Status: pool.Denied, Reason: "too risky"}); err != nil {
		t.Fatal(err)
	}
	snap, err := c.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	last, err := snap.Find(t.Context(), "@")
	if err != nil {
		t.Fatal(err)
	}
	if snap.Len() != 4 || last.Result == nil || last.Result.RequestID != "x" || !strings.Contains(last.Result.Text, "too risky") {
		t.Errorf("the branch of %d messages ends with %+v", snap.Len(), last.Message)
	}
}

func TestAnApprovalMayChangeArguments(t *testing.T) {
	s, _ := clocked(t)
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved, Arguments: json.RawMessage(`{"at":"home"}`), Reason: "safer"}); err != nil {
		t.Fatal(err)
	}
	k, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want(t, string(k.Call.RunArguments()), `{"at":"home"}`)
	want(t, string(k.Call.Arguments), `{}`)
	want(t, string(k.Call.Decisions[0].Arguments), `{"at":"home"}`)
	a, err := k.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "seen"}})
	if err != nil {
		t.Fatal(err)
	}
	at := a.Last().Placed[0]
	m, err := c.Message(t.Context(), at.Message)
	if err != nil || !strings.Contains(m.Result.Text, `{"at":"home"}`) || !strings.HasSuffix(m.Result.Text, "seen") {
		t.Errorf("the result says %q, %v", m.Result.Text, err)
	}
	if at.Position != 3 || a.Last().Call.State() != "approved/done" {
		t.Errorf("answered %+v, %s", at, a.Last().Call.State())
	}
}

// TestChangedArgumentsFitTheSchema: what a person writes is checked where the store has the tool. Another program's tool is its own matter.
func TestChangedArgumentsFitTheSchema(t *testing.T) {
	s, _ := clocked(t)
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	bad := record.Verdict{Status: pool.Approved, Arguments: json.RawMessage(`{"no":1}`)}
	b := c.Begin("")
	b.PutTool(record.Tool{Name: "look", Command: []string{"x"}, Schema: json.RawMessage(`{"type":"object"}`)})
	commit(t, b)
	if _, err := decide(c, "", "x", bad); !errors.Is(err, ErrInvalid) {
		t.Errorf("arguments that do not fit give %v", err)
	}
	if state := findC(t, s, "", "", "x").State(); state != "pending/none" {
		t.Errorf("the call is %s", state)
	}
	b = c.Begin("")
	b.RemoveTool("look")
	commit(t, b)
	if _, err := decide(c, "", "x", bad); err != nil {
		t.Errorf("another program's tool: %v", err)
	}
}

func TestCallsExpireForWhoeverLooks(t *testing.T) {
	for _, look := range []struct {
		name string
		do   func(*Store, *ChatContext) error
	}{
		{"settle", func(s *Store, c *ChatContext) error {
			return toolcall.SettleBranch(context.Background(), base.ContextOf(c.Store(), c.ID), "")
		}},
		{"decide", func(s *Store, c *ChatContext) error {
			_, err := decide(c, "", "x", record.Verdict{Status: pool.Approved})
			if err == nil || !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "denied/none") {
				return fmt.Errorf("approving an expired call: %v", err)
			}
			return nil
		}},
		{"claim", func(s *Store, c *ChatContext) error {
			if _, err := s.ClaimCall(context.Background(), "", "", "x", record.ClaimOptions{}); !errors.Is(err, ErrConflict) {
				return fmt.Errorf("claiming an expired call: %v", err)
			}
			return nil
		}},
	} {
		t.Run(look.name, func(t *testing.T) {
			s, clock := clocked(t)
			c := newContext(t, s, "a")
			appendTo(t, c, "", asks("x"))
			b := c.Begin("")
			b.ExpireCall("x", clock.in(time.Hour))
			commit(t, b)
			want(t, fmt.Sprint(openRefs(t, s, record.CallFilter{})), "[x pending/none main]")
			clock.move(2 * time.Hour)
			if err := look.do(s, c); err != nil {
				t.Fatal(err)
			}
			want(t, callState(t, c, "main", "@2"), "denied/none")
			want(t, fmt.Sprint(openRefs(t, s, record.CallFilter{})), "[]")
			got := findC(t, s, "", "", "x")
			if d := got.Decisions[len(got.Decisions)-1]; d.Kind != record.ByExpiry {
				t.Errorf("decided by %s", d.Kind)
			}
			snap, _ := c.Snapshot(t.Context(), "")
			if e, err := snap.Find(t.Context(), "@"); err != nil || e.Result == nil || !strings.HasPrefix(e.Result.Text, "expired") {
				t.Errorf("the branch ends with %+v, %v", e, err)
			}
		})
	}
}

func TestACallOffTheBranchCannotBeDecided(t *testing.T) {
	s, _ := clocked(t)
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	ref := findC(t, s, "", "", "x").Ref()
	b := c.Begin("")
	b.Rewind("@1")
	commit(t, b)
	want(t, fmt.Sprint(openRefs(t, s, record.CallFilter{})), "[]")
	if _, err := decide(c, "", ref, record.Verdict{Status: pool.Approved}); !errors.Is(err, ErrConflict) {
		t.Errorf("deciding gives %v", err)
	}
	if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := decide(c, "", ref, record.Verdict{Status: pool.Approved}); err != nil {
		t.Error(err)
	}
}

// TestAResultOutlivesItsBranch: what ran has run, also when its message is taken off the branch meanwhile.
func TestAResultOutlivesItsBranch(t *testing.T) {
	s, _ := clocked(t)
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
		t.Fatal(err)
	}
	k, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	b.Rewind("@1")
	commit(t, b)
	if err := k.Renew(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("renewing gives %v", err)
	}
	a, err := k.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "seen"}})
	if err != nil || a.Last().Placed[0].Position != 0 {
		t.Fatalf("resolve: %+v, %v", a, err)
	}
	if m, err := c.Message(t.Context(), a.Last().Placed[0].Message); err != nil || m.Result.Text != "seen" {
		t.Errorf("the result is %+v, %v", m, err)
	}
	ends := func() string {
		e := headOf(t, c, "")
		if e.Result != nil {
			return fmt.Sprintf("%d %s", e.Position, e.Result.Text)
		}
		return fmt.Sprintf("%d %s", e.Position, e.Role)
	}
	for range 2 { // the result comes back with its call, and goes with it
		if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
			t.Fatal(err)
		}
		want(t, callState(t, c, "main", "@2"), "approved/done")
		want(t, ends(), "3 seen")
		checkStore(t, s)
		if _, err := s.Maintenance().GC(t.Context(), record.GCOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Redo(t.Context(), "", ""); err != nil {
			t.Fatal(err)
		}
		want(t, ends(), "1 user")
		checkStore(t, s)
	}
}

func headOf(t *testing.T, c *ChatContext, branchName string) *Entry {
	t.Helper()
	snap, err := c.Snapshot(t.Context(), branchName)
	if err != nil {
		t.Fatal(err)
	}
	e, err := snap.Find(t.Context(), "@")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestUndoLeavesWhatRuns: neither the decision that a call runs by nor its message is taken back while it runs.
func TestUndoLeavesWhatRuns(t *testing.T) {
	s, clock := clocked(t)
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	approved, err := decide(c, "", "x", record.Verdict{Status: pool.Approved})
	if err != nil {
		t.Fatal(err)
	}
	k, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Undo(t.Context(), "", "", approved.Operation); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "approved/running by test") {
			t.Errorf("undo of the approval of a call that runs gives %v", err)
		}
		appendTo(t, c, "", pool.NewText(pool.User, "more"))
		if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
			t.Errorf("undo of something else gives %v", err)
		}
	}
	b := c.Begin("")
	b.Rewind("@1") // takes it off all the same
	b.Append(pool.NewText(pool.User, "again"))
	commit(t, b)
	if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Redo(t.Context(), "", ""); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "approved/running") {
		t.Errorf("redo of a rewind while the call runs gives %v", err)
	}
	clock.move(2 * ClaimLife) // its program is gone
	if _, err := s.Redo(t.Context(), "", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "seen"}}); err != nil {
		t.Fatal(err)
	}
}

// TestUndoLeavesAContextInWhichACallRuns: neither an undo of the operation that made a context nor a redo of the one that removed it removes a running call.
func TestUndoLeavesAContextInWhichACallRuns(t *testing.T) {
	made := map[string]func(*Store) *ChatContext{
		"new": func(s *Store) *ChatContext {
			c := newContext(t, s, "a")
			appendTo(t, c, "", asks("x"))
			return c
		},
		"import": func(s *Store) *ChatContext {
			m := asks("x")
			m.ID, m.Calls[0].Status, m.Calls[0].Execution = pool.NewID(), pool.Pending, pool.NotRun
			n, err := intake.NewImportRun(base.Of(s), care.RemoveContext).Native(t.Context(), record.Native{ID: pool.NewID(), Title: "a", Active: "main"})
			if err == nil {
				err = n.Branch(t.Context(), record.NativeBranch{Name: "main"})
			}
			if err == nil {
				err = n.Append(t.Context(), []*Message{m}, nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			done, err := n.Finish(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c, err := s.Context(t.Context(), done.Context.String())
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
	}
	for what, make := range made {
		for _, removed := range []bool{false, true} {
			t.Run(fmt.Sprint(what, removed), func(t *testing.T) {
				s, clock := clocked(t)
				c := make(s)
				ref := c.ID.String()
				if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
					t.Fatal(err)
				}
				again := func() error { _, err := s.Undo(t.Context(), ref, "", "s1"); return err }
				if removed {
					if _, err := s.Trash(t.Context(), ref); err != nil {
						t.Fatal(err)
					}
					if _, err := s.Undo(t.Context(), ref, "", "s2"); err != nil {
						t.Fatal(err)
					}
					again = func() error { _, err := s.Undo(t.Context(), ref, "", "s3"); return err }
				}
				k, err := s.ClaimCall(t.Context(), ref, "", "x", record.ClaimOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if err := again(); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "approved/running by test") {
					t.Errorf("gives %v", err)
				}
				if info, err := c.Info(t.Context()); err != nil || info.Trashed != 0 {
					t.Errorf("the context is in the trash: %v, %v", info, err)
				}
				if _, err := k.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "seen"}}); err != nil {
					t.Fatal(err)
				}
				clock.move(time.Second)
				if removed {
					if err := again(); err != nil {
						t.Errorf("once it has ended: %v", err)
					}
				}
			})
		}
	}
}

// TestALateResultEndsNoCall: what another program appends while a claim is held is kept, and the call ends with its claim.
func TestALateResultEndsNoCall(t *testing.T) {
	s, _ := clocked(t)
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
		t.Fatal(err)
	}
	k, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	said := func(text string) *Message {
		return &Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "x", Text: text}}
	}
	appendTo(t, c, "", said("another's"))
	want(t, findC(t, s, "", "", "x").State(), "approved/running")
	if e := headOf(t, c, ""); e.Kind != pool.Late {
		t.Errorf("what another program appended is %+v", e.Message)
	}
	b := c.Begin("")
	b.Fork("copy", ForkOptions{})
	commit(t, b)
	want(t, callState(t, c, "copy", "@2"), "pending/none")
	if _, err := k.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "its own"}}); err != nil {
		t.Fatal(err)
	}
	want(t, findC(t, s, "", "main", "x").State(), "approved/done")
	if e := headOf(t, c, "main"); e.Kind != "" || e.Result.Text != "its own" {
		t.Errorf("the result is %+v", e.Message)
	}
}

// TestUndoOfAnExpiryGivesTimeAgain: as much as there was, and a minute at least.
func TestUndoOfAnExpiryGivesTimeAgain(t *testing.T) {
	for _, in := range []time.Duration{time.Hour, time.Second} {
		s, clock := clocked(t)
		c := newContext(t, s, "a")
		appendTo(t, c, "", asks("x"))
		b := c.Begin("")
		b.ExpireCall("x", clock.in(in))
		commit(t, b)
		clock.move(2 * in)
		if err := toolcall.SettleBranch(t.Context(), base.ContextOf(c.Store(), c.ID), ""); err != nil {
			t.Fatal(err)
		}
		want(t, findC(t, s, "", "", "x").State(), "denied/none")
		if _, err := s.Undo(t.Context(), "", "", ""); err != nil {
			t.Fatal(err)
		}
		got := findC(t, s, "", "", "x")
		want(t, got.State(), "pending/none")
		if left := time.Duration(got.Expires-clock.in(0)) * time.Microsecond; left < in-time.Second || left < 50*time.Second || left > max(in, time.Minute)+time.Second {
			t.Errorf("undo gives %s of %s", left, in)
		}
		if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved, Name: "Bob"}); err != nil {
			t.Fatal(err)
		}
		d := findC(t, s, "", "", "x").Decisions
		if last := d[len(d)-1]; last.Name != "ann" || last.Claimed != "Bob" {
			t.Errorf("it was decided by %q, who says %q", last.Name, last.Claimed)
		}
		log, err := toolcall.CallLog(t.Context(), base.Of(s), c.ID)
		if err != nil || log[0].Program != "test" || log[0].Name != "test" || log[0].Origin != "append" {
			t.Errorf("the call begins with %+v, %v", log[0], err)
		}
	}
}

// TestTheLogOnlyLooks: what time has brought to a call is told, and not written.
func TestTheLogOnlyLooks(t *testing.T) {
	s, clock := clocked(t)
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	b := c.Begin("")
	b.ExpireCall("x", clock.in(time.Hour))
	commit(t, b)
	clock.move(2 * time.Hour)
	log, err := toolcall.CallLog(t.Context(), base.Of(s), ID{})
	if err != nil || len(log) != 2 || log[1].To != "denied/none" || log[1].Kind != record.ByExpiry {
		t.Fatalf("the log is %+v, %v", log, err)
	}
	if got := findC(t, s, "", "", "x"); len(got.Decisions) != 0 {
		t.Errorf("looking wrote %+v", got.Decisions)
	}
}

func TestADeadClaimMakesACallUncertain(t *testing.T) {
	s, clock := clocked(t)
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
		t.Fatal(err)
	}
	k, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{Again: true}); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "approved/running") {
		t.Errorf("a second claim gives %v", err)
	}
	clock.move(50 * time.Second)
	if err := k.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.move(50 * time.Second)
	want(t, fmt.Sprint(openRefs(t, s, record.CallFilter{})), "[x approved/running main]")
	clock.move(20 * time.Second)
	want(t, fmt.Sprint(openRefs(t, s, record.CallFilter{})), "[x approved/uncertain main]")
	if _, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{}); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "approved/uncertain") {
		t.Errorf("claiming an uncertain call gives %v", err)
	}
	again, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{Again: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "old"}}); !errors.Is(err, ErrConflict) {
		t.Errorf("the old claim resolves: %v", err)
	}
	if _, err := again.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "new", IsError: true}}); err != nil {
		t.Fatal(err)
	}
	want(t, findC(t, s, "", "", "x").State(), "approved/failed")
}

func TestCallReferences(t *testing.T) {
	s, _ := clocked(t)
	c := newContext(t, s, "a")
	two := asks("one")
	two.Calls = append(two.Calls, pool.Call{ID: "two", Tool: "look", Arguments: json.RawMessage(`{}`)})
	id := appendTo(t, c, "", two).Placed[0].Message
	for ref, wanted := range map[record.CallRef]string{
		record.CallRef(id.String() + ":1"): "one", record.CallRef(record.Short(id) + ":2"): "two", "@:1": "one", "@2:2": "two", "two": "two",
	} {
		want(t, findC(t, s, "", "", ref).ID, wanted)
	}
	for _, ref := range []record.CallRef{"", "three", "@:3", "@:0", "@1:1", "@9:1", ":", ":1", "x:y", "@:-1"} {
		if _, err := s.Call(t.Context(), "", "", ref); !errors.Is(err, ErrNotFound) {
			t.Errorf("%q gives %v", ref, err)
		}
	}
	b := c.Begin("")
	b.Fork("other", ForkOptions{Stay: true})
	commit(t, b)
	if _, err := s.Call(t.Context(), "", "", "one"); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("an id that waits on two branches gives %v", err)
	}
	want(t, findC(t, s, "", "other", "one").Branch, "other")
	want(t, findC(t, s, "", "main", "one").Branch, "main")
	other := newContext(t, s, "b") // current now
	want(t, findC(t, s, "", "", record.CallRef(id.String()+":1")).Context.String(), c.ID.String())
	if _, err := s.Call(t.Context(), other.ID.String(), "", record.CallRef(id.String()+":1")); !errors.Is(err, ErrNotFound) {
		t.Errorf("a call of another context gives %v", err)
	}
}

// TestForksDecideApart: forks of forks, each decided otherwise.
func TestForksDecideApart(t *testing.T) {
	s, _ := clocked(t)
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	verdicts := map[string]string{}
	last := "main"
	for i := range 5 {
		b := c.Begin(last)
		last = fmt.Sprint("deep", i)
		b.Fork(last, ForkOptions{Stay: true})
		commit(t, b)
	}
	for i, name := range []string{"main", "deep0", "deep1", "deep2", "deep3", "deep4"} {
		v := record.Verdict{Status: pool.Approved}
		if i%2 == 0 {
			v = record.Verdict{Status: pool.Denied, Reason: "because of " + name}
		}
		if _, err := decide(c, name, "@2:1", v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		verdicts[name] = string(v.Status) + "/none"
	}
	for name, state := range verdicts {
		want(t, callState(t, c, name, "@2"), state)
		if state != "denied/none" {
			continue
		}
		snap, _ := c.Snapshot(t.Context(), name)
		if e, err := snap.Find(t.Context(), "@"); err != nil || e.Result == nil || !strings.Contains(e.Result.Text, name) {
			t.Errorf("%s ends with %+v, %v", name, e, err)
		}
	}
}

// callModel is what the life of a call has to be: a state, and which steps lead on from it.
var callModel = map[string]map[string]string{
	"pending/none":       {"approve": "approved/none", "deny": "denied/none", "cancel": "denied/none", "expire": "denied/none"},
	"approved/none":      {"claim": "approved/running", "again": "approved/running", "cancel": "denied/none"},
	"approved/running":   {"resolve": "approved/done", "fail": "approved/failed", "crash": "approved/uncertain"},
	"approved/uncertain": {"again": "approved/running", "resolve": "approved/done", "fail": "approved/failed"},
}

// TestCallTransitions takes random steps, legal or not, and holds the store to the model; the log replays to the present state.
func TestCallTransitions(t *testing.T) {
	steps := []string{"approve", "deny", "cancel", "expire", "claim", "again", "resolve", "fail", "crash", "undo"}
	for seed := range testkit.Seeds(t, testkit.Fewer(60)) {
		rng := rand.New(rand.NewSource(int64(seed)))
		s, clock := clocked(t)
		c := newContext(t, s, "a")
		appendTo(t, c, "", asks("x"))
		state, before := "pending/none", ""
		var claim ID
		for range 14 {
			step := steps[rng.Intn(len(steps))]
			next, legal := callModel[state][step]
			if step == "undo" {
				if legal = before != "" && strings.HasSuffix(state, "/none"); !legal {
					continue
				}
				next = before
			}
			err := takeStep(t, s, c, clock, step, &claim)
			switch {
			case legal && err != nil:
				t.Fatalf("seed %d: %s of a call that is %s: %v", seed, step, state, err)
			case !legal && step != "expire" && step != "crash" && (!errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), state)):
				t.Fatalf("seed %d: %s of a call that is %s gives %v", seed, step, state, err)
			case legal:
				if before = ""; step == "approve" || step == "deny" {
					before = state
				}
				state = next
			}
			want(t, findC(t, s, "", "", "x").State(), state)
			replays(t, s, c.ID)
		}
	}
}

func takeStep(t *testing.T, s *Store, c *ChatContext, clock *fakeClock, step string, claim *ID) error {
	var err error
	switch step {
	case "approve":
		_, err = decide(c, "", "x", record.Verdict{Status: pool.Approved})
	case "deny":
		_, err = decide(c, "", "x", record.Verdict{Status: pool.Denied, Reason: "no"})
	case "cancel":
		_, err = decide(c, "", "x", record.Verdict{Status: pool.Denied, Kind: record.ByCancel})
	case "expire":
		b := c.Begin("")
		b.ExpireCall("x", clock.in(time.Second))
		if _, err = b.Commit(t.Context()); err == nil {
			clock.move(2 * time.Second)
		}
	case "claim", "again":
		var k *CallClaim
		if k, err = s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{Again: step == "again", PID: -1}); err == nil {
			*claim = k.Token
		}
	case "resolve", "fail":
		a := record.CallAnswer{Result: pool.Result{Text: "r", IsError: step == "fail"}}
		if findC(t, s, "", "", "x").Execution == pool.Running {
			if _, err := s.ResolveCall(t.Context(), "", "", "x", a); !errors.Is(err, ErrConflict) || !strings.Contains(err.Error(), "token") {
				t.Fatalf("a call that runs is answered without its claim's token: %v", err)
			}
			a.Token = *claim
		}
		_, err = s.ResolveCall(t.Context(), "", "", "x", a)
	case "crash":
		clock.move(2 * time.Minute)
	case "undo":
		_, err = s.Undo(t.Context(), "", "", "")
	}
	return err
}

// replays reads the log from the beginning and holds where it leads against the present state.
func replays(t *testing.T, s *Store, id ID) {
	t.Helper()
	steps, err := toolcall.CallLog(t.Context(), base.Of(s), id)
	if err != nil {
		t.Fatal(err)
	}
	now := map[string]string{}
	for _, step := range steps {
		key := fmt.Sprint(step.Message, step.Index)
		if now[key] != step.From {
			t.Fatalf("the log goes from %q to %q at a call that is %q", step.From, step.To, now[key])
		}
		now[key] = step.To
	}
	for key, state := range now {
		for _, step := range steps {
			if fmt.Sprint(step.Message, step.Index) == key {
				c := findC(t, s, id.String(), "", record.CallRef(fmt.Sprintf("%s:%d", step.Message, step.Index)))
				want(t, c.State(), state)
				break
			}
		}
	}
}

// manyCalls appends n calls, ten a message.
func manyCalls(t testing.TB, c *ChatContext, n int) {
	t.Helper()
	var msgs []*Message
	for i := 0; i < n; i += 10 {
		m := &Message{Role: pool.Assistant}
		for j := range min(10, n-i) {
			m.Calls = append(m.Calls, pool.Call{ID: fmt.Sprint("c", i+j), Tool: "look", Arguments: json.RawMessage(`{"at":1}`)})
		}
		if msgs = append(msgs, m); len(msgs) == 100 || i+10 >= n {
			if _, err := c.Append(t.Context(), "", msgs...); err != nil {
				t.Fatal(err)
			}
			msgs = nil
		}
	}
}

// TestGoroutinesDecideOnce: 32 of them decide the same calls.
func TestGoroutinesDecideOnce(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		const deciders = 32
		calls := 100
		if testkit.Long() {
			calls = 1000
		}
		c := newContext(t, s, "a")
		manyCalls(t, c, calls)
		won := make([]atomic.Int32, calls)
		var lost atomic.Int32
		var wg sync.WaitGroup
		for g := range deciders {
			wg.Go(func() {
				for i := range calls {
					n := (i + g*calls/deciders) % calls
					v := record.Verdict{Status: pool.Approved}
					if g%2 == 1 {
						v.Status = pool.Denied
					}
					_, err := decide(c, "", record.CallRef(fmt.Sprint("c", n)), v)
					switch {
					case err == nil:
						won[n].Add(1)
					case errors.Is(err, ErrConflict):
						lost.Add(1)
					default:
						t.Errorf("call %d: %v", n, err)
					}
				}
			})
		}
		wg.Wait()
		for i := range won {
			if won[i].Load() != 1 {
				t.Errorf("call %d was decided %d times", i, won[i].Load())
			}
		}
		if got := int(lost.Load()); got != calls*(deciders-1) {
			t.Errorf("%d were told that they lost, want %d", got, calls*(deciders-1))
		}
		replays(t, s, c.ID)
	})
}

// BenchmarkOpenCalls lists the first 50 of many open calls, and decides one.
func BenchmarkOpenCalls(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		s, err := Open(filepath.Join(b.TempDir(), "chats.db"), Options{Create: true})
		if err != nil {
			b.Fatal(err)
		}
		c, err := s.New(b.Context(), record.NewContext{Title: "a", Messages: says("a")})
		if err != nil {
			b.Fatal(err)
		}
		manyCalls(b, c, n)
		b.Run(fmt.Sprint("list/", n), func(b *testing.B) {
			for b.Loop() {
				seen := 0
				for _, err := range s.Calls(b.Context(), record.CallFilter{}) {
					if seen++; err != nil || seen == 50 {
						break
					}
				}
			}
		})
		b.Run(fmt.Sprint("decide/", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := decide(c, "", record.CallRef(fmt.Sprint("c", i%n)), record.Verdict{Status: pool.Approved}); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if _, err := s.Undo(b.Context(), "", "", ""); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
		if err := s.at().Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// TestRulesAndToolsGoAlong: a fork has its branch's rules, a copy of the context all rules and tools.
func TestRulesAndToolsGoAlong(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "a")
		appendTo(t, c, "", asks("x"))
		b := c.Begin("")
		b.AddRule(record.Rule{Effect: record.Allow, Tool: "here"}, record.RuleScope{Branch: true})
		b.AddRule(record.Rule{Effect: record.Allow, Tool: "all"}, record.RuleScope{})
		b.AddRule(record.Rule{Effect: record.Allow, Tool: "one"}, record.RuleScope{Call: "x"})
		b.PutTool(record.Tool{Name: "t", Command: []string{"x"}})
		commit(t, b)
		b = c.Begin("")
		b.Fork("two", ForkOptions{Stay: true})
		forked := commit(t, b)
		scopes := func(id ID) string {
			rules, err := s.Rules(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, r := range rules {
				out = append(out, r.Tool+" "+r.ScopeWord())
			}
			slices.Sort(out)
			return strings.Join(out, ", ")
		}
		want(t, scopes(c.ID), "all context, here branch, here branch, one call")
		copied, err := s.Copy(t.Context(), c.ID.String(), "copy", false)
		if err != nil {
			t.Fatal(err)
		}
		want(t, scopes(copied.ID), "all context, here branch, here branch, one call")
		if tools, err := view.OfferedTools(t.Context(), base.Of(s), copied.ID); err != nil || len(tools) != 1 {
			t.Errorf("the copy has the tools %v, %v", tools, err)
		}
		if _, err := s.Undo(t.Context(), c.ID.String(), "", forked.Operation); err != nil {
			t.Fatal(err)
		}
		want(t, scopes(c.ID), "all context, here branch, one call")
		r := record.Rule{ID: pool.NewID(), Effect: record.Deny, Tool: "*"}
		if _, err := s.AddRule(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		want(t, scopes(ID{}), "* store")
		if done, err := s.RemoveRule(t.Context(), record.Short(r.ID)); err != nil || done.Last().Rule.ID != r.ID {
			t.Fatal(done, err)
		}
		if _, err := s.Undo(t.Context(), "", "", "s3"); err != nil && !errors.Is(err, ErrConflict) {
			t.Fatal(err)
		}
	})
}

// TestReadersSeeWhatIsDue: a store that is only read shows calls as they are by now, and settles nothing.
func TestReadersSeeWhatIsDue(t *testing.T) {
	file := filepath.Join(t.TempDir(), "chats.db")
	s := open(t, file)
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"), asks("y"))
	b := c.Begin("")
	b.ExpireCall("x", pool.Now()+pool.Time(time.Hour/time.Microsecond))
	b.Decide("y", record.Verdict{Status: pool.Approved})
	commit(t, b)
	if _, err := s.ClaimCall(t.Context(), "", "", "y", record.ClaimOptions{PID: -1}); err != nil {
		t.Fatal(err)
	}
	later := func() time.Time { return time.Now().Add(2 * time.Hour) }
	r, err := Open(file, Options{ReadOnly: true, Clock: later})
	if err != nil {
		t.Fatal(err)
	}
	defer r.at().Close()
	want(t, fmt.Sprint(openRefs(t, r, record.CallFilter{})), "[y approved/uncertain main]")
	want(t, findC(t, r, "", "", "x").State(), "denied/none")
	if _, err := toolcall.CallLog(t.Context(), base.Of(r), ID{}); err != nil {
		t.Error(err)
	}
	rc, err := r.Context(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if calls, err := toolcall.OpenCalls(t.Context(), base.ContextOf(rc.Store(), rc.ID), ""); err != nil || len(calls) != 1 {
		t.Errorf("%d calls are open on the branch, %v", len(calls), err)
	}
	want(t, findC(t, s, "", "", "x").State(), "pending/none")
	want(t, findC(t, s, "", "", "y").State(), "approved/running")
}

// TestAClaimIsItsTokens: who ran a call that another runs again by now cannot keep it any more, nor answer it.
func TestAClaimIsItsTokens(t *testing.T) {
	s, clock := clocked(t)
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
		t.Fatal(err)
	}
	first, err := s.ClaimCall(t.Context(), c.ID.String(), "", "x", record.ClaimOptions{})
	if err != nil {
		t.Fatal(err)
	}
	clock.move(2 * ClaimLife)
	second, err := s.ClaimCall(t.Context(), c.ID.String(), "", "x", record.ClaimOptions{Again: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Renew(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("the first claim is renewed: %v", err)
	}
	if err := first.Held(t.Context()); !errors.Is(err, ErrStopped) {
		t.Errorf("the first claim is held: %v", err)
	}
	if _, err := first.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "late"}}); !errors.Is(err, ErrConflict) {
		t.Errorf("the first claim answers: %v", err)
	}
	if err := second.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := second.Resolve(t.Context(), record.CallAnswer{Result: pool.Result{Text: "ran"}}); err != nil {
		t.Error(err)
	}
}

// TestACallExpiresAtItsTime, not a moment before or after.
func TestACallExpiresAtItsTime(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s, err := OpenMemory(Options{Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	at := now.Add(time.Minute)
	b := c.Begin("")
	b.ExpireCall("x", pool.TimeOf(at))
	commit(t, b)
	for _, test := range []struct {
		now   time.Time
		state string
	}{{at.Add(-time.Microsecond), "pending/none"}, {at, "denied/none"}} {
		now = test.now
		want(t, findC(t, s, c.ID.String(), "", "x").State(), test.state)
	}
	checkStore(t, s)
}

// TestWhatComesInDecidesNothing: through every door that messages come in by, a call is pending, whatever it says of itself; only its result beside it makes it history, and a denial stays one.
func TestWhatComesInDecidesNothing(t *testing.T) {
	doors := map[string]func(t *testing.T, s *Store, c *ChatContext, ms []*Message){
		"append": func(t *testing.T, _ *Store, c *ChatContext, ms []*Message) { appendTo(t, c, "", ms...) },
		"copies": func(t *testing.T, _ *Store, c *ChatContext, ms []*Message) {
			b := c.Begin("")
			b.AppendWith(AppendOptions{Copies: true}, ms...)
			if _, err := b.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"insert": func(t *testing.T, _ *Store, c *ChatContext, ms []*Message) {
			appendTo(t, c, "", says("last")...)
			b := c.Begin("")
			b.Insert("@", ms...)
			if _, err := b.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"new": func(t *testing.T, s *Store, _ *ChatContext, ms []*Message) {
			if _, err := s.New(t.Context(), record.NewContext{Title: "other", Messages: ms}); err != nil {
				t.Fatal(err)
			}
		},
		"reply": func(t *testing.T, _ *Store, c *ChatContext, ms []*Message) {
			begun, err := c.BeginReply(t.Context(), "", AppendOptions{}, says("why?")...)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := begun.Reply.Finish(t.Context(), Ending{Messages: ms}); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, door := range doors {
		for _, status := range []pool.Status{"", pool.Pending, pool.Approved, pool.Denied} {
			for _, execution := range []pool.Execution{"", pool.NotRun, pool.Running, pool.Done, pool.Failed, pool.Uncertain} {
				for _, answered := range []bool{false, true} {
					s, _ := clocked(t)
					c := newContext(t, s, "a")
					m := asks("x")
					m.Calls[0].Status, m.Calls[0].Execution, m.Calls[0].Reason = status, execution, "said so"
					ms := []*Message{m}
					if answered {
						ms = append(ms, answers("x", "42"))
					}
					door(t, s, c, ms)
					in := "pending/none"
					switch {
					case status == pool.Denied:
						in = "denied/none"
					case answered && execution == pool.Failed && status == pool.Approved:
						in = "approved/failed"
					case answered:
						in = "approved/done"
					}
					got := record.CallState(m.Calls[0].Status, m.Calls[0].Execution)
					if got != in {
						t.Errorf("%s, %s/%s, answered %v: %s, want %s", name, status, execution, answered, got, in)
					}
					if in != "pending/none" {
						continue
					}
					ref := ""
					if name == "new" {
						ref = "other"
					}
					if found := findC(t, s, ref, "", "x"); found.State() != in || found.Reason != "" {
						t.Errorf("%s, %s/%s: on record %s, %q", name, status, execution, found.State(), found.Reason)
					}
					if _, err := s.ClaimCall(t.Context(), ref, "", "x", record.ClaimOptions{}); !errors.Is(err, ErrConflict) {
						t.Errorf("%s, %s/%s: it was claimed: %v", name, status, execution, err)
					}
				}
			}
		}
	}
}
