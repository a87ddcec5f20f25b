package care

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// OwnBuckets lists the buckets whose keys begin with a context's id, except that of the context's own record.
var OwnBuckets = []string{poolstore.Bucket, branchstore.Bucket, branchstore.NameBucket, branchstore.EntryBucket, branchstore.PromptBucket, base.CallBucket, base.UnansweredBucket, base.CallIDBucket, base.ClaimBucket,
	base.TagBucket, base.MarkBucket, base.OperationBucket, base.KeyBucket, base.ToolBucket, base.RuleBucket, base.CountBucket, base.PartialBucket, base.QueuedBucket, base.RequestBucket}

// GC removes what is no longer needed: contexts whose time in the trash is over, old operations, then removed branches and messages that only those
// operations could bring back, and artifacts without a reference. A message is needed by a branch, a kept operation, a tag, a mark, a session or the queue;
// receipts stay. Each context is one transaction. The store uses the freed pages again; Vacuum gives them back. It runs also with o.DryRun, for which its
// caller gives it a trial.
func GC(ctx context.Context, s *base.Store, o record.GCOptions) (*record.Collected, error) {
	ctx = engine.WithPurpose(ctx, "gc")
	var err error
	if o.OlderThan, err = fitting(ctx, s, o); err != nil {
		return nil, err
	}
	return collect(ctx, s, o)
}

func collect(ctx context.Context, s *base.Store, o record.GCOptions) (*record.Collected, error) {
	out := &record.Collected{Kept: map[string]int{}, OlderThan: o.OlderThan}
	ids, err := view.Recent(ctx, s)
	if err != nil {
		return nil, err
	}
	lost := map[pool.ID]bool{}
	for _, id := range ids {
		var one record.Collected
		err := s.Update(base.AsGate(ctx), func(tx kv.RwTx) error { // what lies in the trash a decider put there
			one = record.Collected{Kept: map[string]int{}}
			c := &collector{tx: tx, id: id, o: o, now: s.Now(), out: &one}
			return c.context()
		})
		if err != nil {
			return out, err
		}
		if one.Contexts+one.Messages > 0 {
			lost[id] = true
		}
		addCollected(out, &one)
	}
	if len(lost) > 0 {
		if err := s.Update(ctx, func(tx kv.RwTx) error { return find.DropFromIndex(tx, lost, nil, s.Now()) }); err != nil {
			return out, err
		}
	}
	out.Leftovers = Leftovers(s)
	return out, sweepArtifacts(ctx, s, out)
}

func addCollected(c *record.Collected, o *record.Collected) {
	c.Contexts += o.Contexts
	c.Messages += o.Messages
	c.Operations += o.Operations
	c.Bytes += o.Bytes
	for why, n := range o.Kept {
		c.Kept[why] += n
	}
}

// collector removes from one context what nothing needs.
type collector struct {
	tx  kv.RwTx
	id  pool.ID
	o   record.GCOptions
	now pool.Time
	out *record.Collected
}

func (c *collector) context() error {
	rec, _, err := base.GetContext(c.tx, c.id)
	if rec == nil || err != nil {
		return err
	}
	age := pool.Time(c.o.OlderThan / time.Microsecond)
	if rec.Trashed != 0 && c.o.OlderThan > 0 && rec.Trashed+age < c.now {
		return c.removeContext(rec)
	}
	if err := c.operations(rec, age); err != nil {
		return err
	}
	live, err := findLive(c.tx, c.id)
	if err != nil {
		return err
	}
	before := c.out.Messages
	if err := c.messages(live); err != nil {
		return err
	}
	if c.out.Messages == before {
		return nil
	}
	rec.Messages -= uint64(c.out.Messages - before)
	return base.PutRecord(c.tx, base.ContextBucket, c.id[:], rec)
}

// delete removes a record and counts its bytes.
func (c *collector) delete(bucket string, key []byte) error {
	value, err := c.tx.Get(bucket, key)
	if value == nil || err != nil {
		return err
	}
	c.out.Bytes += int64(len(key) + len(value))
	return c.tx.Delete(bucket, key)
}

// deleteUnder removes the records whose keys begin with prefix, and returns how many there were.
func (c *collector) deleteUnder(bucket string, prefix []byte) (int, error) {
	keys, err := view.KeysWith(c.tx, bucket, prefix)
	if err != nil {
		return 0, err
	}
	for _, key := range keys {
		if err := c.delete(bucket, key); err != nil {
			return 0, err
		}
	}
	return len(keys), nil
}

// removeContext removes a context with everything that belongs to it, including its open calls and the record of its imports.
func (c *collector) removeContext(rec *base.ContextRecord) error {
	open, err := c.openKeys()
	if err != nil {
		return err
	}
	for _, key := range open {
		if err := c.delete(base.OpenBucket, key); err != nil {
			return err
		}
	}
	for _, bucket := range OwnBuckets {
		n, err := c.deleteUnder(bucket, c.id[:])
		if err != nil {
			return err
		}
		if bucket == poolstore.Bucket {
			c.out.Messages += n
		}
		if bucket == base.OperationBucket {
			c.out.Operations += n
		}
	}
	if err := c.forgetSources(); err != nil {
		return err
	}
	if err := c.delete(base.RecentBucket, base.RecentKey(rec.ListedAt(), c.id)); err != nil {
		return err
	}
	if current, err := view.StoresContext(c.tx); err != nil || current == c.id {
		if err != nil {
			return err
		}
		if err := c.tx.Delete(base.MetaBucket, base.MetaCurrent); err != nil {
			return err
		}
	}
	for _, l := range rec.Labels {
		if err := c.delete(base.LabelBucket, base.LabelKey(l, c.id)); err != nil {
			return err
		}
	}
	c.out.Contexts++
	return c.delete(base.ContextBucket, c.id[:])
}

// RemoveContext removes a context that no operation has made visible, with everything that belongs to it and its words in the search index.
func RemoveContext(s *base.Store, tx kv.RwTx, id pool.ID, rec *base.ContextRecord) error {
	c := &collector{tx: tx, id: id, now: s.Now(), out: &record.Collected{}}
	if err := c.removeContext(rec); err != nil {
		return err
	}
	return find.DropFromIndex(tx, map[pool.ID]bool{id: true}, nil, c.now)
}

// openKeys returns this context's keys in the list of open calls, by way of its calls.
func (c *collector) openKeys() ([][]byte, error) {
	var keys [][]byte
	err := c.tx.Scan(base.CallBucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		var rec record.CallRecord
		if err := stored.Unmarshal(value, &rec); err != nil {
			return base.Damaged("the record of call %x: %v", key, err)
		}
		keys = append(keys, base.OpenKey(&rec, c.id, pool.ID(key[16:32]), int(binary.BigEndian.Uint16(key[32:]))))
		return nil
	})
	return keys, err
}

// forgetSources removes the record of imports into this context.
func (c *collector) forgetSources() error {
	var keys [][]byte
	err := c.tx.Scan(base.SourceBucket, kv.Range{}, func(key, value []byte) error {
		if intake.SourceOf(value, func(id pool.ID) bool { return id == c.id }) {
			keys = append(keys, bytes.Clone(key))
		}
		return nil
	})
	for _, key := range keys {
		if err == nil {
			err = c.delete(base.SourceBucket, key)
		}
	}
	return err
}

// operations removes old operations and the removed branches that only these could bring back. An operation that a branch or the context points to stays as
// a line that says what was done and that can no longer be undone.
func (c *collector) operations(rec *base.ContextRecord, age pool.Time) error {
	old := map[uint64]*base.Operation{}
	held := map[pool.ID]bool{} // branches that the other operations are about
	seen := 0
	err := base.EachOperation(c.tx, base.NewestFirst(c.id), func(n uint64, op *base.Operation) error {
		if seen++; op.Expired || c.o.OlderThan > 0 && seen > c.o.KeepOperations && op.At+age < c.now {
			old[n] = op
			return nil
		}
		for _, link := range op.Chains {
			held[link.Branch] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.branches(held); err != nil {
		return err
	}
	needed := map[uint64]bool{rec.Newest: true, rec.Last: true}
	err = branchstore.All(c.tx, c.id, func(b *branch.Branch) error {
		needed[b.Newest], needed[b.Last] = true, true
		return nil
	})
	for n, op := range old {
		if err != nil {
			return err
		}
		if needed[n] && op.Expired {
			continue
		}
		c.out.Operations++
		if err = c.delete(base.OperationBucket, base.OperationKey(c.id, n)); err == nil && needed[n] {
			op.Changes, op.Expired = nil, true
			err = base.PutRecord(c.tx, base.OperationBucket, base.OperationKey(c.id, n), op)
		}
	}
	return err
}

// branches removes the removed branches that are not in held, with the calls that wait and run on them.
func (c *collector) branches(held map[pool.ID]bool) error {
	var gone []pool.ID
	err := branchstore.All(c.tx, c.id, func(b *branch.Branch) error {
		if b.Removed != 0 && !held[b.ID] {
			gone = append(gone, b.ID)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, id := range gone {
		for _, bucket := range []string{branchstore.Bucket, base.ClaimBucket, base.PartialBucket, base.QueuedBucket, base.RequestBucket} {
			if _, err := c.deleteUnder(bucket, base.Under(c.id, id[:]...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// live is what a context still needs.
type live struct {
	pieces   [][]branch.Piece // of branches, then of what can be brought back
	onBranch map[pool.ID]bool
	messages map[pool.ID]string // messages that no branch holds, with the reason why they stay
	prompts  map[string]bool
	ends     map[uint64]uint64 // high-water marks
}

// findLive reads what a context's branches and journal need.
func findLive(tx kv.Tx, id pool.ID) (*live, error) {
	l := &live{onBranch: map[pool.ID]bool{}, messages: map[pool.ID]string{}, prompts: map[string]bool{}, ends: map[uint64]uint64{}}
	var held, removed [][]branch.Piece
	err := branchstore.All(tx, id, func(b *branch.Branch) error {
		l.branch(b)
		if b.Removed != 0 {
			removed = append(removed, b.Pieces)
		} else {
			held = append(held, b.Pieces)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.pieces = append(held, removed...)
	for _, pieces := range held {
		if err := branchstore.Read(tx, id, pieces, func(_ int, mid pool.ID) error { l.onBranch[mid] = true; return nil }); err != nil {
			return nil, err
		}
	}
	if err := l.journal(tx, id); err != nil {
		return nil, err
	}
	for _, pieces := range l.pieces[len(held):] {
		if err := branchstore.Read(tx, id, pieces, func(_ int, mid pool.ID) error { l.messages[mid] = "an operation that can be undone"; return nil }); err != nil {
			return nil, err
		}
	}
	if err := l.named(tx, id); err != nil {
		return nil, err
	}
	return l, l.results(tx, id)
}

// results adds results that wait until a branch holds their calls' messages again.
func (l *live) results(tx kv.Tx, id pool.ID) error {
	return tx.Scan(base.UnansweredBucket, kv.Prefix(id[:]), func(key, value []byte) error {
		if len(key) != 34 || len(value) < 16 {
			return nil // check reports it
		}
		message := pool.ID(value[:16])
		if apart := binary.BigEndian.Uint64(key[16:24]) == 0; l.messages[message] == "" && !l.onBranch[message] && !apart {
			return nil
		}
		var rec record.CallRecord
		_, err := base.GetRecord(tx, base.CallBucket, base.CallKey(id, message, int(binary.BigEndian.Uint16(key[32:]))), &rec)
		if rec.Result != (pool.ID{}) {
			l.messages[rec.Result] = "the result of a call"
		}
		return err
	})
}

// branch adds what a branch's record needs.
func (l *live) branch(b *branch.Branch) {
	l.prompts[b.System], l.prompts[b.Prompt] = true, true
	l.ends[b.Segment] = max(l.ends[b.Segment], b.High)
	l.sessions(b.Sessions)
}

func (l *live) sessions(sessions []branch.Session) {
	for _, s := range sessions {
		if s.Summary != (pool.ID{}) {
			l.messages[s.Summary] = "a session's summary"
		}
		for _, d := range s.Digests {
			if d.Message != (pool.ID{}) {
				l.messages[d.Message] = "a session's digest"
			}
		}
	}
}

// journal adds what the operations need to be undone.
func (l *live) journal(tx kv.Tx, id pool.ID) error {
	return base.EachOperation(tx, kv.Prefix(id[:]), func(_ uint64, op *base.Operation) error {
		for _, c := range op.Changes {
			if err := l.change(c); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *live) change(c base.Change) error {
	switch {
	case c.Kind == base.SpliceChange:
		l.pieces = append(l.pieces, c.Removed, c.Inserted)
	case c.Bucket == branchstore.Bucket && c.Kind == base.FieldsChange:
		raw, _, err := base.ReplaceFields(nil, c.Fields)
		if err != nil {
			return err
		}
		b, err := branchstore.DecodeFields(raw)
		if err != nil {
			return err
		}
		l.prompts[b.System], l.prompts[b.Prompt] = true, true
		l.sessions(b.Sessions)
	case (c.Bucket == poolstore.Bucket || c.Bucket == base.CallBucket || c.Bucket == base.MarkBucket) && len(c.Key) >= 32:
		l.messages[pool.ID(c.Key[16:32])] = "an operation that can be undone"
	case (c.Bucket == base.TagBucket || c.Bucket == base.QueuedBucket) && len(c.Old) == 16:
		l.messages[pool.ID(c.Old)] = "an operation that can be undone"
	}
	return nil
}

// named adds the messages with a tag or a mark and those in the queue.
func (l *live) named(tx kv.Tx, id pool.ID) error {
	err := tx.Scan(base.TagBucket, kv.Prefix(id[:]), func(_, value []byte) error { l.messages[pool.ID(value)] = "a tag"; return nil })
	if err != nil {
		return err
	}
	err = tx.Scan(base.MarkBucket, kv.Prefix(id[:]), func(key, _ []byte) error { l.messages[pool.ID(key[16:])] = "a mark"; return nil })
	if err != nil {
		return err
	}
	return tx.Scan(base.QueuedBucket, kv.Prefix(id[:]), func(_, value []byte) error {
		if len(value) >= 16 {
			l.messages[pool.ID(value[:16])] = "the queue"
		}
		return nil
	})
}

// messages removes the messages and entries that are not live, with all that belongs to them.
func (c *collector) messages(l *live) error {
	var dead []pool.ID
	err := c.tx.Scan(poolstore.Bucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		mid := pool.ID(key[16:])
		why, kept := l.messages[mid]
		switch {
		case l.onBranch[mid]:
		case kept:
			c.out.Kept[why]++
		default:
			m := pool.Message{ID: mid}
			if poolstore.Decode(value, &m) == nil && poolstore.IsReceipt(&m) {
				c.out.Kept["what a model took"]++
				break
			}
			if gated, err := c.gated(&m); err != nil || gated {
				c.out.Kept["a call of an agent's hook"]++
				return err
			}
			dead = append(dead, mid)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.entries(l); err != nil {
		return err
	}
	if err := c.prompts(l); err != nil {
		return err
	}
	for _, mid := range dead {
		if err := c.removeMessage(mid); err != nil {
			return err
		}
	}
	return nil
}

// gated reports whether an agent's hook brought a call of a message: what was decided about it stays.
func (c *collector) gated(m *pool.Message) (bool, error) {
	for i := range m.Calls {
		var rec record.CallRecord
		_, err := base.GetRecord(c.tx, base.CallBucket, base.CallKey(c.id, m.ID, i), &rec)
		if err != nil || rec.Gate != nil {
			return rec.Gate != nil, err
		}
	}
	return false, nil
}

// removeMessage removes a message with its records: calls, counts. The key of its import stays and means nothing without it.
func (c *collector) removeMessage(mid pool.ID) error {
	c.out.Messages++
	calls, err := view.KeysWith(c.tx, base.CallBucket, base.Under(c.id, mid[:]...))
	if err != nil {
		return err
	}
	for _, key := range calls {
		var rec record.CallRecord
		if _, err := base.GetRecord(c.tx, base.CallBucket, key, &rec); err != nil {
			return err
		}
		index := int(binary.BigEndian.Uint16(key[32:]))
		if err := c.tx.Delete(base.OpenBucket, base.OpenKey(&rec, c.id, mid, index)); err != nil {
			return err
		}
		if err := c.tx.Delete(base.UnansweredBucket, base.UnansweredKey(c.id, rec.Home, index)); err != nil {
			return err
		}
		if err := c.tx.Delete(base.CallIDBucket, base.CallIDKey(c.id, rec.CallID, key[16:]...)); err != nil {
			return err
		}
		if err := cmp.Or(c.delete(base.CallBucket, key), c.delete(base.ClaimBucket, key)); err != nil {
			return err
		}
	}
	if _, err := c.deleteUnder(base.CountBucket, base.Under(c.id, mid[:]...)); err != nil {
		return err
	}
	return c.delete(poolstore.Bucket, base.Under(c.id, mid[:]...))
}

// entries removes entries that no live piece covers and whose message goes. The entry before a piece and a segment's last one stay without their message,
// since they count turns.
func (c *collector) entries(l *live) error {
	covered, err := c.covered(l)
	if err != nil {
		return err
	}
	type dead struct {
		key, value []byte
		counts     bool
	}
	var all []dead
	err = c.tx.Scan(branchstore.EntryBucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		segment, at, ok := branchstore.EntryAt(key)
		if !ok || len(value) < 17 {
			return nil
		}
		in, before := inPieces(covered[segment], at)
		if in {
			return nil
		}
		all = append(all, dead{bytes.Clone(key), bytes.Clone(value), before || l.ends[segment] == at+1})
		return nil
	})
	for _, d := range all {
		if err != nil {
			return err
		}
		if d.counts {
			clear(d.value[:16])
			err = c.tx.Put(branchstore.EntryBucket, d.key, d.value)
		} else {
			err = c.delete(branchstore.EntryBucket, d.key)
		}
	}
	return err
}

// covered returns what stays of each segment: the live pieces, and entries of messages that stay though no piece has them. If such a message is appended
// again, its place goes on a branch.
func (c *collector) covered(l *live) (map[uint64][]branch.Piece, error) {
	covered := map[uint64][]branch.Piece{}
	for _, pieces := range l.pieces {
		for _, p := range pieces {
			covered[p.Segment] = append(covered[p.Segment], p)
		}
	}
	err := c.tx.Scan(branchstore.EntryBucket, kv.Prefix(c.id[:]), func(key, value []byte) error {
		segment, at, ok := branchstore.EntryAt(key)
		if !ok || len(value) < 17 {
			return nil
		}
		if _, stays := l.messages[pool.ID(value[:16])]; stays {
			covered[segment] = append(covered[segment], branch.Piece{Segment: segment, From: at, To: at + 1})
		}
		return nil
	})
	for _, pieces := range covered {
		slices.SortFunc(pieces, func(a, b branch.Piece) int { return int(int64(a.From) - int64(b.From)) })
	}
	return covered, err
}

// inPieces reports whether a position lies in one of a segment's pieces, sorted by their beginnings, and whether a piece begins right after it.
func inPieces(pieces []branch.Piece, at uint64) (in, before bool) {
	for _, p := range pieces {
		if p.From > at+1 {
			break
		}
		in = in || p.From <= at && at < p.To
		before = before || p.From == at+1
	}
	return in, before
}

func (c *collector) prompts(l *live) error {
	keys, err := view.KeysWith(c.tx, branchstore.PromptBucket, c.id[:])
	for _, key := range keys {
		if err == nil && !l.prompts[string(key[16:])] {
			err = c.delete(branchstore.PromptBucket, key)
		}
	}
	return err
}
