package care

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/pool"
)

// turnCount follows the counts of turns along a segment.
type turnCount struct {
	segment, next uint64
	turns         uint64
	unsure        bool // the count before is not known
}

// wrong returns the fault of the next entry's count, "" for none. m is the entry's message, nil if that is not known.
func (t *turnCount) wrong(value []byte, m *pool.Message) string {
	turns, n := binary.Uvarint(value[16:])
	if n <= 0 || 16+n != len(value) {
		t.unsure = true
		return "has no count of turns"
	}
	want := t.turns
	if m != nil && branchstore.ItemOf(m).Turn {
		want++
	}
	was, unsure := t.turns, t.unsure
	t.turns, t.unsure = turns, false
	switch {
	case unsure:
		return ""
	case m == nil && (turns == was || turns == was+1): // gc took the message
		return ""
	case m == nil || turns != want:
		return fmt.Sprintf("counts %d turns, there are %d", turns, want)
	}
	return ""
}

// unrecorded finds waiting calls of a message that have no record.
func (c *checker) unrecorded(id pool.ID, m *pool.Message) error {
	for i := range m.Calls {
		if !m.Calls[i].Open() || m.Home == (pool.Home{}) {
			continue
		}
		has, err := c.tx.Get(base.CallBucket, base.CallKey(id, m.ID, i))
		if err != nil {
			return err
		}
		if has == nil {
			c.problem(5, fmt.Sprintf("call %s:%d", m.ID, i+1), "waits and has no record")
		}
	}
	return nil
}

// named checks what refers to messages of a context by name, and records that nothing else checks.
func (c *checker) named(id pool.ID, messages map[pool.ID]*pool.Message) error {
	names := map[string]func(key, value []byte) []byte{
		base.TagBucket:        func(_, value []byte) []byte { return value },
		base.MarkBucket:       func(key, _ []byte) []byte { return key[16:] },
		base.QueuedBucket:     func(_, value []byte) []byte { return value },
		base.UnansweredBucket: func(_, value []byte) []byte { return value[:min(len(value), 16)] },
	}
	for bucket, of := range names {
		err := c.tx.Scan(bucket, kv.Prefix(id[:]), func(key, value []byte) error {
			mid := of(key, value)
			if len(mid) != 16 {
				c.problem(3, fmt.Sprintf("%s %x", bucket, key), "names no message")
			} else if _, ok := messages[pool.ID(mid)]; !ok {
				c.problem(3, fmt.Sprintf("%s %x", bucket, key), "names the message %s, which is not there", pool.ID(mid))
			} else if bucket == base.UnansweredBucket {
				return c.answered(id, key, value, pool.ID(mid))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, bucket := range []string{base.OperationBucket, base.ClaimBucket, base.KeyBucket, base.ToolBucket, base.RuleBucket} {
		if err := c.checksums(bucket, kv.Prefix(id[:])); err != nil {
			return err
		}
	}
	return nil
}

// answered checks that an entry of the unanswered calls is about such a call.
func (c *checker) answered(id pool.ID, key, value []byte, mid pool.ID) error {
	if len(key) != 34 {
		c.problem(5, "unanswered", "a key of %d bytes", len(key))
		return nil
	}
	raw, err := c.tx.Get(base.CallBucket, base.CallKey(id, mid, int(binary.BigEndian.Uint16(key[32:]))))
	if err != nil {
		return err
	}
	rec, err := base.DecodeCall(key, raw)
	if err != nil {
		return nil // openCalls reports it
	}
	if rec == nil || !rec.Listed() || !bytes.Equal(base.UnansweredKey(id, rec.Home, int(binary.BigEndian.Uint16(key[32:]))), key) || string(value[16:]) != rec.CallID {
		c.problem(5, fmt.Sprintf("call %s:%d", mid, binary.BigEndian.Uint16(key[32:])+1), "is among the unanswered and does not belong there")
	}
	return nil
}

func (c *checker) checksums(bucket string, r kv.Range) error {
	return c.tx.Scan(bucket, r, func(key, value []byte) error {
		if err := base.Readable(value); err != nil {
			c.problem(3, fmt.Sprintf("%s %x", bucket, key), "is not as it was stored: %v", err)
		}
		return nil
	})
}

// store checks the records that belong to no context.
func (c *checker) store() error {
	zero := kv.Prefix(make([]byte, 16))
	for _, bucket := range []string{base.OperationBucket, base.ToolBucket, base.RuleBucket} {
		if err := c.checksums(bucket, zero); err != nil {
			return err
		}
	}
	if err := cmp.Or(c.checksums(base.TokenBucket, kv.Range{}), c.meta()); err != nil {
		return err
	}
	err := c.tx.Scan(base.SourceBucket, kv.Range{}, func(key, value []byte) error {
		if _, ok := base.ParseSourceNode(value); !ok {
			if err := stored.CheckRecord(value, nil); err != nil {
				c.problem(3, fmt.Sprintf("source %q", key), "is not as it was stored: %v", err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = c.tx.Scan(base.RecentBucket, kv.Range{}, func(key, value []byte) error {
		if len(key) != 24 || len(value) > 0 {
			c.problem(3, "recent", "a key of %d bytes with %d", len(key), len(value))
			return nil
		}
		rec, _, err := base.GetContext(c.tx, pool.ID(key[8:]))
		if err == nil && (rec == nil || uint64(rec.ListedAt()) != binary.BigEndian.Uint64(key)) {
			c.problem(3, "recent", "has the conversation %s at another time than that says", pool.ID(key[8:]))
		}
		return c.passed(err)
	})
	if err != nil {
		return err
	}
	err = c.tx.Scan(base.LabelBucket, kv.Range{}, func(key, _ []byte) error {
		label, id, ok := base.OfLabelKey(key)
		if !ok {
			c.problem(12, "label", "the key %q leads to no conversation", key)
			return nil
		}
		rec, _, err := base.GetContext(c.tx, id)
		if err == nil && (rec == nil || !slices.Contains(rec.Labels, label)) {
			c.problem(12, "label", "%q leads to the conversation %s, which does not have it", label, id)
		}
		return c.passed(err)
	})
	if err != nil {
		return err
	}
	return poolstore.ScanArtifacts(c.tx, pool.Hash{}, func(a pool.ArtifactInfo, err error) error {
		if err != nil {
			c.problem(6, "artifact "+a.SHA256.String(), "%v", err)
		}
		return nil
	})
}

// passed ignores damage that another part of the check reports.
func (c *checker) passed(err error) error {
	var quiet checker
	quiet.report = func(record.Problem) {}
	return quiet.damage(err)
}

func (c *checker) meta() error {
	raw, err := c.tx.Get(base.MetaBucket, base.MetaStore)
	if err != nil {
		return err
	}
	if len(raw) != 16 {
		c.problem(9, "meta", "the store has no id")
	}
	var journal base.ContextRecord
	if _, err := base.GetRecord(c.tx, base.MetaBucket, base.MetaJournal, &journal); err != nil {
		c.problem(7, "meta", "%v", err)
	}
	if _, err := view.StoreSettings(c.tx); err != nil {
		c.problem(3, "meta", "%v", err)
	}
	last, err := lastOperation(c.tx, pool.ID{})
	if err == nil && last >= max(journal.NextOperation, 1) {
		c.problem(7, "meta", "the store's journal goes on at %d and has the operation %d", journal.NextOperation, last)
	}
	current, err2 := c.tx.Get(base.MetaBucket, base.MetaCurrent)
	if err == nil {
		err = err2
	}
	if len(current) == 16 {
		if _, ok := c.parents[pool.ID(current)]; !ok {
			c.problem(3, "meta", "the current conversation %s is not there", pool.ID(current))
		}
	} else if current != nil {
		c.problem(3, "meta", "the current conversation has no id")
	}
	return err
}

// lastOperation returns the highest number on a journal, 0 for none.
func lastOperation(tx kv.Tx, id pool.ID) (uint64, error) {
	var n uint64
	r := kv.Prefix(id[:])
	r.Reverse = true
	err := tx.Scan(base.OperationBucket, r, func(key, _ []byte) error {
		if len(key) == 24 {
			n = binary.BigEndian.Uint64(key[16:])
		}
		return kv.ErrStop
	})
	return n, err
}

// index checks that the search index can be read, and that every document is in it or waits for it.
func (c *checker) index() error {
	st, err := index.Load(c.tx, words.Version)
	if err != nil {
		c.problem(10, "search index", "%v", err)
		return nil
	}
	if st == nil || st.Building {
		return nil // searches read everything
	}
	have := map[index.Doc]bool{}
	if err := index.Check(c.tx, st, func(d index.Doc) { have[d] = true }); err != nil {
		c.problem(10, "search index", "%v", err)
		return nil
	}
	for mid, id := range c.home {
		if !have[find.DocOf(find.MessageDoc, id, mid)] {
			c.problem(10, "message "+mid.String(), "is not in the search index and does not wait for it")
		}
	}
	for id := range c.parents {
		if rec, _, err := base.GetContext(c.tx, id); err == nil && rec != nil && rec.Title != "" && !have[find.DocOf(find.TitleDoc, id, pool.ID{})] {
			c.problem(10, "conversation "+id.String(), "its title is not in the search index and does not wait for it")
		}
	}
	return nil
}
