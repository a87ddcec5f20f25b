package record

import (
	"bytes"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Guard names the record that changes with a range, for an engine whose Updates do without scans (kv.Guarded): what belongs to a context changes with the context's record, what belongs to the
// store with its journal's. Which contexts there are, whose they are and which are in the trash changes with that journal too; their titles may be those of a moment before, as where they were
// looked up first. nil: none.
func Guard(bucket string, r kv.Range) *kv.Key {
	switch bucket {
	case ContextBucket:
		if len(r.From) == len(pool.ID{}) { // one record, which each append writes
			return nil
		}
		return &kv.Key{Bucket: MetaBucket, Key: MetaJournal}
	case RuleBucket, SourceBucket, TokenBucket: // few changes, and looked through across contexts
		return &kv.Key{Bucket: bucket}
	case branch.Bucket, branch.NameBucket, branch.EntryBucket, UnansweredBucket, QueuedBucket, ToolBucket, TagBucket, MarkBucket, CallIDBucket, OperationBucket, KeyBucket:
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

// contextOf is the context whose records a range lies among.
func contextOf(r kv.Range) (id pool.ID, is bool) {
	if len(r.From) < len(id) {
		return id, false
	}
	id = pool.ID(r.From)
	end := kv.Prefix(id[:]).To
	return id, end == nil || r.To != nil && bytes.Compare(r.To, end) <= 0
}
