package chatctx

import (
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// operation is an entry of a journal as it is stored: what was done, and what it takes to take it back.
type operation struct {
	What    string    `cbor:"1,keyasint"`
	At      pool.Time `cbor:"2,keyasint"`
	By      string    `cbor:"3,keyasint,omitempty"`
	Chains  []chain   `cbor:"4,keyasint,omitempty"`
	Changes []change  `cbor:"5,keyasint,omitempty"`
	Undoes  uint64    `cbor:"6,keyasint,omitempty"` // the operation that this one took back, or brought back when that is an undo
	Undone  uint64    `cbor:"7,keyasint,omitempty"` // the operation that took this one back; 0 while it holds
	// Group is the number of the first of several operations that one command made; they are undone together. 0: it stands alone.
	Group uint64 `cbor:"8,keyasint,omitempty"`
	// Current and CurrentAt, in the store's journal: the current context at that time and its next operation, so that undo can tell what came later.
	Current   ID     `cbor:"9,keyasint,omitzero"`
	CurrentAt uint64 `cbor:"10,keyasint,omitempty"`
	// Expired operations can no longer be undone: gc has taken their changes, and what only those needed.
	Expired bool `cbor:"11,keyasint,omitempty"`
}

// chain ties an operation to what it changed: a branch, or the context where Branch is zero, or in the store's journal a context. Prev is the operation
// on the same before it, Revision the one it led to. Name is what the branch was called then, for whoever reads the journal.
type chain struct {
	_        struct{} `cbor:",toarray"`
	Name     string
	Branch   ID
	Prev     uint64
	Revision uint64
}

// The kinds of a change.
const (
	recordChange = 1 // Key in Bucket had the value Old, nil for none
	fieldsChange = 2 // the record Key in Bucket had these Fields
	spliceChange = 3 // the branch with the id Key: at At, counted from 0, Removed gave way to Inserted
)

// change is one thing that an operation did, with what it takes to take it back.
type change struct {
	Kind     int                        `cbor:"1,keyasint"`
	Bucket   string                     `cbor:"2,keyasint,omitempty"`
	Key      []byte                     `cbor:"3,keyasint,omitempty"`
	Old      []byte                     `cbor:"4,keyasint,omitempty"`
	Fields   map[uint64]cbor.RawMessage `cbor:"5,keyasint,omitempty"`
	At       int                        `cbor:"6,keyasint,omitempty"`
	Removed  []branch.Piece             `cbor:"7,keyasint,omitempty"`
	Inserted []branch.Piece             `cbor:"8,keyasint,omitempty"`
}

func getOperation(tx kv.Tx, id ID, n uint64) (*operation, error) {
	op := &operation{}
	ok, err := getRecord(tx, operationBucket, operationKey(id, n), op)
	if err != nil || !ok {
		return nil, err
	}
	return op, nil
}

// names are the branches that an operation was on.
func (op *operation) names() []string {
	var names []string
	for _, c := range op.Chains {
		if c.Name != "" {
			names = append(names, c.Name)
		}
	}
	return names
}

// revert takes back what an operation changed, newest change first and the context last, and puts the way there and back on this one.
func (t *txn) revert(op *operation) error {
	onContext := false
	for _, c := range op.Chains {
		onContext = onContext || c.Branch == ID{}
	}
	for i := len(op.Changes) - 1; i >= 0; i-- {
		if c := op.Changes[i]; c.Bucket != contextBucket {
			if err := t.revertChange(c); err != nil {
				return err
			}
		}
	}
	if err := t.reindex(); err != nil {
		return err
	}
	for i := len(op.Changes) - 1; i >= 0; i-- {
		if c := op.Changes[i]; c.Bucket == contextBucket {
			if err := t.revertContext(c, onContext); err != nil {
				return err
			}
		}
	}
	return t.fixActive()
}

func (t *txn) revertChange(c change) error {
	switch {
	case c.Kind == spliceChange:
		return t.revertSplice(c)
	case c.Kind == recordChange && c.Bucket == callBucket:
		return t.revertCall(c)
	case c.Kind == recordChange && c.Bucket == pool.Bucket:
		if err := wait(t.tx, t.now, docOf(messageDoc, t.id, ID(c.Key[16:]))); err != nil {
			return err
		}
		return t.putRaw(c.Bucket, c.Key, c.Old)
	case c.Kind == recordChange:
		return t.putRaw(c.Bucket, c.Key, c.Old)
	case c.Kind == fieldsChange && c.Bucket == branch.Bucket:
		return t.revertBranchFields(c)
	}
	return damaged("operation with a change of the unknown kind %d", c.Kind)
}

func (t *txn) revertSplice(c change) error {
	l, err := t.changedBranch(c.Key)
	if err != nil {
		return err
	}
	b := l.Branch
	n := branch.Count(c.Inserted)
	if !branch.Same(branch.Slice(b.Pieces, c.At, c.At+n), c.Inserted) {
		return conflict("the history of branch %q has changed since: it cannot be taken back on its own", b.Name)
	}
	sessions := b.Sessions
	if err := t.splice(b, c.At, n, c.Removed); err != nil {
		return err
	}
	b.Sessions = sessions // they are put back as fields
	return nil
}

// changedBranch reads the branch that a change is about, by its id or its record's key.
func (t *txn) changedBranch(key []byte) (*loaded, error) {
	if len(key) < 16 {
		return nil, damaged("an operation that changed the branch %x", key)
	}
	id := ID(key[len(key)-16:])
	l, err := t.load(id)
	if err == nil && l == nil {
		err = NotFound("branch", id.String())
	}
	return l, err
}

// revertCall puts a call's state back, unless it has begun to run: that cannot be taken back. What was decided stays on its record, with the undo as one step
// more. A call that several branches hold by now, as one that was answered, does not wait again.
func (t *txn) revertCall(c change) error {
	raw, err := t.tx.Get(c.Bucket, c.Key)
	if err != nil {
		return err
	}
	is, err := decodeCall(c.Key, raw)
	if err != nil || is == nil || c.Old == nil || is.Execution != pool.NotRun {
		return err
	}
	back, err := decodeCall(c.Key, c.Old)
	if err != nil || back.state() == is.state() && back.Expires == is.Expires {
		return err
	}
	if back.open() && !is.open() {
		holders, err := t.holders(is.Home)
		if err != nil || len(holders) > 1 {
			return err
		}
	}
	back.Decisions = append(is.Decisions, Decision{At: t.now, From: is.state(), To: back.state(), ByKind: ByPerson, ByName: t.store.by,
		Program: t.store.program, Reason: "undo"})
	message, index := callOfKey(c.Key)
	return t.putCall(message, index, back)
}

// revertBranchFields puts fields of a branch back. Names come into the index at the end of the whole.
func (t *txn) revertBranchFields(c change) error {
	l, err := t.changedBranch(c.Key)
	if err != nil {
		return err
	}
	raw, err := branch.Encode(l.Branch)
	if err != nil {
		return err
	}
	raw, had, err := replaceFields(raw, c.Fields)
	if err != nil {
		return err
	}
	t.changes = append(t.changes, change{Kind: fieldsChange, Bucket: c.Bucket, Key: c.Key, Fields: had})
	back, err := branch.DecodeFields(raw)
	if err != nil {
		return err
	}
	removed := l.Removed != 0
	*l.Branch, l.touched = *back, true
	switch {
	case removed && l.Removed == 0:
		t.rec.Branches++
		return t.show(l.Pieces, true)
	case !removed && l.Removed != 0:
		t.rec.Branches--
		return t.show(l.Pieces, false)
	}
	return nil
}

// revertContext puts fields of the context back. Where the operation was not one on the context that is the active branch alone, and only if that is gone, or if the
// other one was just brought back.
func (t *txn) revertContext(c change, onContext bool) error {
	if !onContext {
		var before ID
		if err := decMode.Unmarshal(c.Fields[activeField], &before); err != nil {
			return damaged("an operation with the active branch %x", c.Fields[activeField])
		}
		l, err := t.load(t.rec.Active)
		if err != nil {
			return err
		}
		back := t.branches[before]
		if l != nil && l.Removed == 0 && (back == nil || back.was.Removed == 0 || back.Removed != 0) {
			return nil
		}
	}
	raw, err := encMode.Marshal(t.rec)
	if err != nil {
		return err
	}
	raw, had, err := replaceFields(raw, c.Fields)
	if err != nil {
		return err
	}
	t.changes = append(t.changes, contextChange(t.id, had))
	t.rec, err = contextFrom(t.id, raw)
	t.onContext = t.onContext || onContext
	return err
}

// fixActive chooses another active branch where that is gone.
func (t *txn) fixActive() error {
	if l, err := t.load(t.rec.Active); err != nil || l != nil && l.Removed == 0 {
		return err
	}
	return t.each(func(b *branch.Branch) error {
		t.rec.Active = b.ID
		return kv.ErrStop
	})
}

// dropRedo forgets the undos that can no longer be redone, now that something else was done on what chains name: those about the same, those of which gc has
// taken what it needs, and the older ones about what any of these is about, which would be redone on top of it.
func (t *txn) dropRedo(chains []chain) error {
	var kept []uint64
	for _, u := range slices.Backward(t.rec.Redo) {
		undo, err := getOperation(t.tx, t.id, u)
		if err != nil {
			return err
		}
		if undo == nil {
			break // the older ones are gone with it
		}
		op, err := getOperation(t.tx, t.id, undo.Undoes)
		if err != nil {
			return err
		}
		if op == nil || op.Expired || undo.Expired || touches(undo, chains) {
			chains = append(slices.Clip(chains), undo.Chains...)
		} else {
			kept = append(kept, u)
		}
	}
	slices.Reverse(kept)
	t.rec.Redo = kept
	return nil
}

// touches reports whether an operation has a chain in common with others.
func touches(op *operation, chains []chain) bool {
	for _, a := range op.Chains {
		for _, b := range chains {
			if a.Branch == b.Branch {
				return true
			}
		}
	}
	return false
}

// maxRedo bounds the undos that can be redone.
const maxRedo = 100

// undo takes back the operation n of the context, as a new operation.
func (t *txn) undo(n uint64) (*operation, error) {
	op, err := t.holding(n)
	if err != nil {
		return nil, err
	}
	if len(op.Chains) == 0 {
		return nil, conflict("operation %d (%s) cannot be taken back: what ran has run", n, op.What)
	}
	for _, c := range op.Chains {
		top, err := t.top(c)
		if err != nil {
			return nil, err
		}
		if top != n {
			return nil, conflict("operation %d (%s) stands on %d (%s): undo that first, or chatctx op log shows what to do", top, t.whatOf(top), n, op.What)
		}
	}
	if err := t.revert(op); err != nil {
		return nil, err
	}
	t.what = "undo"
	u := t.number()
	if err := t.finishUndo(op, n, func(c chain) uint64 { return c.Prev }); err != nil {
		return nil, err
	}
	t.rec.Redo = append(t.rec.Redo, u)
	t.rec.Redo = t.rec.Redo[max(0, len(t.rec.Redo)-maxRedo):]
	op.Undone = u
	if err := putRecord(t.tx, operationBucket, operationKey(t.id, n), op); err != nil {
		return nil, err
	}
	return op, t.writeContextAgain()
}

// redo takes back the undo u.
func (t *txn) redo(u uint64) (*operation, error) {
	undo, err := t.holding(u)
	if err != nil {
		return nil, err
	}
	n := undo.Undoes
	op, err := getOperation(t.tx, t.id, n)
	if err != nil || op == nil {
		return nil, err
	}
	if err := t.revert(undo); err != nil {
		return nil, err
	}
	t.what = "redo"
	if err := t.finishUndo(op, u, func(chain) uint64 { return n }); err != nil {
		return nil, err
	}
	op.Undone, undo.Undone = 0, t.rec.NextOperation-1
	for i, o := range map[uint64]*operation{n: op, u: undo} {
		if err := putRecord(t.tx, operationBucket, operationKey(t.id, i), o); err != nil {
			return nil, err
		}
	}
	return op, nil
}

// holding reads an operation that has not been undone.
func (t *txn) holding(n uint64) (*operation, error) {
	op, err := getOperation(t.tx, t.id, n)
	if err != nil {
		return nil, err
	}
	if op == nil {
		return nil, NotFound("operation", fmt.Sprint(n))
	}
	if op.Undone != 0 {
		return nil, conflict("operation %d (%s) was undone already, by %d", n, op.What, op.Undone)
	}
	if op.Expired {
		return nil, conflict("operation %d (%s) is too old: gc has let go of what it would bring back", n, op.What)
	}
	return op, nil
}

// top is the newest operation that holds on what a chain names, removed or not; 0 where there is no record of it.
func (t *txn) top(c chain) (uint64, error) {
	if c.Branch == (ID{}) {
		return t.rec.Last, nil
	}
	l, err := t.load(c.Branch)
	if err != nil || l == nil {
		return 0, err
	}
	return l.Last, nil
}

func (t *txn) whatOf(n uint64) string {
	if op, err := getOperation(t.tx, t.id, n); err == nil && op != nil {
		return op.What
	}
	return "gone"
}

// finishUndo writes an undo or a redo of op; last says what each chain's newest operation is then.
func (t *txn) finishUndo(op *operation, undoes uint64, last func(chain) uint64) error {
	n := t.number()
	chains, err := t.undoChains(op, n, last)
	if err != nil {
		return err
	}
	entry := &operation{What: t.what, At: t.now, By: t.store.program, Chains: chains, Changes: t.changes, Undoes: undoes}
	return t.writeAll(n, entry)
}

func (t *txn) undoChains(op *operation, n uint64, last func(chain) uint64) ([]chain, error) {
	var chains []chain
	for _, c := range op.Chains {
		next := chain{Branch: c.Branch, Prev: c.Prev}
		if c.Branch == (ID{}) {
			t.rec.Revision++
			t.rec.Last, t.rec.Newest = last(c), n
			next.Revision = t.rec.Revision
			chains = append(chains, next)
			continue
		}
		l, err := t.changedBranch(c.Branch[:])
		if err != nil {
			return nil, err
		}
		l.touched = true
		l.Revision++
		l.Last, l.Newest = last(c), n
		next.Name, next.Revision = l.Name, l.Revision
		chains = append(chains, next)
	}
	return chains, nil
}

// writeContextAgain writes the context's record once more in the same operation.
func (t *txn) writeContextAgain() error { return putRecord(t.tx, contextBucket, under(t.id), t.rec) }
