package journal

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// described is an entry of a journal with its number and its record.
type described struct {
	*record.Operation
	number uint64
	stored *base.Operation
}

func describe(id pool.ID, n uint64, op *base.Operation) *described {
	mark := ""
	if id == (pool.ID{}) {
		mark = "s"
	}
	out := &record.Operation{ID: fmt.Sprintf("%s%d", mark, n), Context: id, At: op.At, What: op.What, By: op.By, User: op.User, Branches: op.Names()}
	// One of the store that names itself cannot be undone, nor can one of a context that is on no chain; of another one of a context nothing is left.
	out.Undone = op.Undone != 0 && (op.Undone != n || id != pool.ID{} && len(op.Chains) > 0)
	if op.Undoes != 0 {
		out.Undoes = fmt.Sprintf("%s%d", mark, op.Undoes)
	}
	return &described{out, n, op}
}

// Operations yields a context's journal, newest first; "" means the current context.
func Operations(ctx context.Context, s *base.Store, contextRef string) iter.Seq2[*record.Operation, error] {
	return func(yield func(*record.Operation, error) bool) {
		id, err := view.Find(ctx, s, contextRef)
		if err != nil {
			yield(nil, err)
			return
		}
		journal(ctx, s, id, shown(yield))
	}
}

// shown passes entries on without their records.
func shown(yield func(*record.Operation, error) bool) func(*described, error) bool {
	return func(op *described, err error) bool {
		if err != nil {
			return yield(nil, err)
		}
		return yield(op.Operation, nil)
	}
}

// StoreOperations returns the store's own journal, newest first.
func StoreOperations(ctx context.Context, s *base.Store) iter.Seq2[*record.Operation, error] {
	return func(yield func(*record.Operation, error) bool) { journal(ctx, s, pool.ID{}, shown(yield)) }
}

// AllOperations returns a context's journal, newest first, merged with those operations of the store that concerned this context or no context in
// particular. Of the current context ("") it also returns those that this person made while it was that, which may be about other ones.
func AllOperations(ctx context.Context, s *base.Store, contextRef string) iter.Seq2[*record.Operation, error] {
	return func(yield func(*record.Operation, error) bool) {
		id, err := view.Find(ctx, s, contextRef)
		if err != nil {
			yield(nil, err)
			return
		}
		next, stop := iter.Pull2(func(yield func(*described, error) bool) { journal(ctx, s, id, yield) })
		defer stop()
		show := shown(yield)
		op, err, more := next()
		for of, errOf := range func(yield func(*described, error) bool) { journal(ctx, s, pool.ID{}, yield) } {
			for more && err == nil && errOf == nil && of.concerns(s, id, contextRef != "") && !of.after(op) {
				if !show(op, nil) {
					return
				}
				op, err, more = next()
			}
			if err = errors.Join(err, errOf); err != nil {
				yield(nil, err)
				return
			}
			if of.concerns(s, id, contextRef != "") && !show(of, nil) {
				return
			}
		}
		for ; more; op, err, more = next() {
			if !show(op, err) || err != nil {
				return
			}
		}
	}
}

// concerns reports whether an operation of the store belongs in the list of a context. What others did while it was their current one does not.
func (o *described) concerns(s *base.Store, id pool.ID, named bool) bool {
	about := func(c base.Chain) bool { return c.Branch == id || c.Branch == pool.ID{} }
	return !named && o.stored.Current == id && s.Own(o.User) || slices.ContainsFunc(o.stored.Chains, about)
}

// after reports whether an operation of the store came after one of a context. The number noted in it tells, if the context was current then; else the
// clock does, which here only decides the order of a list.
func (o *described) after(op *described) bool {
	if o.stored.Current == op.Context {
		return op.number < o.stored.CurrentAt
	}
	return o.At >= op.At
}

func journal(ctx context.Context, s *base.Store, id pool.ID, yield func(*described, error) bool) {
	r := base.NewestFirst(id)
	before := newPast()
	for most := 16; ; most = min(2*most, view.EntryBatch) { // a caller that wants only the newest reads few
		var page []*described
		var p *past
		err := s.DB.View(ctx, func(tx kv.Tx) error {
			page, p = page[:0], before.in(tx)
			err := base.EachOperation(tx, r, func(n uint64, op *base.Operation) error {
				page = append(page, describe(id, n, op))
				if len(page) == most {
					return kv.ErrStop
				}
				return nil
			})
			if err == nil {
				err = kv.Fetch(tx, subjectsOf(id, page)...)
			}
			for i := 0; i < len(page) && err == nil; i++ {
				err = p.tell(page[i].Operation, page[i].stored)
			}
			return err
		})
		if err != nil {
			yield(nil, err)
			return
		}
		before = p
		if len(page) > 0 {
			r.To = base.OperationKey(id, page[len(page)-1].number)
		}
		for _, op := range page {
			if !yield(op, nil) {
				return
			}
		}
		if len(page) < most {
			return
		}
	}
}

// subjectsOf names the records of the branches and contexts that the operations of a journal concern.
func subjectsOf(id pool.ID, ops []*described) (keys []kv.Key) {
	for _, op := range ops {
		for _, c := range op.stored.Chains {
			switch {
			case c.Branch == pool.ID{}:
			case id == pool.ID{}:
				keys = append(keys, kv.Key{Bucket: base.ContextBucket, Key: c.Branch[:]})
			default:
				keys = append(keys, kv.Key{Bucket: branchstore.Bucket, Key: branchstore.Key(id, c.Branch)})
			}
		}
	}
	return keys
}

// undoing is an undo or redo under way.
type undoing struct {
	record.Undone
	store *StoreTxn // nil for an operation of a context
}

// Around runs a change in its transaction and may look at the state before and after it.
type Around func(tx kv.Tx, change func() error) error

// inOne makes an undo or redo in one transaction. undo returns the context's transaction, nil if no context is named.
func inOne(ctx context.Context, s *base.Store, around Around, undo func(tx kv.RwTx) (*undoing, *Txn, error)) (*record.Undone, error) {
	var done *undoing
	var t *Txn
	err := s.Update(ctx, func(tx kv.RwTx) error {
		return around(tx, func() (err error) {
			done, t, err = undo(tx)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return &done.Undone, errors.Join(t.Arrive(), done.store.arrive())
}

// beginRef begins an undo or redo on the named context.
func beginRef(s *base.Store, tx kv.RwTx, contextRef string) (*Txn, error) {
	id, err := view.ResolveContext(s, tx, contextRef)
	if err != nil {
		return nil, err
	}
	return BeginAt(s, tx, id)
}

// Undo undoes the operation op, or with "" the newest in force on the branch, or on its context or the store if that came later. An operation of the store
// that another user made is undone only by its name. Several operations that one command made are undone together. It returns ErrConflict if something newer
// stands on it, and ErrNotFound if there is nothing to undo.
func Undo(ctx context.Context, s *base.Store, contextRef, branchName, op string, around Around) (*record.Undone, error) {
	return inOne(ctx, s, around, func(tx kv.RwTx) (*undoing, *Txn, error) { return undoAny(s, tx, contextRef, branchName, op) })
}

// UndoHere undoes the newest operation in force on a branch of a context or on the context, never one of the store. It returns ErrNotFound if there is none.
func UndoHere(ctx context.Context, s *base.Store, id pool.ID, branchName string, around Around) (*record.Undone, error) {
	return inOne(ctx, s, around, func(tx kv.RwTx) (*undoing, *Txn, error) {
		t, err := BeginAt(s, tx, id)
		if err != nil {
			return nil, nil, err
		}
		n, b, err := t.newestHere(branchName)
		if err == nil && n == 0 {
			err = base.NotFound("operation to undo on branch", b.Name)
		}
		if err != nil {
			return nil, nil, err
		}
		done, err := t.undoNamed(n, branchName)
		return done, t, err
	})
}

// undoAny undoes an operation of a context or of the store. It returns the context's transaction, nil if no context is named.
func undoAny(s *base.Store, tx kv.RwTx, contextRef, branchName, op string) (done *undoing, t *Txn, err error) {
	if n, ok := strings.CutPrefix(op, "s"); ok {
		done, err = undoStore(s, tx, n)
		return done, nil, err
	}
	if n, err := onlyStore(s, tx, contextRef, op, false); err != nil || n != 0 {
		if err == nil {
			done, err = undoStore(s, tx, strconv.FormatUint(n, 10))
		}
		return done, nil, err
	}
	if t, err = beginRef(s, tx, contextRef); err != nil {
		return nil, nil, err
	}
	n, inStore, err := t.newest(branchName, op, contextRef != "")
	switch {
	case err != nil:
	case inStore:
		done, err = undoStore(s, tx, strconv.FormatUint(n, 10))
	default:
		done, err = t.undoNamed(n, branchName)
	}
	return done, t, err
}

// onlyStore finds this person's newest operation of the store in force, or the newest undo if undos is set, when no context is named and none is current:
// then the store's journal is the only one. It returns 0 otherwise.
func onlyStore(s *base.Store, tx kv.Tx, contextRef, op string, undos bool) (n uint64, err error) {
	if contextRef != "" || op != "" {
		return 0, nil
	}
	if id, err := view.CurrentContext(s, tx); err != nil || id != (pool.ID{}) {
		return 0, err
	}
	err = base.EachOperation(tx, base.NewestFirst(pool.ID{}), func(number uint64, op *base.Operation) error {
		if op.Undone == 0 && s.Own(op.User) && op.What != redoWhat && (op.Undoes != 0) == undos {
			n = number
			return kv.ErrStop
		}
		return nil
	})
	return n, err
}

// undoNamed undoes an operation. If that is an undo, it is redone; if it is a redo, the operation that it brought back is undone again.
func (t *Txn) undoNamed(n uint64, branchName string) (*undoing, error) {
	for range 2 {
		op, err := t.holding(n)
		if err != nil {
			return nil, err
		}
		if err := t.dropRedo(nil); err != nil {
			return nil, err
		}
		at := slices.Index(t.Rec.Redo, n)
		switch {
		case op.Undoes == 0:
			return t.undoGroup(n, branchName)
		case at >= 0:
			return t.redoNamed(at, branchName)
		case op.What == "undo":
			return nil, base.Conflict("operation %d (undo) cannot be taken back any more: something was done after it", n)
		}
		undo, err := t.undoneBy(op)
		if err != nil {
			return nil, err
		}
		n = undo.Undoes
	}
	return t.undoGroup(n, branchName)
}

// redoNamed redoes the undo at a place of the list of undos, with the others of the same command. It returns ErrConflict if a later undo concerns the same
// subjects.
func (t *Txn) redoNamed(at int, branchName string) (*undoing, error) {
	undo, err := t.holding(t.Rec.Redo[at])
	if err != nil {
		return nil, err
	}
	op, err := t.undoneBy(undo)
	if err != nil {
		return nil, err
	}
	first, err := t.groupEnd(at, -1, op.Group)
	if err != nil {
		return nil, err
	}
	last, err := t.groupEnd(at, 1, op.Group)
	if err != nil {
		return nil, err
	}
	if err := t.standsFree(first, last); err != nil {
		return nil, err
	}
	return t.redoFrom(last, last-first+1, branchName)
}

// groupEnd moves from a place of the list of undos by steps of 1 or -1, as long as the undos undid operations of a group.
func (t *Txn) groupEnd(at, step int, group uint64) (int, error) {
	for {
		more, err := t.tookBack(at+step, group)
		if err != nil || !more {
			return at, err
		}
		at += step
	}
}

// standsFree returns ErrConflict if the undos at the places from first to last cannot be redone yet, because a later one concerns the same subjects.
func (t *Txn) standsFree(first, last int) error {
	for _, later := range slices.Backward(t.Rec.Redo[last+1:]) {
		op, err := t.holding(later)
		if err != nil {
			return err
		}
		for _, u := range t.Rec.Redo[first : last+1] {
			undo, err := t.holding(u)
			if err != nil {
				return err
			}
			if share(op, undo) {
				return base.Conflict("operation %d (undo) stands on %d (undo): take it back first, chatctx undo %[1]d --context %[3]s", later, u, record.Short(t.ID))
			}
		}
	}
	return nil
}

// redoFrom redoes n undos, from a place of the list backwards.
func (t *Txn) redoFrom(at, n int, branchName string) (*undoing, error) {
	done := &undoing{}
	for left := n; ; left-- {
		u := t.Rec.Redo[at]
		t.Rec.Redo = slices.Delete(t.Rec.Redo, at, at+1)
		n, op, err := t.redo(u)
		if err != nil {
			return nil, err
		}
		if done.Undid == nil {
			done.Undid = describe(t.ID, n, op).Operation
		}
		if left == 1 {
			done.Committed, err = t.outcome(branchName)
			return done, err
		}
		at--
		if t, err = t.again(); err != nil {
			return nil, err
		}
	}
}

// undoneBy reads the operation that an undo undid.
func (t *Txn) undoneBy(undo *base.Operation) (*base.Operation, error) {
	op, err := base.GetOperation(t.Tx, t.ID, undo.Undoes)
	if err == nil && op == nil {
		err = base.NotFound("operation", fmt.Sprint(undo.Undoes))
	}
	return op, err
}

// tookBack reports whether the undo at a place of the list undid an operation of a group.
func (t *Txn) tookBack(at int, group uint64) (bool, error) {
	if group == 0 || at < 0 || at >= len(t.Rec.Redo) {
		return false, nil
	}
	undo, err := t.holding(t.Rec.Redo[at])
	if err != nil {
		return false, err
	}
	op, err := t.undoneBy(undo)
	return err == nil && op.Group == group, err
}

// newestUndo finds the place of the newest undo that is redone for a branch without being named; -1 if there is none. A branch that an undo removed is found by
// its name. An undo that is named can be redone as long as its things have not changed; without a name, as long as nothing else was done on its branches or, if
// it was on that, the conversation: who has gone on there does not mean it any more.
func (t *Txn) newestUndo(branchName string) (int, error) {
	b, notFound := t.Branch(branchName)
	if notFound != nil && !errors.Is(notFound, base.ErrNotFound) {
		return -1, notFound
	}
	done, err := t.doneSince()
	if err != nil {
		return -1, err
	}
	var past []base.Chain // what was done after the undo, and older undos below such
	for at, u := range slices.Backward(t.Rec.Redo) {
		undo, err := t.holding(u)
		if err != nil {
			return -1, err
		}
		for ; len(done) > 0 && done[0].number > u; done = done[1:] {
			past = append(past, done[0].stored.Chains...)
		}
		if Touches(undo, past) {
			past = append(past, undo.Chains...)
			continue
		}
		for _, c := range undo.Chains {
			if mine, err := t.redoneOn(c.Branch, b, branchName, undo); err != nil || mine {
				return at, err
			}
		}
	}
	return -1, notFound
}

// doneSince returns what was done after the oldest undo that can be redone, but undos and redos, newest first.
func (t *Txn) doneSince() (done []described, err error) {
	if len(t.Rec.Redo) == 0 {
		return nil, nil
	}
	r := base.NewestFirst(t.ID)
	r.From = base.OperationKey(t.ID, t.Rec.Redo[0]+1)
	err = base.EachOperation(t.Tx, r, func(n uint64, op *base.Operation) error {
		if op.Undoes == 0 {
			done = append(done, described{number: n, stored: op})
		}
		return nil
	})
	return done, err
}

// redoneOn reports whether an undo that concerns the branch id, zero for the context, is redone on the branch b, which is nil if no branch has the
// requested name. Undos on the context are redone on every branch. An undo that removed a branch is redone by that branch's name, on the branch to which it
// led from there, or on the one from which that was forked, or on all others if that is gone too.
func (t *Txn) redoneOn(id pool.ID, b *branch.Branch, name string, undo *base.Operation) (bool, error) {
	if b != nil && (id == pool.ID{} || id == b.ID) {
		return true, nil
	}
	l, err := t.Load(id)
	if err != nil || l == nil || l.Removed == 0 {
		return false, err
	}
	if b == nil {
		return l.Name == name, nil
	}
	if l.From == b.ID {
		return true, nil
	}
	if op, err := t.undoneBy(undo); err != nil || activeBefore(op) == b.ID {
		return err == nil, err
	}
	from, err := t.Load(l.From)
	return from == nil || from.Removed != 0, err
}

// activeBefore returns the branch that was active before an operation which made another one active; else the zero id.
func activeBefore(op *base.Operation) (was pool.ID) {
	for _, c := range op.Changes {
		if c.Bucket == base.ContextBucket && c.Fields[base.ActiveField] != nil && stored.Unmarshal(c.Fields[base.ActiveField], &was) == nil {
			return was
		}
	}
	return pool.ID{}
}

// newest finds the operation to undo. named means that the caller named the context: then no operation about another one is meant.
func (t *Txn) newest(branchName, op string, named bool) (n uint64, inStore bool, err error) {
	if op != "" {
		n, err := strconv.ParseUint(op, 10, 64)
		if err != nil {
			return 0, false, base.NotFound("operation", op)
		}
		return n, false, nil
	}
	n, b, err := t.newestHere(branchName)
	if err != nil {
		return 0, false, err
	}
	at, sn, err := t.newestInStore(n == 0, named)
	if err != nil {
		return 0, false, err
	}
	if sn != 0 && at > n {
		return sn, true, nil
	}
	if n == 0 {
		return 0, false, base.NotFound("operation to undo on branch", b.Name)
	}
	return n, false, nil
}

// newestHere finds the newest operation in force on a branch or on the context, 0 for none.
func (t *Txn) newestHere(branchName string) (uint64, *branch.Branch, error) {
	b, err := t.Branch(branchName)
	if err != nil {
		return 0, nil, err
	}
	return max(t.Rec.Last, b.Last), b, nil
}

// storeLookback bounds how far back in the store's journal undo looks for the latest operation.
const storeLookback = 1000

// newestInStore finds this person's newest operation of the store in force that concerns this context, or unless that is named was made while it was current, and the
// number of the context's next operation at that time. bare: the context has no operations of its own, as after redact, which removes them.
func (t *Txn) newestInStore(bare, named bool) (at, n uint64, err error) {
	left := storeLookback
	err = base.EachOperation(t.Tx, base.NewestFirst(pool.ID{}), func(number uint64, op *base.Operation) error {
		if left--; left == 0 {
			return kv.ErrStop
		}
		if op.Current == t.ID && strings.HasPrefix(op.What, "purge ") || bare && op.What == "redact" {
			return kv.ErrStop // nothing before it can be undone
		}
		if op.Undone != 0 || op.Undoes != 0 || !t.Store.Own(op.User) {
			return nil
		}
		for _, c := range op.Chains {
			if c.Branch == t.ID && t.Rec.StoreAt != 0 {
				at, n = t.Rec.StoreAt, number
				return kv.ErrStop
			}
		}
		if op.Current == t.ID && !named {
			at, n = op.CurrentAt, number
			return kv.ErrStop
		}
		return nil
	})
	return at, n, err
}

// undoGroup undoes an operation and the others of its group.
func (t *Txn) undoGroup(n uint64, branchName string) (*undoing, error) {
	op, err := t.holding(n)
	if err != nil {
		return nil, err
	}
	all := []uint64{n}
	if op.Group != 0 {
		if all, err = groupOf(t.Tx, t.ID, op.Group, false); err != nil {
			return nil, err
		}
	}
	done := &undoing{}
	for i, n := range all {
		if i > 0 {
			if t, err = t.again(); err != nil {
				return nil, err
			}
		}
		if op, err = t.undo(n); err != nil {
			return nil, err
		}
		done.Undid = describe(t.ID, n, op).Operation // in the end the operation with which the command began
	}
	done.Committed, err = t.outcome(branchName)
	return done, err
}

// again begins the next operation on the same context in the same transaction.
func (t *Txn) again() (*Txn, error) { return BeginAt(t.Store, t.Tx, t.ID) }

// outcome describes the state after an undo or redo.
func (t *Txn) outcome(branchName string) (record.Committed, error) {
	done := record.Committed{Operation: fmt.Sprint(t.Rec.NextOperation - 1), What: t.What, Context: t.ID, Title: t.Rec.Title}
	b, err := t.Branch(branchName)
	if errors.Is(err, base.ErrNotFound) { // the branch was removed by it
		b, err = t.Branch("")
	}
	if err == nil {
		done.Branch, done.Revision = b.Name, b.Revision
	}
	return done, err
}

// undoStore undoes an operation of the store with those of its group, or redoes an undo.
func undoStore(s *base.Store, tx kv.RwTx, op string) (*undoing, error) {
	n, err := strconv.ParseUint(op, 10, 64)
	if err != nil {
		return nil, base.NotFound("operation", "s"+op)
	}
	t, err := BeginStore(s, tx)
	if err != nil {
		return nil, err
	}
	n, first, err := t.meant(n)
	if err != nil {
		return nil, err
	}
	if first.Undone != 0 {
		return nil, undoneAlready("s", n, first)
	}
	all := []uint64{n}
	if first.Group != 0 {
		if all, err = groupOf(tx, pool.ID{}, first.Group, first.What == undoWhat); err != nil {
			return nil, err
		}
	}
	what := undoWhat
	if first.What == undoWhat {
		what = redoWhat
	}
	if len(all) > 1 {
		t.Group = max(t.Rec.NextOperation, 1)
	}
	done := &undoing{store: t}
	for _, n := range all {
		number, o, err := t.undo(n, what)
		if err == nil {
			err = t.undoWithin(o)
		}
		if err != nil {
			return nil, err
		}
		done.Context = o.Chains[0].Branch
		if done.Undid == nil {
			done.Undid = describe(pool.ID{}, number, o).Operation
		}
	}
	done.Operation, done.What = fmt.Sprintf("s%d", t.Rec.Newest), what
	if rec, _, err := base.GetContext(tx, done.Context); err != nil {
		return nil, err
	} else if rec != nil {
		done.Title = rec.Title
		if err := s.Placed(done.Context, rec); err != nil {
			return nil, err
		}
		if done.Branch, err = branchstore.NameOf(tx, done.Context, rec.Active); err != nil {
			return nil, err
		}
	}
	return done, nil
}

// undoWithin undoes what an operation of the store that is undone changed in the conversations that it is about, and redoes that if it is redone: the end of a
// task cancels calls, as an operation of its conversation that no person can undo alone. Both have the name and time of the change.
func (t *StoreTxn) undoWithin(op *base.Operation) error {
	for _, c := range op.Chains {
		if c.Branch == (pool.ID{}) || op.What != GiveUpWhat {
			continue
		}
		within, err := BeginAt(t.Store, t.Tx, c.Branch)
		if err != nil {
			return err
		}
		var n uint64
		var made *base.Operation
		err = base.EachOperation(t.Tx, base.NewestFirst(c.Branch), func(number uint64, o *base.Operation) error {
			if o.What == op.What && o.At == op.At {
				n, made = number, o
				return kv.ErrStop
			}
			return nil
		})
		switch {
		case err != nil || made == nil:
		case op.Undone != 0 && made.Undone == 0:
			_, err = within.undoHeld(n, made)
		case op.Undone == 0 && made.Undone != 0:
			_, _, err = within.redo(made.Undone)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// groupOf returns the operations of a journal (zero: the store's) that one command made and that are in force, newest first: with undos the undos, else
// those that are neither undo nor redo.
func groupOf(tx kv.Tx, id pool.ID, group uint64, undos bool) ([]uint64, error) {
	var all []uint64
	r := base.NewestFirst(id)
	r.From = base.OperationKey(id, group)
	err := base.EachOperation(tx, r, func(n uint64, op *base.Operation) error {
		if op.Group == group && op.Undone == 0 && op.What != redoWhat && (op.Undoes != 0) == undos {
			all = append(all, n)
		}
		return nil
	})
	return all, err
}

// Redo redoes the newest undo: on the branch or on its context, as long as nothing else was done there since, or this person's in the store. If the undo
// removed a whole branch, it is redone by that branch's name, or on the branch from which that was forked or people came to it. It returns ErrConflict if a
// later undo stands on it, and ErrNotFound if there is nothing to redo.
func Redo(ctx context.Context, s *base.Store, contextRef, branchName string, around Around) (*record.Undone, error) {
	return inOne(ctx, s, around, func(tx kv.RwTx) (*undoing, *Txn, error) { return redoAny(s, tx, contextRef, branchName) })
}

// redoAny redoes an undo of a context or of the store. It returns the context's transaction, nil if no context is named.
func redoAny(s *base.Store, tx kv.RwTx, contextRef, branchName string) (done *undoing, t *Txn, err error) {
	if n, err := onlyStore(s, tx, contextRef, "", true); err != nil || n != 0 {
		if err == nil {
			done, err = redoStore(s, tx, pool.ID{})
		}
		return done, nil, err
	}
	if t, err = beginRef(s, tx, contextRef); err != nil {
		return nil, nil, err
	}
	if err := t.dropRedo(nil); err != nil {
		return nil, nil, err
	}
	at, err := t.newestUndo(branchName)
	if err != nil {
		return nil, t, err
	}
	_, came, err := undoneLast(s, tx, t.ID)
	switch {
	case err != nil:
	case at < 0, came > t.Rec.Redo[at]:
		done, err = redoStore(s, tx, t.ID)
	default:
		done, err = t.redoNamed(at, branchName)
	}
	return done, t, err
}

// undoneLast finds this person's newest undo in the store, if they only made undos and redos after it and others nothing that concerns the same contexts; n
// is 0 if there is none. came is the number of the context's next operation at that time, 0 if the undo neither concerned it nor was made while it was the
// current one.
func undoneLast(s *base.Store, tx kv.Tx, id pool.ID) (n, came uint64, err error) {
	left, group := storeLookback, uint64(0)
	var others []*base.Operation
	err = base.EachOperation(tx, base.NewestFirst(pool.ID{}), func(number uint64, op *base.Operation) error {
		left--
		switch {
		case left == 0:
		case n != 0 && op.Group == group && group != 0:
			came = max(came, undoneAt(op, id))
			return nil
		case n != 0:
		case !s.Own(op.User):
			others = append(others, op)
			return nil
		case op.What == redoWhat, op.What == undoWhat && op.Undone != 0:
			return nil
		case op.What == undoWhat && !slices.ContainsFunc(others, func(o *base.Operation) bool { return share(op, o) }):
			n, group, came = number, op.Group, undoneAt(op, id)
			return nil
		}
		return kv.ErrStop
	})
	return n, came, err
}

// undoneAt returns the number of a context's next operation at the time of an undo in the store, as far as that tells.
func undoneAt(op *base.Operation, id pool.ID) uint64 {
	if op.Current == id {
		return op.CurrentAt
	}
	for _, c := range op.Chains {
		if c.Branch == id {
			return c.Revision
		}
	}
	return 0
}

// redoStore redoes this person's newest undo in the store.
func redoStore(s *base.Store, tx kv.RwTx, id pool.ID) (*undoing, error) {
	n, _, err := undoneLast(s, tx, id)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, base.NotFound("undo to redo in conversation", record.Short(id))
	}
	return undoStore(s, tx, strconv.FormatUint(n, 10))
}
