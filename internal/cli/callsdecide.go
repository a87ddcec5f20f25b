package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/pool"
)

// reasonFlag is embedded in the parameters of commands that decide.
type reasonFlag struct {
	Reason string `flag:"reason" doc:"the {REASON}; that of a denial goes to the model word for word"`
}

// decideIn has the calls that one decision is about, and who makes it why.
type decideIn struct {
	Calls      []record.CallRef `arg:"[CALL…]"`
	All        bool             `flag:"all" doc:"all calls that wait on the branch"`
	Matching   string           `flag:"matching" doc:"those on the branch of tools whose name matches {PATTERN}: fs_*"`
	Everywhere bool             `flag:"everywhere" doc:"with --all or --matching: of all conversations and branches; with --context: of that conversation and its sub-contexts"`
	byFlag
	reasonFlag
}

type approveIn struct {
	Arguments string `flag:"arguments" doc:"run it with this {JSON} in place of the arguments that the model proposed"`
	decideIn
}

func doCallsApprove(r *run, in *approveIn) error {
	v := chatctx.Verdict{Status: pool.Approved}
	if in.Arguments != "" {
		if len(in.Calls) != 1 {
			return usagef("--arguments goes with one call only")
		}
		if v.Arguments = json.RawMessage(in.Arguments); !json.Valid(v.Arguments) {
			return usagef("--arguments is not JSON")
		}
	}
	return r.decide(&in.decideIn, v, "approved")
}

func doCallsDeny(r *run, in *decideIn) error {
	return r.decide(in, chatctx.Verdict{Status: pool.Denied}, "denied")
}

type cancelIn struct {
	Calls []record.CallRef `arg:"CALL…"`
	byFlag
	reasonFlag
}

func doCallsCancel(r *run, in *cancelIn) error {
	which := &decideIn{Calls: in.Calls, byFlag: in.byFlag, reasonFlag: in.reasonFlag}
	return r.decide(which, chatctx.Verdict{Status: pool.Denied, Kind: record.ByCancel}, "cancelled")
}

// decide makes one decision about all calls that the command line names.
func (r *run) decide(in *decideIn, v chatctx.Verdict, done string) error {
	v.Name, v.Reason = in.By, in.Reason
	for _, text := range []string{v.Name, v.Reason} {
		if err := validText(text); err != nil {
			return err
		}
	}
	many := in.All || in.Matching != ""
	switch {
	case in.Everywhere && !many:
		return usagef("--everywhere needs --all or --matching")
	case many && len(in.Calls) > 0:
		return usagef("%s takes calls, or --all or --matching", r.name)
	case !many && len(in.Calls) == 0:
		return &usageError{r.name + " needs CALL", "usage: chatctx " + r.name + " CALL…, or --all or --matching PATTERN; chatctx calls ls lists them"}
	}
	st, err := r.writer()
	if err != nil {
		return err
	}
	d := &decider{r: r, in: in, st: st, verdict: v, done: done, groups: map[chatctx.ID]*chatctx.Batch{}, last: map[chatctx.ID]*chatctx.Committed{}}
	if many {
		return d.all()
	}
	return d.named()
}

// decider makes decisions, together in each context, so that one undo takes them back.
type decider struct {
	r       *run
	in      *decideIn
	st      *chatctx.Store
	verdict chatctx.Verdict
	done    string
	groups  map[chatctx.ID]*chatctx.Batch
	decided int
	order   []chatctx.ID                      // the contexts in which something was decided
	last    map[chatctx.ID]*chatctx.Committed // in each of them: undoing it undoes all decisions there
}

// named decides the named calls, those of a context all or none.
func (d *decider) named() error {
	var order []chatctx.ID
	calls := map[chatctx.ID][]*record.Call{}
	for _, ref := range d.in.Calls {
		c, err := d.r.callByRef(d.st, ref)
		if err != nil {
			return err
		}
		if calls[c.Context] == nil {
			order = append(order, c.Context)
		}
		calls[c.Context] = append(calls[c.Context], c)
	}
	for _, id := range order {
		if err := d.together(calls[id]); err != nil {
			if d.decided > 0 {
				return &partialError{err, fmt.Sprintf("%s %s %s", count(d.decided, "call"), are(d.decided), d.done)}
			}
			return err
		}
	}
	return d.report()
}

// manyAtOnce is how many calls one transaction decides.
const manyAtOnce = 200

// all decides all waiting calls that the flags select. A call that somebody else decides meanwhile stays as decided.
func (d *decider) all() error {
	f, err := d.r.callFilter(d.st, d.in.Matching, "")
	if err == nil && !d.in.Everywhere {
		f.Context, f.Branch, err = d.r.onThisBranch(d.st)
	}
	if err != nil {
		return err
	}
	f.State = contract.CallStates["pending"]
	var calls []*record.Call
	flush := func() error {
		err := d.together(calls)
		if errors.Is(err, chatctx.ErrConflict) {
			err = d.singly(calls)
		}
		calls = nil
		return err
	}
	for c, err := range d.st.Calls(d.r.ctx, f) {
		if err != nil {
			return err
		}
		if len(calls) == manyAtOnce || len(calls) > 0 && calls[0].Context != c.Context {
			if err := flush(); err != nil {
				return err
			}
		}
		calls = append(calls, c)
	}
	if err := flush(); err != nil {
		return err
	}
	if d.decided == 0 {
		d.r.note("no call waits for a decision%s", map[bool]string{false: " on this branch; --everywhere looks at all"}[d.in.Everywhere])
	}
	return d.report()
}

// onThisBranch returns the context and branch of a command that names neither.
func (r *run) onThisBranch(st *chatctx.Store) (chatctx.ID, string, error) {
	c, err := st.Context(r.ctx, r.contextRef())
	if err != nil {
		return chatctx.ID{}, "", contextHint(err)
	}
	b, err := c.Branch(r.ctx, r.branchName())
	if err != nil {
		return chatctx.ID{}, "", err
	}
	return c.ID, b.Name, nil
}

func (d *decider) singly(calls []*record.Call) error {
	for _, c := range calls {
		err := d.together([]*record.Call{c})
		if errors.Is(err, chatctx.ErrConflict) {
			d.r.note("%s", clean(err.Error()))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// together decides calls of one context in one transaction, and prints them.
func (d *decider) together(calls []*record.Call) error {
	if len(calls) == 0 {
		return nil
	}
	id := calls[0].Context
	b := d.st.Begin(id.String(), calls[0].Branch)
	if first := d.groups[id]; first != nil {
		b.Together(first)
	} else {
		d.groups[id] = b.Together(b)
	}
	for _, c := range calls {
		b.Decide(c.Ref(), d.verdict)
	}
	done, err := b.Commit(d.r.ctx)
	if err != nil {
		return err
	}
	d.decided += len(calls)
	if d.last[id] == nil {
		d.order = append(d.order, id)
	}
	d.last[id] = done
	for _, s := range done.Steps {
		c := s.Call
		v := callToJSON(c)
		v.Operation = done.Operation
		err := d.r.emit(v, func() { d.r.printf("%s %s %s\n", d.done, callName(c), clean(c.Tool)) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *decider) report() error {
	for _, id := range d.order {
		d.r.note("take it back: %s", d.r.undoOf(d.last[id]))
	}
	return nil
}

// readExpiry finds the time at which calls expire.
func readExpiry(_ *run, in *operation.Expiring) error {
	if in.In == nil || *in.In < 0 {
		return usagef("--in takes a time from now: 10m, 24h")
	}
	if *in.In > 0 {
		at := time.Now().Add(*in.In)
		in.At = &at
	}
	return nil
}
