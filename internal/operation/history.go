package operation

import (
	"context"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/view"
)

func init() { Register(Group{Heading: "Changing a history", Of: historyOperations}) }

func historyOperations() []*Operation {
	const in, at = "/contexts/{context}", "/contexts/{context}/branches/{branch}"
	return []*Operation{
		Define("history.rewind", "POST "+at+"/rewind", Write, "make a message the head, and take the later messages off the branch", rewind).As("rewind", "chatctx rewind @-2").
			With("undo brings everything back, so it does not ask."),
		Define("history.drop", "POST "+at+"/drop", Write, "take messages off the branch, with calls also their results", drop).As("drop", "chatctx drop @3").
			With("A range A..B takes the messages after A up to and including B."),
		Define("history.clear", "POST "+at+"/clear", Write, "empty the branch's history, its sessions and figures", clearBranch).As("clear", "chatctx clear --dry-run"),
		Define("history.interrupt", "POST "+at+"/interrupt", Write, "remove an unfinished turn from the branch, but keep the user's message", interrupt).As("interrupt", "chatctx interrupt").
			With("A finished turn stays. A running answer is stopped first; until it has ended, undo, redo, rewind, drop, clear and take on its branch, and branch rm, are refused (5), so that it stays in its place."),
		Define("history.pick", "POST "+at+"/pick", Write, "put messages of another branch at the end of this one", pick).As("pick", "chatctx pick trains @5 @6").
			With("REFs and ranges A..B are read on BRANCH. A call takes its results along; messages that this branch has already are copied."),
		Define("history.merge", "POST "+at+"/merge", Write, "put the messages of another branch since the common ancestor at the end of this one", merge).
			As("merge", `chatctx merge trains --summary "Trains take 9 hours; we fly."`).
			With("Messages that were merged or picked before are not brought again: a second merge brings those that have come since, and says so if there are none. A call that waits here as a copy keeps its own decision and result."),
		Define("diff", "GET "+in+"/diff", Read, "show the differences of two branches, turn by turn, with the changed words", diff).As("diff", "chatctx diff main trains").
			With("One BRANCH is compared with the active one. - is the first, + the second."),
	}
}

func (r *Request) move(t Change, fill func(*chatctx.Batch)) (contract.Moved, error) {
	done, err := r.commit(t, fill)
	if err != nil {
		return contract.Moved{}, err
	}
	return contract.MovedOf(done), nil
}

// wouldMove is the result of a change that would take messages off a branch. gone returns their positions.
func (r *Request) wouldMove(t Target, gone func(*chatctx.Snapshot) ([]int, error)) (v contract.Moved, err error) {
	c, snap, err := r.snapshot(t)
	if err != nil {
		return v, err
	}
	at, err := gone(snap)
	if err != nil {
		return v, err
	}
	v = contract.Moved{DryRun: true, Where: contract.Where{Context: c.ID, Branch: snap.Info.Name, Affected: journal.Ending(snap.Info.Name, snap.Info.Sessions, snap.Info.Messages, at)}, Removed: len(at), Added: []contract.Added{}}
	v.Messages = snap.Len() - len(at)
	for last := snap.Len(); last > 0; last-- {
		if !slices.Contains(at, last) {
			e, err := r.entryAt(snap, last)
			v.Head = contract.ID(e)
			return v, err
		}
	}
	return v, nil
}

func (r *Request) entryAt(snap *chatctx.Snapshot, position int) (id chatctx.ID, err error) {
	page, err := snap.Page(r.Ctx, position, position)
	if len(page) > 0 {
		id = page[0].ID
	}
	return id, err
}

// positions returns the positions from one to another, both included.
func positions(from, to int) (out []int) {
	for ; from <= to; from++ {
		out = append(out, from)
	}
	return out
}

// Rewinding names the message that becomes the head.
type Rewinding struct {
	Change
	Message record.Ref `json:"message" arg:"REF" doc:"the message: its id, a tag, @, @-2, u3 …"`
	DryRun
	Unasked
}

func rewind(r *Request, in *Rewinding) (contract.Moved, error) {
	if in.Dry() {
		return r.wouldMove(in.Target, func(snap *chatctx.Snapshot) ([]int, error) {
			e, err := snap.Place(r.Ctx, in.Message)
			if err != nil {
				return nil, err
			}
			return positions(e.Position+1, snap.Len()), nil
		})
	}
	return r.move(in.Change, func(b *chatctx.Batch) { b.Rewind(in.Message) })
}

// Dropping names messages to take off a branch.
type Dropping struct {
	Change
	Messages []record.Ref `json:"messages" arg:"REF…" doc:"messages, or ranges A..B: after A, up to B and including it"`
	DryRun
	Unasked
}

func drop(r *Request, in *Dropping) (contract.Moved, error) {
	if in.Dry() {
		return r.wouldMove(in.Target, func(snap *chatctx.Snapshot) ([]int, error) { return r.dropped(snap, in.Messages) })
	}
	return r.move(in.Change, func(b *chatctx.Batch) { b.Drop(in.Messages...) })
}

// dropped returns the positions of the messages that refs name, and of the results that would go with their calls.
func (r *Request) dropped(snap *chatctx.Snapshot, refs []record.Ref) ([]int, error) {
	gone := map[int]bool{}
	calls := map[string]bool{}
	first := snap.Len() + 1
	for _, ref := range refs {
		named, err := Named(r.Ctx, snap, ref)
		if err != nil {
			return nil, err
		}
		for _, e := range named {
			gone[e.Position] = true
			for i := range e.Calls {
				calls[e.Calls[i].ID] = true
				first = min(first, e.Position)
			}
		}
	}
	if len(calls) == 0 {
		return slices.Sorted(maps.Keys(gone)), nil
	}
	for e, err := range snap.Entries(r.Ctx, first, 0) {
		if err != nil {
			return nil, err
		}
		if e.Result != nil && calls[e.Result.RequestID] {
			gone[e.Position] = true
		}
	}
	return slices.Sorted(maps.Keys(gone)), nil
}

// Named returns the messages of a branch that a reference or a range names.
func Named(ctx context.Context, snap *chatctx.Snapshot, ref record.Ref) ([]*chatctx.Entry, error) {
	part, err := snap.Range(ctx, ref)
	switch {
	case err != nil:
		return nil, err
	case part == nil:
		e, err := snap.Place(ctx, ref)
		return []*chatctx.Entry{e}, err
	case part.Snapshot != snap:
		return nil, &record.RefError{Kind: "message", Ref: string(ref), Branch: snap.Info.Name, On: part.Snapshot.Info.Name}
	case part.To < part.From:
		return nil, base.NotFound("message in the range", string(ref))
	}
	return snap.Page(ctx, part.From, part.To)
}

// Clearing names a branch to empty.
type Clearing struct {
	Change
	DryRun
	Unasked
}

func clearBranch(r *Request, in *Clearing) (contract.Moved, error) {
	if in.Dry() {
		return r.wouldMove(in.Target, func(snap *chatctx.Snapshot) ([]int, error) { return positions(1, snap.Len()), nil })
	}
	return r.move(in.Change, func(b *chatctx.Batch) { b.Clear() })
}

// Interrupting says what of an unfinished turn to remove.
type Interrupting struct {
	Change
	Question bool `json:"question,omitempty" flag:"question" old:"all" doc:"the user's message too"`
	DryRun
	Unasked
}

// Interrupted is a branch without its unfinished turn.
type Interrupted struct {
	contract.Moved
	Ran bool `json:"-"` // an answer was being written
}

func interrupt(r *Request, in *Interrupting) (v Interrupted, err error) {
	if in.Dry() {
		v.Moved, err = r.wouldMove(in.Target, func(snap *chatctx.Snapshot) ([]int, error) { return r.unfinished(snap, in.Question) })
		return v, err
	}
	c, err := r.Store.Context(r.Ctx, in.Context)
	if err != nil {
		return v, err
	}
	claim, err := view.Running(r.Ctx, base.ContextOf(c.Store(), c.ID), in.Branch)
	if err != nil {
		return v, err
	}
	v.Ran = claim != nil
	v.Moved, err = r.move(in.Change, func(b *chatctx.Batch) { b.Interrupt(chatctx.InterruptOptions{Question: in.Question}) })
	return v, err
}

// unfinished returns the positions of an unfinished turn at the end of a branch, without or with its question.
func (r *Request) unfinished(snap *chatctx.Snapshot, question bool) ([]int, error) {
	n, end := 0, snap.Len()
	open := false
	answered := map[string]bool{}
	for e, err := range snap.Entries(r.Ctx, snap.Len(), 1) {
		if err != nil {
			return nil, err
		}
		if e.Role == "user" {
			if n == 0 || open {
				if question {
					n++
				}
				return positions(end-n+1, end), nil
			}
			return nil, nil
		}
		if e.Result != nil {
			answered[e.Result.RequestID] = true
		}
		open = open || e.Unfinished || n == 0 && e.Role == "tool"
		for i := range e.Calls {
			open = open || !answered[e.Calls[i].ID]
		}
		n++
	}
	return nil, nil
}

// Picking names messages of another branch.
type Picking struct {
	Change
	From     string       `json:"from" arg:"BRANCH" doc:"the branch that has the messages"`
	Messages []record.Ref `json:"messages" arg:"REF…" doc:"messages, or ranges A..B: after A, up to B and including it"`
}

func pick(r *Request, in *Picking) (contract.Moved, error) {
	return r.move(in.Change, func(b *chatctx.Batch) { b.Pick(in.From, in.Messages...) })
}

// Merging names the branch to merge.
type Merging struct {
	Change
	From    string `json:"from" arg:"BRANCH" doc:"the branch whose messages to add"`
	Append  bool   `json:"-" flag:"append" doc:"put its messages at the end, which is the default"`
	Summary string `json:"summary,omitempty" flag:"summary" doc:"the summary's {TEXT}; - for standard input"`
	RawInput
}

func merge(r *Request, in *Merging) (contract.Moved, error) {
	return r.move(in.Change, func(b *chatctx.Batch) { b.Merge(in.From, chatctx.MergeOptions{Summary: in.Summary}) })
}

// Differing names two branches. The command line compares one alone with the active one.
type Differing struct {
	Conversation
	A     string `json:"a" arg:"BRANCH" doc:"a branch"`
	B     string `json:"b" doc:"another branch"`
	Other string `json:"-" arg:"[BRANCH]"`
}

func diff(r *Request, in *Differing) (v contract.Difference, err error) {
	c, err := r.settled(in.Context)
	if err != nil {
		return v, err
	}
	if err := r.holdWhole(func() (int, error) { return view.DiffSize(r.Ctx, base.ContextOf(c.Store(), c.ID), in.A, in.B) }); err != nil {
		return v, err
	}
	d, err := c.Diff(r.Ctx, in.A, in.B)
	if err != nil {
		return v, err
	}
	return contract.DifferenceOf(c.ID, d), nil
}
