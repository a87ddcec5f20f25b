package base

import (
	"bytes"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// Guard returns the record that changes with a range, for engines whose Updates avoid scans (engine.Guarded); nil if there is none. What belongs to a context
// changes with the context's record, what belongs to the store with its journal's. The set of contexts, their parents and the trash also change with that
// journal; their titles may be a moment old, as when they were looked up first, and
// so may be the messages that a part of an id is compared with: of these a few are stored without a change of their context. Token counts are a cache, which is written apart.
func Guard(bucket string, r kv.Range) *kv.Key {
	switch bucket {
	case ContextBucket:
		if len(r.From) == len(pool.ID{}) { // a single record, which each append writes
			return nil
		}
		return &kv.Key{Bucket: MetaBucket, Key: MetaJournal}
	case RuleBucket, SourceBucket, TokenBucket: // they change seldom and are searched across contexts
		return &kv.Key{Bucket: bucket}
	case branchstore.Bucket, branchstore.NameBucket, branchstore.EntryBucket, poolstore.Bucket, UnansweredBucket, QueuedBucket, ToolBucket, TagBucket, MarkBucket, CallIDBucket, OperationBucket, KeyBucket, CountBucket:
		id, is := contextOf(r)
		switch {
		case !is:
			return nil
		case id == pool.ID{}:
			return &kv.Key{Bucket: MetaBucket, Key: MetaJournal}
		}
		return &kv.Key{Bucket: ContextBucket, Key: id[:]}
	case ClaimBucket: // renewed while nothing else changes
		if id, is := contextOf(r); is {
			return &kv.Key{Bucket: ClaimBucket, Key: id[:]}
		}
	}
	return nil
}

// contextOf returns the context that owns all records in a range.
func contextOf(r kv.Range) (id pool.ID, is bool) {
	if len(r.From) < len(id) {
		return id, false
	}
	id = pool.ID(r.From)
	end := kv.Prefix(id[:]).To
	return id, end == nil || r.To != nil && bytes.Compare(r.To, end) <= 0
}
