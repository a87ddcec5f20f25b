package view

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// Unanswered is an open call as the index names it.
type Unanswered struct {
	Home    pool.Home
	Message pool.ID
	Index   int
	CallID  string
}

// UnansweredIn returns the open calls of messages in pieces, in the order of the pieces.
func UnansweredIn(tx kv.Tx, ctx pool.ID, pieces []branch.Piece) ([]Unanswered, error) {
	var out []Unanswered
	for _, p := range pieces {
		r := kv.Range{
			From: base.UnansweredKey(ctx, pool.Home{Segment: p.Segment, Position: p.From}, 0),
			To:   base.UnansweredKey(ctx, pool.Home{Segment: p.Segment, Position: p.To}, 0),
		}
		err := tx.Scan(base.UnansweredBucket, r, func(key, value []byte) error {
			out = append(out, Unanswered{
				Home:    pool.Home{Segment: binary.BigEndian.Uint64(key[16:]), Position: binary.BigEndian.Uint64(key[24:])},
				Message: pool.ID(value[:16]), Index: int(binary.BigEndian.Uint16(key[32:])), CallID: string(value[16:]),
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// FillCalls sets the calls of a message that was read to their present state, with the arguments that an approval put in place of the model's. A call that
// came with its outcome keeps that; its record, if a file brought one, says only with which arguments it ran.
func FillCalls(tx kv.Tx, ctx pool.ID, m *pool.Message) error {
	for i := range m.Calls {
		c := &m.Calls[i]
		if !mayHaveRecord(c) {
			continue
		}
		var rec record.CallRecord
		ok, err := base.GetRecord(tx, base.CallBucket, base.CallKey(ctx, m.ID, i), &rec)
		if err != nil {
			return err
		}
		if ok && (c.Open() || rec.Gate != nil) {
			c.Status, c.Execution, c.Reason, c.Later = rec.Status, rec.Execution, rec.Reason, true
		}
		c.Effective, c.ChangedBy = rec.Effective, base.ChangedBy(&rec)
	}
	return nil
}

// mayHaveRecord reports whether a stored call may have a record with something that its message does not say.
func mayHaveRecord(c *pool.Call) bool {
	return c.Open() || c.Status == pool.Approved || c.Status == pool.Denied
}

// CallKeys names the records that FillCalls reads, for kv.Fetch.
func CallKeys(ctx pool.ID, m *pool.Message) (keys []kv.Key) {
	for i := range m.Calls {
		if mayHaveRecord(&m.Calls[i]) {
			keys = append(keys, kv.Key{Bucket: base.CallBucket, Key: base.CallKey(ctx, m.ID, i)})
		}
	}
	return keys
}

// sortBranches sorts branches by the time they were made; of those made in one operation main comes first, the others by name.
func sortBranches(infos []*BranchInfo) {
	slices.SortStableFunc(infos, func(a, b *BranchInfo) int {
		switch {
		case a.Created != b.Created && a.Created < b.Created:
			return -1
		case a.Created != b.Created:
			return 1
		case a.Name == base.MainBranch:
			return -1
		case b.Name == base.MainBranch:
			return 1
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// EntryBatch is how many messages one transaction reads, which takes some milliseconds.
const EntryBatch = 256

// EntriesKeys names what ReadEntries reads before the messages themselves, for kv.Fetch.
func EntriesKeys(id pool.ID, b *branch.Branch, from, to int) []kv.Key {
	keys := branchstore.ReadKeys(id, stretch(b, from, to))
	return append(append(keys, branchstore.TurnKeys(id, b.Pieces, from-1)...), TagsKey(id))
}

// IDsFrom returns the ids of the messages from the one before a position to the branch's end.
func IDsFrom(tx kv.Tx, id pool.ID, b *branch.Branch, from int) ([]pool.ID, error) {
	return branchstore.IDs(tx, id, stretch(b, from, branchstore.Len(b)))
}

// stretch returns the pieces from the message before position from to position to.
func stretch(b *branch.Branch, from, to int) []branch.Piece {
	return branchstore.Slice(b.Pieces, max(from-2, 0), to)
}

// ReadEntries reads the messages at positions from to to of a branch, both included and counted from 1, with calls in their present state.
func ReadEntries(tx kv.Tx, id pool.ID, b *branch.Branch, from, to int) ([]*pool.Entry, error) {
	return ReadSome(tx, id, b, from, to, math.MaxInt)
}

// ReadSome is ReadEntries that ends with the message that makes them more than most bytes.
func ReadSome(tx kv.Tx, id pool.ID, b *branch.Branch, from, to, most int) ([]*pool.Entry, error) {
	if err := kv.Fetch(tx, EntriesKeys(id, b, from, to)...); err != nil {
		return nil, err
	}
	ids, err := branchstore.IDs(tx, id, stretch(b, from, to))
	if err != nil {
		return nil, err
	}
	var parent pool.ID
	if from > 1 {
		parent, ids = ids[0], ids[1:]
	}
	turns, err := branchstore.Turns(tx, id, b.Pieces, from-1)
	if err != nil {
		return nil, err
	}
	tags, err := TagsOf(tx, id)
	if err != nil {
		return nil, err
	}
	out := make([]*pool.Entry, 0, len(ids))
	callKeys := func(m *pool.Message) []kv.Key { return CallKeys(id, m) }
	err = poolstore.GetManyWith(tx, id, ids, callKeys, func(i int, m *pool.Message) error {
		if m == nil {
			return base.Damaged("message %s is missing", ids[i])
		}
		if err := FillCalls(tx, id, m); err != nil {
			return err
		}
		e := &pool.Entry{Message: m, Position: from + i, Parent: parent, Tags: tags[m.ID], Session: SessionAt(b, from+i)}
		if branchstore.ItemOf(m).Turn {
			turns++
		}
		e.Turn = turnName(m, turns)
		parent = m.ID
		out = append(out, e)
		if most -= poolstore.Weight(m); most < 0 {
			return kv.ErrStop
		}
		return nil
	})
	return out, err
}

// turnName returns the label of a message's turn: u3 for the message that begins the third turn, a3 for all that answer it.
func turnName(m *pool.Message, n int) string {
	if branchstore.ItemOf(m).Turn {
		return fmt.Sprintf("u%d", n)
	}
	return fmt.Sprintf("a%d", n)
}

// SessionAt returns the number of the session that has a position, from 1.
func SessionAt(b *branch.Branch, pos int) int {
	n := 1
	for i, s := range b.Sessions {
		if i > 0 && s.Start <= pos {
			n = i + 1
		}
	}
	return n
}

// TagsKey names what TagsOf reads, for kv.Fetch.
func TagsKey(id pool.ID) kv.Key { return kv.In(base.TagBucket, kv.Prefix(id[:])) }

// TagsOf returns the tags of a context's messages.
func TagsOf(tx kv.Tx, id pool.ID) (map[pool.ID][]string, error) {
	out := map[pool.ID][]string{}
	err := tx.Scan(base.TagBucket, kv.Prefix(id[:]), func(key, value []byte) error {
		out[pool.ID(value)] = append(out[pool.ID(value)], string(key[16:]))
		return nil
	})
	return out, err
}

// MaxResults bounds how far after a message its results are looked for.
const MaxResults = 256

// Purged returns ErrPurged for an error of reading a branch as it was at some moment, if a purge or gc is the reason of the error, else the error itself.
func Purged(tx kv.Tx, id pool.ID, b *branch.Branch, of error) error {
	if !errors.Is(of, base.ErrDamaged) && !errors.Is(of, base.ErrNotFound) {
		return of
	}
	rec, _, err := base.GetContext(tx, id)
	switch {
	case err != nil:
		return err
	case rec == nil:
		return base.Gone(id)
	case errors.Is(of, base.ErrNotFound):
		return of
	}
	if removed, err := removedSince(tx, id, b); err != nil || removed {
		return cmp.Or(err, base.ErrPurged)
	}
	return of
}

// removedSince reports whether a branch has let go of some of what it had, and what it still has is whole: then nothing is damaged.
func removedSince(tx kv.Tx, id pool.ID, b *branch.Branch) (bool, error) {
	now, err := branchstore.Get(tx, id, b.ID)
	if now == nil || err != nil {
		return err == nil, err
	}
	kept := branchstore.Common(b.Pieces, now.Pieces)
	if branchstore.Count(kept) == branchstore.Len(b) {
		return false, nil
	}
	whole := true
	ids, err := branchstore.IDs(tx, id, kept)
	if err == nil {
		err = poolstore.GetMany(tx, id, ids, func(_ int, m *pool.Message) error {
			whole = whole && m != nil
			return nil
		})
	}
	if errors.Is(err, base.ErrDamaged) {
		return false, nil
	}
	return whole, err
}
