package care

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// DoubtPlace is the Where of the problem that the newest change may be lost. EndDoubt ends it.
const DoubtPlace = "newest change"

// EndDoubt ends the warning of Store.Warnings that the newest change may be lost, once its user was told. Repair ends it too.
func EndDoubt(ctx context.Context, s *base.Store) error {
	return s.DB.Update(ctx, endDoubt)
}

func endDoubt(tx kv.RwTx) error {
	doubt, err := tx.Get(base.MetaBucket, base.MetaDoubt)
	if doubt != nil && err == nil {
		err = tx.Delete(base.MetaBucket, base.MetaDoubt)
	}
	return err
}

// checker reads a store and reports what breaks an invariant.
type checker struct {
	tx      kv.Tx
	full    bool
	report  func(record.Problem)
	home    map[pool.ID]pool.ID // the context of each message
	wanted  map[pool.Hash]bool  // artifacts that are referred to
	parents map[pool.ID]pool.ID // each context's parent
}

func (c *checker) problem(invariant int, where, format string, args ...any) {
	c.report(record.Problem{Invariant: invariant, Where: where, Text: fmt.Sprintf(format, args...)})
}

// Check reads the store, a context in each transaction, and calls problem for each fault by the invariants of docs/design.md. With full it also reads the
// search index and every artifact's bytes. It returns an error only if it cannot read on; a damaged store gives problems and no error.
func Check(ctx context.Context, s *base.Store, full bool, problem func(record.Problem)) error {
	c := &checker{full: full, report: problem, home: map[pool.ID]pool.ID{}, wanted: map[pool.Hash]bool{}, parents: map[pool.ID]pool.ID{}}
	if k, ok := s.Engine.(kv.Keeper); ok {
		if err := k.CheckPages(ctx, func(text string) { c.problem(0, "file", "%s", text) }); err != nil {
			return c.damage(err)
		}
	}
	ids, err := checkStore(ctx, s, c)
	if err != nil {
		return c.damage(err)
	}
	for _, id := range ids {
		err := s.DB.View(ctx, func(tx kv.Tx) error {
			c.tx = tx
			return c.context(id)
		})
		if err := c.damage(err); err != nil {
			return err
		}
	}
	if err := c.damage(s.DB.View(ctx, func(tx kv.Tx) error { c.tx = tx; return c.rest() })); err != nil {
		return err
	}
	if full {
		if err := c.damage(s.DB.View(ctx, func(tx kv.Tx) error { c.tx = tx; return c.index() })); err != nil {
			return err
		}
	}
	due, err := PurgeDue(ctx, s)
	if due {
		c.problem(0, "purge", "it or a redaction was cut short: the bytes of what it took are still in the file, until a program opens the store to write (chatctx vacuum)")
	}
	return c.damage(err)
}

// damage turns an ErrDamaged into a problem.
func (c *checker) damage(err error) error {
	if errors.Is(err, kv.ErrDamaged) {
		c.problem(0, "file", "%v", err)
		return nil
	}
	return err
}

// checkStore checks what belongs to no context and lists the contexts.
func checkStore(ctx context.Context, s *base.Store, c *checker) ([]pool.ID, error) {
	var ids []pool.ID
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		c.tx, ids = tx, nil
		if err := base.CheckFormat(tx); err != nil {
			c.problem(9, "meta", "%v", err)
		}
		if doubt, err := tx.Get(base.MetaBucket, base.MetaDoubt); err != nil {
			return err
		} else if doubt != nil {
			c.problem(0, DoubtPlace, "%s", base.DoubtText)
		}
		return tx.Scan(base.ContextBucket, kv.Range{}, func(key, value []byte) error {
			if len(key) != 16 {
				c.problem(0, "context", "a key of %d bytes", len(key))
				return nil
			}
			rec, err := base.DecodeContext(pool.ID(key), value)
			if err != nil {
				c.problem(0, "conversation "+pool.ID(key).String(), "%v", err)
				return nil
			}
			ids = append(ids, pool.ID(key))
			c.parents[pool.ID(key)] = rec.Parent
			return nil
		})
	})
	return ids, err
}

// context checks one context.
func (c *checker) context(id pool.ID) error {
	if err := kv.Fetch(c.tx, recordsOf(id)...); err != nil {
		return err
	}
	rec, _, err := base.GetContext(c.tx, id)
	if rec == nil || err != nil {
		return err
	}
	where := "conversation " + id.String()
	if at, err := c.tx.Get(base.RecentBucket, base.RecentKey(rec.ListedAt(), id)); err != nil {
		return err
	} else if at == nil {
		c.problem(3, where, "is not in the list of recent conversations")
	}
	for _, l := range rec.Labels {
		if at, err := c.tx.Get(base.LabelBucket, base.LabelKey(l, id)); err != nil {
			return err
		} else if at == nil {
			c.problem(12, where, "is not found by its label %q", l)
		}
	}
	messages, err := c.pool(id)
	if err != nil {
		return err
	}
	if n := counted(messages); n != int(rec.Messages) {
		c.problem(1, where, "counts %s, the pool has %d", plural.Count(int(rec.Messages), "message"), n)
	}
	ends, there, err := c.entries(id, messages)
	if err != nil {
		return err
	}
	held, err := c.branches(id, rec, ends, there)
	if err != nil {
		return err
	}
	if err := c.openCalls(id, messages, held); err != nil {
		return err
	}
	if err := c.callIndexes(id); err != nil {
		return err
	}
	if err := c.operations(id); err != nil {
		return err
	}
	if err := c.kept(id); err != nil {
		return err
	}
	if err := c.named(id, messages); err != nil {
		return err
	}
	if rec.Newest != 0 {
		return c.newest(where, id, rec.Newest, pool.ID{}, rec.Revision)
	}
	return nil
}

// recordsOf names what the check of a context reads, so that a server is asked for all of it at once.
func recordsOf(id pool.ID) []kv.Key {
	keys := []kv.Key{{Bucket: base.ContextBucket, Key: id[:]}}
	for _, bucket := range OwnBuckets {
		keys = append(keys, kv.In(bucket, kv.Prefix(id[:])))
	}
	all := kv.Prefix(make([]byte, len(id))) // what belongs to the store holds in the context too
	return append(keys, kv.In(base.ToolBucket, all), kv.In(base.RuleBucket, all))
}

// pool reads a context's messages. A message that cannot be read is nil in the map.
func (c *checker) pool(id pool.ID) (map[pool.ID]*pool.Message, error) {
	out := map[pool.ID]*pool.Message{}
	err := poolstore.Scan(c.tx, id, func(mid pool.ID, m *pool.Message, err error) error {
		where := "message " + mid.String()
		if err != nil {
			c.problem(1, where, "%v", err)
			out[mid] = nil
			return nil
		}
		if other, ok := c.home[mid]; ok && other != id {
			c.problem(4, where, "is in the conversations %s and %s", other, id)
		}
		c.home[mid] = id
		if m.ID != mid {
			c.problem(1, where, "calls itself %s", m.ID)
		}
		for _, h := range poolstore.Artifacts(m) {
			c.wanted[h] = true
		}
		out[mid] = known(m)
		return c.unrecorded(id, m)
	})
	return out, err
}

// counted returns how many messages of a pool count as the conversation's: all but receipts. One that cannot be read counts.
func counted(messages map[pool.ID]*pool.Message) int {
	n := len(messages)
	for _, m := range messages {
		if m != nil && poolstore.IsReceipt(m) {
			n--
		}
	}
	return n
}

// known keeps the parts of a message that the rest of the check needs.
func known(m *pool.Message) *pool.Message {
	k := &pool.Message{ID: m.ID, Role: m.Role, Kind: m.Kind, Hidden: m.Hidden, Unsent: m.Unsent, Home: m.Home, Content: make([]pool.Part, min(len(m.Content), 1))}
	for i := range m.Calls {
		k.Calls = append(k.Calls, pool.Call{ID: m.Calls[i].ID})
	}
	return k
}

// entries checks that each entry's message exists. It returns each segment's end and the positions in it that have a message.
func (c *checker) entries(id pool.ID, messages map[pool.ID]*pool.Message) (ends map[uint64]uint64, there map[uint64][]uint64, err error) {
	ends, there = map[uint64]uint64{}, map[uint64][]uint64{}
	var count turnCount
	err = c.tx.Scan(branchstore.EntryBucket, kv.Prefix(id[:]), func(key, value []byte) error {
		segment, position, ok := branchstore.EntryAt(key)
		if !ok {
			c.problem(2, "conversation "+id.String(), "has an entry with a wrong key of %d bytes", len(key))
			return nil
		}
		where := fmt.Sprintf("conversation %s, segment %d, entry %d", id, segment, position)
		if len(value) < 17 {
			c.problem(1, where, "is cut short")
			return nil
		}
		if segment != count.segment || position != count.next {
			count = turnCount{segment: segment, unsure: position > 0}
		}
		count.next = position + 1
		if text := count.wrong(value, messages[pool.ID(value[:16])]); text != "" {
			c.problem(2, where, "%s", text)
		}
		there[segment] = append(there[segment], position)
		mid := pool.ID(value[:16])
		if mid == (pool.ID{}) { // gc took the message: the entry only counts turns
			there[segment] = there[segment][:len(there[segment])-1]
		} else if _, ok := messages[mid]; !ok {
			c.problem(1, where, "names the message %s, which is not there", mid)
		}
		ends[segment] = position + 1
		return nil
	})
	return ends, there, err
}

// whole reports whether all entries of a piece exist, given the sorted positions of its segment.
func whole(p branch.Piece, there []uint64) bool {
	from, _ := slices.BinarySearch(there, p.From)
	to, _ := slices.BinarySearch(there, p.To)
	return p.From < p.To && uint64(to-from) == p.To-p.From
}

// branches checks the context's branches and returns the pieces of those that are not removed.
func (c *checker) branches(id pool.ID, rec *base.ContextRecord, ends map[uint64]uint64, there map[uint64][]uint64) ([][]branch.Piece, error) {
	var held [][]branch.Piece
	names := map[pool.ID]string{}
	owners := map[uint64]string{}
	err := c.tx.Scan(branchstore.Bucket, kv.Prefix(id[:]), func(key, value []byte) error {
		if len(key) != 32 {
			c.problem(3, "conversation "+id.String(), "has a branch with a key of %d bytes", len(key))
			return nil
		}
		where := fmt.Sprintf("conversation %s, branch %s", id, pool.ID(key[16:]))
		b, err := branchstore.Decode(pool.ID(key[16:]), value)
		if err != nil {
			c.problem(3, where, "%v", err)
			return nil
		}
		where = fmt.Sprintf("conversation %s, branch %q", id, b.Name)
		if b.Removed == 0 {
			names[b.ID] = b.Name
			held = append(held, b.Pieces)
		}
		for _, p := range b.Pieces {
			if !whole(p, there[p.Segment]) {
				c.problem(2, where, "has the piece %d to %d of segment %d, where entries are missing (it ends at %d)", p.From, p.To, p.Segment, ends[p.Segment])
			}
		}
		if other, ok := owners[b.Segment]; ok && b.Segment != 0 {
			c.problem(2, where, "writes to the segment %d of branch %q", b.Segment, other)
		}
		owners[b.Segment] = b.Name
		if b.Segment != 0 && b.High != ends[b.Segment] {
			c.problem(2, where, "writes at %d of segment %d, which has %d entries", b.High, b.Segment, ends[b.Segment])
		}
		return c.branchRest(where, id, b)
	})
	if err != nil {
		return nil, err
	}
	if _, ok := names[rec.Active]; !ok {
		c.problem(3, "conversation "+id.String(), "its active branch %s is not there", rec.Active)
	}
	if len(held) != int(rec.Branches) {
		c.problem(3, "conversation "+id.String(), "counts %s, there are %d", plural.Count(int(rec.Branches), "branch"), len(held))
	}
	return held, c.names(id, names)
}

// operations checks that each operation that can be undone has the records of its branches, removed or not.
func (c *checker) operations(id pool.ID) error {
	there := map[pool.ID]bool{{}: true}
	return c.tx.Scan(base.OperationBucket, kv.Prefix(id[:]), func(key, value []byte) error {
		op := &base.Operation{}
		if stored.Unmarshal(value, op) != nil || op.Expired {
			return nil // named reports those that cannot be read
		}
		for _, link := range op.Chains {
			if there[link.Branch] {
				continue
			}
			raw, err := c.tx.Get(branchstore.Bucket, branchstore.Key(id, link.Branch))
			if err != nil {
				return err
			}
			if there[link.Branch] = raw != nil; raw == nil {
				c.problem(7, "conversation "+id.String(), "the operation %d is about the branch %q (%s), of which there is no record", binary.BigEndian.Uint64(key[16:]), link.Name, link.Branch)
			}
		}
		return nil
	})
}

// names checks that each name leads to its branch. names has the branches that are not removed.
func (c *checker) names(id pool.ID, names map[pool.ID]string) error {
	where := "conversation " + id.String()
	led := map[pool.ID]bool{}
	err := c.tx.Scan(branchstore.NameBucket, kv.Prefix(id[:]), func(key, value []byte) error {
		name := string(key[16:])
		if len(value) == 16 && names[pool.ID(value)] == name {
			led[pool.ID(value)] = true
		} else {
			c.problem(11, where, "the branch name %q leads to %x, which is not called so", name, value)
		}
		return nil
	})
	for branchID, name := range names {
		if !led[branchID] {
			c.problem(11, where, "the name of branch %q (%s) does not lead to it", name, branchID)
		}
	}
	return err
}

func (c *checker) branchRest(where string, id pool.ID, b *branch.Branch) error {
	for _, prompt := range []string{b.System, b.Prompt} {
		text, err := branchstore.Prompt(c.tx, id, prompt)
		if err != nil {
			c.problem(3, where, "%v", err)
		} else if branchstore.PromptID(text) != prompt {
			c.problem(3, where, "the text of its prompt %s is not the one that was stored", prompt)
		}
	}
	for _, s := range b.Sessions {
		if s.Summary == (pool.ID{}) {
			continue
		}
		has, err := poolstore.Has(c.tx, id, s.Summary)
		if err != nil {
			return err
		}
		if !has {
			c.problem(1, where, "the summary %s of a session is not there", s.Summary)
		}
	}
	if b.Newest == 0 {
		return nil
	}
	return c.newest(where, id, b.Newest, b.ID, b.Revision)
}

// newest checks that operation n led to a revision.
func (c *checker) newest(where string, id pool.ID, n uint64, of pool.ID, revision uint64) error {
	op, err := base.GetOperation(c.tx, id, n)
	if errors.Is(err, kv.ErrDamaged) {
		c.problem(7, where, "its newest operation %d: %v", n, err)
		return nil
	}
	if err != nil {
		return err
	}
	if op == nil {
		c.problem(7, where, "its newest operation %d is not on the journal", n)
		return nil
	}
	for _, link := range op.Chains {
		if link.Branch == of {
			if link.Revision != revision {
				c.problem(7, where, "is at revision %d, its newest operation %d led to %d", revision, n, link.Revision)
			}
			return nil
		}
	}
	c.problem(7, where, "its newest operation %d is not about it", n)
	return nil
}

// openCalls checks that the indexes have exactly the calls that wait.
func (c *checker) openCalls(id pool.ID, messages map[pool.ID]*pool.Message, held [][]branch.Piece) error {
	return c.tx.Scan(base.CallBucket, kv.Prefix(id[:]), func(key, value []byte) error {
		message, index := pool.ID(key[16:32]), int(binary.BigEndian.Uint16(key[32:]))
		where := fmt.Sprintf("call %s:%d", message, index)
		rec, err := base.DecodeCall(key, value)
		if err != nil {
			c.problem(5, where, "%v", err)
			return nil
		}
		m := messages[message]
		if m == nil || index >= len(m.Calls) {
			c.problem(5, where, "its message has no such call")
			return nil
		}
		onBranch := false
		for _, pieces := range held {
			onBranch = onBranch || branchstore.Place(pieces, rec.Home.Segment, rec.Home.Position) >= 0
		}
		return c.indexed(where, id, message, index, rec, onBranch)
	})
}

func (c *checker) indexed(where string, id, message pool.ID, index int, rec *record.CallRecord, onBranch bool) error {
	open, err := c.tx.Get(base.OpenBucket, base.OpenKey(rec, id, message, index))
	if err != nil {
		return err
	}
	waits, err := c.tx.Get(base.UnansweredBucket, base.UnansweredKey(id, rec.Home, index))
	if err != nil {
		return err
	}
	if open != nil && !bytes.Equal(open, base.HomeBytes(rec.Home)) {
		c.problem(5, where, "is listed as open at another place than it stands")
	}
	if (open != nil) != (rec.Open() && onBranch) {
		c.problem(5, where, "is %s, and in the list of open calls: %t", rec.State(), open != nil)
	}
	if (waits != nil) != rec.Listed() {
		c.problem(5, where, "is %s, and among the unanswered: %t", rec.State(), waits != nil)
	}
	if rec.Result != (pool.ID{}) && (rec.Open() || onBranch) {
		c.problem(5, where, "is %s, on a branch: %t, and its result waits for a branch", rec.State(), onBranch)
	}
	return nil
}

// rest checks what spans contexts: artifacts, parents, and records of missing contexts.
func (c *checker) rest() error {
	for h := range c.wanted {
		if err := c.artifact(h); err != nil {
			return err
		}
	}
	for _, bucket := range OwnBuckets {
		if err := c.strays(bucket); err != nil {
			return err
		}
	}
	if err := c.store(); err != nil {
		return err
	}
	return c.tx.Scan(base.OpenBucket, kv.Range{}, func(key, _ []byte) error {
		if len(key) != 42 {
			c.problem(5, "open", "a key of %d bytes", len(key))
			return nil
		}
		has, err := c.tx.Get(base.CallBucket, key[8:])
		if err == nil && has == nil {
			c.problem(5, fmt.Sprintf("call %s:%d", pool.ID(key[24:40]), binary.BigEndian.Uint16(key[40:])), "is listed as open and has no record")
		}
		return err
	})
}

func (c *checker) artifact(h pool.Hash) error {
	has, err := poolstore.HasArtifact(c.tx, h)
	if err != nil {
		return err
	}
	where := fmt.Sprintf("artifact %x", h[:])
	if !has {
		c.problem(6, where, "is not there")
		return nil
	}
	if c.full {
		if _, _, err := poolstore.Artifact(c.tx, h); err != nil {
			c.problem(6, where, "%v", err)
		}
	}
	return nil
}

// strays finds records of missing contexts. It reads one record for each context.
func (c *checker) strays(bucket string) error {
	return eachOwner(c.tx, bucket, func(id []byte) {
		if _, ok := c.parents[pool.ID(append(bytes.Clone(id), make([]byte, 16-len(id))...))]; !ok && !bytes.Equal(id, make([]byte, 16)) {
			c.problem(3, fmt.Sprintf("%s %x", bucket, id), "belongs to a conversation that is not there")
		}
	})
}

// Measure counts what the store holds. On an engine without sizes, such as memory, Space is zero.
func Measure(ctx context.Context, s *base.Store) (*record.Stats, error) {
	out := &record.Stats{}
	if k, ok := s.Engine.(kv.Sized); ok {
		space, err := k.Space(ctx)
		if err != nil {
			return nil, err
		}
		out.Space = space
	}
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		space := out.Space
		*out = record.Stats{Space: space}
		err := tx.Scan(base.ContextBucket, kv.Range{}, func(key, value []byte) error {
			rec, err := base.DecodeContext(pool.ID(key), value)
			if err != nil {
				return err
			}
			out.Contexts++
			out.Branches += int(rec.Branches)
			out.Messages += int(rec.Messages)
			return nil
		})
		if err != nil {
			return err
		}
		err = tx.Scan(base.OperationBucket, kv.Range{}, func(_, _ []byte) error { out.Operations++; return nil })
		if err != nil {
			return err
		}
		return poolstore.ScanArtifacts(tx, pool.Hash{}, func(pool.ArtifactInfo, error) error { out.Artifacts++; return nil })
	})
	return out, err
}
