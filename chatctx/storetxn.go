package chatctx

import (
	"bytes"
	"context"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// storeTxn is an operation on the store while it is being made: new, rm, restore, import, settings. Its journal has the zero id.
type storeTxn struct {
	tx       kv.RwTx
	store    *Store
	now      pool.Time
	rec      *contextRecord // the journal's counters
	changes  []change
	subjects []*txn // contexts that the operation is about
	group    uint64
}

func (s *Store) beginStore(tx kv.RwTx) (*storeTxn, error) {
	t := &storeTxn{tx: tx, store: s, now: s.now(), rec: &contextRecord{}}
	_, err := getRecord(tx, metaBucket, metaJournal, t.rec)
	return t, err
}

// storeOperation makes one operation on the store.
func (s *Store) storeOperation(ctx context.Context, what string, fn func(*storeTxn) error) (*Committed, error) {
	var done *Committed
	err := s.db.Update(ctx, func(tx kv.RwTx) error {
		t, err := s.beginStore(tx)
		if err != nil {
			return err
		}
		if err := fn(t); err != nil {
			return err
		}
		done, err = t.finish(what)
		return err
	})
	return done, err
}

// put writes a meta record with what it was on the journal.
func (t *storeTxn) put(name []byte, v any) error {
	old, err := t.tx.Get(metaBucket, name)
	if err != nil {
		return err
	}
	t.changes = append(t.changes, change{Kind: recordChange, Bucket: metaBucket, Key: name, Old: bytes.Clone(old)})
	return putRecord(t.tx, metaBucket, name, v)
}

// putRaw writes a record, nil to remove it, with what it was on the journal.
func (t *storeTxn) putRaw(bucket string, key, value []byte) error {
	old, err := t.tx.Get(bucket, key)
	if err != nil {
		return err
	}
	t.changes = append(t.changes, change{Kind: recordChange, Bucket: bucket, Key: key, Old: bytes.Clone(old)})
	if value == nil {
		return t.tx.Delete(bucket, key)
	}
	return t.tx.Put(bucket, key, value)
}

// trash moves a context into the trash, or out of it for the zero time.
func (t *storeTxn) trash(c *txn, at pool.Time) error {
	was, err := encMode.Marshal(c.rec.Trashed)
	if err != nil {
		return err
	}
	c.rec.Trashed = at
	t.changes = append(t.changes, contextChange(c.id, map[uint64]cbor.RawMessage{trashedField: was}))
	t.subjects = append(t.subjects, c)
	return nil
}

// trashedField is the key of contextRecord.Trashed.
const trashedField = 8

func (t *storeTxn) finish(what string) (*Committed, error) {
	done := &Committed{What: what}
	if len(t.changes) == 0 {
		return done, nil
	}
	n := max(t.rec.NextOperation, 1)
	op := &operation{What: what, At: t.now, By: t.store.program, Changes: t.changes, Group: t.group}
	for _, c := range t.subjects {
		op.Chains = append(op.Chains, chain{Branch: c.id, Prev: c.rec.StoreLast})
		c.rec.StoreLast, c.rec.StoreAt = n, c.number()
		if err := c.writeContext(); err != nil {
			return nil, err
		}
		done.Context, done.Title = c.id, c.rec.Title
	}
	if len(t.subjects) == 0 {
		op.Chains = []chain{{Prev: t.rec.Last}}
		t.rec.Last = n
	}
	if err := t.current(op); err != nil {
		return nil, err
	}
	done.Operation = fmt.Sprintf("s%d", n)
	return done, t.write(n, op)
}

// current notes where the current context was, so that undo knows which came later.
func (t *storeTxn) current(op *operation) error {
	id, err := currentContext(t.tx)
	if err != nil || id == (ID{}) {
		return err
	}
	rec, _, err := getContext(t.tx, id)
	if err == nil && rec != nil {
		op.Current, op.CurrentAt = id, max(rec.NextOperation, 1)
	}
	return err
}

func (t *storeTxn) write(n uint64, op *operation) error {
	if err := putRecord(t.tx, operationBucket, operationKey(ID{}, n), op); err != nil {
		return err
	}
	t.rec.NextOperation, t.rec.Newest = n+1, n
	return putRecord(t.tx, metaBucket, metaJournal, t.rec)
}

// What undoing and bringing back are called on the journal.
const (
	undoWhat = "undo"
	redoWhat = "redo"
)

// meant reads the operation to take back: for a redo it is the one that the redo brought back.
func (t *storeTxn) meant(n uint64) (uint64, *operation, error) {
	named := n
	for {
		op, err := getOperation(t.tx, ID{}, n)
		if err != nil {
			return 0, nil, err
		}
		if op == nil {
			return 0, nil, NotFound("operation", fmt.Sprintf("s%d", n))
		}
		if op.What != redoWhat && (n == named || op.What != undoWhat) {
			return n, op, nil
		}
		n = op.Undoes
	}
}

// undo takes back an operation of the store, an undo too, and gives what was taken back or brought back.
func (t *storeTxn) undo(n uint64, what string) (*operation, error) {
	op, err := getOperation(t.tx, ID{}, n)
	if err != nil {
		return nil, err
	}
	if op == nil {
		return nil, NotFound("operation", fmt.Sprintf("s%d", n))
	}
	if err := t.revert(op, n); err != nil {
		return nil, err
	}
	u := max(t.rec.NextOperation, 1)
	entry := &operation{What: what, At: t.now, By: t.store.program, Changes: t.changes, Undoes: n, Group: t.group}
	for _, c := range t.subjects {
		entry.Chains = append(entry.Chains, chain{Branch: c.id})
	}
	if len(t.subjects) == 0 {
		entry.Chains = []chain{{}}
	}
	if err := t.current(entry); err != nil {
		return nil, err
	}
	op.Undone = u
	if err := putRecord(t.tx, operationBucket, operationKey(ID{}, n), op); err != nil {
		return nil, err
	}
	t.changes, t.subjects = nil, nil
	if err := t.write(u, entry); err != nil || op.Undoes == 0 {
		return op, err
	}
	back, err := getOperation(t.tx, ID{}, op.Undoes)
	if err != nil || back == nil {
		return op, err
	}
	back.Undone = 0
	return back, putRecord(t.tx, operationBucket, operationKey(ID{}, op.Undoes), back)
}

// revert takes back the changes of an operation, where nothing newer stands on what it is about.
func (t *storeTxn) revert(op *operation, n uint64) error {
	for _, c := range op.Chains {
		if c.Branch == (ID{}) {
			if op.Undoes == 0 && t.rec.Last != n {
				return conflict("operation s%d stands on s%d (%s): undo that first", t.rec.Last, n, op.What)
			}
			t.rec.Last = c.Prev
			continue
		}
		sub, err := t.store.beginAt(t.tx, c.Branch)
		if err != nil {
			return err
		}
		if op.Undoes == 0 && sub.rec.StoreLast != n {
			return conflict("operation s%d stands on s%d (%s): undo that first", sub.rec.StoreLast, n, op.What)
		}
		t.subjects = append(t.subjects, sub)
	}
	trashed := make([]pool.Time, len(t.subjects))
	for i, sub := range t.subjects {
		trashed[i] = sub.rec.Trashed
	}
	for i := len(op.Changes) - 1; i >= 0; i-- {
		if err := t.revertChange(op.Changes[i]); err != nil {
			return err
		}
	}
	for i, sub := range t.subjects {
		if trashed[i] != 0 || sub.rec.Trashed == 0 || op.Undoes != 0 {
			continue
		}
		later, err := sub.wentOn()
		if err != nil {
			return err
		}
		if later != 0 {
			return conflict("operation %d of %q stands on s%d (%s): undo that first, or chatctx rm %s", later, sub.rec.Title, n, op.What, Short(sub.id))
		}
	}
	return t.relink(op)
}

// wentOn is the newest operation that holds in the context and that came after the store's newest about it; 0 for none.
func (t *txn) wentOn() (uint64, error) {
	newest := t.rec.Last
	err := branch.List(t.tx, t.id, func(b *branch.Branch) error {
		newest = max(newest, b.Last)
		return nil
	})
	if newest < t.rec.StoreAt || t.rec.StoreAt == 0 {
		newest = 0
	}
	return newest, err
}

func (t *storeTxn) revertChange(c change) error {
	old, err := t.tx.Get(c.Bucket, c.Key)
	if err != nil {
		return err
	}
	old = bytes.Clone(old)
	if c.Kind == recordChange {
		t.changes = append(t.changes, change{Kind: recordChange, Bucket: c.Bucket, Key: c.Key, Old: old})
		if c.Old == nil {
			return t.tx.Delete(c.Bucket, c.Key)
		}
		return t.tx.Put(c.Bucket, c.Key, c.Old)
	}
	_, had, err := replaceFields(old, c.Fields)
	if err != nil {
		return err
	}
	t.changes = append(t.changes, change{Kind: fieldsChange, Bucket: c.Bucket, Key: c.Key, Fields: had})
	for _, sub := range t.subjects {
		if bytes.Equal(c.Key, sub.id[:]) {
			now, err := encMode.Marshal(sub.rec)
			if err != nil {
				return err
			}
			raw, _, err := replaceFields(now, c.Fields)
			if err != nil {
				return err
			}
			if sub.rec, err = contextFrom(sub.id, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// relink sets what the newest operation on each subject is now, and writes the subjects.
func (t *storeTxn) relink(op *operation) error {
	for i, sub := range t.subjects {
		if op.Undoes == 0 {
			sub.rec.StoreLast, sub.rec.StoreAt = op.Chains[i].Prev, 0
		} else {
			sub.rec.StoreLast, sub.rec.StoreAt = op.Undoes, 1 // what the context did itself is undone before it
		}
		if err := sub.writeContext(); err != nil {
			return err
		}
	}
	if len(t.subjects) == 0 && op.Undoes != 0 {
		t.rec.Last = op.Undoes
	}
	return nil
}
