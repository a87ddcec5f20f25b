package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/pool"
)

const callFields = "call, id, message, context, branch, tool_name, arguments, exact_arguments, effective_arguments, changed_by{kind, name, claimed, said_by_file}, approval_status, execution, reason, since, expires, by, program, effect, rule, origin{context, branch, call, goal}"

func callCommands() []*command {
	return []*command{{name: "calls", does: "tool calls that wait: decide about them, run them, answer them", scope: onBranch,
		subs: slices.Concat(callLists(), callDecisions(), callRuns(), callWatches())}}
}

func callBy() *flag {
	return &flag{name: "by", usage: "the `NAME` of who decides, noted beside the user's"}
}

// callFilters are the flags of commands that list calls.
func callFilters() []*flag {
	return []*flag{
		{name: "tool", usage: "only of tools whose name matches `PATTERN`"},
		{name: "state", usage: "only in this `STATE`: pending, approved, running, uncertain"},
		{name: "all", kind: onOff, usage: "only those of the current conversation and branch"},
		{name: "everywhere", kind: onOff, usage: "those of all conversations and branches, which is the default"},
		{name: "n", kind: number, usage: "at most `N`"},
	}
}

// callLists are the commands that show calls.
func callLists() []*command {
	return []*command{
		{name: "ls", does: "list the open calls of all conversations, the oldest first", scope: onBranch, do: doCallsLs, paged: true, flags: callFilters(),
			more: "With --context: only those of that conversation and its sub-contexts. A call's name is MESSAGE:INDEX, or the provider's id if that is unique.",
			json: callFields + "; a line each", example: "chatctx calls ls\nchatctx calls ls --all\nchatctx calls ls --tool \"fs_*\" --json"},
		{name: "show", args: "CALL", does: "show a call: its arguments, as a diff where they change a file, and what was decided", scope: onBranch, do: doCallsShow,
			json: callFields + ", description, runs{command[], argv[], mcp, url, cwd, env[], headers[], stdin, dashes, timeout, why}, decisions[], claim{program, pid, host}", example: "chatctx calls show @:1"},
	}
}

// callDecisions are the commands that decide.
func callDecisions() []*command {
	decided := callFields + ", operation; a line each"
	reason := &flag{name: "reason", usage: "the `REASON`; that of a denial goes to the model word for word"}
	which := []*flag{
		{name: "all", kind: onOff, usage: "all calls that wait on the branch"},
		{name: "matching", usage: "those on the branch of tools whose name matches `PATTERN`: fs_*"},
		{name: "everywhere", kind: onOff, usage: "with --all or --matching: of all conversations and branches; with --context: of that conversation and its sub-contexts"},
		callBy(), reason,
	}
	return []*command{
		{name: "approve", args: "[CALL…]", does: "approve calls", scope: onBranch, do: doCallsApprove,
			more:  "Approving runs nothing: calls run, send --continue, chat, or any program that claims the call runs it. All named calls of a conversation are decided together or not at all.",
			flags: append([]*flag{{name: "arguments", usage: "run it with this `JSON` in place of the arguments that the model proposed"}}, which...),
			json:  decided, example: "chatctx calls approve @:1 --reason \"looked at it\"\nchatctx calls approve --matching \"read_*\""},
		{name: "deny", args: "[CALL…]", does: "deny calls", scope: onBranch, do: doCallsDeny, flags: which,
			more: "A tool message with the denial goes to the end of the branch.",
			json: decided, example: "chatctx calls deny @:1 --reason \"not in this folder\""},
		{name: "cancel", args: "CALL…", does: "give calls up, also approved ones that nobody has begun to run", scope: onBranch, do: doCallsCancel, flags: []*flag{callBy(), reason},
			json: decided, example: "chatctx calls cancel @:1"},
		{name: "expire", args: "CALL…", does: "let calls count as denied when nobody has decided in time", scope: onBranch, do: doCallsExpire,
			flags: []*flag{{name: "in", kind: span, usage: "the `TIME` from now: 10m, 24h; 0 removes the limit"}},
			json:  decided, example: "chatctx calls expire @:1 --in 10m"},
	}
}

// callRuns are the commands that run calls and answer them.
func callRuns() []*command {
	return []*command{
		{name: "claim", args: "CALL", does: "take an approved call to run it: of several who try, one gets it", scope: onBranch, do: doCallsClaim,
			more: "Then run the tool, and end the call with calls resolve. A claim that is not renewed (calls claim CALL --renew TOKEN) ends after --hold: then the call is uncertain, and calls claim --again takes it once more.",
			flags: []*flag{
				{name: "again", kind: onOff, usage: "run an uncertain call again: its program died while it ran"},
				{name: "hold", kind: span, usage: "how long the claim lasts without being renewed, as a `TIME`", otherwise: chatctx.ClaimLife.String()},
				{name: "pid", kind: number, usage: "the `PROCESS` whose end ends the claim"},
				{name: "renew", usage: "keep the claim that has this `TOKEN`"},
				{name: "by", usage: "the `NAME` of who runs it"},
			},
			json: callFields + ", token, run_arguments", example: "chatctx calls claim @:1 --json"},
		{name: "resolve", args: "CALL", mayBeEmpty: []string{"--result"}, does: "answer a call that was claimed, or that is uncertain", scope: onBranch, do: doCallsResolve,
			more: "The result message and the call's end are stored together.",
			flags: []*flag{
				{name: "result", usage: "the result's `TEXT`, or - for standard input"},
				{name: "as-json", kind: onOff, usage: "the result is JSON"},
				{name: "error", kind: onOff, usage: "the tool failed"},
				{name: "token", usage: "the claim's `TOKEN`: refuse if there is another claim by now"},
				{name: "by", usage: "the `NAME` of who answers, noted beside the user's"},
				rawText(),
			},
			json: callFields + ", result (message), position, operation", example: "chatctx calls resolve @:1 --result \"It is 15 degrees.\""},
		{name: "run", args: "[CALL…]", does: "run approved calls with the stored tools (see tools), and put their results on the branch", scope: onBranch, do: doCallsRun,
			more: "Without CALL: the branch's calls that rules allow or that are approved. A call is claimed before its tool starts, so nothing runs twice. Exit code 6: calls still wait.",
			flags: []*flag{
				{name: "again", kind: onOff, usage: "run uncertain calls again: their program died while they ran"},
				{name: "limit", kind: number, usage: "run at most `N` at a time"},
				{name: "timeout", kind: span, usage: "the `TIME` after which a tool without a limit of its own is ended"},
			},
			json: callFields + ", result (message), position, operation; a line each", example: "chatctx calls run\nchatctx calls run @:1 --again"},
	}
}

// callWatches are the commands that follow calls.
func callWatches() []*command {
	return []*command{
		{name: "wait", args: "CALL…", does: "wait until calls are decided: 0 when they are approved, 6 when one is denied or expired", scope: onBranch, do: doCallsWait,
			flags: []*flag{{name: "timeout", kind: span, usage: "give up after this `TIME`, with exit code 6"}},
			json:  callFields + "; a line each", example: "chatctx calls wait @:1 --timeout 10m && ./run-the-tool"},
		{name: "watch", does: "print open calls as they come up, also from other programs", scope: onBranch, do: doCallsWatch,
			flags: append([]*flag{{name: "existing", kind: onOff, usage: "those that are open already first"}}, callFilters()...),
			json:  callFields + "; a line each", example: "chatctx calls watch --json"},
		{name: "review", does: "go through the calls that wait at the terminal: yes, no, always, edit, reason, skip", scope: onBranch, do: doCallsReview,
			flags: []*flag{callBy()}, json: callFields + "; a line each that was decided", example: "chatctx calls review"},
		{name: "log", args: "[CALL]", does: "list every step of calls: who took it, when, from which program and why", scope: onBranch, do: doCallsLog, paged: true,
			more: "The steps of a call, from the first on, lead to its present state.",
			json: "call, id, context, tool_name, at, from, to, by{kind, name, claimed, said_by_file}, program, origin, reason, arguments_sha256, arguments, runs{command, mcp, url, cwd, env, headers, stdin, dashes}; a line each", example: "chatctx calls log --json"},
	}
}

// callName is a call's name in text.
func callName(c *chatctx.Call) string { return fmt.Sprintf("%s:%d", short(c.Message), c.Index) }

// callState returns a call's state in words.
func callState(c *chatctx.Call) string {
	if c.Execution == "" || c.Execution == pool.NotRun {
		return string(c.Status)
	}
	return string(c.Execution)
}

// callStore opens the store so that rules can decide. A store that cannot be written is opened to read.
func (r *run) callStore() (*chatctx.Store, error) {
	st, err := r.writer()
	if errors.Is(err, chatctx.ErrReadOnly) || errors.Is(err, fs.ErrPermission) {
		return r.reader()
	}
	return st, err
}

// callFilter reads the filter from the flags of ls and watch.
func (r *run) callFilter(st *chatctx.Store) (f chatctx.CallFilter, err error) {
	if r.contextRef() != "" || r.branchName() != "" {
		c, err := st.Context(r.ctx, r.contextRef())
		if err != nil {
			return f, contextHint(err)
		}
		f.Context, f.Branch = c.ID, r.branchName()
		if f.Branch != "" {
			if _, err := c.Branch(r.ctx, f.Branch); err != nil {
				return f, err
			}
		}
	}
	f.Tool = r.flag("tool")
	if f.Tool == "" {
		f.Tool = r.flag("matching")
	}
	if _, err := path.Match(f.Tool, ""); err != nil {
		return f, usagef("the pattern %q cannot be read", f.Tool)
	}
	if s := r.flag("state"); s != "" {
		f.State = contract.CallStates[s]
		if f.State == "" {
			return f, &usageError{fmt.Sprintf("no state %q", s), "an open call is pending, approved, running or uncertain"}
		}
	}
	return f, nil
}

// openCalls opens the store for a list of calls, and reads its filter.
func (r *run) openCalls(command string) (st *chatctx.Store, f chatctx.CallFilter, err error) {
	if r.given("n") && r.number("n") < 1 {
		return nil, f, usagef("%s -n takes a number of 1 or more", command)
	}
	if st, err = r.reader(); err == nil {
		f, err = r.callFilter(st)
	}
	if err == nil && r.is("all") && !r.is("everywhere") {
		f.Context, f.Branch, err = r.onThisBranch(st)
	}
	return st, f, err
}

func doCallsLs(r *run) error {
	st, f, err := r.openCalls("calls ls")
	if err != nil {
		return err
	}
	n := 0
	titles := map[chatctx.ID]string{}
	for c, err := range st.Calls(r.ctx, f) {
		if err != nil {
			return err
		}
		v, err := r.judgedCall(st, c)
		if err != nil {
			return err
		}
		if v.Effect != "" && v.Effect != chatctx.Ask && f.State == contract.CallStates["pending"] {
			continue // the rules decide it, so it waits for nobody
		}
		if err := r.emit(v, func() { r.judgedLine(st, c, v, titles) }); err != nil {
			return err
		}
		if n++; n == r.number("n") || r.stopped() {
			break
		}
	}
	if n == 0 {
		r.note("no call is open")
	}
	return nil
}

// judgedCall is a call with what the rules say of it. It writes nothing.
func (r *run) judgedCall(st *chatctx.Store, c *chatctx.Call) (callJSON, error) {
	v := callToJSON(c)
	if err := r.origin(st, c, &v); err != nil || c.Status != pool.Pending {
		return v, err
	}
	j, err := st.Judge(r.ctx, c)
	if err != nil {
		return v, err
	}
	if v.Effect = j.Effect; j.Rule != nil {
		v.Rule = &j.Rule.ID
	}
	return v, nil
}

// origin sets where a sub-context's call comes from.
func (r *run) origin(st *chatctx.Store, c *chatctx.Call, v *callJSON) error {
	from, known := r.origins[c.Context]
	if !known {
		cc, err := st.Context(r.ctx, c.Context.String())
		if err != nil {
			return err
		}
		task, err := cc.TaskInfo(r.ctx)
		switch {
		case errors.Is(err, chatctx.ErrInvalid): // no sub-context
		case err != nil:
			return err
		default:
			from = &originJSON{Context: task.Parent, Branch: task.BranchName, Goal: task.Goal}
			if task.Message != (chatctx.ID{}) {
				from.Call = stringOrNull(fmt.Sprintf("%s:%d", task.Message, task.Index))
			}
		}
		if r.origins == nil {
			r.origins = map[chatctx.ID]*originJSON{}
		}
		r.origins[c.Context] = from
	}
	v.Origin = from
	return nil
}

// judgedLine prints a call on one line. A call that the rules decide is not shown as waiting.
func (r *run) judgedLine(st *chatctx.Store, c *chatctx.Call, v callJSON, titles map[chatctx.ID]string) {
	state := callState(c)
	if v.Rule != nil && v.Effect != chatctx.Ask {
		state = map[string]string{chatctx.Allow: "allowed", chatctx.Deny: "denied"}[v.Effect]
	}
	r.callLineIn(st, c, state, titles)
	if v.Rule != nil && v.Effect != chatctx.Ask {
		r.printf("    %s\n", r.paint(dim, "by rule "+short(*v.Rule)+", by whoever runs it or waits for it"))
	}
}

// callLine prints a call on one line, with its origin.
func (r *run) callLine(st *chatctx.Store, c *chatctx.Call, titles map[chatctx.ID]string) {
	r.callLineIn(st, c, callState(c), titles)
}

func (r *run) callLineIn(st *chatctx.Store, c *chatctx.Call, state string, titles map[chatctx.ID]string) {
	title, ok := titles[c.Context]
	if !ok {
		title = short(c.Context)
		if cc, err := st.Context(r.ctx, c.Context.String()); err == nil {
			if info, err := cc.Info(r.ctx); err == nil {
				title = titled(info.Title, info.ID)
			}
		}
		titles[c.Context] = title
	}
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
	r.row(4, "    %s of %s  %s", clean(c.Branch), title, r.paint(dim, when))
}

func callStyle(c *chatctx.Call) string {
	switch {
	case c.Status == pool.Denied || c.Execution == pool.Failed || c.Execution == pool.Uncertain:
		return red
	case c.Status == pool.Pending:
		return cyan
	}
	return green
}

// callByRef finds the call that an argument names.
func (r *run) callByRef(st *chatctx.Store, ref string) (*chatctx.Call, error) {
	c, err := st.Call(r.ctx, r.contextRef(), r.branchName(), chatctx.CallRef(ref))
	return c, contextHint(err)
}

func doCallsLog(r *run) error {
	st, err := r.reader()
	if err != nil {
		return err
	}
	var in chatctx.ID
	var only *chatctx.Call
	switch {
	case r.arg(0) != "":
		if only, err = r.callByRef(st, r.arg(0)); err != nil {
			return err
		}
		in = only.Context
	case r.contextRef() != "":
		c, err := st.Context(r.ctx, r.contextRef())
		if err != nil {
			return err
		}
		in = c.ID
	}
	steps, err := st.CallLog(r.ctx, in)
	if err != nil {
		return err
	}
	for _, s := range steps {
		if only != nil && (s.Message != only.Message || s.Index != only.Index) {
			continue
		}
		if err := r.emit(callStepToJSON(s), func() { r.stepLine(s) }); err != nil {
			return err
		}
		if r.stopped() {
			break
		}
	}
	return nil
}

func (r *run) stepLine(s *chatctx.CallStep) {
	words := []string{s.From + " → " + s.To}
	if s.From == "" {
		words = []string{s.To}
	}
	words = append(words, strings.TrimSpace("by "+s.ByKind+" "+clean(s.ByName)))
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
	if s.Runs != nil && !s.Runs.Same(&chatctx.Runs{}) {
		words = append(words, "runs: "+oneLine(s.Runs.String()))
	}
	r.printf("%s  %s:%d  %s  %s\n", r.paint(dim, moment(s.At)), r.paint(yellow, short(s.Message)), s.Index, clean(s.Tool), strings.Join(words, "  "))
}
