package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/view"
)

// Replaced is the Kind of a Change that is no operation: another file was put in the place of this one, as restore-from does, and the context or store is
// in some earlier state.
const Replaced = view.Replaced

// Watch reports changes, also those of other processes, within 300 ms; those of one context in the order in which they were made. The channel is closed
// when ctx ends or the store is closed; changes that nobody has read by then are lost.
func (s *Store) Watch(ctx context.Context) (<-chan record.Change, error) {
	return view.Watch(ctx, s.at())
}
