package journal

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Reader returns a Reader that sees the branches as the operation has changed them.
func (t *Txn) Reader() view.Reader {
	return view.Reader{Tx: t.Tx, ID: t.ID, Each: t.Each, Named: func(name string) (*branch.Branch, error) {
		b, err := t.Branch(name)
		if errors.Is(err, base.ErrNotFound) {
			return nil, nil
		}
		return b, err
	}}
}

// Position returns the position, from 1, of the message that ref names on a branch.
func (t *Txn) Position(b *branch.Branch, ref record.Ref) (int, error) {
	_, pos, err := t.Reader().Find(b, ref)
	if err == nil && pos == 0 {
		err = t.Reader().Elsewhere(b, ref)
	}
	return pos, err
}

// Positions returns the positions of the message or the range that ref names on a branch.
func (t *Txn) Positions(b *branch.Branch, ref record.Ref) ([]int, error) {
	on, from, to, ok, err := t.Reader().Range(b, ref)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		pos, err := t.Position(b, ref)
		return []int{pos}, err
	case on.ID != b.ID:
		return nil, base.OnAnother(string(ref), b.Name, on.Name)
	case to < from:
		return nil, base.NotFound("message in the range", string(ref))
	}
	var all []int
	for pos := from; pos <= to; pos++ {
		all = append(all, pos)
	}
	return all, nil
}

// Locate returns the branch and position of a message with which a new branch begins: on b if possible, else on the branch that holds it, else on one that held
// it.
func (t *Txn) Locate(b *branch.Branch, ref record.Ref) (*branch.Branch, int, error) {
	id, on, pos, err := t.Reader().Locate(b, ref)
	if errors.Is(err, base.ErrNotFound) && view.IdDigits(string(ref)) != "" {
		err = base.NotFoundSince("message", string(ref), "if it was here, gc or a purge took it")
	}
	if err != nil {
		return nil, 0, err
	}
	if on == nil {
		return t.onceHeld(id, false)
	}
	l, err := t.Load(on.ID)
	if err != nil {
		return nil, 0, err
	}
	return l.Branch, pos, nil
}

// Message returns the id of the message that ref names, on the branch or elsewhere in the context.
func (t *Txn) Message(b *branch.Branch, ref record.Ref) (pool.ID, error) {
	id, _, err := t.Reader().Find(b, ref)
	return id, err
}

// Txn is an operation on one context in the making. It collects changes, and Finish writes them with the journal entry. It lives in one writing transaction
// that may run again, so it changes nothing outside.
type Txn struct {
	Tx       kv.RwTx
	Store    *base.Store
	Now      pool.Time
	Dated    pool.Time // when the context changed, if that was not now but in another store
	ID       pool.ID
	Rec      *base.ContextRecord
	RecRaw   []byte              // the record before the operation
	Was      base.ContextRecord  // RecRaw decoded
	Branches map[pool.ID]*Loaded // branches read so far
	Target   *branch.Branch      // the branch on which the steps act
	changes  []base.Change
	// OnContext: the operation is one on the context itself, not only on branches.
	OnContext bool
	// Final: the operation cannot be undone. It is on no chain, so undo passes over it.
	Final     bool
	What      string
	reverts   bool              // it is an undo or a redo
	wrote     bool              // a message was stored
	Fresh     map[pool.ID]bool  // ids made for this operation under which nothing is stored yet
	returned  []returned        // calls whose results come back with their messages
	left      []view.Unanswered // open calls whose messages left their branches
	group     uint64
	joined    *Group // the group and the command that learn of the operation once it is stored, or nil
	command   *Command
	asked     *string      // the branch as the caller named it; nil: by its id
	ours      uint64       // an operation that is a part of the group for certain
	quiet     branch.Piece // what was written last, if no message of it has a call
	went      pool.ID      // the new active branch of this person, if Store.Place keeps that
	summaries []record.SummaryChange
	on        map[*record.Step]pool.ID // the branch of each step
}

// active returns the branch that "" names.
func (t *Txn) active() (pool.ID, error) {
	if t.went != (pool.ID{}) {
		return t.went, nil
	}
	return t.Store.Active(t.ID, t.Rec)
}

// Number returns the number that the operation will have.
func (t *Txn) Number() uint64 { return t.number() }

// PartOf makes the operation a part of the command to which operation n belongs.
func (t *Txn) PartOf(n uint64) error {
	op, err := base.GetOperation(t.Tx, t.ID, n)
	if err == nil && op != nil && op.Undone == 0 {
		t.group = op.Group
	}
	return err
}

// goOn makes a branch the active one and the target.
func (t *Txn) goOn(b *branch.Branch) {
	t.Target = b
	if t.Store.Place == nil {
		t.Rec.Active = b.ID
		return
	}
	t.went = b.ID
}

// Arrive tells Store.Place the branch to which the operation led, once it is stored. It may be called on nil.
func (t *Txn) Arrive() error {
	if t == nil || t.went == (pool.ID{}) {
		return nil
	}
	if err := t.Store.Place.Switch(t.ID, t.went); err != nil {
		return fmt.Errorf("the change is stored, but the branch that you are on could not be noted: %w", err)
	}
	return nil
}

// Loaded is a branch with its record before the operation. raw is nil for a new branch.
type Loaded struct {
	*branch.Branch
	raw     []byte
	was     branch.Branch // raw decoded
	touched bool
	created bool   // by this operation: undo removes it as a whole, so it needs no other changes
	named   string // its name in the index; "": none
}

// holds returns the name that the branch must have in the index.
func (l *Loaded) holds() string {
	if l.Removed != 0 {
		return ""
	}
	return l.Name
}

// Begin reads the context and the branch of an operation.
func Begin(s *base.Store, tx kv.RwTx, contextRef, branchName string) (*Txn, error) {
	t, err := BeginAnywhere(s, tx, contextRef, branchName)
	if err == nil && t.Target == nil {
		_, err = t.Branch(branchName)
	}
	return t, err
}

// BeginAnywhere is like Begin, for an operation that chooses its branch later: Target is nil if somebody else has removed this person's branch.
func BeginAnywhere(s *base.Store, tx kv.RwTx, contextRef, branchName string) (*Txn, error) {
	id, err := view.ResolveContext(s, tx, contextRef)
	if err != nil {
		return nil, err
	}
	t, err := BeginAt(s, tx, id)
	if err != nil {
		return nil, err
	}
	if t.Rec.Trashed != 0 {
		return nil, base.Conflict("the conversation %q is in the trash: chatctx restore %s", t.Rec.Title, record.Short(id))
	}
	t.asked = &branchName
	t.Target, err = t.Branch(branchName)
	var lost *base.PlaceLost
	if errors.As(err, &lost) {
		err = nil
	}
	return t, err
}

// BeginAt reads a context by its id, in the trash or not, and no branch.
func BeginAt(s *base.Store, tx kv.RwTx, id pool.ID) (*Txn, error) {
	raw, err := tx.Get(base.ContextBucket, id[:])
	if err != nil {
		return nil, err
	}
	if raw == nil {
		return nil, base.Gone(id)
	}
	rec, err := s.Hints.Contexts.Decode(id, raw, base.DecodeContext)
	if err != nil {
		return nil, err
	}
	base.KnowContext(tx, id, rec.Gated)
	return &Txn{Tx: tx, Store: s, Now: s.Now(), ID: id, Rec: rec, RecRaw: bytes.Clone(raw), Was: *rec, Branches: map[pool.ID]*Loaded{}}, nil
}

// Branch reads a branch by name or id; "" means the active one.
func (t *Txn) Branch(name string) (*branch.Branch, error) {
	id, isID := view.AsBranchID(name)
	var l *Loaded
	var err error
	if isID {
		l, err = t.Load(id)
	}
	if l == nil && err == nil {
		if id, err = t.active(); name != "" {
			id, err = branchstore.Lookup(t.Tx, t.ID, name)
		}
		if err == nil {
			l, err = t.Load(id)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case l != nil && l.Removed != 0 && name == "" && id != t.Rec.Active:
		return nil, &base.PlaceLost{Title: t.Rec.Title, Branch: l.Name}
	case l == nil || l.Removed != 0:
		return nil, base.NotFound("branch", name)
	}
	return l.Branch, nil
}

// BranchLike reads a branch by its name, or by a part of it that no other branch has, ignoring case.
func (t *Txn) BranchLike(part string) (*branch.Branch, error) {
	exact, err := t.Branch(part)
	if part == "" || !errors.Is(err, base.ErrNotFound) {
		return exact, err
	}
	var found []*branch.Branch
	folded := strings.ToLower(part)
	err2 := t.Each(func(b *branch.Branch) error {
		if strings.Contains(strings.ToLower(b.Name), folded) {
			found = append(found, b)
		}
		return nil
	})
	switch {
	case err2 != nil:
		return nil, err2
	case len(found) == 1:
		return t.Branch(found[0].Name)
	case len(found) == 0:
		return nil, err
	}
	slices.SortFunc(found, func(a, b *branch.Branch) int { return strings.Compare(a.Name, b.Name) })
	var words []string
	for _, b := range found[:min(len(found), view.MaxCandidates)] {
		word, err := view.DescribeName(t.Tx, t.ID, b)
		if err != nil {
			return nil, err
		}
		words = append(words, word)
	}
	return nil, base.Ambiguous("branch", part, words, len(found)-len(words))
}

// Load reads a branch by id, removed or not; nil if it has no record.
func (t *Txn) Load(id pool.ID) (*Loaded, error) {
	if l := t.Branches[id]; l != nil {
		return l, nil
	}
	raw, err := t.Tx.Get(branchstore.Bucket, branchstore.Key(t.ID, id))
	if raw == nil || err != nil {
		return nil, err
	}
	b, err := t.Store.Hints.Branches.Decode(id, raw, branchstore.Decode)
	if err != nil {
		return nil, err
	}
	l := &Loaded{Branch: b, raw: bytes.Clone(raw), was: *b}
	b.Ended = t.Store.Hints.End(id)
	l.named = l.holds()
	t.Branches[id] = l
	return l, nil
}

// Each calls fn for the branches that exist now, as the operation has changed them; the ones that it has read come first. If fn returns kv.ErrStop, Each
// ends without an error.
func (t *Txn) Each(fn func(*branch.Branch) error) error {
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
	return branchstore.List(t.Tx, t.ID, func(b *branch.Branch) error {
		if t.Branches[b.ID] != nil {
			return nil
		}
		return fn(b)
	})
}

// read returns the branches that this operation has read or made, sorted by id, so that a repeated run does the same in the same order.
func (t *Txn) read() []*Loaded {
	return slices.SortedFunc(maps.Values(t.Branches), func(a, b *Loaded) int { return bytes.Compare(a.ID[:], b.ID[:]) })
}

// Touch marks a branch as changed by this operation.
func (t *Txn) Touch(b *branch.Branch) { t.Branches[b.ID].touched = true }

// Create makes an empty branch with the prompts and settings of like. An undo removes it.
func (t *Txn) Create(name string, like *branch.Branch) (*branch.Branch, error) {
	return t.CreateAs(pool.NewID(), name, like)
}

// CreateAs is Create with the id of the branch, under which the context has no record.
func (t *Txn) CreateAs(id pool.ID, name string, like *branch.Branch) (*branch.Branch, error) {
	if err := t.free(name); err != nil {
		return nil, err
	}
	b := &branch.Branch{ID: id, Name: name, Created: t.Now}
	if like != nil {
		b.System, b.Prompt, b.Settings = like.System, like.Prompt, like.Settings
		b.Sessions, b.From = slices.Clone(like.Sessions), like.ID
	}
	removed, err := stored.Marshal(max(t.Now, 1))
	if err != nil {
		return nil, err
	}
	t.Branches[b.ID] = &Loaded{Branch: b, touched: true, created: true}
	t.changes = append(t.changes, branchChange(t.ID, b.ID, map[uint64]cbor.RawMessage{base.RemovedField: removed}))
	t.Rec.Branches++
	return b, t.index(t.Branches[b.ID]) // alone, since a conversation may have thousands
}

// free returns an error if a branch cannot get a name.
func (t *Txn) free(name string) error {
	if err := branchstore.CheckName(name); err != nil {
		return err
	}
	id, err := branchstore.Lookup(t.Tx, t.ID, name)
	if err == nil && id != (pool.ID{}) {
		err = base.Conflict("there is a branch %q already: take another name, or chatctx switch %q", name, name)
	}
	return err
}

// Remove marks a branch as removed. Its record stays, so that its high-water mark and revision go on from there if it comes back.
func (t *Txn) Remove(b *branch.Branch) error {
	if err := t.stays(b); err != nil {
		return err
	}
	b.Removed = max(t.Now, 1)
	t.Touch(b)
	t.Rec.Branches--
	if err := t.Show(b, b.Pieces, false); err != nil {
		return err
	}
	return t.reindex()
}

// RestoreBranch brings the removed branch of a name back, under another name if as is not empty.
func (t *Txn) RestoreBranch(name, as string) error {
	all, err := view.RemovedBranches(t.Tx, t.ID, t.Rec)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(r view.RemovedBranch) bool { return r.Name != name && r.ID.String() != name })
	if len(all) == 0 {
		return base.NotFoundSince("removed branch", name, "it was not removed, or gc or a purge took it")
	}
	if len(all) > 1 {
		words := make([]string, len(all))
		for i, r := range all {
			words[i] = fmt.Sprintf("%s, removed by operation %d: chatctx undo %[2]d", plural.Count(r.Messages, "message"), r.Operation)
		}
		return base.Ambiguous("removed branch", name, words, 0)
	}
	if err := t.free(cmp.Or(as, all[0].Name)); err != nil {
		if as == "" && errors.Is(err, base.ErrConflict) {
			err = base.Conflict("there is a branch %q already: give the removed one another name, chatctx branch restore %q --new-name NAME", name, name)
		}
		return err
	}
	l, err := t.Load(all[0].ID)
	if err != nil {
		return err
	}
	l.Removed, l.Name = 0, cmp.Or(as, l.Name)
	t.Touch(l.Branch)
	t.Rec.Branches++
	if err := t.Show(l.Branch, l.Pieces, true); err != nil {
		return err
	}
	return t.reindex()
}

// Rename gives a branch another name.
func (t *Txn) Rename(b *branch.Branch, name string) error {
	if err := t.free(name); err != nil {
		return err
	}
	b.Name = name
	t.Touch(b)
	return t.reindex()
}

// reindex updates the index of names for all branches that were read.
func (t *Txn) reindex() error { return t.index(t.read()...) }

// index updates the index of names for some branches. It removes old names first, so that branches can swap names.
func (t *Txn) index(list ...*Loaded) error {
	var moved []*Loaded
	for _, l := range list {
		if l.named == l.holds() {
			continue
		}
		moved = append(moved, l)
		if l.named == "" {
			continue
		}
		if err := branchstore.DeleteName(t.Tx, t.ID, l.named); err != nil {
			return err
		}
	}
	for _, l := range moved {
		if l.named = l.holds(); l.named == "" {
			continue
		}
		id, err := branchstore.Lookup(t.Tx, t.ID, l.named)
		if err == nil && id != (pool.ID{}) {
			err = base.Conflict("there is a branch %q again: rename it first", l.named)
		}
		if err == nil {
			err = branchstore.PutName(t.Tx, t.ID, l.named, l.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// PutBranches writes the records of a new context's branches.
func (t *Txn) PutBranches() error {
	for _, l := range t.read() {
		if err := branchstore.Put(t.Tx, t.ID, l.Branch); err != nil {
			return err
		}
	}
	return nil
}

// Unmake drops a branch of a new context of which only the name is written yet.
func (t *Txn) Unmake(b *branch.Branch) error {
	delete(t.Branches, b.ID)
	t.Rec.Branches--
	return branchstore.DeleteName(t.Tx, t.ID, b.Name)
}

// Remember puts the old value of a key on the journal.
func (t *Txn) Remember(bucket string, key, old []byte) error {
	t.changes = append(t.changes, base.Change{Kind: base.RecordChange, Bucket: bucket, Key: key, Old: bytes.Clone(old)})
	return nil
}

// PutRaw writes a record, or removes it if value is nil. The old record goes on the journal.
func (t *Txn) PutRaw(bucket string, key, value []byte) error {
	old, err := t.Tx.Get(bucket, key)
	if err != nil {
		return err
	}
	old = bytes.Clone(old)
	if err := t.Remember(bucket, key, old); err != nil {
		return err
	}
	if value == nil {
		err = t.Tx.Delete(bucket, key)
	} else {
		err = t.Tx.Put(bucket, key, value)
	}
	if err == nil && bucket == base.CallBucket {
		err = t.callChanged(key, old, value)
	}
	return err
}

// Segment gives the branch a segment to write to, unless it has one.
func (t *Txn) Segment(b *branch.Branch) {
	if b.Segment == 0 {
		t.Rec.NextSegment++
		b.Segment = t.Rec.NextSegment
	}
}

// Write writes entries to the branch's own segment.
func (t *Txn) Write(b *branch.Branch, items []branchstore.Item) (branch.Piece, error) {
	t.Segment(b)
	return branchstore.Write(t.Tx, t.ID, b, items)
}

// Splice changes a history: the entries of insert replace removed entries at the place at (from 0). While an answer is being written on the branch, it may
// only grow.
func (t *Txn) Splice(b *branch.Branch, at, removed int, insert []branch.Piece) error {
	gone := branchstore.Slice(b.Pieces, at, at+removed)
	if removed == 0 && branchstore.Count(insert) == 0 {
		return nil
	}
	if b.Removed != 0 && !t.reverts {
		return base.Conflict("the branch %q is removed: its history cannot change", b.Name)
	}
	if !grows(b, at, removed, insert) {
		if err := t.stays(b); err != nil {
			return err
		}
	}
	b.Pieces = branchstore.Splice(b.Pieces, at, removed, insert)
	if !t.Branches[b.ID].created {
		t.changes = append(t.changes, base.Change{Kind: base.SpliceChange, Key: b.ID[:], At: at, Removed: gone, Inserted: insert})
	}
	t.moveSessions(b, at, removed, branchstore.Count(insert))
	t.Touch(b)
	if b.Removed != 0 { // its calls are in no list
		return nil
	}
	if err := t.Show(b, gone, false); err != nil {
		return err
	}
	return t.Show(b, insert, true)
}

// Merge copies short pieces together if edits made too many. It does nothing while calls wait, since these keep their homes.
func (t *Txn) Merge(b *branch.Branch) error {
	before := b.Pieces
	if calls, err := view.UnansweredIn(t.Tx, t.ID, before); err != nil || len(calls) > 0 {
		return err
	}
	t.Segment(b)
	after, err := branchstore.Merge(t.Tx, t.ID, b)
	if err != nil || branchstore.Same(before, after) {
		return err
	}
	b.Pieces = after
	if !t.Branches[b.ID].created {
		t.changes = append(t.changes, base.Change{Kind: base.SpliceChange, Key: b.ID[:], Removed: before, Inserted: after})
	}
	return nil
}

// Put stores new messages and writes their ids into the branch's segment. The caller puts the piece on the branch.
func (t *Txn) Put(b *branch.Branch, msgs []*pool.Message) (branch.Piece, error) {
	return t.writeAs(b, msgs, t.Store1)
}

// writeAs is Put with a given function that stores a message.
func (t *Txn) writeAs(b *branch.Branch, msgs []*pool.Message, store func(*pool.Message) error) (branch.Piece, error) {
	t.Segment(b)
	items := make([]branchstore.Item, len(msgs))
	for i, m := range msgs {
		m.Home = pool.Home{Segment: b.Segment, Position: b.High + uint64(i)}
		items[i] = branchstore.ItemOf(m)
		if err := store(m); err != nil {
			return branch.Piece{}, err
		}
	}
	p, err := t.Write(b, items)
	if err != nil {
		return p, err
	}
	if !slices.ContainsFunc(msgs, func(m *pool.Message) bool { return len(m.Calls) > 0 }) {
		t.quiet = p
	}
	for _, m := range msgs {
		if err := t.openCalls(m); err != nil {
			return p, err
		}
	}
	return p, nil
}

// Append puts those messages at the end of a branch that it does not hold yet.
func (t *Txn) Append(b *branch.Branch, msgs []*pool.Message) ([]record.Placement, error) {
	placed, err := t.Place(b, branchstore.Len(b), msgs)
	if err == nil {
		t.DeriveTitle(msgs)
	}
	return placed, err
}

// DeriveTitle makes a context's title from the first user's words, if it has none.
func (t *Txn) DeriveTitle(msgs []*pool.Message) {
	if t.Rec.Title != "" {
		return
	}
	for _, m := range msgs {
		if branchstore.ItemOf(m).Turn {
			if t.Rec.Title = view.TitleFrom(m.Text()); t.Rec.Title != "" {
				t.Rec.Derived = true
				return
			}
		}
	}
}

// Idle reports whether the operation has changed nothing so far.
func (t *Txn) Idle() bool {
	return !t.OnContext && len(t.changes) == 0 && !slices.ContainsFunc(t.read(), func(l *Loaded) bool { return l.touched })
}

// Finish writes what the operation changed, with its journal entry, and returns the result. Without a change it writes nothing and Operation is empty.
func (t *Txn) Finish(steps ...*record.Step) (*record.Committed, error) {
	done, err := t.write()
	if err != nil {
		return nil, err
	}
	done.Steps, done.Summaries = steps, t.summaries
	for _, s := range steps {
		finishStep(s, t)
	}
	base.After(t.Tx, func() { t.stored(done) })
	return done, nil
}

// stored tells what has to know of the operation once it is stored: the command that it belongs to, and the next change of the branch.
func (t *Txn) stored(done *record.Committed) {
	if done.Operation != "" {
		t.joined.stored(done, t.group)
		t.command.stored(done)
	}
	if t.Store.User == "" || t.Target == nil {
		return
	}
	if t.asked == nil {
		id := t.Target.ID.String()
		t.asked = &id
	}
	t.Store.Hints.Note(t.ID, *t.asked, t.Target)
}

func (t *Txn) write() (*record.Committed, error) {
	if err := t.bringResults(); err != nil {
		return nil, err
	}
	done := &record.Committed{What: t.What, Context: t.ID, Title: t.Rec.Title}
	if t.Target != nil {
		done.Branch, done.Revision = t.Target.Name, t.Target.Revision
	}
	chains, err := t.finishBranches()
	if err != nil {
		return nil, err
	}
	if err := t.diffContext(); err != nil {
		return nil, err
	}
	if len(chains) == 0 && !t.OnContext && len(t.changes) == 0 {
		if !t.wrote {
			return done, nil
		}
		return done, t.PutRecord() // a loose message is counted but is on no journal
	}
	n := t.number()
	if err := t.regroup(n, chains); err != nil {
		return nil, err
	}
	if t.OnContext {
		t.Rec.Revision++
		chains = append(chains, base.Chain{Prev: t.Rec.Last, Revision: t.Rec.Revision})
		t.Rec.Last, t.Rec.Newest = n, n
	}
	op := &base.Operation{What: t.What, At: t.Now, By: t.Store.Program, User: t.Store.User, Chains: chains, Changes: t.changes, Group: t.group}
	if t.Final {
		op.Undone = n
	}
	if op.Things, err = t.listThings(chains); err != nil {
		return nil, err
	}
	if err := t.dropRedo(op); err != nil {
		return nil, err
	}
	if !t.Final {
		done.Operation = fmt.Sprint(n)
	}
	if t.Target != nil {
		done.Revision = t.Target.Revision
	}
	if err := t.writeAll(n, op); err != nil || t.group == 0 || !t.removesOne() {
		return done, err
	}
	return done, t.passOver()
}

// number returns the number of this operation.
func (t *Txn) number() uint64 { return max(t.Rec.NextOperation, 1) }

// finishBranches gives each changed branch its new revision and finds the fields that changed.
func (t *Txn) finishBranches() ([]base.Chain, error) {
	var chains []base.Chain
	for _, l := range t.read() {
		if !l.touched {
			continue
		}
		set, err := l.changed()
		if err != nil {
			return nil, err
		}
		if set != nil {
			t.changes = append(t.changes, branchChange(t.ID, l.ID, set))
		}
		l.Revision++
		chains = append(chains, base.Chain{Name: l.Name, Branch: l.ID, Prev: l.Last, Revision: l.Revision})
		l.Last, l.Newest = t.number(), t.number()
	}
	return chains, nil
}

// changed returns the old values of the branch's changed fields. A created branch has none: an undo removes it.
func (l *Loaded) changed() (map[uint64]cbor.RawMessage, error) {
	if l.created {
		return nil, nil
	}
	probe := *l.Branch // most operations change the history alone, which shows without decoding records
	probe.Pieces, probe.Segment, probe.High = l.was.Pieces, l.was.Segment, l.was.High
	probe.Revision, probe.Last, probe.Newest = l.was.Revision, l.was.Last, l.was.Newest
	same, err := branchstore.Encode(&probe)
	if err != nil || bytes.Equal(same, l.raw) {
		return nil, err
	}
	after, err := branchstore.Encode(l.Branch)
	if err != nil {
		return nil, err
	}
	return base.ChangedFields(l.raw, after, branchKeys)
}

// diffContext finds the fields of the context that changed. If the operation is not one on the context, only the active branch counts.
func (t *Txn) diffContext() error {
	keys := contextKeys
	if !t.OnContext {
		if t.Rec.Active == t.Was.Active {
			return nil
		}
		keys = map[uint64]bool{base.ActiveField: true}
	}
	after, err := stored.Marshal(t.Rec)
	if err != nil {
		return err
	}
	set, err := base.ChangedFields(t.RecRaw, after, keys)
	if err == nil && set != nil {
		t.changes = append(t.changes, ContextChange(t.ID, set))
	}
	return err
}

func branchChange(ctx, id pool.ID, set map[uint64]cbor.RawMessage) base.Change {
	return base.Change{Kind: base.FieldsChange, Bucket: branchstore.Bucket, Key: branchstore.Key(ctx, id), Fields: set}
}

func ContextChange(id pool.ID, set map[uint64]cbor.RawMessage) base.Change {
	return base.Change{Kind: base.FieldsChange, Bucket: base.ContextBucket, Key: base.Under(id), Fields: set}
}

// writeAll writes the branches, the operation as number n, and the context.
func (t *Txn) writeAll(n uint64, op *base.Operation) error {
	for _, l := range t.read() {
		if !l.touched {
			continue
		}
		raw, err := branchstore.Encode(l.Branch)
		if err == nil {
			err = t.Tx.Put(branchstore.Bucket, branchstore.Key(t.ID, l.ID), raw)
		}
		if err != nil {
			return err
		}
		t.Store.Hints.Branches.Note(l.ID, raw, l.Branch, branchstore.Copy)
	}
	if err := base.PutRecord(t.Tx, base.OperationBucket, base.OperationKey(t.ID, n), op); err != nil {
		return err
	}
	t.Rec.NextOperation = n + 1
	return t.WriteContext()
}

// WriteContext writes the context's record and moves it to the front of the recent ones.
func (t *Txn) WriteContext() error {
	if t.Rec.Updated != 0 {
		if err := t.Tx.Delete(base.RecentBucket, base.RecentKey(t.Rec.ListedAt(), t.ID)); err != nil {
			return err
		}
	}
	t.Rec.Updated = max(cmp.Or(t.Dated, t.Now), t.Rec.Updated+1)
	if err := t.list(); err != nil {
		return err
	}
	if err := t.Tx.Put(base.RecentBucket, base.RecentKey(t.Rec.ListedAt(), t.ID), []byte{}); err != nil {
		return err
	}
	return t.PutRecord()
}

// list puts a change before all others, also before those of a program whose clock was ahead. What an import brings has the place of its date. The users of
// a server share its clock.
func (t *Txn) list() error {
	if t.Dated != 0 || t.Store.User != "" {
		return nil
	}
	t.Rec.Listed = 0
	return t.Tx.Scan(base.RecentBucket, kv.Range{Reverse: true}, func(key, _ []byte) error {
		if len(key) == 24 && base.RecentTime(key) >= t.Rec.Updated {
			t.Rec.Listed = base.RecentTime(key) + 1
		}
		return kv.ErrStop
	})
}

// regroup begins a new group with operation n if somebody else did something, after the group began, on what the operation changes (chains, and the context
// if it is one on that) or on the target: an undo of the group would have to reach past it, and of two groups that are mixed each would stand on the other.
// An operation that gc has removed counts as somebody else's: what is older cannot be undone either.
func (t *Txn) regroup(n uint64, chains []base.Chain) error {
	var before []uint64
	for _, c := range chains {
		before = append(before, c.Prev)
	}
	if t.OnContext {
		before = append(before, t.Rec.Last)
	}
	if t.Target != nil {
		before = append(before, t.Target.Last)
	}
	for _, last := range before {
		if t.group == 0 || last <= t.group || last == t.ours || last == n {
			continue
		}
		op, err := base.GetOperation(t.Tx, t.ID, last)
		if err != nil {
			return err
		}
		if op == nil || op.Group != t.group {
			t.group = n
		}
	}
	return nil
}
