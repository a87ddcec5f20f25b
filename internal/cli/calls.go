package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/pool"
)

func init() { lookGroups = append(lookGroups, callLooks) }

const callFields = "call, id, message, context, branch, tool_name, arguments, exact_arguments, effective_arguments, changed_by{kind, name, claimed, said_by_file}, approval_status, execution, reason, since, expires, by, program, effect, rule, origin{context, branch, call, goal}"

func callCommands() []*command {
	return []*command{{name: "calls", does: "tool calls that wait: decide about them, run them, answer them", scope: onBranch,
		subs: slices.Concat([]*command{{name: "ls"}, {name: "show"}, {name: "approve"}, {name: "deny"}, {name: "cancel"}, {name: "expire"}, {name: "claim"}, {name: "resolve"}, {name: "run"}, {name: "wait"}, {name: "ensure"}, {name: "watch"}},
			callReview())}}
}

// byFlag is embedded in the parameters of commands that decide.
type byFlag struct {
	By string `flag:"by" doc:"the {NAME} of who does it, noted beside the user's"`
}

func callLooks() map[string]look {
	return map[string]look{
		"calls.list": preparing(func(r *run, in *operation.CallListing) error { return r.atLeastOne(in.Limit) },
			as(func(r *run, _ *operation.CallListing, v contract.Call) { r.judgedLine(v) })).
			orNone(func(r *run) { r.note("no call is open") }),
		"calls.log": as(func(r *run, _ *operation.CallSteps, v contract.Step) { r.stepLine(v.CallStep) }),
		"calls.get": as(func(r *run, _ *operation.CallShowing, v operation.ShownCall) { r.printCall(v) }),
		"calls.claim": preparing(checkClaim, as(func(r *run, in *operation.Claiming, v contract.Claim) {
			if in.Renew != "" {
				r.printf("%s is still yours\n", callName(v.Call.Call))
				return
			}
			r.printf("%s %s is yours to run, with\n%s\n", callName(v.Call.Call), clean(v.Tool), clean(string(v.RunArguments)))
			r.note("end it: %s", r.again("calls resolve "+callName(v.Call.Call)+" --token "+v.Token.String()+" --result TEXT"))
		})),
		"calls.resolve": preparing(readResult, as(func(r *run, _ *operation.Resolving, v contract.Answered) { r.printAnswered(v) })),
		"calls.expire": preparing(readExpiry, as(func(r *run, _ *operation.Expiring, v contract.Call) {
			if v.Expires == 0 {
				r.printf("%s does not expire\n", callName(v.Call))
				return
			}
			r.printf("%s expires %s\n", callName(v.Call), moment(v.Expires))
		})),
	}
}

// atLeastOne refuses a largest number of items that is none.
func (r *run) atLeastOne(n *int) error {
	if n != nil && *n < 1 {
		return usagef("%s -n takes a number of 1 or more", r.name)
	}
	return nil
}

// callReview is the command that asks a person about calls, and the last of those about calls.
func callReview() []*command {
	return []*command{
		{name: "review", does: "go through the calls that wait at the terminal: yes, no, always, edit, reason, skip", scope: onBranch, run: in(doCallsReview),
			json: callFields + "; a line each that was decided", example: "chatctx calls review"},
		{name: "log"},
	}
}

var (
	callName  = operation.NameOf
	callState = operation.StateOf
)

// callStore opens the store so that rules can decide. A store that cannot be written is opened to read.
func (r *run) callStore() (*chatctx.Store, error) {
	st, err := r.writer()
	if errors.Is(err, chatctx.ErrReadOnly) || errors.Is(err, fs.ErrPermission) {
		return r.reader()
	}
	return st, err
}

// judgedLine prints a call on one line. A call that the rules decide is not shown as waiting.
func (r *run) judgedLine(v contract.Call) {
	state := callState(v.Call)
	ruled := v.Rule != (chatctx.ID{}) && v.Effect != record.Ask
	if ruled {
		state = map[string]string{record.Allow: "allowed", record.Deny: "denied"}[v.Effect]
	}
	r.callLine(v.Call, state, v.Title)
	if ruled {
		r.printf("    %s\n", r.paint(dim, "by rule "+short(v.Rule)+", by whoever runs it or waits for it"))
	}
}

// callLine prints a call on one line, with its state and the title of its conversation.
func (r *run) callLine(c *record.Call, state, title string) {
	when := moment(c.Since)
	if c.Expires != 0 {
		when += ", expires " + moment(c.Expires)
	}
	whole := plainly(c.Tool + "(" + string(compact(c.RunArguments())) + ")")
	line := cut(strings.Join(strings.Fields(whole), " "), max(r.con.width-26, 20))
	if line != whole {
		when += fmt.Sprintf(", cut: %s shows all", r.again("calls show "+callName(c)))
	}
	r.row(4, "%s  %s  %s", r.paint(yellow, callName(c)), r.paint(callStyle(c), pad(state, 9)), line)
	r.row(4, "    %s of %s  %s", clean(c.Branch), titled(title, c.Context), r.paint(dim, when))
}

// titleOf returns the title of a conversation.
func (r *run) titleOf(id chatctx.ID) string {
	if c, err := r.st.Context(r.ctx, id.String()); err == nil {
		if info, err := c.Info(r.ctx); err == nil {
			return info.Title
		}
	}
	return ""
}

func callStyle(c *record.Call) string {
	switch {
	case c.Status == pool.Denied || c.Execution == pool.Failed || c.Execution == pool.Uncertain:
		return red
	case c.Status == pool.Pending:
		return cyan
	}
	return green
}

func (r *run) stepLine(s *record.CallStep) {
	words := []string{s.From + " → " + s.To}
	if s.From == "" {
		words = []string{s.To}
	}
	words = append(words, strings.TrimSpace("by "+s.Kind+" "+clean(s.Name)))
	if s.User != "" {
		words = append(words, "for "+clean(s.User))
	}
	if s.Claimed != "" {
		words = append(words, "as "+oneLine(s.Claimed))
	}
	if s.Origin != "" {
		words = append(words, "came by "+clean(s.Origin))
	}
	if s.Said {
		words = append(words, "said by the file")
	}
	if s.Reason != "" {
		words = append(words, oneLine(s.Reason))
	}
	if s.Runs != nil && !s.Runs.Same(&record.Runs{}) {
		words = append(words, "runs: "+oneLine(s.Runs.String()))
	}
	r.printf("%s  %s:%d  %s  %s\n", r.paint(dim, moment(s.At)), r.paint(yellow, short(s.Message)), s.Index, clean(s.Tool), strings.Join(words, "  "))
}
