package journal

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// StoreTxn is an operation on the store in the making: new, rm, restore, import, settings. Its journal has the zero id.
type StoreTxn struct {
	Tx       kv.RwTx
	Store    *base.Store
	Now      pool.Time
	Rec      *base.ContextRecord // the journal's counters
	Changes  []base.Change
	Subjects []*Txn // contexts that the operation concerns
	Group    uint64
	current  *pool.ID // the new current context of this person, if Store.Place keeps that
}

func BeginStore(s *base.Store, tx kv.RwTx) (*StoreTxn, error) {
	t := &StoreTxn{Tx: tx, Store: s, Now: s.Now(), Rec: &base.ContextRecord{}}
	_, err := base.GetRecord(tx, base.MetaBucket, base.MetaJournal, t.Rec)
	return t, err
}

// StoreOperation makes one operation on the store.
func StoreOperation(ctx context.Context, s *base.Store, what string, fn func(*StoreTxn) error) (*record.Committed, error) {
	var done *record.Committed
	var t *StoreTxn
	err := s.Update(view.Lane(ctx, s, pool.ID{}), func(tx kv.RwTx) (err error) {
		if t, err = BeginStore(s, tx); err != nil {
			return err
		}
		if err := fn(t); err != nil {
			return err
		}
		done, err = t.Finish(what)
		return err
	})
	if err == nil {
		err = t.arrive()
	}
	return done, err
}

// goTo makes a context the current one. The old one goes on the journal.
func (t *StoreTxn) goTo(id pool.ID) error {
	if t.Store.Place == nil {
		return t.PutRaw(base.MetaBucket, base.MetaCurrent, id[:])
	}
	was, err := t.Store.Place.Context()
	t.move(was, id)
	return err
}

// move changes the current context of this person, the zero id being none. The old one goes on the journal.
func (t *StoreTxn) move(from, to pool.ID) {
	c := base.Change{Kind: base.RecordChange, Bucket: base.MetaBucket, Key: base.MetaCurrent}
	if from != (pool.ID{}) {
		c.Old = from[:]
	}
	t.Changes, t.current = append(t.Changes, c), &to
}

// GoToCurrent returns the current context, the zero id if there is none. On a server, where a Place hears of a new context only after the commit, the one that
// another program of this person has just made becomes the current one.
func (t *StoreTxn) GoToCurrent() (pool.ID, error) {
	id, err := view.CurrentContext(t.Store, t.Tx)
	if err != nil || id != (pool.ID{}) || t.Store.Place == nil || t.Store.User == "" {
		return id, err
	}
	left := storeLookback
	err = base.EachOperation(t.Tx, base.NewestFirst(pool.ID{}), func(_ uint64, op *base.Operation) error {
		if left--; left > 0 && !t.Store.Own(op.User) {
			return nil
		}
		if left > 0 && op.What == NewWhat && op.Undone == 0 && len(op.Chains) > 0 && slices.ContainsFunc(op.Changes, movesPerson) {
			id = op.Chains[0].Branch
		}
		return kv.ErrStop
	})
	if err != nil || id == (pool.ID{}) {
		return id, err
	}
	rec, _, err := base.GetContext(t.Tx, id)
	if err != nil || rec == nil || rec.Trashed != 0 {
		return pool.ID{}, err
	}
	t.current = &id
	return id, nil
}

// NewWhat is the name of the operation that makes a context.
const NewWhat = "new"

// arrive records the new current context of this person once the operation is stored. It may be called on nil.
func (t *StoreTxn) arrive() error {
	if t == nil || t.current == nil {
		return nil
	}
	if err := t.Store.Place.Use(*t.current); err != nil {
		return fmt.Errorf("the change is stored, but your current conversation could not be noted: %w", err)
	}
	return nil
}

// Put writes a record of the meta bucket. The old record goes on the journal.
func (t *StoreTxn) Put(name []byte, v any) error {
	raw, err := base.EncodeRecord(v)
	if err != nil {
		return err
	}
	return t.PutRaw(base.MetaBucket, name, raw)
}

// PutRaw writes a record, or removes it if value is nil. The old record goes on the journal.
func (t *StoreTxn) PutRaw(bucket string, key, value []byte) error {
	old, err := t.Tx.Get(bucket, key)
	if err != nil {
		return err
	}
	t.Changes = append(t.Changes, base.Change{Kind: base.RecordChange, Bucket: bucket, Key: key, Old: bytes.Clone(old)})
	if value == nil {
		return t.Tx.Delete(bucket, key)
	}
	return t.Tx.Put(bucket, key, value)
}

// Trash moves a context into the trash, or out of it if at is zero.
func (t *StoreTxn) Trash(c *Txn, at pool.Time) error {
	was, err := stored.Marshal(c.Rec.Trashed)
	if err != nil {
		return err
	}
	c.Rec.Trashed = at
	t.Changes = append(t.Changes, ContextChange(c.ID, map[uint64]cbor.RawMessage{trashedField: was}))
	t.Subjects = append(t.Subjects, c)
	return nil
}

// EndTask gives a sub-context the state in which its task ended, and moves it into the trash unless it is kept.
func (t *StoreTxn) EndTask(c *Txn, ended *record.Task, keep bool) error {
	c.Rec.Task = ended
	if !keep {
		c.Rec.Trashed = t.Now
	}
	return t.noteFields(c, trashedField, taskField)
}

// noteFields makes a context a subject of the operation. Those of the fields that differ from the stored record go on the journal as they were.
func (t *StoreTxn) noteFields(c *Txn, keys ...uint64) error {
	after, err := stored.Marshal(c.Rec)
	if err != nil {
		return err
	}
	noted := map[uint64]bool{}
	for _, key := range keys {
		noted[key] = true
	}
	set, err := base.ChangedFields(c.RecRaw, after, noted)
	t.Changes = append(t.Changes, ContextChange(c.ID, set))
	t.Subjects = append(t.Subjects, c)
	return err
}

// Entitle gives a context a title that a model made. It returns ErrConflict if a person or a file has given it one.
func (t *StoreTxn) Entitle(c *Txn, title string) error {
	if c.Rec.Title != "" && !c.Rec.Derived {
		return base.Conflict("%q has its title already: chatctx rename gives it another", c.Rec.Title)
	}
	c.Rec.Title, c.Rec.Derived, c.Rec.Renamed, c.Rec.RenamedThere = title, false, false, false
	return t.noteFields(c, titleField, 2, 21, 23)
}

// The CBOR keys of ContextRecord's Title, Trashed and Task.
const (
	titleField   = 1
	trashedField = 8
	taskField    = 20
)

// renamed returns ErrConflict if a person has given a context a title, here or in another store, since an operation changed it.
func (t *StoreTxn) renamed(op *base.Operation) error {
	for _, c := range op.Changes {
		if c.Kind != base.FieldsChange || c.Bucket != base.ContextBucket || c.Fields[titleField] == nil {
			continue
		}
		for _, sub := range t.Subjects {
			if bytes.Equal(c.Key, sub.ID[:]) && sub.Rec.Named() && sub.Rec.Title != "" && !sub.Rec.Derived {
				return base.Conflict("somebody has given %q this title since, so it stays", sub.Rec.Title)
			}
		}
	}
	return nil
}

func (t *StoreTxn) Finish(what string) (*record.Committed, error) {
	done := &record.Committed{What: what, Steps: []*record.Step{NewStep(what)}}
	if len(t.Changes) == 0 {
		return done, nil
	}
	n := max(t.Rec.NextOperation, 1)
	op := &base.Operation{What: what, At: t.Now, By: t.Store.Program, User: t.Store.User, Changes: t.Changes, Group: t.Group}
	for _, c := range t.Subjects {
		op.Chains = append(op.Chains, base.Chain{Branch: c.ID, Prev: c.Rec.StoreLast})
		c.Rec.StoreLast, c.Rec.StoreAt = n, c.number()
		if err := c.WriteContext(); err != nil {
			return nil, err
		}
		done.Context, done.Title = c.ID, c.Rec.Title
	}
	if len(t.Subjects) == 0 {
		op.Chains = []base.Chain{{Prev: t.Rec.Last}}
		t.Rec.Last = n
	}
	var err error
	if op.Things, err = t.listThings(op.Chains); err != nil {
		return nil, err
	}
	if err := t.noteCurrent(op); err != nil {
		return nil, err
	}
	done.Operation = fmt.Sprintf("s%d", n)
	return done, t.Write(n, op)
}

// noteCurrent records the state of the current context, so that undo knows which operation came later.
func (t *StoreTxn) noteCurrent(op *base.Operation) error {
	id, err := t.currentContext()
	if err != nil || id == (pool.ID{}) {
		return err
	}
	rec, _, err := base.GetContext(t.Tx, id)
	if err == nil && rec != nil {
		op.Current, op.CurrentAt = id, max(rec.NextOperation, 1)
	}
	return err
}

// currentContext returns the current context as the operation leaves it so far.
func (t *StoreTxn) currentContext() (pool.ID, error) {
	if t.current != nil {
		return *t.current, nil
	}
	return view.CurrentContext(t.Store, t.Tx)
}

func (t *StoreTxn) Write(n uint64, op *base.Operation) error {
	if err := base.PutRecord(t.Tx, base.OperationBucket, base.OperationKey(pool.ID{}, n), op); err != nil {
		return err
	}
	t.Rec.NextOperation, t.Rec.Newest = n+1, n
	return base.PutRecord(t.Tx, base.MetaBucket, base.MetaJournal, t.Rec)
}

// The names of undo, redo and the end of a task that was given up on the journal.
const (
	GiveUpWhat = "sub abandon"
	undoWhat   = "undo"
	redoWhat   = "redo"
)

// meant reads the operation to undo: if it is a redo, the operation that it brought back.
func (t *StoreTxn) meant(n uint64) (uint64, *base.Operation, error) {
	named := n
	for {
		op, err := base.GetOperation(t.Tx, pool.ID{}, n)
		if err != nil {
			return 0, nil, err
		}
		if op == nil {
			return 0, nil, base.NotFound("operation", fmt.Sprintf("s%d", n))
		}
		if op.What != redoWhat && (n == named || op.What != undoWhat) {
			return n, op, nil
		}
		n = op.Undoes
	}
}

// undo undoes an operation of the store, which may be an undo, and returns the operation that was undone or redone, with its
// number.
func (t *StoreTxn) undo(n uint64, what string) (uint64, *base.Operation, error) {
	op, err := base.GetOperation(t.Tx, pool.ID{}, n)
	if err != nil {
		return 0, nil, err
	}
	if op == nil {
		return 0, nil, base.NotFound("operation", fmt.Sprintf("s%d", n))
	}
	if err := t.revert(op, n); err != nil {
		return 0, nil, err
	}
	u := max(t.Rec.NextOperation, 1)
	entry := &base.Operation{What: what, At: t.Now, By: t.Store.Program, User: t.Store.User, Changes: t.Changes, Things: op.Things, Undoes: n, Group: t.Group}
	for _, c := range t.Subjects {
		entry.Chains = append(entry.Chains, base.Chain{Branch: c.ID, Revision: c.number()}) // redo has to tell what came later
	}
	if len(t.Subjects) == 0 {
		entry.Chains = []base.Chain{{}}
	}
	if err := t.noteCurrent(entry); err != nil {
		return 0, nil, err
	}
	op.Undone = u
	if err := base.PutRecord(t.Tx, base.OperationBucket, base.OperationKey(pool.ID{}, n), op); err != nil {
		return 0, nil, err
	}
	t.Changes, t.Subjects = nil, nil
	if err := t.Write(u, entry); err != nil || op.Undoes == 0 {
		return n, op, err
	}
	back, err := base.GetOperation(t.Tx, pool.ID{}, op.Undoes)
	if err != nil || back == nil {
		return n, op, err
	}
	back.Undone = 0
	return op.Undoes, back, base.PutRecord(t.Tx, base.OperationBucket, base.OperationKey(pool.ID{}, op.Undoes), back)
}

// revert undoes the changes of an operation, if nothing newer stands on them.
func (t *StoreTxn) revert(op *base.Operation, n uint64) error {
	if err := t.nothingStands(op, n); err != nil {
		return err
	}
	for _, c := range op.Chains {
		if c.Branch == (pool.ID{}) {
			continue
		}
		sub, err := BeginAt(t.Store, t.Tx, c.Branch)
		if err != nil {
			return err
		}
		t.Subjects = append(t.Subjects, sub)
	}
	if err := t.renamed(op); err != nil {
		return err
	}
	trashed := make([]pool.Time, len(t.Subjects))
	for i, sub := range t.Subjects {
		trashed[i] = sub.Rec.Trashed
	}
	if err := t.revertChanges(op); err != nil {
		return err
	}
	for i, sub := range t.Subjects {
		if trashed[i] != 0 || sub.Rec.Trashed == 0 {
			continue
		}
		if err := sub.noneRuns(); err != nil {
			return err
		}
		if op.Undoes != 0 {
			continue
		}
		later, ops, err := sub.wentOn()
		if err != nil {
			return err
		}
		if gone, err := sub.journalGone(); err != nil || gone {
			if err == nil {
				err = base.Conflict("s%d (%s) cannot be taken back: what came after it in %q was redacted or purged, and its journal with it; chatctx rm %s", n, op.What, sub.Rec.Title, record.Short(sub.ID))
			}
			return err
		}
		if len(later) > 0 {
			id := record.Short(sub.ID)
			return inTheWay(fmt.Sprintf(" of %q", sub.Rec.Title), fmt.Sprintf("s%d", n), op, later, ops, "", " --context "+id+"; or chatctx rm "+id)
		}
	}
	return t.relink(op, n)
}

// revertChanges undoes the changes of an operation, the newest first.
func (t *StoreTxn) revertChanges(op *base.Operation) error {
	for _, c := range slices.Backward(op.Changes) {
		revert := func(c base.Change) error { return t.revertChange(op, c) }
		switch moves := movesPerson(c); {
		case moves && t.Store.Place == nil && op.Undoes == 0:
			now, err := t.currentContext()
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(t.Subjects, func(sub *Txn) bool { return sub.ID == now }) {
				continue // somebody went on from there
			}
		case moves && t.Store.Place != nil:
			revert = func(c base.Change) error { return t.moveBack(op, c) }
		}
		if err := revert(c); err != nil {
			return err
		}
	}
	return nil
}

// nothingStands returns an ErrConflict that names the later operations in force that changed the same things as operation n: as an undo, also later undos.
func (t *StoreTxn) nothingStands(op *base.Operation, n uint64) error {
	numbers, ops, err := later(t.Tx, pool.ID{}, n, op, op.Undoes != 0)
	if err == nil && len(numbers) > 0 {
		err = inTheWay("", fmt.Sprintf("s%d", n), op, numbers, ops, "s", "")
	}
	return err
}

// wentOn returns the operations in force in the context that are newer than the store's newest operation about it, the newest first.
func (t *Txn) wentOn() (numbers []uint64, ops []*base.Operation, err error) {
	if t.Rec.StoreAt == 0 {
		return nil, nil, nil
	}
	r := base.NewestFirst(t.ID)
	r.From = base.OperationKey(t.ID, t.Rec.StoreAt)
	err = base.EachOperation(t.Tx, r, func(n uint64, op *base.Operation) error {
		if op.Undone == 0 && op.Undoes == 0 && len(op.Chains) > 0 {
			numbers, ops = append(numbers, n), append(ops, op)
		}
		return nil
	})
	return numbers, ops, err
}

// journalGone reports whether the context had operations after the store's newest about it and has none left, as after redact and purge.
func (t *Txn) journalGone() (bool, error) {
	if t.Rec.NextOperation <= max(t.Rec.StoreAt, 1) {
		return false, nil
	}
	gone := true
	err := t.Tx.Scan(base.OperationBucket, kv.Prefix(t.ID[:]), func(_, _ []byte) error {
		gone = false
		return kv.ErrStop
	})
	return gone, err
}

// movesPerson reports whether a change made a context the current one.
func movesPerson(c base.Change) bool {
	return c.Bucket == base.MetaBucket && string(c.Key) == string(base.MetaCurrent)
}

// moveBack reverts a change of the current context if Store.Place keeps that. It moves only the person who made the change, and only if they are still there.
func (t *StoreTxn) moveBack(op *base.Operation, c base.Change) error {
	if !t.Store.Own(op.User) {
		return nil
	}
	now, err := t.currentContext()
	if err != nil || op.Undoes == 0 && !slices.ContainsFunc(t.Subjects, func(sub *Txn) bool { return sub.ID == now }) {
		return err
	}
	back, err := t.stillThere(c)
	if err == nil {
		var to pool.ID
		copy(to[:], back)
		t.move(now, to)
	}
	return err
}

// stillThere returns the old value of a record, but nil if that made a context the current one that gc has removed since.
func (t *StoreTxn) stillThere(c base.Change) ([]byte, error) {
	if !movesPerson(c) || len(c.Old) != 16 {
		return c.Old, nil
	}
	rec, _, err := base.GetContext(t.Tx, pool.ID(c.Old))
	if rec == nil || err != nil {
		return nil, err
	}
	return c.Old, nil
}

func (t *StoreTxn) revertChange(op *base.Operation, c base.Change) error {
	old, err := t.Tx.Get(c.Bucket, c.Key)
	if err != nil {
		return err
	}
	old = bytes.Clone(old)
	if c.Kind == base.RecordChange {
		t.Changes = append(t.Changes, base.Change{Kind: base.RecordChange, Bucket: c.Bucket, Key: c.Key, Old: old})
		back, err := t.stillThere(c)
		if err == nil && ofSettings(c) {
			back, err = settingsBack(op, c.Old, old)
		}
		if err != nil {
			return err
		}
		if back == nil {
			return t.Tx.Delete(c.Bucket, c.Key)
		}
		return t.Tx.Put(c.Bucket, c.Key, back)
	}
	_, had, err := base.ReplaceFields(old, c.Fields)
	if err != nil {
		return err
	}
	t.Changes = append(t.Changes, base.Change{Kind: base.FieldsChange, Bucket: c.Bucket, Key: c.Key, Fields: had})
	for _, sub := range t.Subjects {
		if bytes.Equal(c.Key, sub.ID[:]) {
			now, err := stored.Marshal(sub.Rec)
			if err != nil {
				return err
			}
			raw, _, err := base.ReplaceFields(now, c.Fields)
			if err != nil {
				return err
			}
			if sub.Rec, err = base.ContextFrom(sub.ID, raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// relink sets the newest operation on each subject of the one that was undone or, if that is an undo, redone, and writes the subjects.
func (t *StoreTxn) relink(op *base.Operation, n uint64) error {
	in, number := op, n
	if op.Undoes != 0 {
		var err error
		number = op.Undoes
		if in, err = base.GetOperation(t.Tx, pool.ID{}, number); err == nil && in == nil {
			err = base.NotFound("operation", fmt.Sprintf("s%d", number))
		}
		if err != nil {
			return err
		}
	}
	for i := range in.Chains {
		c := &in.Chains[i]
		last := &t.Rec.Last
		at := slices.IndexFunc(t.Subjects, func(sub *Txn) bool { return sub.ID == c.Branch })
		if at >= 0 {
			last = &t.Subjects[at].Rec.StoreLast
		}
		was := *last
		var err error
		if op.Undoes != 0 {
			*last, err = relink(t.Tx, pool.ID{}, c, number, was)
		} else {
			*last, err = unlink(t.Tx, pool.ID{}, *c, n, was)
		}
		if err == nil && at >= 0 && *last != was {
			t.Subjects[at].Rec.StoreAt = 0
			if op.Undoes != 0 {
				t.Subjects[at].Rec.StoreAt = 1 // what the context did itself is undone before it
			}
		}
		if err != nil {
			return err
		}
	}
	for _, sub := range t.Subjects {
		if err := sub.WriteContext(); err != nil {
			return err
		}
	}
	if op.Undoes == 0 {
		return nil
	}
	return base.PutRecord(t.Tx, base.OperationBucket, base.OperationKey(pool.ID{}, number), in)
}
