package kvtest

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Twice is an engine that runs the function of each Update a first time for nothing, as one that commits in groups or runs again does: a function with an effect that a second run does not
// replace shows.
type Twice struct{ kv.DB }

// Update runs fn, takes back what it did, and runs it again.
func (t Twice) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	_ = t.View(ctx, func(tx kv.Tx) error { return fn(kv.Overlay(tx)) })
	return t.DB.Update(ctx, fn)
}
