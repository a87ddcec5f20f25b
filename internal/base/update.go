package base

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Update runs fn in a writing transaction, as kv.DB.Update does, and once the transaction is stored does what is due after it: what fn registered with
// After, then the search index, then the files that killed programs left. Every change of an open store goes through Update, whichever room makes it; watchers learn of it from the engine.
func (s *Store) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	var tx *changing
	err := s.DB.Update(ctx, func(inner kv.RwTx) error {
		tx = &changing{RwTx: inner, deciding: decidingOf(ctx, s), gate: ctx.Value(gateKey{}) != nil}
		return fn(tx)
	})
	if err != nil || tx == nil {
		return err
	}
	for _, do := range tx.after {
		do()
	}
	if tx.lots > 0 {
		s.Indexing.Feed(ctx, s, tx.lots)
	}
	if s.Unfinished != nil && !s.Format.Older() {
		s.Unfinished()
	}
	s.Sweeping.due()
	return nil
}

// changing is the transaction of an Update, with what is due after it.
type changing struct {
	kv.RwTx
	deciding Deciding
	gate     bool // it is the gate's own
	after    []func()
	lots     int       // as for IndexLot
	gated    []pool.ID // contexts that it knows to be gated
	plain    []pool.ID // and others
}

// Fetch implements what kv.Fetch looks for.
func (c *changing) Fetch(keys []kv.Key) error { return kv.Fetch(c.RwTx, keys...) }

// After has do called once the transaction tx of an Update is stored. A transaction that runs again forgets what its earlier run registered. What is
// written to an overlay is never stored, so do is not called then.
func After(tx kv.RwTx, do func()) {
	if c, is := tx.(*changing); is {
		c.after = append(c.after, do)
	}
}

// IndexLot notes that the transaction stores about another 256 documents for the search index.
func IndexLot(tx kv.RwTx) {
	if c, is := tx.(*changing); is {
		c.lots++
	}
}
