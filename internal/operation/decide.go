package operation

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/pool"
)

// Deciding says who decides about calls, and why. The API names one call, which the command line does not.
type Deciding struct {
	Change
	Call   record.CallRef `json:"call" doc:"the call: MESSAGE:INDEX, or the provider's id if it is unique"`
	By     string         `json:"-" flag:"by" doc:"the {NAME} of who does it, noted beside the user's"`
	Reason string         `json:"reason,omitempty" flag:"reason" doc:"the {REASON}, which goes to the model word for word when a call is denied or a task given up"`
}

// Several names the calls that one decision is about.
type Several struct {
	Calls      []record.CallRef `json:"-" arg:"[CALL…]"`
	All        bool             `json:"-" flag:"waiting" old:"all" doc:"all calls that wait on the branch"`
	Matching   string           `json:"-" flag:"matching" doc:"those of tools whose name matches {PATTERN}: fs_*"`
	Everywhere bool             `json:"-" flag:"everywhere" doc:"of all conversations and branches"`
}

// Selects reports whether what the calls are like selects them, not their names.
func (in *Several) Selects() bool { return in.All || in.Matching != "" }

// OnBranchAlone reports whether only calls of the branch are meant.
func (in *Several) OnBranchAlone() bool { return in.Selects() && !in.Everywhere }

// Approving approves calls.
type Approving struct {
	Arguments json.RawMessage `json:"arguments,omitempty" flag:"arguments" doc:"run it with this {JSON} in place of the arguments that the model proposed"`
	Several
	Deciding
	Always *Offer `json:"always,omitempty" doc:"also add this rule, one of the call's offers, whole as it was shown. Needs admin"`
}

// Denying denies calls.
type Denying struct {
	Several
	Deciding
}

// Cancelling gives calls up.
type Cancelling struct {
	Calls []record.CallRef `json:"-" arg:"CALL…"`
	Deciding
}

// Decided is a call that was decided. The command line decides several, a line each, while they are listed.
type Decided struct {
	contract.Call
	*Decisions
}

// Decisions are several decisions, made together in each conversation, so that one undo takes them back.
type Decisions struct {
	Last     []*record.Committed `json:"-"` // of each conversation: undoing it undoes all decisions there
	Passed   []error             `json:"-"` // of calls that somebody else decided meanwhile
	r        *Request
	in       *Deciding
	which    *Several
	verdict  record.Verdict
	word     string // what the calls are then
	together map[chatctx.ID]*chatctx.Batch
	decided  int
}

func approveCalls(r *Request, in *Approving) (Decided, error) {
	if string(in.Arguments) == "null" { // like a missing one
		in.Arguments = nil
	}
	v := record.Verdict{Status: pool.Approved, Arguments: in.Arguments}
	if in.Always == nil {
		return r.decide(&in.Deciding, &in.Several, v, "approved")
	}
	if err := r.need(Admin); err != nil {
		return Decided{}, err
	}
	return r.decideOne(&in.Deciding, v, in.Always)
}

func denyCalls(r *Request, in *Denying) (Decided, error) {
	return r.decide(&in.Deciding, &in.Several, record.Verdict{Status: pool.Denied}, "denied")
}

func cancelCalls(r *Request, in *Cancelling) (Decided, error) {
	return r.decide(&in.Deciding, &Several{Calls: in.Calls}, record.Verdict{Status: pool.Denied, Kind: record.ByCancel}, "cancelled")
}

// decide makes a decision about the call that the API names, or prepares it for those that the command line names.
func (r *Request) decide(in *Deciding, which *Several, v record.Verdict, word string) (Decided, error) {
	if in.Call != "" {
		return r.decideOne(in, v, nil)
	}
	v.Name, v.Reason = cmp.Or(in.By, r.By), in.Reason
	return Decided{Decisions: &Decisions{r: r, in: in, which: which, verdict: v, word: word, together: map[chatctx.ID]*chatctx.Batch{}}}, nil
}

// decideOne decides about a call, and adds a rule unless it is nil.
func (r *Request) decideOne(in *Deciding, v record.Verdict, always *Offer) (out Decided, err error) {
	c, err := r.call(in.Target, CallName{in.Call})
	if err != nil {
		return out, err
	}
	b := r.Store.Begin(c.Context.String(), c.Branch)
	v.Name, v.Reason = r.By, in.Reason
	if always != nil {
		if err := r.addGiven(b, always, c, &v); err != nil {
			return out, err
		}
	}
	b.Decide(c.Ref(), v)
	done, err := b.Commit(r.Ctx)
	if err != nil {
		return out, err
	}
	r.Revision = &done.Revision
	out.Call = decidedCall(done.Last().Call, done)
	return out, nil
}

func decidedCall(c *record.Call, done *record.Committed) contract.Call {
	v := contract.CallOf(c)
	v.Operation = done.Operation
	return v
}

// Each decides about all calls, and calls fn with each that is decided.
func (d Decided) Each(fn func(any) error) error {
	switch {
	case d.Decisions == nil:
		return fn(d.Call)
	case d.which.Selects():
		return d.selected(fn)
	}
	return d.named(fn)
}

// named decides the named calls, those of a conversation all or none.
func (d *Decisions) named(fn func(any) error) error {
	var order []chatctx.ID
	calls := map[chatctx.ID][]*record.Call{}
	for _, ref := range d.which.Calls {
		c, err := d.r.call(d.in.Target, CallName{ref})
		if err != nil {
			return err
		}
		if calls[c.Context] == nil {
			order = append(order, c.Context)
		}
		calls[c.Context] = append(calls[c.Context], c)
	}
	for _, id := range order {
		err := d.atOnce(calls[id], fn)
		if err != nil && d.decided > 0 {
			return contract.Partly(err, plural.Are(d.decided, "call")+" "+d.word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// manyAtOnce is how many calls one transaction decides.
const manyAtOnce = 200

// selected decides all waiting calls that are selected. A call that somebody else decides meanwhile stays as decided.
func (d *Decisions) selected(fn func(any) error) error {
	list := CallListing{Context: d.in.Context, Branch: d.in.Branch, Tool: d.which.Matching, State: "pending", All: !d.which.Everywhere, here: true}
	f, err := list.Filter(d.r)
	if err != nil {
		return err
	}
	var calls []*record.Call
	flush := func() error {
		err := d.atOnce(calls, fn)
		if errors.Is(err, chatctx.ErrConflict) {
			err = d.singly(calls, fn)
		}
		calls = nil
		return err
	}
	for c, err := range d.r.Store.Calls(d.r.Ctx, f) {
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
	return flush()
}

func (d *Decisions) singly(calls []*record.Call, fn func(any) error) error {
	for _, c := range calls {
		err := d.atOnce([]*record.Call{c}, fn)
		if errors.Is(err, chatctx.ErrConflict) {
			d.Passed = append(d.Passed, err)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// atOnce decides calls of one conversation in one transaction.
func (d *Decisions) atOnce(calls []*record.Call, fn func(any) error) error {
	if len(calls) == 0 {
		return nil
	}
	id := calls[0].Context
	b := d.r.Store.Begin(id.String(), calls[0].Branch)
	first := d.together[id]
	if first == nil {
		first, d.together[id] = b, b
	}
	b.Together(first)
	for _, c := range calls {
		b.Decide(c.Ref(), d.verdict)
	}
	done, err := b.Commit(d.r.Ctx)
	if err != nil {
		return err
	}
	d.decided += len(calls)
	if i := slices.IndexFunc(d.Last, func(c *record.Committed) bool { return c.Context == id }); i >= 0 {
		d.Last[i] = done
	} else {
		d.Last = append(d.Last, done)
	}
	for _, s := range done.Steps {
		if err := fn(decidedCall(s.Call, done)); err != nil {
			return err
		}
	}
	return nil
}
