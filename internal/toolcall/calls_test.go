package toolcall_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

var update = flag.Bool("update", false, "write the golden files anew")

type step = storetest.Step

func does(what string, do func(ctx context.Context, s *storetest.Scene) (any, error)) step {
	return step{What: what, Do: func(s *storetest.Scene) (any, error) { return do(s.T.Context(), s) }}
}

// begin makes a conversation whose answer has calls of these tools, by the ids c1, c2 …
func begin(tools ...string) step {
	return does("new", func(ctx context.Context, s *storetest.Scene) (_ any, err error) {
		answer := &pool.Message{Role: pool.Assistant}
		for i, tool := range tools {
			answer.Calls = append(answer.Calls, pool.Call{ID: fmt.Sprint("c", i+1), Tool: tool, Arguments: []byte(`{"cmd":"ls","n":1}`)})
		}
		s.C, err = s.Store.New(ctx, record.NewContext{Title: "T", Messages: []*pool.Message{pool.NewText(pool.User, "q"), answer}})
		return nil, err
	})
}

func decide(ref string, v record.Verdict) step {
	return storetest.Batch(fmt.Sprintf("%s %s by %s", v.Status, ref, v.Kind), "main", func(b *chatctx.Batch) { b.Decide(record.CallRef(ref), v) })
}

func yes(ref string) step { return decide(ref, record.Verdict{Status: pool.Approved, Reason: "fine"}) }
func no(ref string) step  { return decide(ref, record.Verdict{Status: pool.Denied, Reason: "not here"}) }

// claims has the claim of each scene.
var claims = map[*storetest.Scene]*record.Claimed{}

func claim(ref string, o record.ClaimOptions) step {
	return does(fmt.Sprintf("claim %s again %v", ref, o.Again), func(ctx context.Context, s *storetest.Scene) (any, error) {
		o.PID = -1
		k, err := toolcall.ClaimCall(ctx, base.Of(s.Store), s.C.ID.String(), "main", record.CallRef(ref), o)
		if err == nil {
			claims[s] = k
		}
		return nil, err
	})
}

func answer(ref string, a record.CallAnswer) step { return answerOf(ref, a, true) }

func answerOf(ref string, a record.CallAnswer, token bool) step {
	return does(fmt.Sprintf("answer %s, token %v", ref, token), func(ctx context.Context, s *storetest.Scene) (any, error) {
		if token && claims[s] == nil {
			return nil, errors.New("nothing is claimed")
		}
		if token {
			a.Token = claims[s].Token
		}
		return toolcall.ResolveCall(ctx, base.Of(s.Store), s.C.ID.String(), "main", record.CallRef(ref), a)
	})
}

func said(text string) record.CallAnswer { return record.CallAnswer{Result: pool.Result{Text: text}} }

func later(d time.Duration) step {
	return does("later", func(_ context.Context, s *storetest.Scene) (any, error) {
		s.Now = s.Now.Add(d)
		return nil, nil
	})
}

// list names the calls by a filter.
func list(f record.CallFilter) step {
	return does(fmt.Sprintf("calls %+v", f), func(ctx context.Context, s *storetest.Scene) (any, error) {
		var out []string
		for c, err := range toolcall.Calls(ctx, base.Of(s.Store), f) {
			if err != nil {
				return nil, err
			}
			out = append(out, fmt.Sprintf("%s %s on %s: %s/%s %s", c.ID, c.Tool, c.Branch, c.Status, c.Execution, c.Reason))
		}
		return out, nil
	})
}

var steps = does("steps of calls", func(ctx context.Context, s *storetest.Scene) (any, error) {
	return toolcall.CallLog(ctx, base.Of(s.Store), s.C.ID)
})

var settle = does("settle", func(ctx context.Context, s *storetest.Scene) (any, error) {
	return nil, toolcall.SettleBranch(ctx, base.ContextOf(s.Store, s.C.ID), "main")
})

func rule(r record.Rule) step {
	return does("rule", func(ctx context.Context, s *storetest.Scene) (any, error) {
		return toolcall.AddRule(ctx, base.Of(s.Store), r)
	})
}

func noRule(ref string) step {
	return does("rule rm "+ref, func(ctx context.Context, s *storetest.Scene) (any, error) {
		return toolcall.RemoveRule(ctx, base.Of(s.Store), ref)
	})
}

// judge asks the rules about a tool, and applies them to the first call.
func judge(tool string) step {
	return does("judge "+tool, func(ctx context.Context, s *storetest.Scene) (any, error) {
		return toolcall.JudgeTool(ctx, base.ContextOf(s.Store, s.C.ID), "main", tool, []byte(`{"cmd":"ls"}`))
	})
}

func apply(ref string) step {
	return does("apply the rules to "+ref, func(ctx context.Context, s *storetest.Scene) (any, error) {
		c, err := s.Store.Call(ctx, s.C.ID.String(), "main", record.CallRef(ref))
		if err != nil {
			return nil, err
		}
		_, err = s.Store.ApplyRules(ctx, c)
		return nil, err
	})
}

func show(ref string) step {
	return does("call "+ref, func(ctx context.Context, s *storetest.Scene) (any, error) {
		return toolcall.ReadCall(ctx, base.Of(s.Store), s.C.ID.String(), "main", record.CallRef(ref))
	})
}

var lists = []step{list(record.CallFilter{}), list(record.CallFilter{Tool: "a"}), list(record.CallFilter{State: "pending/none"}), steps}

func with(more []step, first ...step) []step { return append(first, more...) }

func stories() []storetest.Story {
	hour := record.ClaimOptions{Hold: time.Hour}
	return []storetest.Story{
		{What: "decisions", Steps: with(lists, begin("a", "b", "c", "d"), yes("c1"), no("c2"), yes("c1"), no("c1"), yes("none"), yes("c2"), decide("c3", record.Verdict{Status: pool.Approved, Arguments: []byte(`{"cmd":"pwd"}`)}),
			decide("c4", record.Verdict{Status: pool.Denied}), decide("c4", record.Verdict{Status: "perhaps"}), decide("c4", record.Verdict{Status: pool.Denied, Arguments: []byte(`{}`)}), show("c1"), show("c2"), show("c3"), show("@2"), show("a"), show("x"))},
		{What: "a run", Steps: with(lists, begin("a", "b"), claim("c1", hour), yes("c1"), claim("c1", hour), claim("c1", hour), answerOf("c1", said("of nobody"), false), answer("c1", said("done")), answer("c1", said("twice")), show("c1"), claim("c1", hour))},
		{What: "a run that failed", Steps: with(lists, begin("a"), yes("c1"), claim("c1", hour), answer("c1", record.CallAnswer{Result: pool.Result{Text: "bad", IsError: true}}), show("c1"))},
		{What: "a run that was left", Steps: with(lists, begin("a", "b"), yes("c1"), claim("c1", hour), later(time.Minute), settle, show("c1"), later(2*time.Hour), show("c1"), list(record.CallFilter{}), settle, show("c1"), claim("c1", hour), answer("c1", said("too late")),
			claim("c1", record.ClaimOptions{Hold: time.Hour, Again: true}), answer("c1", said("again")))},
		{What: "an uncertain run that a person answers", Steps: with(lists, begin("a"), yes("c1"), claim("c1", hour), later(2*time.Hour), settle, answerOf("c1", record.CallAnswer{Result: pool.Result{Text: "it did"}, By: "bob"}, false))},
		{What: "calls that expire", Steps: with(lists, begin("a", "b"), storetest.Batch("expires", "main", func(b *chatctx.Batch) { b.ExpireCall("c1", 1767323060000000) }), show("c1"), later(time.Hour), show("c1"), list(record.CallFilter{}), settle, show("c1"), yes("c1"), yes("c2"))},
		{What: "rules", Steps: with(lists, begin("read", "write", "rm"), rule(record.Rule{Effect: record.Allow, Tool: "read"}), rule(record.Rule{Effect: record.Deny, Tool: "rm*", Reason: "never"}), rule(record.Rule{Effect: record.Ask, Tool: "*"}),
			rule(record.Rule{Effect: "perhaps", Tool: "x"}), rule(record.Rule{Effect: record.Allow, Tool: ""}), rule(record.Rule{Effect: record.Allow, Tool: "read"}), judge("read"), judge("rm"), judge("rmdir"), judge("other"), apply("c1"), apply("c2"), apply("c3"), apply("c3"),
			noRule("none"), storetest.Batch("rule of the branch", "main", func(b *chatctx.Batch) {
				b.AddRule(record.Rule{Effect: record.Allow, Tool: "write"}, record.RuleScope{Branch: true})
			}), judge("write"), apply("c2"), storetest.Batch("rule of a call", "main", func(b *chatctx.Batch) {
				b.AddRule(record.Rule{Effect: record.Allow, Tool: "write"}, record.RuleScope{Call: "c2"})
			}), storetest.Batch("no such rule", "main", func(b *chatctx.Batch) { b.RemoveRule("none") }))},
		{What: "calls on two branches", Steps: with(lists, begin("a", "b"), storetest.Batch("fork", "main", func(b *chatctx.Batch) { b.Fork("side", chatctx.ForkOptions{Stay: true}) }), yes("c1"), claim("c1", hour),
			storetest.Batch("rewind", "main", func(b *chatctx.Batch) { b.Rewind("@1") }), answer("c1", said("late")), list(record.CallFilter{}))},
	}
}

func TestCalls(t *testing.T) {
	storetest.Tell(t, "testdata/calls.txt", *update, func() chatctx.Options { return chatctx.Options{Judge: approval.Rules{}} }, stories())
}
