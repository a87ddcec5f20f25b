package kvtest

import (
	"context"
	"sync/atomic"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Reads is an engine that counts the records that its views read, so that a test can say that what is shown costs as much as what is seen, and not as the store
// is large.
type Reads struct {
	kv.DB
	n atomic.Int64
}

// Take gives how many records were read since it was called last.
func (r *Reads) Take() int64 { return r.n.Swap(0) }

// View counts what fn reads.
func (r *Reads) View(ctx context.Context, fn func(kv.Tx) error) error {
	return r.DB.View(ctx, func(tx kv.Tx) error { return fn(readsTx{tx, r}) })
}

type readsTx struct {
	kv.Tx
	of *Reads
}

func (t readsTx) Get(bucket string, key []byte) ([]byte, error) {
	t.of.n.Add(1)
	return t.Tx.Get(bucket, key)
}

func (t readsTx) GetMany(bucket string, keys [][]byte, fn func(int, []byte) error) error {
	t.of.n.Add(int64(len(keys)))
	return t.Tx.GetMany(bucket, keys, fn)
}

func (t readsTx) Scan(bucket string, r kv.Range, fn func(key, value []byte) error) error {
	return t.Tx.Scan(bucket, r, func(key, value []byte) error {
		t.of.n.Add(1)
		return fn(key, value)
	})
}
