package care

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
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

func findDoubt(in *inspection) error {
	doubt, err := in.tx.Get(base.MetaBucket, base.MetaDoubt)
	if doubt != nil {
		in.fault(0, DoubtPlace, "%s", base.DoubtText)
	}
	return err
}

// mendDoubt ends the warning that the newest change may be lost: nothing can bring that back.
func mendDoubt(in *inspection, _ []fault) error {
	in.say(0, DoubtPlace, "is as the file has it; the warning ends")
	return endDoubt(in.rw)
}

func findFormat(in *inspection) error {
	if err := base.CheckFormat(in.tx); err != nil {
		in.fault(9, "meta", "%v", err)
	}
	return nil
}

// findConversations lists the conversations.
func findConversations(in *inspection) error {
	in.ids, in.known = nil, map[pool.ID]bool{}
	return in.tx.Scan(base.ContextBucket, kv.Range{}, func(key, value []byte) error {
		if len(key) != len(pool.ID{}) {
			in.fault(0, "context", "a key of %d bytes", len(key)).causedBy(base.ContextBucket, key)
			return nil
		}
		id := pool.ID(key)
		in.known[id] = true
		if _, err := base.DecodeContext(id, value); err != nil {
			in.fault(0, "conversation "+id.String(), "%v", err).key = id[:]
			return nil
		}
		in.ids = append(in.ids, id)
		return nil
	})
}

func mendConversations(in *inspection, found []fault) error {
	for _, f := range found {
		if f.bucket == "" {
			if err := in.recover(pool.ID(f.key)); err != nil {
				return err
			}
		}
	}
	return removeFound(in, found)
}

// recover gives a conversation a new record. Its counts and its active branch follow.
func (in *inspection) recover(id pool.ID) error {
	in.say(3, "conversation "+id.String(), "has no record that can be read: it gets one with the title Recovered; settings and app data are lost")
	in.ids, in.known[id] = append(in.ids, id), true
	now := in.store.Now()
	return base.PutRecord(in.rw, base.ContextBucket, id[:], &base.ContextRecord{Title: "Recovered " + record.Short(id), Created: now, Updated: now})
}

// findStrays finds records of missing conversations. It reads one record for each conversation.
func findStrays(in *inspection) error {
	in.known[pool.ID{}] = true // what belongs to the store
	for _, bucket := range OwnBuckets {
		err := eachOwner(in.tx, bucket, func(id []byte) {
			if len(id) < len(pool.ID{}) || !in.known[pool.ID(id)] {
				in.fault(3, fmt.Sprintf("%s %x", bucket, id), "belongs to a conversation that is not there").causedBy(bucket, id)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// mendStrays brings messages home, gives a record to a conversation that has messages or branches, and removes what else belongs to none.
func mendStrays(in *inspection, found []fault) error {
	home := slices.Clone(in.ids)
	for _, f := range found {
		var err error
		switch {
		case len(f.key) < len(pool.ID{}):
			err = removeFound(in, []fault{f})
		case !in.known[pool.ID(f.key)]:
			err = in.adopt(pool.ID(f.key), home)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// adopt does what mendStrays says for the records under one id.
func (in *inspection) adopt(id pool.ID, home []pool.ID) error {
	messages, err := view.KeysWith(in.tx, poolstore.Bucket, id[:])
	if err != nil {
		return err
	}
	for _, key := range messages {
		if err := in.bringHome(key, home); err != nil {
			return err
		}
	}
	for _, bucket := range []string{poolstore.Bucket, branchstore.Bucket} {
		if keys, err := view.KeysWith(in.tx, bucket, id[:]); err != nil {
			return err
		} else if len(keys) > 0 {
			return in.recover(id)
		}
	}
	for _, bucket := range OwnBuckets {
		keys, err := view.KeysWith(in.tx, bucket, id[:])
		if err != nil {
			return err
		}
		for _, key := range keys {
			in.say(3, fmt.Sprintf("%s %x", bucket, key), "belongs to a conversation that is not there: it is removed")
			if err := in.rw.Delete(bucket, key); err != nil {
				return err
			}
		}
	}
	return nil
}

// bringHome moves a message to the conversation that lacks it, or removes it where a conversation has it.
func (in *inspection) bringHome(key []byte, home []pool.ID) error {
	value, err := in.tx.Get(poolstore.Bucket, key)
	if err != nil || len(key) != 32 {
		return err
	}
	m := &pool.Message{ID: pool.ID(key[16:])}
	if poolstore.Decode(value, m) != nil {
		return nil
	}
	for _, id := range home {
		has, err := poolstore.Has(in.tx, id, m.ID)
		if err != nil {
			return err
		}
		if has {
			in.say(4, "message "+m.ID.String(), "is in the conversation %s, and once more under one that is not there: that one is removed", id)
			return in.rw.Delete(poolstore.Bucket, key)
		}
	}
	for _, id := range home {
		entry, err := in.tx.Get(branchstore.EntryBucket, branchstore.EntryKey(id, m.Home.Segment, m.Home.Position))
		if err != nil {
			return err
		}
		if len(entry) < 17 || pool.ID(entry[:16]) != m.ID {
			continue
		}
		in.say(1, "message "+m.ID.String(), "is put back into the conversation %s, which lacks it", id)
		if err := in.rw.Put(poolstore.Bucket, base.Under(id, m.ID[:]...), slices.Clone(value)); err != nil {
			return err
		}
		return in.rw.Delete(poolstore.Bucket, key)
	}
	return nil
}

// list is a bucket that has a key for some of the conversations, which ends with the conversation's id, and no values.
type list struct {
	number  int
	bucket  string
	keys    func(rec *base.ContextRecord, id pool.ID) [][]byte
	missing func(key []byte) string // what is wrong where the key of a conversation is missing
	stray   func(key []byte) string // what is wrong with a key that is not wanted
	put     string
}

var recentList = &list{3, base.RecentBucket,
	func(rec *base.ContextRecord, id pool.ID) [][]byte {
		return [][]byte{base.RecentKey(rec.ListedAt(), id)}
	},
	func([]byte) string { return "is not in the list of recent conversations" },
	func(key []byte) string {
		if len(key) != 24 {
			return fmt.Sprintf("a key of %d bytes", len(key))
		}
		return fmt.Sprintf("has the conversation %s at another time than that says", pool.ID(key[8:]))
	}, "is put on the list"}

var labelList = &list{12, base.LabelBucket,
	func(rec *base.ContextRecord, id pool.ID) (keys [][]byte) {
		for _, l := range rec.Labels {
			keys = append(keys, base.LabelKey(l, id))
		}
		return keys
	},
	func(key []byte) string {
		label, _, _ := base.OfLabelKey(key)
		return fmt.Sprintf("is not found by its label %q", label)
	},
	func(key []byte) string {
		label, id, ok := base.OfLabelKey(key)
		if !ok {
			return fmt.Sprintf("the key %q leads to no conversation", key)
		}
		return fmt.Sprintf("%q leads to the conversation %s, which does not have it", label, id)
	}, "is found by its label again"}

func (l *list) invariant(name string) invariant[*inspection] {
	return invariant[*inspection]{name, l.find, l.mend}
}

func (l *list) find(in *inspection) error {
	want, damaged := map[string]bool{}, map[string]bool{}
	err := in.tx.Scan(base.ContextBucket, kv.Range{}, func(key, value []byte) error {
		if len(key) != len(pool.ID{}) {
			return nil
		}
		rec, err := base.DecodeContext(pool.ID(key), value)
		if err != nil {
			damaged[string(key)] = true
			return nil
		}
		for _, key := range l.keys(rec, pool.ID(key)) {
			want[string(key)] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = in.tx.Scan(l.bucket, kv.Range{}, func(key, value []byte) error {
		if want[string(key)] && len(value) == 0 {
			delete(want, string(key))
		} else if !want[string(key)] && !damaged[string(key[max(len(key)-16, 0):])] {
			in.fault(l.number, l.bucket, "%s", l.stray(key)).causedBy(l.bucket, key)
		}
		return nil
	})
	for _, key := range slices.Sorted(maps.Keys(want)) {
		in.fault(l.number, "conversation "+pool.ID([]byte(key[len(key)-16:])).String(), "%s", l.missing([]byte(key))).key = []byte(key)
	}
	return err
}

func (l *list) mend(in *inspection, found []fault) error {
	for _, f := range found {
		if f.bucket != "" {
			continue
		}
		in.say(l.number, f.Where, "%s", l.put)
		if err := in.rw.Put(l.bucket, f.key, []byte{}); err != nil {
			return err
		}
	}
	return removeFound(in, found)
}

// findOpen finds open calls in the list that are not open any more. Those of a conversation that the list lacks are found with the conversation.
func findOpen(in *inspection) error {
	return in.tx.Scan(base.OpenBucket, kv.Range{}, func(key, _ []byte) error {
		if len(key) != 42 {
			in.fault(5, "open", "a key of %d bytes", len(key)).causedBy(base.OpenBucket, key)
			return nil
		}
		raw, err := in.tx.Get(base.CallBucket, key[8:])
		if err != nil {
			return err
		}
		message, index := base.CallOfKey(key[8:])
		if rec, err := base.DecodeCall(key[8:], raw); rec == nil && err == nil {
			in.fault(5, callName(message, index), "is listed as open and has no record").causedBy(base.OpenBucket, key)
		} else if err == nil && string(base.OpenKey(rec, pool.ID(key[8:]), message, index)) != string(key) {
			in.fault(5, callName(message, index), "is listed as open at another time than that says").causedBy(base.OpenBucket, key)
		}
		return nil
	})
}

// recordKinds has the records of a conversation, or of the store, that nothing but their checksum vouches for, and the lengths of their keys, 0 for any.
var recordKinds = []struct {
	bucket string
	length int
	into   func() any
}{
	{base.OperationBucket, 24, func() any { return &base.Operation{} }},
	{base.ClaimBucket, 0, func() any { return &map[uint64]any{} }},
	{base.KeyBucket, 0, func() any { return &map[uint64]any{} }},
	{base.ToolBucket, 0, func() any { return &record.Tool{} }},
	{base.RuleBucket, 0, func() any { return &record.Rule{} }},
}

// findRecords finds the records under an id that are not as they were stored.
func (in *inspection) findRecords(id pool.ID) error {
	for _, kind := range recordKinds {
		err := in.tx.Scan(kind.bucket, kv.Prefix(id[:]), func(key, value []byte) error {
			if kind.length != 0 && len(key) != kind.length {
				in.fault(3, fmt.Sprintf("%s %x", kind.bucket, key), "has a key of %d bytes", len(key)).causedBy(kind.bucket, key)
				return nil
			}
			in.readable(kind.bucket, fmt.Sprintf("%s %x", kind.bucket, key), key, value, kind.into())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readable reports a record that is not as it was stored.
func (in *inspection) readable(bucket, where string, key, value []byte, into any) {
	err := stored.CheckRecord(value, nil)
	if err == nil {
		err = stored.Unmarshal(value, into)
	}
	if err != nil {
		in.fault(3, where, "is not as it was stored: %v", err).causedBy(bucket, key)
	}
}

func findStoreRecords(in *inspection) error {
	if err := in.findRecords(pool.ID{}); err != nil {
		return err
	}
	err := in.tx.Scan(base.TokenBucket, kv.Range{}, func(key, value []byte) error {
		in.readable(base.TokenBucket, fmt.Sprintf("token %x", key), key, value, &map[uint64]any{})
		return nil
	})
	if err != nil {
		return err
	}
	return in.tx.Scan(base.SourceBucket, kv.Range{}, func(key, value []byte) error {
		if _, ok := base.ParseSourceNode(value); !ok {
			in.readable(base.SourceBucket, fmt.Sprintf("source %q", key), key, value, &map[uint64]any{})
		}
		return nil
	})
}

func findStoreID(in *inspection) error {
	raw, err := in.tx.Get(base.MetaBucket, base.MetaStore)
	if err == nil && len(raw) != len(pool.ID{}) {
		in.fault(9, "meta", "the store has no id")
	}
	return err
}

func mendStoreID(in *inspection, _ []fault) error {
	in.say(9, "meta", "the store gets a new id")
	id := pool.NewID()
	return in.rw.Put(base.MetaBucket, base.MetaStore, id[:])
}

func findSettings(in *inspection) error {
	_, err := view.StoreSettings(in.tx)
	if !errors.Is(err, kv.ErrDamaged) {
		return err
	}
	in.fault(3, "meta", "the settings of the store cannot be read: %v", err).causedBy(base.MetaBucket, base.MetaSettings).then = "they are removed"
	return nil
}

const noneCurrent = "none is current now"

func findCurrent(in *inspection) error {
	current, err := in.tx.Get(base.MetaBucket, base.MetaCurrent)
	if current == nil || err != nil {
		return err
	}
	if len(current) != len(pool.ID{}) {
		in.fault(3, "meta", "the current conversation has no id").causedBy(base.MetaBucket, base.MetaCurrent).then = noneCurrent
		return nil
	}
	rec, err := in.tx.Get(base.ContextBucket, current)
	if err == nil && rec == nil {
		in.fault(3, "meta", "the current conversation %s is not there", pool.ID(current)).causedBy(base.MetaBucket, base.MetaCurrent).then = noneCurrent
	}
	return err
}

func findStoreJournal(in *inspection) error {
	var rec base.ContextRecord
	if _, err := base.GetRecord(in.tx, base.MetaBucket, base.MetaJournal, &rec); errors.Is(err, kv.ErrDamaged) {
		in.fault(7, "meta", "%v", err)
		return nil
	} else if err != nil {
		return err
	}
	last, err := lastOperation(in.tx, pool.ID{})
	if err == nil && last >= max(rec.NextOperation, 1) {
		in.fault(7, "meta", "the store's journal goes on at %d and has the operation %d", rec.NextOperation, last)
	}
	return err
}

func mendStoreJournal(in *inspection, _ []fault) error {
	var rec base.ContextRecord
	if _, err := base.GetRecord(in.tx, base.MetaBucket, base.MetaJournal, &rec); err != nil {
		rec = base.ContextRecord{}
	}
	last, err := lastOperation(in.tx, pool.ID{})
	if err != nil {
		return err
	}
	in.say(7, "meta", "the store's journal goes on after operation %d", last)
	rec.NextOperation = last + 1
	return base.PutRecord(in.rw, base.MetaBucket, base.MetaJournal, &rec)
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

// searchInvariants are about the search index, which is made anew where one does not hold.
var searchInvariants = []invariant[*inspection]{{"the search index has each message and title, or they wait for it", findUnindexed, nil}}

func findUnindexed(in *inspection) error {
	have := map[index.Doc]bool{}
	st, err := index.Load(in.tx, words.Version)
	if err == nil {
		if st == nil || st.Building {
			return nil // searches read everything
		}
		err = index.Check(in.tx, st, func(d index.Doc) { have[d] = true })
	}
	if err != nil {
		in.fault(10, "search index", "%v", err)
		return nil
	}
	for mid, id := range in.homes {
		if !have[find.DocOf(find.MessageDoc, id, mid)] {
			in.fault(10, "message "+mid.String(), "is not in the search index and does not wait for it")
		}
	}
	for id := range in.known {
		if rec, _, err := base.GetContext(in.tx, id); err == nil && rec != nil && rec.Title != "" && !have[find.DocOf(find.TitleDoc, id, pool.ID{})] {
			in.fault(10, "conversation "+id.String(), "its title is not in the search index and does not wait for it")
		}
	}
	return nil
}
