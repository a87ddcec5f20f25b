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
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Operation is an entry of a journal.
type Operation struct {
	ID       string  // a number; the store's begin with s
	Context  pool.ID // zero: the store's
	At       pool.Time
	What     string // append, fork, edit …
	By       string // program
	User     string // on a store that a server keeps: who the server took the program for, a slash, and who had started it
	Branches []string
	Undone   bool
	Undoes   string // the operation that this one took back or, where that was an undo, brought back; "" for none
	// About are the first words of what it was about: of the first message that it put on a branch or took off, the title of a conversation, the name of a tag, tool, rule or token. Changed
	// are the values that it put in the place of others. Both are read where they lie, so what is gone is not there, and they are empty in Undone.
	About   string
	Changed []Changed

	number   uint64
	subjects []record.Chain // what it was on
	beside   pool.ID        // in the store's journal: the current context then,
	besideAt uint64         // and its next operation
}

func describe(id pool.ID, n uint64, op *record.Operation) *Operation {
	mark := ""
	if id == (pool.ID{}) {
		mark = "s"
	}
	out := &Operation{ID: fmt.Sprintf("%s%d", mark, n), Context: id, At: op.At, What: op.What, By: op.By, User: op.User, Branches: op.Names(), Undone: op.Undone != 0 && op.Undone != n, // what cannot be undone names itself
		number: n, subjects: op.Chains, beside: op.Current, besideAt: op.CurrentAt}
	if op.Undoes != 0 {
		out.Undoes = fmt.Sprintf("%s%d", mark, op.Undoes)
	}
	return out
}

// Operations gives a context's journal, newest first; "" is the current context.
func Operations(ctx context.Context, s *record.Store, contextRef string) iter.Seq2[*Operation, error] {
	return func(yield func(*Operation, error) bool) {
		id, err := view.Find(ctx, s, contextRef)
		if err != nil {
			yield(nil, err)
			return
		}
		journal(ctx, s, id, yield)
	}
}

// StoreOperations gives the store's own journal, newest first.
func StoreOperations(ctx context.Context, s *record.Store) iter.Seq2[*Operation, error] {
	return func(yield func(*Operation, error) bool) { journal(ctx, s, pool.ID{}, yield) }
}

// AllOperations gives a context's journal, newest first, and among it those of the store's own operations that were about this context or about no other, or came while it was the current one.
func AllOperations(ctx context.Context, s *record.Store, contextRef string) iter.Seq2[*Operation, error] {
	return func(yield func(*Operation, error) bool) {
		id, err := view.Find(ctx, s, contextRef)
		if err != nil {
			yield(nil, err)
			return
		}
		next, stop := iter.Pull2(func(yield func(*Operation, error) bool) { journal(ctx, s, id, yield) })
		defer stop()
		op, err, more := next()
		for of, errOf := range StoreOperations(ctx, s) {
			for more && err == nil && errOf == nil && of.concerns(id) && !of.after(op) {
				if !yield(op, nil) {
					return
				}
				op, err, more = next()
			}
			if err = errors.Join(err, errOf); err != nil {
				yield(nil, err)
				return
			}
			if of.concerns(id) && !yield(of, nil) {
				return
			}
		}
		for ; more; op, err, more = next() {
			if !yield(op, err) || err != nil {
				return
			}
		}
	}
}

// concerns reports whether an operation of the store is one to tell of in a context.
func (o *Operation) concerns(id pool.ID) bool {
	about := func(c record.Chain) bool { return c.Branch == id || c.Branch == pool.ID{} }
	return o.beside == id || slices.ContainsFunc(o.subjects, about)
}

// after reports whether an operation of the store came after one of a context: by the number noted in it, and where it was made beside another context by the clock, which decides here about no
// more than how a list looks.
func (o *Operation) after(op *Operation) bool {
	if o.beside == op.Context {
		return op.number < o.besideAt
	}
	return o.At >= op.At
}

func journal(ctx context.Context, s *record.Store, id pool.ID, yield func(*Operation, error) bool) {
	r := record.NewestFirst(id)
	before := newPast()
	for most := 16; ; most = min(2*most, view.EntryBatch) { // who wants the newest alone reads few
		var page []*Operation
		var p *past
		err := s.DB.View(ctx, func(tx kv.Tx) error {
			page, p = page[:0], before.in(tx)
			var stored []*record.Operation
			err := record.EachOperation(tx, r, func(n uint64, op *record.Operation) error {
				page, stored = append(page, describe(id, n, op)), append(stored, op)
				if len(page) == most {
					return kv.ErrStop
				}
				return nil
			})
			for i := 0; i < len(page) && err == nil; i++ {
				err = p.tell(page[i], stored[i])
			}
			return err
		})
		if err != nil {
			yield(nil, err)
			return
		}
		before = p
		if len(page) > 0 {
			r.To = record.OperationKey(id, page[len(page)-1].number)
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

// Undone says what was taken back or brought back.
type Undone struct {
	Committed
	Undid  *Operation
	Broken []record.Broken // the examples that rules break which deny and are back
}

// Around runs a change in its transaction, and may look at what is there before and after it.
type Around func(tx kv.Tx, change func() error) error

// inOne makes an undo or a redo in one transaction. undo gives the context's transaction, nil where no context is named.
func inOne(ctx context.Context, s *record.Store, around Around, undo func(tx kv.RwTx) (*Undone, *Txn, error)) (*Undone, error) {
	var done *Undone
	var t *Txn
	err := s.DB.Update(ctx, func(tx kv.RwTx) error {
		return around(tx, func() (err error) {
			done, t, err = undo(tx)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return done, t.Arrive()
}

// beginRef begins an undo or a redo on the context that is named.
func beginRef(s *record.Store, tx kv.RwTx, contextRef string) (*Txn, error) {
	id, err := view.ResolveContext(s, tx, contextRef)
	if err != nil {
		return nil, err
	}
	return BeginAt(s, tx, id)
}

// Undo takes back the operation op, or with "" the newest that holds on the branch, or on its context or in the store where that came after. What one command
// made as several operations is taken back together. ErrConflict where something newer stands on it; ErrNotFound where there is nothing to take back.
func Undo(ctx context.Context, s *record.Store, contextRef, branchName, op string, around Around) (*Undone, error) {
	return inOne(ctx, s, around, func(tx kv.RwTx) (*Undone, *Txn, error) { return undoAny(s, tx, contextRef, branchName, op) })
}

// undoAny takes back an operation of a context or of the store. It gives the context's transaction, nil where no context is named.
func undoAny(s *record.Store, tx kv.RwTx, contextRef, branchName, op string) (done *Undone, t *Txn, err error) {
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
	n, inStore, err := t.newest(branchName, op)
	switch {
	case err != nil:
	case inStore:
		done, err = undoStore(s, tx, strconv.FormatUint(n, 10))
	default:
		done, err = t.undoNamed(n, branchName)
	}
	return done, t, err
}

// onlyStore finds the newest operation of the store that holds, an undo if undos is set, where no context is named and none is current: then it is the only journal
// there is. 0: it is not.
func onlyStore(s *record.Store, tx kv.Tx, contextRef, op string, undos bool) (n uint64, err error) {
	if contextRef != "" || op != "" {
		return 0, nil
	}
	if id, err := view.CurrentContext(s, tx); err != nil || id != (pool.ID{}) {
		return 0, err
	}
	err = record.EachOperation(tx, record.NewestFirst(pool.ID{}), func(number uint64, op *record.Operation) error {
		if op.Undone == 0 && op.What != redoWhat && (op.Undoes != 0) == undos {
			n = number
			return kv.ErrStop
		}
		return nil
	})
	return n, err
}

// undoNamed takes back an operation. Where that is an undo, what it took away is brought back; where it is a redo, what that brought back is taken back again.
func (t *Txn) undoNamed(n uint64, branchName string) (*Undone, error) {
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
			return nil, record.Conflict("operation %d (undo) cannot be taken back any more: something was done after it", n)
		}
		undo, err := t.undoneBy(op)
		if err != nil {
			return nil, err
		}
		n = undo.Undoes
	}
	return t.undoGroup(n, branchName)
}

// redoNamed redoes the undo at a place of the list of those that can be, with the others that took back the same command, where no later one is about what these
// are about.
func (t *Txn) redoNamed(at int, branchName string) (*Undone, error) {
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

// groupEnd goes on from a place of the list of undos by steps of 1 or -1, as long as the undos took back operations of a group.
func (t *Txn) groupEnd(at, step int, group uint64) (int, error) {
	for {
		more, err := t.tookBack(at+step, group)
		if err != nil || !more {
			return at, err
		}
		at += step
	}
}

// standsFree says why the undos at the places from first to last cannot be redone yet: a later one is about the same.
func (t *Txn) standsFree(first, last int) error {
	for _, later := range t.Rec.Redo[last+1:] {
		op, err := t.holding(later)
		if err != nil {
			return err
		}
		for _, u := range t.Rec.Redo[first : last+1] {
			undo, err := t.holding(u)
			if err != nil {
				return err
			}
			if Touches(op, undo.Chains) {
				return record.Conflict("operation %d (undo) stands on %d (undo): redo that first", later, u)
			}
		}
	}
	return nil
}

// redoFrom redoes n undos, the one at a place of the list and those before it.
func (t *Txn) redoFrom(at, n int, branchName string) (*Undone, error) {
	done := &Undone{}
	for left := n; ; left-- {
		u := t.Rec.Redo[at]
		t.Rec.Redo = slices.Delete(t.Rec.Redo, at, at+1)
		op, err := t.redo(u)
		if err != nil {
			return nil, err
		}
		if done.Undid == nil {
			done.Undid = describe(t.ID, u, op)
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

// undoneBy reads the operation that an undo took back.
func (t *Txn) undoneBy(undo *record.Operation) (*record.Operation, error) {
	op, err := record.GetOperation(t.Tx, t.ID, undo.Undoes)
	if err == nil && op == nil {
		err = record.NotFound("operation", fmt.Sprint(undo.Undoes))
	}
	return op, err
}

// tookBack reports whether the undo at a place of the list of those that can be redone took back an operation of a group.
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

// newestUndo finds the place in the list of undos that can be redone of the newest that is for a branch; -1 for none. A branch that is not there is found by its
// name if an undo took it away.
func (t *Txn) newestUndo(branchName string) (int, error) {
	b, notFound := t.Branch(branchName)
	if notFound != nil && !errors.Is(notFound, record.ErrNotFound) {
		return -1, notFound
	}
	for at, u := range slices.Backward(t.Rec.Redo) {
		undo, err := t.holding(u)
		if err != nil {
			return -1, err
		}
		for _, c := range undo.Chains {
			if mine, err := t.redoneOn(c.Branch, b, branchName); err != nil || mine {
				return at, err
			}
		}
	}
	return -1, notFound
}

// redoneOn reports whether an undo about the branch id, zero for the context, is redone on the branch b, nil where none has the name that was asked for. What is about
// the context is for all. A branch that the undo took away is asked for by its name or on the branch that it had come from, and on all others if that is gone too.
func (t *Txn) redoneOn(id pool.ID, b *branch.Branch, name string) (bool, error) {
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
	from, err := t.Load(l.From)
	return from == nil || from.Removed != 0, err
}

// newest finds the operation to take back.
func (t *Txn) newest(branchName, op string) (n uint64, inStore bool, err error) {
	if op != "" {
		n, err := strconv.ParseUint(op, 10, 64)
		if err != nil {
			return 0, false, record.NotFound("operation", op)
		}
		return n, false, nil
	}
	n = t.Rec.Last
	b, err := t.Branch(branchName)
	if err != nil {
		return 0, false, err
	}
	n = max(n, b.Last)
	at, sn, err := t.newestInStore(n == 0)
	if err != nil {
		return 0, false, err
	}
	if sn != 0 && at > n {
		return sn, true, nil
	}
	if n == 0 {
		return 0, false, record.NotFound("operation to undo on branch", b.Name)
	}
	return n, false, nil
}

// storeLookback bounds how far back in the store's journal undo looks for what came last.
const storeLookback = 1000

// newestInStore finds the newest operation of the store that holds and that is about this context, or was made while this was the current one, and the number of the context's operation
// that came next. bare: the context has no operation of its own, as after redact, which takes them away.
func (t *Txn) newestInStore(bare bool) (at, n uint64, err error) {
	left := storeLookback
	err = record.EachOperation(t.Tx, record.NewestFirst(pool.ID{}), func(number uint64, op *record.Operation) error {
		if left--; left == 0 {
			return kv.ErrStop
		}
		if op.Current == t.ID && strings.HasPrefix(op.What, "purge ") || bare && op.What == "redact" {
			return kv.ErrStop // nothing before it can be brought back
		}
		if op.Undone != 0 || op.Undoes != 0 {
			return nil
		}
		for _, c := range op.Chains {
			if c.Branch == t.ID && t.Rec.StoreAt != 0 {
				at, n = t.Rec.StoreAt, number
				return kv.ErrStop
			}
		}
		if op.Current == t.ID {
			at, n = op.CurrentAt, number
			return kv.ErrStop
		}
		return nil
	})
	return at, n, err
}

// undoGroup takes back an operation and the others of its group.
func (t *Txn) undoGroup(n uint64, branchName string) (*Undone, error) {
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
	done := &Undone{}
	for i, n := range all {
		if i > 0 {
			if t, err = t.again(); err != nil {
				return nil, err
			}
		}
		if op, err = t.undo(n); err != nil {
			return nil, err
		}
		done.Undid = describe(t.ID, n, op) // at last the one that the command began with
	}
	done.Committed, err = t.outcome(branchName)
	return done, err
}

// again begins the next operation on the same context in the same transaction.
func (t *Txn) again() (*Txn, error) { return BeginAt(t.Store, t.Tx, t.ID) }

// outcome says where an undo or a redo has led.
func (t *Txn) outcome(branchName string) (Committed, error) {
	done := Committed{Operation: fmt.Sprint(t.Rec.NextOperation - 1), What: t.What, Context: t.ID, Title: t.Rec.Title}
	b, err := t.Branch(branchName)
	if errors.Is(err, record.ErrNotFound) { // it went with what was taken back
		b, err = t.Branch("")
	}
	if err == nil {
		done.Branch, done.Revision = b.Name, b.Revision
	}
	return done, err
}

// undoStore takes back an operation of the store with those of its group, or brings back what an undo took away.
func undoStore(s *record.Store, tx kv.RwTx, op string) (*Undone, error) {
	n, err := strconv.ParseUint(op, 10, 64)
	if err != nil {
		return nil, record.NotFound("operation", "s"+op)
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
		return nil, record.Conflict("operation s%d (%s) was undone already, by s%d", n, first.What, first.Undone)
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
	done := &Undone{}
	for _, n := range all {
		o, err := t.undo(n, what)
		if err != nil {
			return nil, err
		}
		done.Context = o.Chains[0].Branch
		if done.Undid == nil {
			done.Undid = describe(pool.ID{}, n, o)
		}
	}
	done.Operation, done.What = fmt.Sprintf("s%d", t.Rec.Newest), what
	if rec, _, err := record.GetContext(tx, done.Context); err != nil {
		return nil, err
	} else if rec != nil {
		done.Title = rec.Title
		if err := s.Placed(done.Context, rec); err != nil {
			return nil, err
		}
		if done.Branch, err = branch.NameOf(tx, done.Context, rec.Active); err != nil {
			return nil, err
		}
	}
	return done, nil
}

// groupOf gives the operations on a journal (zero: the store's) that one command made and that still hold, newest first: undos, or what is neither undo nor
// redo.
func groupOf(tx kv.Tx, id pool.ID, group uint64, undos bool) ([]uint64, error) {
	var all []uint64
	r := record.NewestFirst(id)
	r.From = record.OperationKey(id, group)
	err := record.EachOperation(tx, r, func(n uint64, op *record.Operation) error {
		if op.Group == group && op.Undone == 0 && op.What != redoWhat && (op.Undoes != 0) == undos {
			all = append(all, n)
		}
		return nil
	})
	return all, err
}

// Redo brings back what the newest undo took away on the branch or on the context, as long as nothing else was done there since; else what the store's newest did.
// Where the undo took a whole branch away, it is redone on that branch's name or on the branch that it had been forked from. ErrConflict where a later undo
// stands on it; ErrNotFound where there is nothing to bring back.
func Redo(ctx context.Context, s *record.Store, contextRef, branchName string, around Around) (*Undone, error) {
	return inOne(ctx, s, around, func(tx kv.RwTx) (*Undone, *Txn, error) { return redoAny(s, tx, contextRef, branchName) })
}

// redoAny brings back what an undo of a context or of the store took away. It gives the context's transaction, nil where no context is named.
func redoAny(s *record.Store, tx kv.RwTx, contextRef, branchName string) (done *Undone, t *Txn, err error) {
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
	switch {
	case err != nil:
	case at < 0:
		done, err = redoStore(s, tx, t.ID)
	default:
		done, err = t.redoNamed(at, branchName)
	}
	return done, t, err
}

// redoStore brings back what the store's newest undo took away, if nothing but undos and redos came after it.
func redoStore(s *record.Store, tx kv.RwTx, id pool.ID) (*Undone, error) {
	n := uint64(0)
	err := record.EachOperation(tx, record.NewestFirst(pool.ID{}), func(number uint64, op *record.Operation) error {
		switch {
		case op.What == redoWhat, op.What == undoWhat && op.Undone != 0:
			return nil
		case op.What == undoWhat:
			n = number
		}
		return kv.ErrStop
	})
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, record.NotFound("undo to redo in context", record.Short(id))
	}
	return undoStore(s, tx, strconv.FormatUint(n, 10))
}
