package cli

import (
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// waits counts open calls by what they wait for.
type waits struct{ contract.Open }

// String says how many calls wait for a person, and separately what else is open.
func (w *waits) String() string {
	var words []string
	if w.Person > 0 {
		words = append(words, plural.CallsWait(w.Person)+" for a decision")
	}
	if w.Program > 0 {
		words = append(words, plural.CallsWait(w.Program)+" for a program that runs "+them(w.Program))
	}
	if w.Child > 0 {
		words = append(words, plural.CallsWait(w.Child)+" for "+map[bool]string{true: "its sub-context", false: "their sub-contexts"}[w.Child == 1])
	}
	if w.Running > 0 {
		words = append(words, count(w.Running, "call")+" "+map[bool]string{true: "runs", false: "run"}[w.Running == 1])
	}
	return strings.Join(words, ", ")
}

func them(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// waitsError means that calls are open; the model is not asked again before each has its result.
type waitsError struct {
	waits
	goOn []string // the commands that go on then, one for each answer
}

func (e *waitsError) Error() string {
	what, once := "the answer goes on", "once it has its result"
	if len(e.goOn) > 1 {
		what = "the answers go on"
	}
	if e.All() > 1 {
		once = "once they have their results"
	}
	return e.waits.String() + ": " + what + " with " + strings.Join(e.goOn, ", ") + " " + once
}

// openOn returns the open calls of a branch, and what they wait for.
func (r *run) openOn(c *chatctx.ChatContext, branchName string) ([]*record.Call, waits, error) {
	calls, open, err := r.request().OpenOn(c, branchName)
	return calls, waits{open}, err
}

// openAfter returns the open calls that an answer left.
func (r *run) openAfter(out *turn.Outcome) ([]*record.Call, waits, error) {
	if out.Waiting == 0 {
		return nil, waits{}, nil
	}
	c, err := r.st.Context(r.ctx, out.Context.String())
	if err != nil {
		return nil, waits{}, err
	}
	return r.openOn(c, out.Branch)
}

// tellWaiting names open calls, and what each waits for.
func (r *run) tellWaiting(calls []*record.Call) {
	for _, call := range calls {
		what := "is " + callState(call)
		switch call.WaitsFor() {
		case record.WaitsForPerson:
			what = "waits for a decision: " + r.again("calls approve "+callName(call)) + ", or deny"
			if call.Execution == pool.Uncertain {
				what = "waits for a word about what became of it: " + r.again("calls resolve "+callName(call)) + ", or calls run --again"
			}
		case record.WaitsForProgram:
			what = "waits for a program that runs it"
		case record.WaitsForChild:
			what = "waits for " + call.Claim.Who()
		case record.WaitsForResult:
			what = "is run by " + clean(call.Claim.Who())
		}
		r.note("%s %s %s", callName(call), clean(call.Tool), what)
	}
}

// tellUnrun names the calls of a branch that are approved and that nobody runs.
func (r *run) tellUnrun(c *chatctx.ChatContext, branchName string) {
	calls, err := toolcall.OpenCalls(r.ctx, base.ContextOf(c.Store(), c.ID), branchName)
	if err != nil {
		return
	}
	for _, call := range calls {
		if call.WaitsFor() == record.WaitsForProgram {
			r.note("%s %s is approved and did not run: %s", callName(call), clean(call.Tool), r.again("calls run "+callName(call)))
		}
	}
}
