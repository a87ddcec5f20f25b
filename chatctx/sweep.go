package chatctx

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// sweepArtifacts removes the artifacts that no message and no kept operation refers to. Contexts are read in a short transaction each; those that changed
// meanwhile are read again in the one that deletes. gone are contexts and messages that count as removed already.
func (s *Store) sweepArtifacts(ctx context.Context, dry bool, gone map[ID]bool, out *Collected) error {
	u := &usedArtifacts{hashes: map[pool.Hash]bool{}, seen: map[ID]pool.Time{}, gone: gone}
	ids, err := s.recent(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := s.db.View(ctx, func(tx kv.Tx) error { return u.context(tx, id) }); err != nil {
			return err
		}
	}
	var took Collected
	err = s.db.Update(ctx, func(tx kv.RwTx) error {
		took = Collected{}
		if err := u.changed(tx); err != nil {
			return err
		}
		if err := u.sweep(tx, s.now(), &took); err != nil {
			return err
		}
		if dry {
			return errDry
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDry) {
		return err
	}
	out.Artifacts += took.Artifacts
	out.Bytes += took.Bytes
	return nil
}

// usedArtifacts collects the hashes that contexts refer to.
type usedArtifacts struct {
	hashes map[pool.Hash]bool
	seen   map[ID]pool.Time // when each context had last changed
	gone   map[ID]bool
}

func (u *usedArtifacts) context(tx kv.Tx, id ID) error {
	rec, _, err := getContext(tx, id)
	if rec == nil || err != nil || u.gone[id] {
		return err
	}
	u.seen[id] = rec.Updated
	err = pool.Scan(tx, id, func(mid ID, m *Message, err error) error {
		if err == nil && !u.gone[mid] {
			u.message(m)
		}
		return err
	})
	if err != nil {
		return err
	}
	return tx.Scan(operationBucket, kv.Prefix(id[:]), func(_, value []byte) error { return u.operation(value) })
}

func (u *usedArtifacts) message(m *Message) {
	for _, h := range pool.Artifacts(m) {
		u.hashes[h] = true
	}
}

// operation notes what the records that an operation would put back refer to.
func (u *usedArtifacts) operation(raw []byte) error {
	op := &operation{}
	if err := decMode.Unmarshal(raw, op); err != nil {
		return damaged("an operation: %v", err)
	}
	for _, c := range op.Changes {
		if c.Kind != recordChange || c.Bucket != pool.Bucket || c.Old == nil {
			continue
		}
		m := &Message{}
		if err := pool.Decode(c.Old, m); err != nil {
			return err
		}
		u.message(m)
	}
	return nil
}

// changed reads those contexts again that are not as they were.
func (u *usedArtifacts) changed(tx kv.Tx) error {
	var again []ID
	err := tx.Scan(recentBucket, kv.Range{}, func(key, _ []byte) error {
		if id := ID(key[8:]); u.seen[id] != pool.Time(binary.BigEndian.Uint64(key)) {
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

// sweep deletes what is not used, but for artifacts that were stored a short while ago and that nothing refers to yet.
func (u *usedArtifacts) sweep(tx kv.RwTx, now pool.Time, out *Collected) error {
	var old [][]byte
	err := tx.Scan(looseBucket, kv.Range{}, func(key, value []byte) error {
		if len(key) == 32 && len(value) == 8 && pool.Time(binary.BigEndian.Uint64(value))+looseLife > now {
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
		if err := tx.Delete(looseBucket, key); err != nil {
			return err
		}
	}
	var dead []pool.ArtifactInfo
	err = pool.ScanArtifacts(tx, pool.Hash{}, func(a pool.ArtifactInfo, err error) error {
		if err == nil && !u.hashes[a.SHA256] {
			dead = append(dead, a)
		}
		return nil
	})
	for _, a := range dead {
		if err == nil {
			err = pool.DeleteArtifact(tx, a.SHA256)
		}
		out.Artifacts++
		out.Bytes += a.Size
	}
	return err
}

// Purged says what a purge removed, or would remove.
type Purged struct {
	What      string // context, branch or message
	Context   ID
	Title     string
	Branches  []string // those that held something of it
	Copies    int      // of messages, on forks and in other contexts, that went too
	Collected Collected
	touched   map[ID]bool // contexts
	rewritten map[index.Doc]bool
}

func (p *Purged) begin(what string, id ID, title string) {
	*p = Purged{What: what, Context: id, Title: title, Collected: Collected{Kept: map[string]int{}}, touched: map[ID]bool{id: true}}
}

// PurgeContext removes a context for good: its messages, branches, decisions, journal, and artifacts that nothing else refers to. Then the file is written
// anew, so that the bytes are gone. One line on the store's journal stays that says that it was done. dry only says what would go.
func (s *Store) PurgeContext(ctx context.Context, ref string, dry bool) (*Purged, error) {
	return s.purge(ctx, dry, func(tx kv.RwTx, out *Purged) error {
		id, err := resolveContext(tx, ref)
		if err != nil {
			return err
		}
		rec, _, err := getContext(tx, id)
		if err != nil {
			return err
		}
		out.begin("context", id, rec.Title)
		c := &collector{tx: tx, id: id, now: s.now(), out: &out.Collected}
		if err := c.removeContext(rec); err != nil {
			return err
		}
		return scrubStoreJournal(tx, id)
	})
}

// PurgeBranch removes a branch for good, with the messages that no other branch holds. The context's history of undo goes with it: what it could bring back is gone.
// The active branch is not purged (ErrConflict).
func (s *Store) PurgeBranch(ctx context.Context, contextRef, name string, dry bool) (*Purged, error) {
	return s.purge(ctx, dry, func(tx kv.RwTx, out *Purged) error {
		t, err := s.begin(tx, contextRef, name)
		if err != nil {
			return err
		}
		if t.target.ID == t.rec.Active {
			return conflict("%q is the active branch: chatctx switch to another first", t.target.Name)
		}
		out.begin("branch", t.id, t.rec.Title)
		out.Branches = []string{t.target.Name}
		if err := t.remove(t.target); err != nil {
			return err
		}
		if err := tx.Delete(branch.Bucket, branch.Key(t.id, t.target.ID)); err != nil {
			return err
		}
		return t.forget(&out.Collected)
	})
}

// PurgeMessages removes messages for good from every branch of their context, with their copies there and in other contexts. The contexts' history of undo goes with
// them, sessions that summarise them are opened again, and a title that was made from one is taken away.
func (s *Store) PurgeMessages(ctx context.Context, contextRef, branchName string, refs []Ref, dry bool) (*Purged, error) {
	return s.purge(ctx, dry, func(tx kv.RwTx, out *Purged) error {
		t, err := s.begin(tx, contextRef, branchName)
		if err != nil {
			return err
		}
		out.begin("message", t.id, t.rec.Title)
		doomed := map[ID]bool{}
		for _, ref := range refs {
			id, err := t.message(t.target, ref)
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
			if err := s.purgeFrom(tx, id, doomed, out); err != nil {
				return err
			}
		}
		return nil
	})
}

// copiesOf adds to doomed all copies of its messages, and copies of those, and gives the contexts that hold any.
func copiesOf(tx kv.Tx, doomed map[ID]bool) ([]ID, error) {
	var ids []ID
	err := tx.Scan(contextBucket, kv.Range{}, func(key, _ []byte) error { ids = append(ids, ID(key)); return nil })
	if err != nil {
		return nil, err
	}
	holds := map[ID]bool{}
	for again := true; again; {
		again = false
		for _, id := range ids {
			err := pool.Scan(tx, id, func(mid ID, m *Message, err error) error {
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
	var out []ID
	for _, id := range ids {
		if holds[id] {
			out = append(out, id)
		}
	}
	return out, nil
}

// purgeFrom takes doomed messages out of one context.
func (s *Store) purgeFrom(tx kv.RwTx, id ID, doomed map[ID]bool, out *Purged) error {
	t, err := s.beginAt(tx, id)
	if err != nil {
		return err
	}
	var ids []ID
	if err := branch.List(tx, id, func(b *branch.Branch) error { ids = append(ids, b.ID); return nil }); err != nil {
		return err
	}
	for _, branchID := range ids {
		l, err := t.load(branchID)
		if err != nil {
			return err
		}
		b := l.Branch
		n, err := t.takeOff(b, doomed)
		if err != nil {
			return err
		}
		if n > 0 {
			out.Branches = append(out.Branches, b.Name)
			b.Revision++
			if err := branch.Put(tx, id, b); err != nil {
				return err
			}
		}
	}
	if err := t.unname(doomed); err != nil {
		return err
	}
	return t.forget(&out.Collected)
}

// takeOff removes messages from a branch's history, and the sessions whose summaries speak of them.
func (t *txn) takeOff(b *branch.Branch, doomed map[ID]bool) (int, error) {
	ids, err := branch.IDs(t.tx, t.id, b.Pieces)
	if err != nil {
		return 0, err
	}
	n, first := 0, len(ids)
	for i := len(ids) - 1; i >= 0; i-- {
		if !doomed[ids[i]] {
			continue
		}
		if err := t.splice(b, i, 1, nil); err != nil {
			return n, err
		}
		n, first = n+1, i
	}
	for i, s := range b.Sessions {
		if s.Start > first+1 || doomed[s.Summary] {
			b.Sessions = b.Sessions[:i]
			n++
			break
		}
	}
	if doomed[b.At] {
		b.At = ID{}
		n++
	}
	return n, nil
}

// unname takes tags, marks and the derived title of doomed messages away.
func (t *txn) unname(doomed map[ID]bool) error {
	for _, bucket := range []string{tagBucket, markBucket} {
		keys, err := keysWith(t.tx, bucket, t.id[:])
		if err != nil {
			return err
		}
		for _, key := range keys {
			value, err := t.tx.Get(bucket, key)
			if err != nil {
				return err
			}
			if bucket == tagBucket && doomed[ID(value)] || bucket == markBucket && doomed[ID(key[16:])] {
				if err := t.tx.Delete(bucket, key); err != nil {
					return err
				}
			}
		}
	}
	if t.rec.Derived {
		t.rec.Title, t.rec.Derived = "Untitled", false
	}
	return nil
}

// forget drops the context's journal and everything that only it could bring back.
func (t *txn) forget(out *Collected) error {
	c := &collector{tx: t.tx, id: t.id, now: t.now, out: out}
	for _, bucket := range []string{operationBucket, keyBucket, partialBucket, requestBucket} {
		keys, err := keysWith(t.tx, bucket, t.id[:])
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := c.delete(bucket, key); err != nil {
				return err
			}
		}
		if bucket == operationBucket {
			out.Operations += len(keys)
		}
	}
	if err := t.unlink(); err != nil {
		return err
	}
	if err := c.branches(nil); err != nil {
		return err
	}
	live, err := findLive(t.tx, t.id)
	if err != nil {
		return err
	}
	before := out.Messages
	if err := c.messages(live); err != nil {
		return err
	}
	t.rec.Messages -= uint64(out.Messages - before)
	return t.writeContext()
}

// unlink makes the context and its branches point to no operation.
func (t *txn) unlink() error {
	t.rec.Last, t.rec.Newest, t.rec.Redo = 0, 0, nil
	var all []*branch.Branch
	err := branch.All(t.tx, t.id, func(b *branch.Branch) error { all = append(all, b); return nil })
	for _, b := range all {
		b.Last, b.Newest = 0, 0
		if err == nil {
			err = branch.Put(t.tx, t.id, b)
		}
	}
	return err
}

// scrubStoreJournal takes a context out of the store's operations. An operation that was about it alone goes.
func scrubStoreJournal(tx kv.RwTx, id ID) error {
	type entry struct {
		key []byte
		op  *operation
	}
	var all []entry
	err := tx.Scan(operationBucket, kv.Prefix(make([]byte, 16)), func(key, value []byte) error {
		op := &operation{}
		if err := decMode.Unmarshal(value, op); err != nil {
			return damaged("operation %x: %v", key, err)
		}
		if touches(op, []chain{{Branch: id}}) || op.Current == id {
			all = append(all, entry{bytes.Clone(key), op})
		}
		return nil
	})
	for _, e := range all {
		if err != nil {
			return err
		}
		if e.op.without(id); len(e.op.Chains) == 0 {
			err = tx.Delete(operationBucket, e.key)
		} else {
			err = putRecord(tx, operationBucket, e.key, e.op)
		}
	}
	return err
}

// without takes what is about a context out of an operation of the store.
func (op *operation) without(id ID) {
	var chains []chain
	for _, c := range op.Chains {
		if c.Branch != id {
			chains = append(chains, c)
		}
	}
	var changes []change
	for _, c := range op.Changes {
		about := bytes.Equal(c.Key, id[:]) || bytes.Equal(c.Old, id[:])
		if !about && c.Bucket != sourceBucket {
			changes = append(changes, c)
		}
	}
	op.Chains, op.Changes = chains, changes
	if op.Current == id {
		op.Current, op.CurrentAt = ID{}, 0
	}
}

// purge makes the removal, notes that it was done, sweeps artifacts and writes the file anew.
func (s *Store) purge(ctx context.Context, dry bool, fn func(kv.RwTx, *Purged) error) (*Purged, error) {
	ctx = kv.WithPurpose(ctx, "purge")
	out := &Purged{}
	err := s.db.Update(ctx, func(tx kv.RwTx) error {
		if err := fn(tx, out); err != nil {
			return err
		}
		if dry {
			return errDry
		}
		if err := dropFromIndex(tx, out.touched, out.rewritten, s.now()); err != nil {
			return err
		}
		return s.notePurge(tx, out)
	})
	if errors.Is(err, errDry) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	return out, s.finishPurge(ctx, &out.Collected)
}

// metaPurging is there from the moment that a purge has removed records until the file is written anew without them.
var metaPurging = []byte("purging")

// finishPurge does what is left once the records are gone: artifacts, and the bytes in the file.
func (s *Store) finishPurge(ctx context.Context, out *Collected) error {
	if err := s.sweepArtifacts(ctx, false, nil, out); err != nil {
		return err
	}
	done := func(tx kv.RwTx) error { return tx.Delete(metaBucket, metaPurging) }
	if k, ok := s.db.(kv.Keeper); ok {
		return k.Rewrite(ctx, done)
	}
	return s.db.Update(ctx, done)
}

// resumePurge finishes a purge that was cut short by the end of its process.
func (s *Store) resumePurge(ctx context.Context) error {
	var begun []byte
	err := s.db.View(ctx, func(tx kv.Tx) (err error) {
		begun, err = tx.Get(metaBucket, metaPurging)
		return err
	})
	if err != nil || begun == nil {
		return err
	}
	return s.finishPurge(kv.WithPurpose(ctx, "purge"), &Collected{})
}

// notePurge leaves the one line that says that something was purged, and not what.
func (s *Store) notePurge(tx kv.RwTx, out *Purged) error {
	t, err := s.beginStore(tx)
	if err != nil {
		return err
	}
	n := max(t.rec.NextOperation, 1)
	what := "purge " + out.What
	if out.What == "redact" {
		what = out.What
	}
	if err := tx.Put(metaBucket, metaPurging, []byte{1}); err != nil {
		return err
	}
	op := &operation{What: what, At: t.now, By: s.program, Undone: n}
	if out.What == "branch" || out.What == "message" {
		op.Current = out.Context
	}
	return t.write(n, op)
}
