package care

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

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
