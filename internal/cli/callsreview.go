package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// printCall prints a call with everything that a person needs for the decision.
func (r *run) printCall(v operation.ShownCall) {
	c := v.Call.Call
	r.judgedLine(v.Call)
	if v.Description != "" {
		r.printf("%s\n", plainly(v.Description))
	}
	r.printArguments(c)
	if v.Plan != nil {
		r.printf("%s\n", plainly(v.Plan.String()))
	}
	r.printChange(c)
	if v.Judged != nil {
		r.printf("%s\n", r.rulingLine(v.Judged))
	}
	if v.Replaced != "" {
		r.printf("waits for a decision again when it runs: %s\n", oneLine(v.Replaced))
	}
	for _, d := range c.Decisions {
		r.stepLine(&record.CallStep{Message: c.Message, Index: c.Index, Tool: c.Tool, Decision: d})
	}
	if c.Claim != nil {
		r.printf("is run by %s\n", clean(c.Claim.Who()))
	}
}

// printArguments prints all arguments of a call, and who changed them.
func (r *run) printArguments(c *record.Call) {
	if c.Effective != nil {
		ran := "to be run with"
		if c.Execution != pool.NotRun {
			ran = "run with"
		}
		r.printf("proposed:\n%s\n%s, %s:\n", pretty(c.Arguments), ran, screen.ChangedBy(&c.Call))
	}
	r.printf("%s\n", pretty(c.RunArguments()))
}

// printChange prints a diff if the arguments of a call change a file.
func (r *run) printChange(c *record.Call) {
	if before, after, name, ok := screen.FileChange(c.RunArguments()); ok {
		r.printf("%s\n", r.paint(bold, plainly(name)))
		r.printLineDiff(before, after)
	}
}

// printCommand prints the command line that a call would run with arguments, if its tool is a command.
func (r *run) printCommand(st *chatctx.Store, c *record.Call, arguments json.RawMessage) {
	if in, err := st.Context(r.ctx, c.Context.String()); err == nil {
		if t, err := r.commandTool(r.ctx, in, c); err == nil && t != nil {
			r.printf("%s\n", plainly(approval.CommandText(t, arguments)))
		}
	}
}

// commandTool returns the tool that a call would run if that is a command, which a tool of this program is not. A folder that nothing names is that of the
// program that will run it, which need not be this one.
func (r *run) commandTool(ctx context.Context, in *chatctx.ChatContext, c *record.Call) (*record.Tool, error) {
	e := &approval.Executor{Context: in, Functions: r.ownTools(in)}
	return e.CommandTool(ctx, c)
}

// printLineDiff prints the lines that differ, with some around them.
func (r *run) printLineDiff(before, after string) {
	for _, l := range screen.LineDiff(before, after) {
		switch l.Sign {
		case '+':
			r.printf("%s\n", r.paint(green, "+ "+l.Text))
		case '-':
			r.printf("%s\n", r.paint(red, "- "+l.Text))
		case 0:
			r.printf("%s\n", r.paint(dim, "  "+l.Text))
		default:
			r.printf("  %s\n", l.Text)
		}
	}
}

// reviewer goes through the waiting calls.
type reviewer struct {
	r       *run
	st      *chatctx.Store
	line    func(prompt string) (string, error) // asks for a line; io.EOF if there are no more
	takes   func(*record.Call) bool             // nil: all
	by      string                              // who decides, noted beside the user's name
	editor  bool                                // arguments may be edited in the person's editor
	reason  string                              // for the next decision
	decided int
}

const reviewKeys = "y yes, n no, a always (a rule: for this call, for this tool with these values, or for this tool), e edit the arguments, r reason, s skip, q quit"

func doCallsReview(r *run, in *byFlag) error {
	st, err := r.writer()
	if err != nil {
		return err
	}
	listing := operation.CallListing{State: "pending"}
	operation.Locate(&listing, r.contextRef(), r.branchName())
	f, err := listing.Filter(r.request())
	if err != nil {
		return contextHint(err)
	}
	if !r.con.asks() {
		return r.wantsTerminal("calls review needs a terminal", "decide without one: "+r.again("calls approve CALL")+", "+r.again("calls deny CALL"))
	}
	if err := r.prove(st); err != nil {
		return err
	}
	typed := bufio.NewReader(r.con.in)
	v := &reviewer{r: r, st: st, by: in.By, editor: true, line: func(prompt string) (string, error) {
		fmt.Fprint(r.con.err, prompt)
		line, err := typed.ReadString('\n')
		if err != nil && line == "" {
			return "", io.EOF
		}
		return line, nil
	}}
	seen, err := v.all(f)
	if err == nil && seen == 0 {
		r.note("no call waits for a decision")
	}
	return err
}

// all asks about each call that a filter selects and that no rule decides, and returns how many there were.
func (v *reviewer) all(f record.CallFilter) (seen int, err error) {
	for c, err := range v.st.Calls(v.r.ctx, f) {
		if err != nil {
			return seen, err
		}
		if v.takes != nil && !v.takes(c) {
			continue
		}
		j, err := toolcall.Judge(v.r.ctx, base.Of(v.st), c)
		if err != nil {
			return seen, err
		}
		if j.Effect != record.Ask {
			continue // the rules decide it
		}
		seen++
		if more, err := v.one(c, j); err != nil || !more {
			return seen, err
		}
	}
	return seen, nil
}

// one asks about one call until it is decided or skipped. It returns more if the review goes on.
func (v *reviewer) one(c *record.Call, j *record.Ruling) (more bool, err error) {
	r := v.r
	v.reason = ""
	r.callLine(c, callState(c), r.titleOf(c.Context))
	r.printArguments(c)
	r.printCommand(v.st, c, c.RunArguments())
	r.printChange(c)
	r.printf("%s\n", r.rulingLine(j))
	var arguments json.RawMessage
	for {
		r.con.out.flush()
		answer, err := v.ask("decide? [y,n,a,e,r,s,q,?] ")
		if err != nil {
			return false, err
		}
		var done bool
		switch answer {
		case "y", "yes":
			done, err = true, v.decide(c, record.Verdict{Status: pool.Approved, Arguments: arguments})
		case "n", "no":
			return true, v.decide(c, record.Verdict{Status: pool.Denied})
		case "a", "always":
			done, err = v.always(c, j, arguments)
		case "e", "edit":
			arguments = v.edited(c, arguments)
		case "r", "reason":
			if v.reason, err = v.ask("reason: "); err != nil {
				return false, err
			}
		case "s", "skip", "":
			return true, nil
		case "q", "quit":
			return false, nil
		default:
			r.note(reviewKeys)
		}
		if arguments != nil && errors.Is(err, chatctx.ErrInvalid) {
			r.note("%s", clean(err.Error()))
			continue
		}
		if err != nil || done {
			return true, err
		}
	}
}

func (v *reviewer) ask(prompt string) (string, error) {
	line, err := v.line(prompt)
	if errors.Is(err, io.EOF) {
		return "q", nil
	}
	return strings.TrimSpace(line), err
}

// decide makes a decision, together with new rules. If somebody else was faster, it says so and the review goes on.
func (v *reviewer) decide(c *record.Call, verdict record.Verdict, rules ...record.Rule) error {
	verdict.Name, verdict.Reason = v.by, v.reason
	b := v.st.Begin(c.Context.String(), c.Branch)
	for _, rule := range rules {
		b.AddRule(rule, record.RuleScope{})
	}
	b.Decide(c.Ref(), verdict)
	done, err := b.Commit(v.r.ctx)
	if errors.Is(err, chatctx.ErrConflict) {
		v.r.note("%s", clean(err.Error()))
		return nil
	}
	if err != nil {
		return err
	}
	v.decided++
	for _, step := range done.Steps {
		if made := step.Rule; made != nil {
			v.r.note("rule %s holds here from now on: %s; chatctx rules rm %s removes it", short(made.ID), clean(made.String()), short(made.ID))
		}
	}
	now := done.Last().Call
	j := callToJSON(now)
	j.Operation = done.Operation
	return v.r.emit(j, func() { v.r.printf("%s is %s\n", callName(now), callState(now)) })
}

// always allows calls like this one by a rule, and this call. The person chooses what the rule covers, the narrowest first. It returns done if the call is
// decided.
func (v *reviewer) always(c *record.Call, j *record.Ruling, arguments json.RawMessage) (done bool, err error) {
	q := j.Question
	if arguments != nil {
		q.Arguments = arguments
	}
	offers := approval.Offers(q)
	for i, rule := range offers {
		v.r.note("%d  %s", i+1, clean(rule.String()))
	}
	answer, err := v.ask(fmt.Sprintf("which? [1-%d, nothing: none] ", len(offers)))
	if err != nil {
		return false, err
	}
	n, err := strconv.Atoi(answer)
	if err != nil || n < 1 || n > len(offers) {
		v.r.note("no rule was made, and the call waits")
		return false, nil
	}
	rule := offers[n-1]
	rule.Reason = v.reason
	return true, v.decide(c, record.Verdict{Status: pool.Approved, Arguments: arguments}, *rule)
}

// edited is edit, but reports unusable arguments and keeps those before.
func (v *reviewer) edited(c *record.Call, arguments json.RawMessage) json.RawMessage {
	changed, err := v.edit(c, arguments)
	if err != nil {
		v.r.note("%s", clean(err.Error()))
		return arguments
	}
	return changed
}

// edit lets the person change the arguments, in their editor or else on a line.
func (v *reviewer) edit(c *record.Call, arguments json.RawMessage) (json.RawMessage, error) {
	if arguments == nil {
		arguments = c.RunArguments()
	}
	text := ""
	var editor []string
	var err error
	if v.editor {
		editor, err = chosenEditor()
	}
	if err != nil {
		return arguments, err
	}
	if editor != nil {
		var b bytes.Buffer
		if json.Indent(&b, arguments, "", "  ") != nil {
			b.Reset()
			b.Write(arguments)
		}
		text, err = v.r.runEditor(editor, b.String())
	} else {
		text, err = v.ask("arguments: ")
	}
	if err != nil {
		return arguments, err
	}
	if !json.Valid([]byte(text)) {
		return arguments, errors.New("that is not JSON; the arguments stay as they are")
	}
	v.r.printf("to be run with:\n%s\n", pretty(json.RawMessage(text)))
	v.r.printCommand(v.st, c, json.RawMessage(text))
	return compact(json.RawMessage(text)), nil
}
