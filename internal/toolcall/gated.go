package toolcall

import (
	"bytes"
	"context"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/pool"
)

// Gated is a call that an agent's hook brought, or that ran without it.
type Gated struct {
	Context, Message pool.ID
	Index            int // from 1
	*record.CallRecord
}

// Ref returns the call's name.
func (g *Gated) Ref() record.CallRef { return record.CallRefTo(g.Message, g.Index) }

// GatedCalls returns all calls that agents' hooks brought and that want takes, conversation by conversation.
func GatedCalls(ctx context.Context, s *base.Store, want func(*record.CallRecord) bool) (all []*Gated, err error) {
	err = s.DB.View(ctx, func(tx kv.Tx) error {
		return tx.Scan(base.CallBucket, kv.Range{}, func(key, value []byte) error {
			rec, err := base.DecodeCall(bytes.Clone(key), value)
			if err != nil || rec == nil || rec.Gate == nil || !want(rec) {
				return err
			}
			message, index := base.CallOfKey(slices.Clone(key))
			all = append(all, &Gated{pool.ID(key[:16]), message, index + 1, rec})
			return nil
		})
	})
	return all, err
}
