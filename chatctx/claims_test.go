package chatctx

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// hosted is an engine as a server keeps it: with users, and a clock that all share.
type hosted struct {
	kv.DB
	clock *fakeClock
}

func (h hosted) User() string                           { return "writer" }
func (h hosted) Instead(kv.Care) string                 { return "the server does that" }
func (h hosted) Now(context.Context) (time.Time, error) { return h.clock.now(), nil }
func (h hosted) Close() error                           { return nil } // others use it

// sharedEngine is an engine for several stores: in memory, or on PostgreSQL where tests are to run there.
func sharedEngine(t *testing.T) kv.DB {
	t.Helper()
	if !pgtest.Asked() {
		return memkv.New()
	}
	if pgtest.Server == nil {
		t.Skip(pgtest.ErrMissing)
	}
	url := pgtest.Server.URL(pgtest.Name())
	s, err := Open(url, Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := kv.Open(t.Context(), url, kv.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// TestClaimsOnAServer: on a server a claim lives as long as it is renewed, by the server's clock. Hosts of one name, processes whose number is nobody's here, machines that were started
// again and clocks that differ by ten minutes change nothing of that.
func TestClaimsOnAServer(t *testing.T) {
	clock, db := newClock(), sharedEngine(t)
	defer db.Close()
	open := func() *Store {
		s, err := OpenDB(hosted{db, clock}, Options{Program: "test", By: "ann", Judge: byName{}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	here, there := open(), open()
	defer checkStore(t, here)
	if d := base.Of(here).Now().Time().Sub(clock.now()).Abs(); d > time.Minute {
		t.Fatalf("the store's time is %v from the server's", d)
	}
	c := newContext(t, here, "a")
	appendTo(t, c, "", asks("x"))
	if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
		t.Fatal(err)
	}
	const nobody = 1 << 22 // above the highest number of a process
	k, err := there.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{PID: nobody})
	if err != nil {
		t.Fatal(err)
	}
	runs := func(when string, want pool.Execution) {
		t.Helper()
		if call := findC(t, here, "", "", "x"); call.Execution != want {
			t.Errorf("%s: the call is %s, want %s", when, call.Execution, want)
		}
	}
	runs("claimed by a process that is not on this host of the same name", pool.Running)
	clock.move(50 * time.Second)
	runs("after 50 s", pool.Running)
	if err := k.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.move(50 * time.Second)
	runs("50 s after it was renewed", pool.Running)
	clock.move(11 * time.Second)
	runs("61 s after it was renewed", pool.Uncertain)
	if _, err := here.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{}); !errors.Is(err, ErrConflict) {
		t.Errorf("a call of which nobody knows what it did is claimed again: %v", err)
	}
	steps, err := toolcall.CallLog(t.Context(), base.Of(here), c.ID)
	if err != nil || len(steps) < 3 || base.Of(here).User == "" {
		t.Errorf("%d steps, %v, by %q", len(steps), err, base.Of(here).User)
	}
	for _, s := range steps {
		if s.From != "" && s.User != base.Of(here).User { // its beginning is the message's
			t.Errorf("the step to %s by a %s is of %q, want %q", s.To, s.Kind, s.User, base.Of(here).User)
		}
	}
	for op, err := range here.Operations(t.Context(), c.ID.String()) {
		if err != nil || op.User != base.Of(here).User {
			t.Errorf("operation %s is of %q, %v", op.ID, op.User, err)
		}
	}
	claim := here.at().NewClaim()
	claim.PID, claim.Since = nobody, 1
	if base.Dead(claim, claim.Renewed+pool.Time(base.ClaimLife/time.Microsecond)) || !base.Dead(claim, claim.Renewed+pool.Time(base.ClaimLife/time.Microsecond)+1) {
		t.Error("a claim is judged by something else than its renewal")
	}
}

// TestAShortHold: a claim lasts as long as it was said to, also where that is less than ClaimLife.
func TestAShortHold(t *testing.T) {
	clock := newClock()
	s, err := OpenDB(memkv.New(), Options{Program: "test", Judge: byName{}, Clock: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
		t.Fatal(err)
	}
	k, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{PID: -1, Hold: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	clock.move(9 * time.Second)
	if err := k.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	clock.move(9 * time.Second)
	if call, err := s.Call(t.Context(), "", "", "x"); err != nil || call.Execution != pool.Running {
		t.Errorf("while it is held: %v %v", call.Execution, err)
	}
	clock.move(2 * time.Second)
	if _, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{}); !errors.Is(err, ErrConflict) {
		t.Errorf("another claim without again: %v", err)
	}
	if _, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{Again: true}); err != nil {
		t.Errorf("another claim of what is uncertain now: %v", err)
	}
	checkStore(t, s)
}
