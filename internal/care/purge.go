package care

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// sweepArtifacts removes the artifacts that no message and no kept operation refers to. It reads each context in a short transaction; the transaction that
// deletes reads those again that changed meanwhile.
func sweepArtifacts(ctx context.Context, s *base.Store, out *record.Collected) error {
	u := &usedArtifacts{hashes: map[pool.Hash]bool{}, seen: map[pool.ID]pool.Time{}}
	ids, err := view.Recent(ctx, s)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.DB.View(ctx, func(tx kv.Tx) error { return u.context(tx, id) }); err != nil {
			return err
		}
	}
	var took record.Collected
	err = s.Update(ctx, func(tx kv.RwTx) error {
		took = record.Collected{}
		if err := u.changed(tx); err != nil {
			return err
		}
		return u.sweep(tx, s.Now(), &took)
	})
	if err != nil {
		return err
	}
	out.Artifacts += took.Artifacts
	out.Bytes += took.Bytes
	return nil
}

// usedArtifacts collects the hashes that contexts refer to.
type usedArtifacts struct {
	hashes map[pool.Hash]bool
	seen   map[pool.ID]pool.Time // the last change of each context when it was read
}

func (u *usedArtifacts) context(tx kv.Tx, id pool.ID) error {
	rec, _, err := base.GetContext(tx, id)
	if rec == nil || err != nil {
		return err
	}
	u.seen[id] = rec.ListedAt()
	err = poolstore.Scan(tx, id, func(_ pool.ID, m *pool.Message, err error) error {
		if err == nil {
			u.message(m)
		}
		return err
	})
	if err != nil {
		return err
	}
	return tx.Scan(base.OperationBucket, kv.Prefix(id[:]), func(_, value []byte) error { return u.operation(value) })
}

func (u *usedArtifacts) message(m *pool.Message) {
	for _, h := range poolstore.Artifacts(m) {
		u.hashes[h] = true
	}
}

// operation adds the artifacts of the records that an operation would put back.
func (u *usedArtifacts) operation(raw []byte) error {
	op := &base.Operation{}
	if err := stored.Unmarshal(raw, op); err != nil {
		return base.Damaged("an operation: %v", err)
	}
	for _, c := range op.Changes {
		if c.Kind != base.RecordChange || c.Bucket != poolstore.Bucket || c.Old == nil {
			continue
		}
		m := &pool.Message{}
		if err := poolstore.Decode(c.Old, m); err != nil {
			return err
		}
		u.message(m)
	}
	return nil
}

// changed reads the contexts again that have changed since.
func (u *usedArtifacts) changed(tx kv.Tx) error {
	var again []pool.ID
	err := tx.Scan(base.RecentBucket, kv.Range{}, func(key, _ []byte) error {
		if id := pool.ID(key[8:]); u.seen[id] != pool.Time(binary.BigEndian.Uint64(key)) {
			again = append(again, id)
		}
		return nil
	})
	for _, id := range again {
		if err == nil {
			err = u.context(tx, id)
		}
	}
	return err
}

// sweep deletes unused artifacts, except those that were stored a short while ago and have no reference yet.
func (u *usedArtifacts) sweep(tx kv.RwTx, now pool.Time, out *record.Collected) error {
	var old [][]byte
	err := tx.Scan(base.LooseBucket, kv.Range{}, func(key, value []byte) error {
		if len(key) == 32 && len(value) == 8 && pool.Time(binary.BigEndian.Uint64(value))+base.LooseLife > now {
			u.hashes[pool.Hash(key)] = true
			return nil
		}
		old = append(old, bytes.Clone(key))
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range old {
		if err := tx.Delete(base.LooseBucket, key); err != nil {
			return err
		}
	}
	var dead []pool.ArtifactInfo
	err = poolstore.ScanArtifacts(tx, pool.Hash{}, func(a pool.ArtifactInfo, err error) error {
		if err == nil && !u.hashes[a.SHA256] {
			dead = append(dead, a)
		}
		return nil
	})
	for _, a := range dead {
		if err == nil {
			err = poolstore.DeleteArtifact(tx, a.SHA256)
		}
		out.Artifacts++
		out.Bytes += a.Size
	}
	return err
}

// purging is a purge under way.
type purging struct {
	record.Purged
	touched   map[pool.ID]bool // contexts
	rewritten map[index.Doc]bool
	marks     *base.GoneMarks // nil: nothing is noted
	forgets   bool            // the marks are taken back, and none is left
}

func (p *purging) begin(what string, id pool.ID, title string) {
	*p = purging{Purged: record.Purged{What: what, Context: id, Title: title, Collected: record.Collected{Kept: map[string]int{}}}, touched: map[pool.ID]bool{id: true}, marks: p.marks, forgets: p.forgets}
}

// PurgeContext removes a context for good: its messages, branches, decisions and journal, and artifacts that nothing else refers to. Then it rewrites the
// file, so that the bytes are gone. One line on the store's journal stays and says that there was a purge. Unless
// noMarks is set, marks of what was purged stay, so that no import brings it back.
func PurgeContext(ctx context.Context, s *base.Store, ref string, noMarks bool) (*record.Purged, error) {
	if err := base.Named("conversation", ref); err != nil {
		return nil, err
	}
	return purge(ctx, s, noMarks, func(tx kv.RwTx, out *purging) error {
		id, err := view.ResolveContext(s, tx, ref)
		if err != nil {
			return err
		}
		rec, _, err := base.GetContext(tx, id)
		if err != nil {
			return err
		}
		out.begin("context", id, rec.Title)
		if err := out.noteContext(tx, id); err != nil {
			return err
		}
		c := &collector{tx: tx, id: id, now: s.Now(), out: &out.Collected}
		if err := c.removeContext(rec); err != nil {
			return err
		}
		return scrubStoreJournal(tx, id)
	})
}

// PurgeBranch removes a branch for good, with the messages that no other branch holds, and the context's undo history, since that could bring them back. It
// refuses the active branch (ErrConflict).
func PurgeBranch(ctx context.Context, s *base.Store, contextRef, name string, noMarks bool) (*record.Purged, error) {
	if err := base.Named("branch", name); err != nil {
		return nil, err
	}
	return purge(ctx, s, noMarks, func(tx kv.RwTx, out *purging) error {
		t, err := journal.Begin(s, tx, contextRef, name)
		if err != nil {
			return err
		}
		if t.Target.ID == t.Rec.Active {
			return base.Conflict("%q is the active branch: chatctx switch to another first", t.Target.Name)
		}
		out.begin("branch", t.ID, t.Rec.Title)
		out.Branches = []string{t.Target.Name}
		if err := out.noteBranch(tx, t.ID, t.Target); err != nil {
			return err
		}
		if err := t.Remove(t.Target); err != nil {
			return err
		}
		if err := tx.Delete(branchstore.Bucket, branchstore.Key(t.ID, t.Target.ID)); err != nil {
			return err
		}
		if err := forget(t, &out.Collected); err != nil {
			return err
		}
		return out.sourcesAnew(tx, map[pool.ID]bool{t.ID: true}, nil)
	})
}

// PurgeMessages removes messages for good from every branch of their context, with their copies there and in other contexts. It also drops the undo history
// of these contexts, reopens sessions that summarise the messages, and removes a title that was made from one.
func PurgeMessages(ctx context.Context, s *base.Store, contextRef, branchName string, refs []record.Ref, noMarks bool) (*record.Purged, error) {
	for _, ref := range refs {
		if err := base.Named("message", string(ref)); err != nil {
			return nil, err
		}
	}
	return purge(ctx, s, noMarks, func(tx kv.RwTx, out *purging) error {
		t, err := journal.Begin(s, tx, contextRef, branchName)
		if err != nil {
			return err
		}
		out.begin("message", t.ID, t.Rec.Title)
		doomed := map[pool.ID]bool{}
		for _, ref := range refs {
			id, err := t.Message(t.Target, ref)
			if err != nil {
				return err
			}
			doomed[id] = true
		}
		where, err := copiesOf(tx, doomed)
		if err != nil {
			return err
		}
		out.Copies = len(doomed) - len(refs)
		for _, id := range where {
			out.touched[id] = true
			if err := out.noteMessages(tx, id, base.GoneMessage, func(m pool.ID) bool { return doomed[m] }); err != nil {
				return err
			}
			if err := purgeFrom(s, tx, id, doomed, out); err != nil {
				return err
			}
		}
		return out.sourcesAnew(tx, out.touched, nil)
	})
}

// copiesOf adds to doomed all copies of its messages, and copies of copies. It returns the contexts that hold any.
func copiesOf(tx kv.Tx, doomed map[pool.ID]bool) ([]pool.ID, error) {
	var ids []pool.ID
	err := tx.Scan(base.ContextBucket, kv.Range{}, func(key, _ []byte) error { ids = append(ids, pool.ID(key)); return nil })
	if err != nil {
		return nil, err
	}
	holds := map[pool.ID]bool{}
	for again := true; again; {
		again = false
		for _, id := range ids {
			err := poolstore.Scan(tx, id, func(mid pool.ID, m *pool.Message, err error) error {
				if err != nil {
					return err
				}
				if m.CopiedFrom != nil && doomed[*m.CopiedFrom] && !doomed[mid] {
					doomed[mid], again = true, true
				}
				holds[id] = holds[id] || doomed[mid]
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	var out []pool.ID
	for _, id := range ids {
		if holds[id] {
			out = append(out, id)
		}
	}
	return out, nil
}

// purgeFrom removes doomed messages from one context.
func purgeFrom(s *base.Store, tx kv.RwTx, id pool.ID, doomed map[pool.ID]bool, out *purging) error {
	t, err := journal.BeginAt(s, tx, id)
	if err != nil {
		return err
	}
	var ids []pool.ID
	if err := branchstore.List(tx, id, func(b *branch.Branch) error { ids = append(ids, b.ID); return nil }); err != nil {
		return err
	}
	for _, branchID := range ids {
		l, err := t.Load(branchID)
		if err != nil {
			return err
		}
		b := l.Branch
		n, err := takeOff(t, b, doomed)
		if err != nil {
			return err
		}
		if n > 0 {
			out.Branches = append(out.Branches, b.Name)
			b.Revision++
			if err := branchstore.Put(tx, id, b); err != nil {
				return err
			}
		}
	}
	if err := unname(t, doomed); err != nil {
		return err
	}
	return forget(t, &out.Collected)
}

// takeOff removes messages from a branch's history, and sessions whose summaries are among them. It returns how many messages it removed.
func takeOff(t *journal.Txn, b *branch.Branch, doomed map[pool.ID]bool) (int, error) {
	ids, err := branchstore.IDs(t.Tx, t.ID, b.Pieces)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := len(ids) - 1; i >= 0; i-- {
		if !doomed[ids[i]] {
			continue
		}
		if err := t.Abandon(b); err != nil {
			return n, err
		}
		if err := t.Splice(b, i, 1, nil); err != nil {
			return n, err
		}
		n++
	}
	for i, s := range b.Sessions {
		if doomed[s.Summary] {
			b.Sessions = b.Sessions[:i]
			n++
			break
		}
	}
	if doomed[b.At] {
		b.At = pool.ID{}
		n++
	}
	return n, nil
}

// unname removes the tags, the marks and the derived title of doomed messages.
func unname(t *journal.Txn, doomed map[pool.ID]bool) error {
	for _, bucket := range []string{base.TagBucket, base.MarkBucket} {
		keys, err := view.KeysWith(t.Tx, bucket, t.ID[:])
		if err != nil {
			return err
		}
		for _, key := range keys {
			value, err := t.Tx.Get(bucket, key)
			if err != nil {
				return err
			}
			if bucket == base.TagBucket && doomed[pool.ID(value)] || bucket == base.MarkBucket && doomed[pool.ID(key[16:])] {
				if err := t.Tx.Delete(bucket, key); err != nil {
					return err
				}
			}
		}
	}
	if t.Rec.Derived {
		t.Rec.Title, t.Rec.Derived = "Untitled", false
	}
	return nil
}

// forget drops the context's journal and everything that only the journal could bring back.
func forget(t *journal.Txn, out *record.Collected) error {
	c := &collector{tx: t.Tx, id: t.ID, now: t.Now, out: out}
	for _, bucket := range []string{base.OperationBucket, base.KeyBucket, base.PartialBucket, base.RequestBucket} {
		n, err := c.deleteUnder(bucket, t.ID[:])
		if err != nil {
			return err
		}
		if bucket == base.OperationBucket {
			out.Operations += n
		}
	}
	if err := unlink(t); err != nil {
		return err
	}
	if err := c.branches(nil); err != nil {
		return err
	}
	live, err := findLive(t.Tx, t.ID)
	if err != nil {
		return err
	}
	before := out.Messages
	if err := c.messages(live); err != nil {
		return err
	}
	t.Rec.Messages -= uint64(out.Messages - before)
	return t.WriteContext()
}

// unlink makes the context and its branches point to no operation.
func unlink(t *journal.Txn) error {
	t.Rec.Last, t.Rec.Newest, t.Rec.Redo = 0, 0, nil
	var all []*branch.Branch
	err := branchstore.All(t.Tx, t.ID, func(b *branch.Branch) error { all = append(all, b); return nil })
	for _, b := range all {
		b.Last, b.Newest = 0, 0
		if err == nil {
			err = branchstore.Put(t.Tx, t.ID, b)
		}
	}
	return err
}

// scrubStoreJournal removes a context from the store's operations. An operation about that context alone goes.
func scrubStoreJournal(tx kv.RwTx, id pool.ID) error {
	all := map[uint64]*base.Operation{}
	err := base.EachOperation(tx, kv.Prefix(make([]byte, 16)), func(n uint64, op *base.Operation) error {
		if journal.Touches(op, []base.Chain{{Branch: id}}) || op.Current == id {
			all[n] = op
		}
		return nil
	})
	for n, op := range all {
		if err != nil {
			return err
		}
		key := base.OperationKey(pool.ID{}, n)
		if without(op, id); len(op.Chains) == 0 {
			err = tx.Delete(base.OperationBucket, key)
		} else {
			err = base.PutRecord(tx, base.OperationBucket, key, op)
		}
	}
	return err
}

// without removes what is about a context from an operation of the store.
func without(op *base.Operation, id pool.ID) {
	var chains []base.Chain
	for _, c := range op.Chains {
		if c.Branch != id {
			chains = append(chains, c)
		}
	}
	var changes []base.Change
	for _, c := range op.Changes {
		about := bytes.Equal(c.Key, id[:]) || bytes.Equal(c.Old, id[:])
		if !about && c.Bucket != base.SourceBucket {
			changes = append(changes, c)
		}
	}
	op.Chains, op.Changes = chains, changes
	if op.Current == id {
		op.Current, op.CurrentAt = pool.ID{}, 0
	}
}

// errNothing ends a removal that found nothing to remove.
var errNothing = errors.New("nothing to remove")

// purge runs the removal, records it on the store's journal, sweeps artifacts and rewrites the file.
func purge(ctx context.Context, s *base.Store, noMarks bool, fn func(kv.RwTx, *purging) error) (*record.Purged, error) {
	ctx = engine.WithPurpose(ctx, "purge")
	out := &purging{}
	err := s.Update(ctx, func(tx kv.RwTx) (err error) {
		if out.marks, err = base.NewGoneMarks(tx); err != nil {
			return err
		}
		out.forgets = noMarks
		if err := fn(tx, out); err != nil {
			return err
		}
		if ids := slices.Collect(maps.Keys(out.touched)); len(ids) > 0 {
			if err := base.MayDecide(ctx, tx, s, "what an agent did cannot be erased here", ids...); err != nil {
				return err
			}
		}
		if err := journalWordless(tx); err != nil {
			return err
		}
		if noMarks {
			err = out.marks.Forget(tx)
		} else {
			err = out.marks.Put(tx, s.Now())
		}
		if err != nil {
			return err
		}
		if err := find.DropFromIndex(tx, out.touched, out.rewritten, s.Now()); err != nil {
			return err
		}
		return notePurge(s, tx, out)
	})
	out.Collected.Leftovers = Leftovers(s)
	if errors.Is(err, errNothing) {
		return &out.Purged, nil
	}
	if err != nil {
		return nil, err
	}
	if err := finishPurge(ctx, s, &out.Collected); err != nil {
		return &out.Purged, &unfinishedError{err}
	}
	return &out.Purged, nil
}

// unfinishedError says what a purge or redaction that could not write the file anew has done. Of the engine's error it shows the cause alone: the rest says
// that nothing was changed, which is true of the file only.
type unfinishedError struct{ err error }

func (e *unfinishedError) Error() string {
	return "what was to go can no longer be read, but its bytes are still in the file, until a program that opens the store to write has room to write it anew (chatctx vacuum): " +
		cause(e.err).Error()
}

func (e *unfinishedError) Unwrap() error { return e.err }

// cause returns the innermost error.
func cause(err error) error {
	for {
		switch inner := err.(type) {
		case *fs.PathError, *os.LinkError, *os.SyscallError: // they name the file
			return err
		case interface{ Unwrap() error }:
			if inner.Unwrap() == nil {
				return err
			}
			err = inner.Unwrap()
		case interface{ Unwrap() []error }:
			all := inner.Unwrap()
			err = all[len(all)-1]
		default:
			return err
		}
	}
}

// metaPurging exists from the removal of a purge's records until the file is rewritten without them.
var metaPurging = []byte("purging")

// finishPurge does the rest of a purge after its records are gone: it sweeps artifacts and rewrites the file.
func finishPurge(ctx context.Context, s *base.Store, out *record.Collected) error {
	if err := sweepArtifacts(ctx, s, out); err != nil {
		return err
	}
	done := func(tx kv.RwTx) error { return tx.Delete(base.MetaBucket, metaPurging) }
	if k, ok := s.Engine.(kv.Keeper); ok {
		return k.Rewrite(ctx, s.Format.Edit(done))
	}
	return s.Update(ctx, done)
}

// PurgeDue reports whether a purge or redaction is unfinished: its records are gone, but their bytes are still in the file. Open finishes it, unless it
// opens the store to read only or there is no room for the new file.
func PurgeDue(ctx context.Context, s *base.Store) (bool, error) {
	var begun []byte
	err := s.DB.View(ctx, func(tx kv.Tx) (err error) {
		begun, err = tx.Get(base.MetaBucket, metaPurging)
		return err
	})
	return begun != nil, err
}

// notePurge records that something was purged, but not what.
func notePurge(s *base.Store, tx kv.RwTx, out *purging) error {
	t, err := journal.BeginStore(s, tx)
	if err != nil {
		return err
	}
	n := max(t.Rec.NextOperation, 1)
	what := "purge " + out.What
	if out.What == "redact" {
		what = out.What
	}
	if err := tx.Put(base.MetaBucket, metaPurging, []byte{1}); err != nil {
		return err
	}
	op := &base.Operation{What: what, At: t.Now, By: s.Program, User: s.User, Undone: n}
	if out.What == "branch" || out.What == "message" {
		op.Current = out.Context
	}
	return t.Write(n, op)
}
