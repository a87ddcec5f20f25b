package chatctx

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// txn is an operation on one context while it is being made: what it changes is collected, and written with the journal entry by finish.
// It lives in one writing transaction and may be made again in another, so it changes nothing outside.
type txn struct {
	tx       kv.RwTx
	store    *Store
	now      pool.Time
	id       ID
	rec      *contextRecord
	recRaw   []byte         // as it was
	was      contextRecord  // the same
	branches map[ID]*loaded // those that were read
	target   *branch.Branch // the branch that the steps are about
	changes  []change
	// onContext: the operation is one on the context itself, not on branches alone.
	onContext bool
	what      string
	written   []ID // messages
	group     uint64
}

// loaded is a branch with its record as it was. raw is nil for a new branch.
type loaded struct {
	*branch.Branch
	raw     []byte
	was     branch.Branch // raw decoded
	touched bool
	created bool   // by this operation: undo removes it whole, so it needs no other changes
	named   string // what it is called in the index, "" for nothing
}

// holds is the name that the branch is to have in the index.
func (l *loaded) holds() string {
	if l.Removed != 0 {
		return ""
	}
	return l.Name
}

// begin reads the context and the branch that an operation is about.
func (s *Store) begin(tx kv.RwTx, contextRef, branchName string) (*txn, error) {
	id, err := resolveContext(tx, contextRef)
	if err != nil {
		return nil, err
	}
	t, err := s.beginAt(tx, id)
	if err != nil {
		return nil, err
	}
	if t.rec.Trashed != 0 {
		return nil, conflict("the conversation %q is in the trash: chatctx restore %s", t.rec.Title, Short(id))
	}
	t.target, err = t.branch(branchName)
	return t, err
}

// beginAt reads a context by its id, in the trash or not, and no branch.
func (s *Store) beginAt(tx kv.RwTx, id ID) (*txn, error) {
	rec, raw, err := getContext(tx, id)
	if err != nil {
		return nil, err
	}
	if rec == nil {
		return nil, NotFound("context", id.String())
	}
	return &txn{tx: tx, store: s, now: s.now(), id: id, rec: rec, recRaw: bytes.Clone(raw), was: *rec, branches: map[ID]*loaded{}}, nil
}

// branch reads a branch by name, "" for the active one.
func (t *txn) branch(name string) (*branch.Branch, error) {
	id := t.rec.Active
	if name != "" {
		var err error
		if id, err = branch.Lookup(t.tx, t.id, name); err != nil {
			return nil, err
		}
	}
	l, err := t.load(id)
	if err != nil {
		return nil, err
	}
	if l == nil || l.Removed != 0 {
		return nil, NotFound("branch", name)
	}
	return l.Branch, nil
}

// load reads a branch by id, removed or not; nil where there is no record of it.
func (t *txn) load(id ID) (*loaded, error) {
	if l := t.branches[id]; l != nil {
		return l, nil
	}
	raw, err := t.tx.Get(branch.Bucket, branch.Key(t.id, id))
	if raw == nil || err != nil {
		return nil, err
	}
	b, err := branch.Decode(id, raw)
	if err != nil {
		return nil, err
	}
	l := &loaded{Branch: b, raw: bytes.Clone(raw), was: *b}
	l.named = l.holds()
	t.branches[id] = l
	return l, nil
}

// each calls fn for the branches that are there now, first those that this operation has read, as they are in it. ErrStop ends it.
func (t *txn) each(fn func(*branch.Branch) error) error {
	for _, l := range t.read() {
		if l.Removed != 0 {
			continue
		}
		if err := fn(l.Branch); errors.Is(err, kv.ErrStop) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return branch.List(t.tx, t.id, func(b *branch.Branch) error {
		if t.branches[b.ID] != nil {
			return nil
		}
		return fn(b)
	})
}

// read are the branches that this operation has read or made, by id, so that it always does the same in the same order.
func (t *txn) read() []*loaded {
	return slices.SortedFunc(maps.Values(t.branches), func(a, b *loaded) int { return bytes.Compare(a.ID[:], b.ID[:]) })
}

// touch marks a branch as changed by this operation.
func (t *txn) touch(b *branch.Branch) { t.branches[b.ID].touched = true }

// create makes an empty branch with the prompts and settings of like. To take that back is to remove it.
func (t *txn) create(name string, like *branch.Branch) (*branch.Branch, error) {
	if err := t.free(name); err != nil {
		return nil, err
	}
	b := &branch.Branch{ID: pool.NewID(), Name: name, Created: t.now}
	if like != nil {
		b.System, b.Prompt, b.Settings = like.System, like.Prompt, like.Settings
		b.Sessions, b.From = slices.Clone(like.Sessions), like.ID
	}
	removed, err := encMode.Marshal(max(t.now, 1))
	if err != nil {
		return nil, err
	}
	t.branches[b.ID] = &loaded{Branch: b, touched: true, created: true}
	t.changes = append(t.changes, branchChange(t.id, b.ID, map[uint64]cbor.RawMessage{removedField: removed}))
	t.rec.Branches++
	return b, t.reindex()
}

// free says why a branch cannot be given a name; nil if it can.
func (t *txn) free(name string) error {
	if err := branch.CheckName(name); err != nil {
		return err
	}
	id, err := branch.Lookup(t.tx, t.id, name)
	if err == nil && id != (ID{}) {
		err = conflict("there is a branch %q already: take another name, or chatctx switch %q", name, name)
	}
	return err
}

// remove marks a branch as removed. Its record stays, so that its mark and revision go on from where they are if it comes back.
func (t *txn) remove(b *branch.Branch) error {
	b.Removed = max(t.now, 1)
	t.touch(b)
	t.rec.Branches--
	if err := t.show(b.Pieces, false); err != nil {
		return err
	}
	return t.reindex()
}

// rename gives a branch another name.
func (t *txn) rename(b *branch.Branch, name string) error {
	if err := t.free(name); err != nil {
		return err
	}
	b.Name = name
	t.touch(b)
	return t.reindex()
}

// reindex makes the names lead to the branches that have them now. The names that are given up go first, so that branches can have swapped theirs.
func (t *txn) reindex() error {
	var moved []*loaded
	for _, l := range t.read() {
		if l.named == l.holds() {
			continue
		}
		moved = append(moved, l)
		if l.named == "" {
			continue
		}
		if err := branch.DeleteName(t.tx, t.id, l.named); err != nil {
			return err
		}
	}
	for _, l := range moved {
		if l.named = l.holds(); l.named == "" {
			continue
		}
		id, err := branch.Lookup(t.tx, t.id, l.named)
		if err == nil && id != (ID{}) {
			err = conflict("there is a branch %q again: rename it first", l.named)
		}
		if err == nil {
			err = branch.PutName(t.tx, t.id, l.named, l.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// putBranches writes the records of a new context's branches.
func (t *txn) putBranches() error {
	for _, l := range t.read() {
		if err := branch.Put(t.tx, t.id, l.Branch); err != nil {
			return err
		}
	}
	return nil
}

// unmake forgets a branch of a new context before anything of it is written but its name.
func (t *txn) unmake(b *branch.Branch) error {
	delete(t.branches, b.ID)
	t.rec.Branches--
	return branch.DeleteName(t.tx, t.id, b.Name)
}

// remember puts the value that a key had before this operation on the journal.
func (t *txn) remember(bucket string, key, old []byte) error {
	t.changes = append(t.changes, change{Kind: recordChange, Bucket: bucket, Key: key, Old: bytes.Clone(old)})
	return nil
}

// putRaw writes a record, nil to remove it, with what it was on the journal.
func (t *txn) putRaw(bucket string, key, value []byte) error {
	old, err := t.tx.Get(bucket, key)
	if err != nil {
		return err
	}
	old = bytes.Clone(old)
	if err := t.remember(bucket, key, old); err != nil {
		return err
	}
	if value == nil {
		err = t.tx.Delete(bucket, key)
	} else {
		err = t.tx.Put(bucket, key, value)
	}
	if err == nil && bucket == callBucket {
		err = t.callChanged(key, old, value)
	}
	return err
}

// segment gives the branch a segment to write to.
func (t *txn) segment(b *branch.Branch) {
	if b.Segment == 0 {
		t.rec.NextSegment++
		b.Segment = t.rec.NextSegment
	}
}

// write puts entries into the branch's own segment.
func (t *txn) write(b *branch.Branch, items []branch.Item) (branch.Piece, error) {
	t.segment(b)
	return branch.Write(t.tx, t.id, b, items)
}

// splice changes a history: removed entries at the place at (from 0) give way to those of insert.
func (t *txn) splice(b *branch.Branch, at, removed int, insert []branch.Piece) error {
	gone := branch.Slice(b.Pieces, at, at+removed)
	if removed == 0 && branch.Count(insert) == 0 {
		return nil
	}
	if b.Removed != 0 {
		return conflict("the branch %q is removed: its history cannot change", b.Name)
	}
	b.Pieces = branch.Splice(b.Pieces, at, removed, insert)
	if !t.branches[b.ID].created {
		t.changes = append(t.changes, change{Kind: spliceChange, Key: b.ID[:], At: at, Removed: gone, Inserted: insert})
	}
	t.moveSessions(b, at, removed, branch.Count(insert))
	t.touch(b)
	if err := t.show(gone, false); err != nil {
		return err
	}
	return t.show(insert, true)
}

// moveSessions keeps the starts of sessions at their messages when a history changes before them.
func (t *txn) moveSessions(b *branch.Branch, at, removed, inserted int) {
	if len(b.Sessions) == 0 || removed == 0 && at >= b.Len()-inserted {
		return
	}
	move := func(pos int) int { // pos counts from 1
		switch {
		case pos-1 < at:
			return pos
		case pos-1 < at+removed:
			return at + 1
		}
		return pos - removed + inserted
	}
	var kept []branch.Session
	for _, s := range b.Sessions {
		s.Start = move(s.Start)
		s.PrunedTo = min(move(s.PrunedTo), b.Len())
		s.Digests = digestsUpTo(s.Digests, at)
		if s.Start <= b.Len()+1 && (s.Start > 1 || s.Summary == ID{}) {
			kept = append(kept, s)
		}
	}
	b.Sessions = kept
}

// merge copies short pieces together where an edit made too many. A call that waits keeps its home.
func (t *txn) merge(b *branch.Branch) error {
	before := b.Pieces
	if calls, err := unansweredIn(t.tx, t.id, before); err != nil || len(calls) > 0 {
		return err
	}
	t.segment(b)
	after, err := branch.Merge(t.tx, t.id, b)
	if err != nil || branch.Same(before, after) {
		return err
	}
	b.Pieces = after
	if !t.branches[b.ID].created {
		t.changes = append(t.changes, change{Kind: spliceChange, Key: b.ID[:], Removed: before, Inserted: after})
	}
	return nil
}

// put stores new messages and puts their ids into the branch's segment; where they stand on the branch is the caller's to say.
func (t *txn) put(b *branch.Branch, msgs []*Message) (branch.Piece, error) {
	return t.writeAs(b, msgs, t.store1)
}

// writeAs is put with the function that stores a message.
func (t *txn) writeAs(b *branch.Branch, msgs []*Message, store func(*Message) error) (branch.Piece, error) {
	t.segment(b)
	items := make([]branch.Item, len(msgs))
	for i, m := range msgs {
		m.Home = pool.Home{Segment: b.Segment, Position: b.High + uint64(i)}
		items[i] = branch.ItemOf(m)
		if err := store(m); err != nil {
			return branch.Piece{}, err
		}
	}
	p, err := t.write(b, items)
	if err != nil {
		return p, err
	}
	for _, m := range msgs {
		if err := t.openCalls(m); err != nil {
			return p, err
		}
	}
	return p, nil
}

// append puts messages at the end of a branch, those that it does not hold yet.
func (t *txn) append(b *branch.Branch, msgs []*Message) ([]Placement, error) {
	placed, err := t.place(b, b.Len(), msgs)
	if err == nil {
		t.deriveTitle(msgs)
	}
	return placed, err
}

// deriveTitle names a context after the first words that somebody wrote in it.
func (t *txn) deriveTitle(msgs []*Message) {
	if t.rec.Title != "" {
		return
	}
	for _, m := range msgs {
		if branch.ItemOf(m).Turn {
			if t.rec.Title = TitleFrom(m.Text()); t.rec.Title != "" {
				t.rec.Derived = true
				return
			}
		}
	}
}

// finish writes what the operation changed, and its journal entry. Without a change it writes nothing and returns an empty Operation.
func (t *txn) finish() (*Committed, error) {
	done := &Committed{What: t.what, Context: t.id, Title: t.rec.Title}
	if t.target != nil {
		done.Branch, done.Revision = t.target.Name, t.target.Revision
	}
	chains, err := t.finishBranches()
	if err != nil {
		return nil, err
	}
	if err := t.diffContext(); err != nil {
		return nil, err
	}
	if len(chains) == 0 && !t.onContext && len(t.changes) == 0 {
		if len(t.written) == 0 {
			return done, nil
		}
		return done, t.putRecord() // a loose message is counted, and on no journal
	}
	n := t.number()
	if t.onContext {
		t.rec.Revision++
		chains = append(chains, chain{Prev: t.rec.Last, Revision: t.rec.Revision})
		t.rec.Last, t.rec.Newest = n, n
	}
	op := &operation{What: t.what, At: t.now, By: t.store.program, Chains: chains, Changes: t.changes, Group: t.group}
	if err := t.dropRedo(chains); err != nil {
		return nil, err
	}
	done.Operation = fmt.Sprint(n)
	if t.target != nil {
		done.Revision = t.target.Revision
	}
	return done, t.writeAll(n, op)
}

// number is the number of this operation.
func (t *txn) number() uint64 { return max(t.rec.NextOperation, 1) }

// finishBranches gives each changed branch its new revision and finds which of its fields changed.
func (t *txn) finishBranches() ([]chain, error) {
	var chains []chain
	for _, l := range t.read() {
		if !l.touched {
			continue
		}
		set, err := l.changed()
		if err != nil {
			return nil, err
		}
		if set != nil {
			t.changes = append(t.changes, branchChange(t.id, l.ID, set))
		}
		l.Revision++
		chains = append(chains, chain{Name: l.Name, Branch: l.ID, Prev: l.Last, Revision: l.Revision})
		l.Last, l.Newest = t.number(), t.number()
	}
	return chains, nil
}

// changed gives the old values of the branch's fields that are not what they were. A created branch has none: to take it back is to remove it.
func (l *loaded) changed() (map[uint64]cbor.RawMessage, error) {
	if l.created {
		return nil, nil
	}
	probe := *l.Branch // most operations change the history alone: that shows without taking records apart
	probe.Pieces, probe.Segment, probe.High = l.was.Pieces, l.was.Segment, l.was.High
	probe.Revision, probe.Last, probe.Newest = l.was.Revision, l.was.Last, l.was.Newest
	same, err := branch.Encode(&probe)
	if err != nil || bytes.Equal(same, l.raw) {
		return nil, err
	}
	after, err := branch.Encode(l.Branch)
	if err != nil {
		return nil, err
	}
	return changedFields(l.raw, after, branchFields)
}

// diffContext finds the fields of the context that changed. Only the active branch counts where the operation is not one on the context.
func (t *txn) diffContext() error {
	keys := contextFields
	if !t.onContext {
		if t.rec.Active == t.was.Active {
			return nil
		}
		keys = map[uint64]bool{activeField: true}
	}
	after, err := encMode.Marshal(t.rec)
	if err != nil {
		return err
	}
	set, err := changedFields(t.recRaw, after, keys)
	if err == nil && set != nil {
		t.changes = append(t.changes, contextChange(t.id, set))
	}
	return err
}

func branchChange(ctx, id ID, set map[uint64]cbor.RawMessage) change {
	return change{Kind: fieldsChange, Bucket: branch.Bucket, Key: branch.Key(ctx, id), Fields: set}
}

func contextChange(id ID, set map[uint64]cbor.RawMessage) change {
	return change{Kind: fieldsChange, Bucket: contextBucket, Key: under(id), Fields: set}
}

// writeAll writes the branches, the operation as number n, and the context.
func (t *txn) writeAll(n uint64, op *operation) error {
	for _, l := range t.read() {
		if !l.touched {
			continue
		}
		if err := branch.Put(t.tx, t.id, l.Branch); err != nil {
			return err
		}
	}
	if err := putRecord(t.tx, operationBucket, operationKey(t.id, n), op); err != nil {
		return err
	}
	t.rec.NextOperation = n + 1
	return t.writeContext()
}

// writeContext writes the context's record and moves it to the front of the recent ones.
func (t *txn) writeContext() error {
	if t.rec.Updated != 0 {
		if err := t.tx.Delete(recentBucket, recentKey(t.rec.Updated, t.id)); err != nil {
			return err
		}
	}
	t.rec.Updated = max(t.now, t.rec.Updated+1)
	if err := t.tx.Put(recentBucket, recentKey(t.rec.Updated, t.id), []byte{}); err != nil {
		return err
	}
	return t.putRecord()
}
