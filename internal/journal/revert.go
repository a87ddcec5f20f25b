package journal

import (
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
	"github.com/fxamacker/cbor/v2"
)

// revert undoes the changes of an operation, the newest first, and puts their inverse on this one's journal entry. Calls come after the histories, since
// whether a call waits again depends on the branches that hold it; the context comes last.
func (t *Txn) revert(op *base.Operation) error {
	t.reverts = true
	if err := t.undisturbed(op); err != nil {
		return err
	}
	onContext := false
	for _, c := range op.Chains {
		onContext = onContext || c.Branch == pool.ID{}
	}
	made := callsMade(op)
	passes := []struct {
		takes  func(bucket string) bool
		revert func(base.Change) error
	}{
		{func(b string) bool { return b != base.CallBucket && b != base.ContextBucket }, func(c base.Change) error { return t.revertChange(op, c) }},
		{func(b string) bool { return b == base.CallBucket }, func(c base.Change) error {
			if made[string(c.Key)] {
				return nil // the call goes with its message; where a fork holds both, it stays as it is
			}
			return t.revertCall(c)
		}},
		{func(b string) bool { return b == base.ContextBucket }, func(c base.Change) error { return t.revertContext(op, c, onContext) }},
	}
	for i, pass := range passes {
		for _, c := range slices.Backward(op.Changes) {
			if !pass.takes(c.Bucket) {
				continue
			}
			if err := pass.revert(c); err != nil {
				return err
			}
		}
		if i > 0 {
			continue
		}
		if err := t.reindex(); err != nil {
			return err
		}
	}
	if err := t.keepsRunning(); err != nil {
		return err
	}
	if err := t.bringResults(); err != nil {
		return err
	}
	return t.fixActive()
}

// callsMade returns the keys of the calls that an operation made records for.
func callsMade(op *base.Operation) map[string]bool {
	made := map[string]bool{}
	for _, c := range op.Changes {
		if c.Kind == base.RecordChange && c.Bucket == base.CallBucket && c.Old == nil {
			made[string(c.Key)] = true
		}
	}
	return made
}

func (t *Txn) revertChange(op *base.Operation, c base.Change) error {
	switch {
	case c.Kind == base.SpliceChange:
		return t.revertSplice(c)
	case c.Kind == base.RecordChange && c.Bucket == poolstore.Bucket:
		id := pool.ID(c.Key[16:])
		if err := find.Wait(t.Tx, t.Now, find.DocOf(find.MessageDoc, t.ID, id)); err != nil {
			return err
		}
		if err := t.uncount(id); err != nil {
			return err
		}
		return t.PutRaw(c.Bucket, c.Key, c.Old)
	case c.Kind == base.RecordChange:
		return t.PutRaw(c.Bucket, c.Key, c.Old)
	case c.Kind == base.FieldsChange && c.Bucket == branchstore.Bucket:
		return t.revertBranchFields(op, c)
	}
	return base.Damaged("an operation has a change of the unknown kind %d", c.Kind)
}

func (t *Txn) revertSplice(c base.Change) error {
	l, err := t.changedBranch(c.Key)
	if err != nil {
		return err
	}
	b := l.Branch
	n := branchstore.Count(c.Inserted)
	if !branchstore.Same(branchstore.Slice(b.Pieces, c.At, c.At+n), c.Inserted) {
		return base.Conflict("the history of branch %q has changed since: it cannot be taken back on its own", b.Name)
	}
	sessions, notes := b.Sessions, t.summaries
	if err := t.Splice(b, c.At, n, c.Removed); err != nil {
		return err
	}
	b.Sessions, t.summaries = sessions, notes // sessions are restored as fields
	return nil
}

// changedBranch reads the branch of a change, by its id or by its record's key.
func (t *Txn) changedBranch(key []byte) (*Loaded, error) {
	if len(key) < 16 {
		return nil, base.Damaged("an operation changed the branch %x, which is not an id", key)
	}
	id := pool.ID(key[len(key)-16:])
	l, err := t.Load(id)
	if err == nil && l == nil {
		err = base.NotFound("branch", id.String())
	}
	return l, err
}

// revertCall restores a call's state, unless the call has run, which cannot be undone; while it runs it returns ErrConflict. A call that never ran here and was
// ended by a result that somebody brought waits again. The call's record keeps its decisions and gets the undo as a further step. A call that several branches
// hold by now, as one that was answered, does not wait again. An expired call gets as much time again as it had.
func (t *Txn) revertCall(c base.Change) error {
	raw, err := t.Tx.Get(c.Bucket, c.Key)
	if err != nil {
		return err
	}
	is, err := base.DecodeCall(c.Key, raw)
	if err != nil || is == nil || c.Old == nil {
		return err
	}
	back, err := base.DecodeCall(c.Key, c.Old)
	if err != nil {
		return err
	}
	message, index := base.CallOfKey(c.Key)
	if is.Execution != pool.NotRun && !broughtResult(is, back) {
		return t.revertRun(message, index, is, back)
	}
	if base.StateOf(back) == base.StateOf(is) && back.Expires == is.Expires {
		return nil
	}
	if base.IsOpen(back) && !base.IsOpen(is) {
		holders, err := t.Holders(is.Home)
		if err != nil || len(holders) > 1 {
			return err
		}
	}
	if back.Status == pool.Pending && back.Expires != 0 && back.Expires <= t.Now {
		back.Expires = t.Now + max(back.Expires-back.Since, shortestTerm)
	}
	back.Decisions = append(is.Decisions, record.Decision{At: t.Now, From: base.StateOf(is), To: base.StateOf(back), Decider: pool.Decider{Kind: record.ByPerson, Name: t.Store.Person, Claimed: t.Store.Claimed}, User: t.Store.User,
		Program: t.Store.Program, Reason: "undo"})
	return t.PutCall(message, index, back)
}

// broughtResult reports whether a result that was appended led a call that had not run straight to its end.
func broughtResult(is, was *record.CallRecord) bool {
	if base.IsOpen(is) || was.Execution != pool.NotRun || len(is.Decisions) == 0 {
		return false
	}
	last := is.Decisions[len(is.Decisions)-1]
	return last.From == base.StateOf(was) && last.To == base.StateOf(is)
}

// shortestTerm is the least time that an undo gives an expired call: a minute.
const shortestTerm = pool.Time(60_000_000)

// revertRun restores whether the result of a call that has run is on no branch, and refuses to undo what led to a running call.
func (t *Txn) revertRun(message pool.ID, index int, is, back *record.CallRecord) error {
	if base.StateOf(is) != base.StateOf(back) {
		return t.running(message, index, is)
	}
	if is.Result == back.Result {
		return nil
	}
	is.Result = back.Result
	return t.PutCall(message, index, is)
}

// revertBranchFields restores fields of a branch. The index of names is updated at the end.
func (t *Txn) revertBranchFields(op *base.Operation, c base.Change) error {
	l, err := t.changedBranch(c.Key)
	if err != nil {
		return err
	}
	raw, err := branchstore.Encode(l.Branch)
	if err != nil {
		return err
	}
	set, err := restored(op, l.ID, branchFields, c.Fields, raw)
	if err != nil {
		return err
	}
	raw, had, err := base.ReplaceFields(raw, set)
	if err != nil {
		return err
	}
	t.changes = append(t.changes, base.Change{Kind: base.FieldsChange, Bucket: c.Bucket, Key: c.Key, Fields: had})
	back, err := branchstore.DecodeFields(raw)
	if err != nil {
		return err
	}
	removed := l.Removed != 0
	*l.Branch, l.touched = *back, true
	switch {
	case removed && l.Removed == 0:
		t.Rec.Branches++
		return t.Show(l.Branch, l.Pieces, true)
	case !removed && l.Removed != 0:
		t.Rec.Branches--
		return t.Show(l.Branch, l.Pieces, false)
	}
	return nil
}

// revertContext restores fields of the context. If the operation was not one on the context, that is the active branch alone, and only if the present one
// was removed or the other one was just brought back.
func (t *Txn) revertContext(op *base.Operation, c base.Change, onContext bool) error {
	fields, err := t.whereTo(c.Fields, onContext)
	if err != nil || len(fields) == 0 {
		return err
	}
	raw, err := stored.Marshal(t.Rec)
	if err != nil {
		return err
	}
	set, err := restored(op, pool.ID{}, contextFields, fields, raw)
	if err != nil {
		return err
	}
	raw, had, err := base.ReplaceFields(raw, set)
	if err != nil {
		return err
	}
	t.changes = append(t.changes, ContextChange(t.ID, had))
	t.Rec, err = base.ContextFrom(t.ID, raw)
	t.OnContext = t.OnContext || onContext
	return err
}

// whereTo returns the fields that an undo restores: without the active branch where that is not to change, since people stay where they are or the other branch
// is gone. To take a switch back to a branch that is gone is an ErrConflict.
func (t *Txn) whereTo(set map[uint64]cbor.RawMessage, onContext bool) (map[uint64]cbor.RawMessage, error) {
	raw, moves := set[base.ActiveField]
	if !moves {
		return set, nil
	}
	var before pool.ID
	if err := stored.Unmarshal(raw, &before); err != nil {
		return nil, base.Damaged("an operation names the active branch %x, which is not an id", raw)
	}
	to, err := t.Load(before)
	if err != nil {
		return nil, err
	}
	there := to != nil && to.Removed == 0
	if onContext && there {
		return set, nil
	}
	if onContext && len(set) == 1 {
		return nil, base.Conflict("the branch that was active before is removed: bring it back first, or chatctx switch to another one")
	}
	is, err := t.Load(t.Rec.Active)
	if err != nil {
		return nil, err
	}
	gone, back := is == nil || is.Removed != 0, there && to.was.Removed != 0
	if there && (gone || back) {
		return set, nil
	}
	set = maps.Clone(set)
	delete(set, base.ActiveField)
	return set, nil
}

// fixPlace moves this person from a branch that the operation removed to the branch from which that one was forked.
func (t *Txn) fixPlace() error {
	id, err := t.active()
	if err != nil || id == t.Rec.Active {
		return err
	}
	l, err := t.Load(id)
	for l != nil && l.Removed != 0 && l.touched && err == nil {
		id, t.went = l.From, l.From
		l, err = t.Load(id)
	}
	if l == nil || l.Removed != 0 {
		t.went = t.Rec.Active
	}
	return err
}

// fixActive goes on to the branch from which the active one was forked if that was removed. It returns ErrConflict if that one is gone too.
func (t *Txn) fixActive() error {
	if err := t.fixPlace(); err != nil {
		return err
	}
	l, err := t.Load(t.Rec.Active)
	if err != nil || l != nil && l.Removed == 0 {
		return err
	}
	if l == nil {
		return base.Conflict("this undo would leave no branch active: chatctx switch to another one first")
	}
	from, err := t.Load(l.From)
	if err != nil {
		return err
	}
	if from == nil || from.Removed != 0 {
		return base.Conflict("this undo would remove the active branch %q, and the one that it came from is not there: chatctx switch to another one first", l.Name)
	}
	was, err := stored.Marshal(t.Rec.Active)
	if err != nil {
		return err
	}
	t.changes = append(t.changes, ContextChange(t.ID, map[uint64]cbor.RawMessage{base.ActiveField: was}))
	t.Rec.Active = from.ID
	return nil
}

// dropRedo forgets the undos that can no longer be redone because an operation (nil: none) changed the same things: undos that share a thing with it, undos of
// which gc has removed what they need, and older undos that share a thing with any of these, which would be redone on top of it.
func (t *Txn) dropRedo(after *base.Operation) error {
	var kept []uint64
	var before []*base.Operation
	if after != nil {
		before = append(before, after)
	}
	for _, u := range slices.Backward(t.Rec.Redo) {
		undo, err := base.GetOperation(t.Tx, t.ID, u)
		if err != nil {
			return err
		}
		if undo == nil {
			break // the older ones are gone too
		}
		op, err := base.GetOperation(t.Tx, t.ID, undo.Undoes)
		if err != nil {
			return err
		}
		if op == nil || op.Expired || undo.Expired || slices.ContainsFunc(before, func(o *base.Operation) bool { return share(undo, o) }) {
			before = append(before, undo)
		} else {
			kept = append(kept, u)
		}
	}
	slices.Reverse(kept)
	t.Rec.Redo = kept
	return nil
}

// maxRedo bounds the number of undos that can be redone.
const maxRedo = 100

// undo undoes operation n of the context, as a new operation.
func (t *Txn) undo(n uint64) (*base.Operation, error) {
	op, err := t.holding(n)
	if err != nil {
		return nil, err
	}
	if len(op.Chains) == 0 {
		return nil, base.Conflict("operation %d (%s) cannot be taken back: its tool has run", n, op.What)
	}
	if err := t.nothingStands(n, op); err != nil {
		return nil, err
	}
	return t.undoHeld(n, op)
}

// undoHeld is undo without its checks.
func (t *Txn) undoHeld(n uint64, op *base.Operation) (*base.Operation, error) {
	if err := t.revert(op); err != nil {
		return nil, err
	}
	t.What = "undo"
	u := t.number()
	if err := t.finishUndo(op, n, func(i int, top uint64) (uint64, error) { return unlink(t.Tx, t.ID, op.Chains[i], n, top) }); err != nil {
		return nil, err
	}
	t.Rec.Redo = append(t.Rec.Redo, u)
	t.Rec.Redo = t.Rec.Redo[max(0, len(t.Rec.Redo)-maxRedo):]
	op.Undone = u
	if err := base.PutRecord(t.Tx, base.OperationBucket, base.OperationKey(t.ID, n), op); err != nil {
		return nil, err
	}
	return op, t.writeContextAgain()
}

// redo undoes the undo u. It returns the operation that holds again, and its number.
func (t *Txn) redo(u uint64) (uint64, *base.Operation, error) {
	undo, err := t.holding(u)
	if err != nil {
		return 0, nil, err
	}
	n := undo.Undoes
	op, err := base.GetOperation(t.Tx, t.ID, n)
	if err != nil || op == nil {
		return 0, nil, err
	}
	if err := t.revert(undo); err != nil {
		return 0, nil, err
	}
	t.What = "redo"
	if err := t.finishUndo(op, u, func(i int, top uint64) (uint64, error) { return relink(t.Tx, t.ID, &op.Chains[i], n, top) }); err != nil {
		return 0, nil, err
	}
	op.Undone, undo.Undone = 0, t.Rec.NextOperation-1
	for i, o := range map[uint64]*base.Operation{n: op, u: undo} {
		if err := base.PutRecord(t.Tx, base.OperationBucket, base.OperationKey(t.ID, i), o); err != nil {
			return 0, nil, err
		}
	}
	return n, op, nil
}

// holding reads an operation that has not been undone.
func (t *Txn) holding(n uint64) (*base.Operation, error) {
	op, err := base.GetOperation(t.Tx, t.ID, n)
	if err != nil {
		return nil, err
	}
	if op == nil {
		return nil, base.NotFound("operation", fmt.Sprint(n))
	}
	if op.Undone != 0 {
		return nil, undoneAlready("", n, op)
	}
	if op.Expired {
		return nil, base.Conflict("operation %d (%s) is too old: gc has removed what it would bring back", n, op.What)
	}
	return op, nil
}

// undoneAlready is the error for an operation that is not in force. The mark is that of its journal.
func undoneAlready(mark string, n uint64, op *base.Operation) error {
	if op.Undone == n {
		return base.Conflict("operation %s%d (%s) cannot be taken back", mark, n, op.What)
	}
	return base.Conflict("operation %s%d (%s) was undone already, by %[1]s%[4]d", mark, n, op.What, op.Undone)
}

// top returns the newest operation in force on a chain's subject, removed or not; 0 if it has no record.
func (t *Txn) top(c base.Chain) (uint64, error) {
	if c.Branch == (pool.ID{}) {
		return t.Rec.Last, nil
	}
	l, err := t.Load(c.Branch)
	if err != nil || l == nil {
		return 0, err
	}
	return l.Last, nil
}

// nothingStands returns an ErrConflict that names the later operations in force that changed the same things as operation n. Only an operation that is not the
// newest one on all of its subjects can have some.
func (t *Txn) nothingStands(n uint64, op *base.Operation) error {
	newest := true
	for _, c := range op.Chains {
		top, err := t.top(c)
		if err != nil {
			return err
		}
		newest = newest && top == n
	}
	if newest {
		return nil
	}
	numbers, ops, err := later(t.Tx, t.ID, n, op, false)
	if err == nil && len(numbers) > 0 {
		err = inTheWay("", fmt.Sprint(n), op, numbers, ops, "", " --context "+record.Short(t.ID))
	}
	return err
}

// finishUndo writes an undo or redo of op. last returns the newest operation on the subject of op's i-th chain afterwards, from the one before.
func (t *Txn) finishUndo(op *base.Operation, undoes uint64, last func(i int, top uint64) (uint64, error)) error {
	n := t.number()
	chains, err := t.undoChains(op, n, last)
	if err != nil {
		return err
	}
	entry := &base.Operation{What: t.What, At: t.Now, By: t.Store.Program, User: t.Store.User, Chains: chains, Changes: t.changes, Things: op.Things, Undoes: undoes}
	return t.writeAll(n, entry)
}

func (t *Txn) undoChains(op *base.Operation, n uint64, last func(i int, top uint64) (uint64, error)) (chains []base.Chain, err error) {
	for i, c := range op.Chains {
		next := base.Chain{Branch: c.Branch, Prev: c.Prev}
		if c.Branch == (pool.ID{}) {
			t.Rec.Revision++
			if t.Rec.Last, err = last(i, t.Rec.Last); err != nil {
				return nil, err
			}
			t.Rec.Newest = n
			next.Revision = t.Rec.Revision
			chains = append(chains, next)
			continue
		}
		l, err := t.changedBranch(c.Branch[:])
		if err != nil {
			return nil, err
		}
		l.touched = true
		l.Revision++
		if l.Last, err = last(i, l.Last); err != nil {
			return nil, err
		}
		l.Newest = n
		next.Name, next.Revision = l.Name, l.Revision
		chains = append(chains, next)
	}
	return chains, nil
}

// writeContextAgain rewrites the context's record within the same operation.
func (t *Txn) writeContextAgain() error {
	return base.PutRecord(t.Tx, base.ContextBucket, base.Under(t.ID), t.Rec)
}
