package view

import (
	"bytes"
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/pool"
	"github.com/google/uuid"
)

// ClaimOf reads the claim on a branch's reply, nil if there is none.
func ClaimOf(tx kv.Tx, ctx, branchID pool.ID) (*record.Claim, error) {
	c := &record.Claim{}
	ok, err := base.GetRecord(tx, base.ClaimBucket, base.Under(ctx, branchID[:]...), c)
	if !ok {
		return nil, err
	}
	return c, nil
}

// Find resolves a reference to a context in a transaction of its own.
func Find(ctx context.Context, s *base.Store, ref string) (id pool.ID, err error) {
	err = s.DB.View(ctx, func(tx kv.Tx) error {
		id, err = ResolveContext(s, tx, ref)
		return err
	})
	return id, err
}

// InLane makes the Updates under ctx queue with other Updates of the same context, if the engine is a server's. It also replaces the reference by the
// context's full id, so that the Update need not look it up.
func InLane(ctx context.Context, s *base.Store, ref string) (context.Context, string, error) {
	if s.User == "" {
		return ctx, ref, nil
	}
	id, err := uuid.Parse(ref)
	if err != nil || len(ref) != 36 {
		if id, err = Find(ctx, s, ref); err != nil {
			return ctx, ref, err
		}
		ref = id.String()
	}
	return Lane(ctx, s, id), ref, nil
}

// Lane makes the Updates under ctx queue with other Updates of the same context, if the engine is a server's. The zero id stands for the store itself.
func Lane(ctx context.Context, s *base.Store, id pool.ID) context.Context {
	if s.User == "" {
		return ctx
	}
	return engine.WithLane(ctx, id.String())
}

// Together fetches the record of a context, that of the branch on which this person is, if a Place knows it, and more records, in one trip.
func Together(s *base.Store, tx kv.Tx, id pool.ID, more ...kv.Key) error {
	keys := append(more, kv.Key{Bucket: base.ContextBucket, Key: id[:]})
	if s.Place != nil {
		on, err := s.Place.Branch(id)
		if err != nil {
			return err
		}
		if on != (pool.ID{}) {
			keys = append(keys, kv.Key{Bucket: branchstore.Bucket, Key: branchstore.Key(id, on)})
		}
	}
	return kv.Fetch(tx, keys...)
}

// At runs fn in a short reading transaction with the context's record. It fetches the records in with along with that one.
func At(ctx context.Context, c *base.Conversation, fn func(kv.Tx, *base.ContextRecord) error, with ...kv.Key) error {
	return c.Store.DB.View(ctx, func(tx kv.Tx) error {
		if err := Together(c.Store, tx, c.ID, with...); err != nil {
			return err
		}
		rec, _, err := base.GetContext(tx, c.ID)
		if err != nil {
			return err
		}
		if rec == nil {
			return base.Gone(c.ID)
		}
		if err := c.Store.Placed(c.ID, rec); err != nil {
			return err
		}
		return fn(tx, rec)
	})
}

// On is At for a branch of the context; "" means the active one.
func On(ctx context.Context, c *base.Conversation, branchName string, fn func(kv.Tx, *base.ContextRecord, *branch.Branch) error, with ...kv.Key) error {
	return At(ctx, c, func(tx kv.Tx, rec *base.ContextRecord) error {
		b, err := BranchOf(tx, c.ID, rec, branchName)
		if err != nil {
			return err
		}
		return fn(tx, rec, b)
	}, append(BranchKeys(c.ID, branchName), with...)...)
}

// Recent returns the ids of all contexts, the last changed first.
func Recent(ctx context.Context, s *base.Store) ([]pool.ID, error) {
	return RecentIn(ctx, s, kv.Range{})
}

// RecentPage returns at most so many keys of the bucket recent within a range, the last changed first.
func RecentPage(ctx context.Context, s *base.Store, within kv.Range, most int) ([][]byte, error) {
	var keys [][]byte
	within.Reverse = true
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		keys = keys[:0]
		return tx.Scan(base.RecentBucket, within, func(key, _ []byte) error {
			if len(keys) == most {
				return kv.ErrStop
			}
			keys = append(keys, bytes.Clone(key))
			return nil
		})
	})
	return keys, err
}

// IDsOf returns the contexts of keys of the bucket recent.
func IDsOf(keys [][]byte) []pool.ID {
	ids := make([]pool.ID, len(keys))
	for i, key := range keys {
		ids[i] = pool.ID(key[8:])
	}
	return ids
}

// RecentIn returns the ids of the contexts whose keys in the bucket recent lie in a range, the last changed first.
func RecentIn(ctx context.Context, s *base.Store, within kv.Range) ([]pool.ID, error) {
	var ids []pool.ID
	within.Reverse = true
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		ids = ids[:0]
		return tx.Scan(base.RecentBucket, within, func(key, _ []byte) error {
			ids = append(ids, pool.ID(key[8:]))
			return nil
		})
	})
	return ids, err
}

// BranchInfo describes a branch.
type BranchInfo struct {
	branch.Branch
	From       string // the name of the branch that it was forked from; "" if it is no fork or that branch is gone
	Active     bool
	Messages   int
	Turns      int
	Head       pool.ID // zero if the branch is empty
	SystemText string
	PromptText string
}

// DescribeBranch reads what BranchInfo has beside the branch's record.
func DescribeBranch(tx kv.Tx, id pool.ID, rec *base.ContextRecord, b *branch.Branch) (*BranchInfo, error) {
	info := &BranchInfo{Branch: *b, Active: b.ID == rec.Active, Messages: branchstore.Len(b)}
	if err := kv.Fetch(tx, DescribedKeys(id, b)...); err != nil {
		return nil, err
	}
	from, err := branchstore.Get(tx, id, b.From)
	if err != nil {
		return nil, err
	}
	if from != nil && from.Removed == 0 {
		info.From = from.Name
	}
	if info.Head, err = branchstore.Head(tx, id, b.Pieces); err != nil {
		return nil, err
	}
	if info.Turns, err = branchstore.Turns(tx, id, b.Pieces, info.Messages); err != nil {
		return nil, err
	}
	if info.SystemText, err = branchstore.Prompt(tx, id, b.System); err != nil {
		return nil, err
	}
	info.PromptText, err = branchstore.Prompt(tx, id, b.Prompt)
	return info, err
}

// DescribedKeys names what DescribeBranch reads, for kv.Fetch.
func DescribedKeys(id pool.ID, b *branch.Branch) []kv.Key {
	keys := []kv.Key{{Bucket: branchstore.Bucket, Key: branchstore.Key(id, b.From)}}
	keys = append(keys, branchstore.EntryKeys(id, b.Pieces, branchstore.Len(b)-1)...)
	keys = append(keys, branchstore.TurnKeys(id, b.Pieces, branchstore.Len(b))...)
	return append(keys, branchstore.PromptKeys(id, b.System, b.Prompt)...)
}

// BranchInfos describes the branches of a context in the order of sortBranches.
func BranchInfos(tx kv.Tx, id pool.ID, rec *base.ContextRecord) ([]*BranchInfo, error) {
	var all []*branch.Branch
	var keys []kv.Key
	err := branchstore.List(tx, id, func(b *branch.Branch) error {
		all, keys = append(all, b), append(keys, DescribedKeys(id, b)...)
		return nil
	})
	if err == nil {
		err = kv.Fetch(tx, keys...)
	}
	if err != nil {
		return nil, err
	}
	var out []*BranchInfo
	for _, b := range all {
		info, err := DescribeBranch(tx, id, rec, b)
		if err != nil {
			return nil, err
		}
		out = append(out, info)
	}
	sortBranches(out)
	return out, nil
}

// BranchOf finds a branch by its name or id; "" means the active branch.
func BranchOf(tx kv.Tx, id pool.ID, rec *base.ContextRecord, name string) (*branch.Branch, error) {
	if name == "" {
		return ActiveBranch(tx, id, rec)
	}
	var b *branch.Branch
	var err error
	if on, is := AsBranchID(name); is {
		b, err = branchstore.Get(tx, id, on)
	}
	if b == nil && err == nil {
		b, err = branchstore.Find(tx, id, name)
	}
	if err == nil && (b == nil || b.Removed != 0) {
		return nil, base.NotFound("branch", name)
	}
	return b, err
}

// AsBranchID reads a branch's name as an id. A branch of that id comes before one that is called so.
func AsBranchID(name string) (pool.ID, bool) {
	id, err := uuid.Parse(name)
	return id, err == nil && len(name) == 36
}

// BranchKeys names what is read to find a branch by its name or id, for kv.Fetch. To look for an id among the names too would meet, on a server, whoever puts a record beside where it is not.
func BranchKeys(id pool.ID, name string) []kv.Key {
	if on, is := AsBranchID(name); is {
		return []kv.Key{{Bucket: branchstore.Bucket, Key: branchstore.Key(id, on)}}
	}
	return branchstore.NameKeys(id, name)
}

// ActiveBranch returns the branch that rec has as the active one. If that is a removed branch on which this person was, it returns *base.PlaceLost.
func ActiveBranch(tx kv.Tx, id pool.ID, rec *base.ContextRecord) (*branch.Branch, error) {
	b, err := branchstore.Get(tx, id, rec.Active)
	if err == nil && b != nil && b.Removed != 0 { // only if a person was on it: a context's own active branch is never removed
		err = &base.PlaceLost{Title: rec.Title, Branch: b.Name}
	} else if err == nil && b == nil {
		err = base.Damaged("the active branch of conversation %s is not there: chatctx repair", id)
	}
	return b, err
}

// Places returns the settings of the store, the context and the branch, the widest first.
func Places(tx kv.Tx, rec *base.ContextRecord, b *branch.Branch) ([]map[string]json.RawMessage, error) {
	store, err := StoreSettings(tx)
	return []map[string]json.RawMessage{store, rec.Settings, b.Settings}, err
}

// Effective returns the settings in force on a branch.
func Effective(tx kv.Tx, rec *base.ContextRecord, b *branch.Branch) (map[string]json.RawMessage, error) {
	places, err := Places(tx, rec, b)
	if err != nil {
		return nil, err
	}
	return settings.InForce(places...), nil
}

// MarksKey names what Marks reads, for kv.Fetch.
func MarksKey(id pool.ID) kv.Key { return kv.In(base.MarkBucket, kv.Prefix(id[:])) }

// Marks returns the marks of a context's messages.
func Marks(tx kv.Tx, id pool.ID) (map[pool.ID]string, error) {
	out := map[pool.ID]string{}
	err := tx.Scan(base.MarkBucket, kv.Prefix(id[:]), func(key, value []byte) error {
		out[pool.ID(key[16:])] = string(value)
		return nil
	})
	return out, err
}

// KeysWith returns copies of the keys with a prefix.
func KeysWith(tx kv.Tx, bucket string, prefix []byte) ([][]byte, error) {
	var keys [][]byte
	err := tx.Scan(bucket, kv.Prefix(prefix), func(key, _ []byte) error {
		keys = append(keys, bytes.Clone(key))
		return nil
	})
	return keys, err
}

// StoreSettings returns the settings of the store.
func StoreSettings(tx kv.Tx) (map[string]json.RawMessage, error) {
	out := map[string]json.RawMessage{}
	_, err := base.GetRecord(tx, base.MetaBucket, base.MetaSettings, &out)
	return out, err
}

// SettingsKey names the record that StoreSettings reads.
var SettingsKey = kv.Key{Bucket: base.MetaBucket, Key: base.MetaSettings}

// ChangeSettings returns the settings of a context or a branch with the ones in set changed, and those that go along with these. It reports whether anything changed.
func ChangeSettings(have, set map[string]json.RawMessage) (map[string]json.RawMessage, bool, error) {
	for name, value := range set {
		if settings.IsOfStore(name) && string(value) != "null" {
			return nil, false, base.Invalidf("only the store can have the setting %s", name)
		}
	}
	return ChangeStoreSettings(have, set)
}

// ChangeStoreSettings is ChangeSettings for the store's own.
func ChangeStoreSettings(have, set map[string]json.RawMessage) (map[string]json.RawMessage, bool, error) {
	if err := settings.CheckAll(set); err != nil {
		return nil, false, base.Invalidf("%v", err)
	}
	return MergeValues(have, settings.Complete(have, set))
}

// MergeValues returns values with the ones in set changed; null removes a key. It reports whether anything changed.
func MergeValues(have, set map[string]json.RawMessage) (map[string]json.RawMessage, bool, error) {
	out := make(map[string]json.RawMessage, len(have)+len(set))
	for k, v := range have {
		out[k] = v
	}
	changed := false
	for k, v := range set {
		if err := base.CheckValue(k, v); err != nil {
			return nil, false, err
		}
		if string(v) == "null" {
			_, had := out[k]
			changed = changed || had
			delete(out, k)
			continue
		}
		if utf8.Valid(v) { // strict readers take only whole values; bytes that are no text are refused
			v, _ = jsontree.Whole(v)
		}
		changed = changed || !bytes.Equal(out[k], v)
		out[k] = bytes.Clone(v)
	}
	if len(out) == 0 {
		out = nil
	}
	return out, changed, nil
}
