package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/pool"
)

const callFields = "call, id, message, context, branch, tool_name, arguments, exact_arguments, effective_arguments, changed_by{kind, name, claimed, said_by_file}, approval_status, execution, reason, since, expires, by, program, effect, rule, origin{context, branch, call, goal}"

func callCommands() []*command {
	return []*command{{name: "calls", does: "tool calls that wait: decide about them, run them, answer them", scope: onBranch,
		subs: slices.Concat(callLists(), callDecisions(), callRuns(), callWatches())}}
}

// byFlag is embedded in the parameters of commands that decide.
type byFlag struct {
	By string `flag:"by" doc:"the {NAME} of who decides, noted beside the user's"`
}

// callsFlags select calls in commands that list them.
type callsFlags struct {
	Tool       string `flag:"tool" doc:"only of tools whose name matches {PATTERN}"`
	State      string `flag:"state" doc:"only in this {STATE}: pending, approved, running, uncertain"`
	All        bool   `flag:"all" doc:"only those of the current conversation and branch"`
	Everywhere bool   `flag:"everywhere" doc:"those of all conversations and branches, which is the default"`
	Most       *int   `flag:"n" doc:"at most {N}"`
}

// enough reports whether no more than n calls are to be listed.
func (f *callsFlags) enough(n int) bool { return f.Most != nil && n == *f.Most }

// oneCallIn has the call that a command is about.
type oneCallIn struct {
	Call record.CallRef `arg:"CALL"`
}

// callLists are the commands that show calls.
func callLists() []*command {
	return []*command{
		{name: "ls", does: "list the open calls of all conversations, the oldest first", scope: onBranch, run: in(doCallsLs), paged: true,
			more: "With --context: only those of that conversation and its sub-contexts. A call's name is MESSAGE:INDEX, or the provider's id if that is unique.",
			json: callFields + "; a line each", example: "chatctx calls ls\nchatctx calls ls --all\nchatctx calls ls --tool \"fs_*\" --json"},
		{name: "show", does: "show a call: its arguments, as a diff where they change a file, and what was decided", scope: onBranch, run: in(doCallsShow),
			json: callFields + ", description, runs{command[], argv[], mcp, url, cwd, env[], headers[], stdin, dashes, timeout, why}, decisions[], claim{program, pid, host}", example: "chatctx calls show @:1"},
	}
}

// callDecisions are the commands that decide.
func callDecisions() []*command {
	decided := callFields + ", operation; a line each"
	return []*command{
		{name: "approve", does: "approve calls", scope: onBranch, run: in(doCallsApprove),
			more: "Approving runs nothing: calls run, send --continue, chat, or any program that claims the call runs it. All named calls of a conversation are decided together or not at all.",
			json: decided, example: "chatctx calls approve @:1 --reason \"looked at it\"\nchatctx calls approve --matching \"read_*\""},
		{name: "deny", does: "deny calls", scope: onBranch, run: in(doCallsDeny),
			more: "A tool message with the denial goes to the end of the branch.",
			json: decided, example: "chatctx calls deny @:1 --reason \"not in this folder\""},
		{name: "cancel", does: "give calls up, also approved ones that nobody has begun to run", scope: onBranch, run: in(doCallsCancel),
			json: decided, example: "chatctx calls cancel @:1"},
		{name: "expire", does: "let calls count as denied when nobody has decided in time", scope: onBranch, run: in(doCallsExpire),
			json: decided, example: "chatctx calls expire @:1 --in 10m"},
	}
}

// callRuns are the commands that run calls and answer them.
func callRuns() []*command {
	return []*command{
		{name: "claim", does: "take an approved call to run it: of several who try, one gets it", scope: onBranch, run: in(doCallsClaim),
			more: "Then run the tool, and end the call with calls resolve. A claim that is not renewed (calls claim CALL --renew TOKEN) ends after --hold: then the call is uncertain, and calls claim --again takes it once more.",
			json: callFields + ", token, run_arguments", example: "chatctx calls claim @:1 --json"},
		{name: "resolve", does: "answer a call that was claimed, or that is uncertain", scope: onBranch, run: in(doCallsResolve),
			more: "The result message and the call's end are stored together.",
			json: callFields + ", result (message), position, operation", example: "chatctx calls resolve @:1 --result \"It is 15 degrees.\""},
		{name: "run", does: "run approved calls with the stored tools (see tools), and put their results on the branch", scope: onBranch, run: in(doCallsRun),
			more: "Without CALL: the branch's calls that rules allow or that are approved. A call is claimed before its tool starts, so nothing runs twice. Exit code 6: calls still wait.",
			json: callFields + ", result (message), position, operation; a line each", example: "chatctx calls run\nchatctx calls run @:1 --again"},
	}
}

// callWatches are the commands that follow calls.
func callWatches() []*command {
	return []*command{
		{name: "wait", does: "wait until calls are decided: 0 when they are approved, 6 when one is denied or expired", scope: onBranch, run: in(doCallsWait),
			json: callFields + "; a line each", example: "chatctx calls wait @:1 --timeout 10m && ./run-the-tool"},
		{name: "watch", does: "print open calls as they come up, also from other programs", scope: onBranch, run: in(doCallsWatch),
			json: callFields + "; a line each", example: "chatctx calls watch --json"},
		{name: "review", does: "go through the calls that wait at the terminal: yes, no, always, edit, reason, skip", scope: onBranch, run: in(doCallsReview),
			json: callFields + "; a line each that was decided", example: "chatctx calls review"},
		{name: "log", does: "list every step of calls: who took it, when, from which program and why", scope: onBranch, run: in(doCallsLog), paged: true,
			more: "The steps of a call, from the first on, lead to its present state.",
			json: "call, id, context, tool_name, at, from, to, by{kind, name, claimed, said_by_file}, program, origin, reason, arguments_sha256, arguments, runs{command, mcp, url, cwd, env, headers, stdin, dashes}; a line each", example: "chatctx calls log --json"},
	}
}

// callName is a call's name in text.
func callName(c *record.Call) string { return fmt.Sprintf("%s:%d", short(c.Message), c.Index) }

// callState returns a call's state in words.
func callState(c *record.Call) string {
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

// callFilter returns the filter for the command's conversation and branch, if it names them, and for a tool and a state, if these are not "".
func (r *run) callFilter(st *chatctx.Store, tool, state string) (f record.CallFilter, err error) {
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
	f.Tool = tool
	if _, err := path.Match(f.Tool, ""); err != nil {
		return f, usagef("the pattern %q cannot be read", f.Tool)
	}
	if state != "" {
		f.State = contract.CallStates[state]
		if f.State == "" {
			return f, &usageError{fmt.Sprintf("no state %q", state), "an open call is pending, approved, running or uncertain"}
		}
	}
	return f, nil
}

// openCalls opens the store for a list of calls, and returns its filter.
func (r *run) openCalls(in *callsFlags) (st *chatctx.Store, f record.CallFilter, err error) {
	if in.Most != nil && *in.Most < 1 {
		return nil, f, usagef("%s -n takes a number of 1 or more", r.name)
	}
	if st, err = r.reader(); err == nil {
		f, err = r.callFilter(st, in.Tool, in.State)
	}
	if err == nil && in.All && !in.Everywhere {
		f.Context, f.Branch, err = r.onThisBranch(st)
	}
	return st, f, err
}

func doCallsLs(r *run, in *callsFlags) error {
	st, f, err := r.openCalls(in)
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
		if v.Effect != "" && v.Effect != record.Ask && f.State == contract.CallStates["pending"] {
			continue // the rules decide it, so it waits for nobody
		}
		if err := r.emit(v, func() { r.judgedLine(st, c, v, titles) }); err != nil {
			return err
		}
		if n++; in.enough(n) || r.stopped() {
			break
		}
	}
	if n == 0 {
		r.note("no call is open")
	}
	return nil
}

// judgedCall is a call with what the rules say of it. It writes nothing.
func (r *run) judgedCall(st *chatctx.Store, c *record.Call) (callJSON, error) {
	v := callToJSON(c)
	if err := r.origin(st, c, &v); err != nil || c.Status != pool.Pending {
		return v, err
	}
	j, err := st.Judge(r.ctx, c)
	if err != nil {
		return v, err
	}
	if v.Effect = j.Effect; j.Rule != nil {
		v.Rule = j.Rule.ID
	}
	return v, nil
}

// origin sets where a sub-context's call comes from.
func (r *run) origin(st *chatctx.Store, c *record.Call, v *callJSON) error {
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
			from = contract.OriginOf(task)
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
func (r *run) judgedLine(st *chatctx.Store, c *record.Call, v callJSON, titles map[chatctx.ID]string) {
	state := callState(c)
	if v.Rule != (chatctx.ID{}) && v.Effect != record.Ask {
		state = map[string]string{record.Allow: "allowed", record.Deny: "denied"}[v.Effect]
	}
	r.callLineIn(st, c, state, titles)
	if v.Rule != (chatctx.ID{}) && v.Effect != record.Ask {
		r.printf("    %s\n", r.paint(dim, "by rule "+short(v.Rule)+", by whoever runs it or waits for it"))
	}
}

// callLine prints a call on one line, with its origin.
func (r *run) callLine(st *chatctx.Store, c *record.Call, titles map[chatctx.ID]string) {
	r.callLineIn(st, c, callState(c), titles)
}

func (r *run) callLineIn(st *chatctx.Store, c *record.Call, state string, titles map[chatctx.ID]string) {
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

func callStyle(c *record.Call) string {
	switch {
	case c.Status == pool.Denied || c.Execution == pool.Failed || c.Execution == pool.Uncertain:
		return red
	case c.Status == pool.Pending:
		return cyan
	}
	return green
}

// callByRef finds the call that an argument names.
func (r *run) callByRef(st *chatctx.Store, ref record.CallRef) (*record.Call, error) {
	c, err := st.Call(r.ctx, r.contextRef(), r.branchName(), ref)
	return c, contextHint(err)
}

type callsLogIn struct {
	Call record.CallRef `arg:"[CALL]"`
}

func doCallsLog(r *run, in *callsLogIn) error {
	st, err := r.reader()
	if err != nil {
		return err
	}
	var id chatctx.ID
	var only *record.Call
	switch {
	case in.Call != "":
		if only, err = r.callByRef(st, in.Call); err != nil {
			return err
		}
		id = only.Context
	case r.contextRef() != "":
		c, err := st.Context(r.ctx, r.contextRef())
		if err != nil {
			return err
		}
		id = c.ID
	}
	steps, err := st.CallLog(r.ctx, id)
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
