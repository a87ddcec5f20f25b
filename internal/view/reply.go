package view

import (
	"context"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// Queued returns the messages that wait for a place on the branch, oldest first.
func Queued(ctx context.Context, c *base.Conversation, branchName string) ([]*pool.Entry, error) {
	var out []*pool.Entry
	err := On(ctx, c, branchName, func(tx kv.Tx, rec *base.ContextRecord, b *branch.Branch) error {
		_, ids, err := QueuedOn(tx, c.ID, b.ID)
		if err != nil {
			return err
		}
		out, err = QueueOf(tx, c.ID, ids)
		return err
	})
	return out, err
}

// Running returns the claim on the branch's reply, nil if there is none. It also returns a dead claim: Settle puts what that left on the branch.
func Running(ctx context.Context, c *base.Conversation, branchName string) (claim *record.Claim, err error) {
	err = On(ctx, c, branchName, func(tx kv.Tx, rec *base.ContextRecord, b *branch.Branch) error {
		claim, err = ClaimOf(tx, c.ID, b.ID)
		return err
	})
	return claim, err
}

// QueueKey names what QueuedOn reads, for kv.Fetch.
func QueueKey(ctx, branchID pool.ID) kv.Key {
	return kv.In(base.QueuedBucket, kv.Prefix(base.Under(ctx, branchID[:]...)))
}

// QueuedOn returns the keys and messages of a branch's queue, oldest first.
func QueuedOn(tx kv.Tx, ctx, branchID pool.ID) (keys [][]byte, ids []pool.ID, err error) {
	err = tx.Scan(base.QueuedBucket, kv.Prefix(base.Under(ctx, branchID[:]...)), func(key, value []byte) error {
		if len(value) != len(pool.ID{}) {
			return base.Damaged("a message in the queue of branch %s has no id", branchID)
		}
		keys, ids = append(keys, slices.Clone(key)), append(ids, pool.ID(value))
		return nil
	})
	return keys, ids, err
}

// QueueOf reads the messages of a queue.
func QueueOf(tx kv.Tx, ctx pool.ID, ids []pool.ID) (out []*pool.Entry, err error) {
	err = poolstore.GetMany(tx, ctx, ids, func(i int, m *pool.Message) error {
		if m == nil {
			return base.Damaged("message %s of the queue is missing", ids[i])
		}
		out = append(out, &pool.Entry{Message: m, Queued: true})
		return nil
	})
	return out, err
}

// Tokens returns the figures of a branch: those that were set, else the last reply's; zero after Clear.
func Tokens(ctx context.Context, c *base.Conversation, branchName string) (branch.Tokens, error) {
	var out branch.Tokens
	err := At(ctx, c, func(tx kv.Tx, rec *base.ContextRecord) error {
		b, err := BranchOf(tx, c.ID, rec, branchName)
		if err != nil {
			return err
		}
		if b.Tokens != nil {
			out = *b.Tokens
			return nil
		}
		out, err = lastTokens(tx, c.ID, b)
		return err
	})
	return out, err
}

// lastTokens returns the figures of the last reply, zero if it has none. It looks back no further than MaxResults messages.
func lastTokens(tx kv.Tx, id pool.ID, b *branch.Branch) (branch.Tokens, error) {
	n := branchstore.Len(b)
	for i := n - 1; i >= max(0, n-MaxResults); i-- {
		at, err := branchstore.IDAt(tx, id, b.Pieces, i)
		if err != nil {
			return branch.Tokens{}, err
		}
		m, err := poolstore.Get(tx, id, at)
		if err != nil {
			return branch.Tokens{}, err
		}
		if m == nil || m.Role != pool.Assistant {
			continue
		}
		var out branch.Tokens
		if m.Meta.InputTokens != nil {
			out.Input = *m.Meta.InputTokens
		}
		if m.Meta.OutputTokens != nil {
			out.Output = *m.Meta.OutputTokens
		}
		return out, nil
	}
	return branch.Tokens{}, nil
}

// LastRequest returns what Finish stored for a provider on the branch, nil for nothing.
func LastRequest(ctx context.Context, c *base.Conversation, branchName, provider string) (raw []byte, err error) {
	err = On(ctx, c, branchName, func(tx kv.Tx, rec *base.ContextRecord, b *branch.Branch) error {
		v, err := tx.Get(base.RequestBucket, append(base.Under(c.ID, b.ID[:]...), provider...))
		raw = slices.Clone(v)
		return err
	})
	return raw, err
}
