package base

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// ChangeGate changes what the store knows of its gate, and returns ErrDecider if that is not the user's to do. It is on no journal: no undo weakens a gate.
func ChangeGate(ctx context.Context, s *Store, change func(*GateState) error) error {
	return s.Update(ctx, func(tx kv.RwTx) error {
		g, err := GateIn(tx)
		if err == nil {
			err = change(g)
		}
		if err != nil {
			return err
		}
		return PutRecord(tx, MetaBucket, MetaGate, g)
	})
}
