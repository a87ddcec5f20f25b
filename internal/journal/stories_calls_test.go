package journal_test

import (
	"errors"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

// storiesOfCalls are of calls that wait, run and are answered, and of what becomes of them with their histories.
func storiesOfCalls() []storetest.Story {
	return []storetest.Story{
		{What: "calls are decided and answered", Steps: []step{begin(asked("q"), calling("c1", "c2", "c3")), decide("c1", pool.Approved), decide("c2", pool.Denied), decide("c1", pool.Denied), decide("c1", pool.Approved), undo(""), undo(""), redo,
			appending("main", result("c1", "r1")), appending("main", result("c1", "twice")), appending("main", result("none", "of nothing")), undo(""), undo("4"), journalOf}},
		{What: "a call that runs", Steps: []step{begin(asked("q"), calling("c1")), decide("c1", pool.Approved), claim("c1"), undo(""), claim("c1"), answer("c1", "done"), undo(""), undo(""), redo, redo, appending("main", answered("so"))}},
		{What: "a call whose program died", Steps: []step{begin(asked("q"), calling("c1")), decide("c1", pool.Approved), claim("c1"), later(24 * time.Hour), appending("main", asked("what now")), settle, fork("side", ""), undo("")}},
		{What: "calls on branches", Steps: []step{begin(asked("q"), calling("c1", "c2")), decide("c1", pool.Approved), appending("main", result("c1", "r")), fork("whole", ""), fork("cut", "@2"), one("drop", func(b *chatctx.Batch) { b.Drop("@2") }), undo(""),
			one("rewind", func(b *chatctx.Batch) { b.Rewind("@1") }), undo(""), batch("pick", "cut", func(b *chatctx.Batch) { b.Pick("main", "@2") }), one("remove", func(b *chatctx.Batch) { b.RemoveBranch("whole") }), undo("")}},
		{What: "a result comes late", Steps: []step{begin(asked("q"), calling("c1")), decide("c1", pool.Approved), claim("c1"), fork("side", "@1"), one("rewind", func(b *chatctx.Batch) { b.Rewind("@1") }), answer("c1", "late"), undo("4"), undo(""), appending("main", answered("on"))}},
		{What: "a message after calls that wait", Steps: []step{begin(asked("q"), calling("c1", "c2")), appending("main", asked("never mind")), appending("main", result("c1", "too late")), undo(""), undo(""), redo}},
		{What: "calls with a time limit", Steps: []step{begin(asked("q"), calling("c1")), one("expires", func(b *chatctx.Batch) { b.ExpireCall("c1", pool.Time(1)) }), undo(""), one("the same", func(b *chatctx.Batch) { b.ExpireCall("c1", 0) })}},
		{What: "taken with calls", Steps: []step{begin(asked("q"), answered("a")), fork("side", "@1"), appending("side", calling("c1")), decideOn("side", "c1", pool.Approved), takeFrom("main", "side", 2, record.TakeOptions{}), undo(""), redo, appending("main", result("c1", "r"))}},
	}
}

func decide(call string, status pool.Status) step { return decideOn("main", call, status) }

func decideOn(on, call string, status pool.Status) step {
	return batch(string(status)+" "+call, on, func(b *chatctx.Batch) { b.Decide(record.CallRef(call), record.Verdict{Status: status, Reason: "fine"}) })
}

// claims has the claim of each scene.
var claims = map[*storetest.Scene]*chatctx.CallClaim{}

func claim(call string) step {
	return does("claim "+call, func(s *storetest.Scene) (_ any, err error) {
		claims[s], err = s.Store.ClaimCall(s.T.Context(), s.C.ID.String(), "main", record.CallRef(call), record.ClaimOptions{Hold: time.Hour, PID: -1})
		return nil, err
	})
}

func answer(call, text string) step {
	return does("answer "+call, func(s *storetest.Scene) (any, error) {
		if claims[s] == nil {
			return nil, errors.New("no claim")
		}
		return s.Store.ResolveCall(s.T.Context(), s.C.ID.String(), "main", record.CallRef(call), record.CallAnswer{Result: pool.Result{Text: text}, Token: claims[s].Token})
	})
}
