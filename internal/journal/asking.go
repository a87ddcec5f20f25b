package journal

import (
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// askingKey is the key of the claim of a question apart from the conversation, and of what its answer took so far, by the id of the record that is to have it.
func askingKey(ctx, id pool.ID) []byte { return append(base.Under(ctx, id[:]...), 0) }

// KeepAsking stores what an answer apart from the conversation took so far, as the record of a message, and renews the claim of the program that asked. A nil
// record leaves what is stored. Without a claim it does nothing unless begin is set: the question ended already.
func (t *Txn) KeepAsking(id pool.ID, took []byte, begin bool) error {
	key, claim := askingKey(t.ID, id), t.Store.NewClaim()
	if !begin {
		if ok, err := base.GetRecord(t.Tx, base.ClaimBucket, key, claim); !ok || err != nil {
			return err
		}
	}
	base.Renew(claim, t.Now)
	if err := base.PutRecord(t.Tx, base.ClaimBucket, key, claim); err != nil || took == nil {
		return err
	}
	return t.Tx.Put(base.PartialBucket, key, took)
}

// EndAsking removes the claim of a question, and what its answer took so far.
func (t *Txn) EndAsking(id pool.ID) error {
	key := askingKey(t.ID, id)
	if err := t.Tx.Delete(base.PartialBucket, key); err != nil {
		return err
	}
	return t.Tx.Delete(base.ClaimBucket, key)
}

// DeadAskings finds the questions whose program has died.
func DeadAskings(tx kv.Tx, ctx pool.ID, now pool.Time) (ids []pool.ID, err error) {
	err = tx.Scan(base.ClaimBucket, kv.Prefix(ctx[:]), func(key, value []byte) error {
		if len(key) != len(askingKey(ctx, ctx)) {
			return nil // a branch's or a call's
		}
		claim := &record.Claim{}
		if err := stored.Unmarshal(value, claim); err != nil {
			return base.Damaged("the claim %x: %v", key, err)
		}
		if base.Dead(claim, now) {
			ids = append(ids, pool.ID(key[len(ctx):]))
		}
		return nil
	})
	return ids, err
}

// SettleAskings puts what the answers to questions of dead programs took into the pool.
func (t *Txn) SettleAskings() error {
	ids, err := DeadAskings(t.Tx, t.ID, t.Now)
	for _, id := range ids {
		if err == nil {
			err = t.settleAsking(id)
		}
	}
	return err
}

func (t *Txn) settleAsking(id pool.ID) error {
	raw, err := t.Tx.Get(base.PartialBucket, askingKey(t.ID, id))
	if err != nil {
		return err
	}
	if raw == nil {
		return t.EndAsking(id)
	}
	m := &pool.Message{}
	if err := poolstore.Decode(raw, m); err != nil {
		return err
	}
	return t.StoreLoose(m)
}
