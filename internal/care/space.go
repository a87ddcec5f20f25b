package care

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// SpaceByContext returns the space of each context, the largest first. It reads all keys of the store, a context in each transaction.
func SpaceByContext(ctx context.Context, s *base.Store) ([]*record.ContextSpace, error) {
	ids, err := view.Recent(ctx, s)
	if err != nil {
		return nil, err
	}
	var out []*record.ContextSpace
	for _, id := range ids {
		var one *record.ContextSpace
		err := s.DB.View(ctx, func(tx kv.Tx) (err error) {
			one, err = spaceOf(tx, id)
			return err
		})
		if err != nil {
			return nil, err
		}
		if one != nil {
			out = append(out, one)
		}
	}
	slices.SortStableFunc(out, func(a, b *record.ContextSpace) int { return int(b.Bytes + b.ArtifactBytes - a.Bytes - a.ArtifactBytes) })
	return out, nil
}

func spaceOf(tx kv.Tx, id pool.ID) (*record.ContextSpace, error) {
	rec, raw, err := base.GetContext(tx, id)
	if rec == nil || err != nil {
		return nil, err
	}
	out := &record.ContextSpace{ID: id, Title: rec.Title, Trashed: rec.Trashed, Messages: int(rec.Messages), Bytes: int64(len(id) + len(raw))}
	for _, bucket := range OwnBuckets {
		var bytes int64
		err := tx.Scan(bucket, kv.Prefix(id[:]), func(key, value []byte) error {
			bytes += int64(len(key) + len(value))
			return nil
		})
		if err != nil {
			return nil, err
		}
		out.Bytes += bytes
		switch bucket {
		case poolstore.Bucket:
			out.MessageBytes = bytes
		case base.OperationBucket:
			out.OperationBytes = bytes
		}
	}
	out.ArtifactBytes, err = artifactBytes(tx, id)
	return out, err
}

func artifactBytes(tx kv.Tx, id pool.ID) (int64, error) {
	used := &usedArtifacts{hashes: map[pool.Hash]bool{}, seen: map[pool.ID]pool.Time{}}
	if err := used.context(tx, id); err != nil {
		return 0, err
	}
	var n int64
	for h := range used.hashes {
		info, err := poolstore.StatArtifact(tx, h)
		if err != nil {
			return 0, err
		}
		n += info.Size
	}
	return n, nil
}

// unlimited is the age that fitting begins with if no other is given.
const unlimited = 365 * 24 * time.Hour

// fitting returns the largest age at which GC leaves at most o.MaxSize in use, by halving o.OlderThan, or else the shortest age, a minute. If no more is in
// use already, that is o.OlderThan, zero too.
func fitting(ctx context.Context, s *base.Store, o record.GCOptions) (time.Duration, error) {
	k, ok := s.Engine.(kv.Sized)
	if !ok || o.MaxSize <= 0 {
		return o.OlderThan, nil
	}
	space, err := k.Space(ctx)
	if err != nil || space.Used <= o.MaxSize {
		return o.OlderThan, err
	}
	o.OlderThan = cmp.Or(o.OlderThan, unlimited)
	o.OlderThan = max(o.OlderThan, time.Minute)
	for {
		var took *record.Collected
		err := Trial(s, func(trial *base.Store) (err error) { took, err = collect(ctx, trial, o); return err })
		if err != nil || space.Used-took.Bytes <= o.MaxSize || o.OlderThan == time.Minute {
			return o.OlderThan, err
		}
		o.OlderThan = max(o.OlderThan/2, time.Minute)
	}
}
