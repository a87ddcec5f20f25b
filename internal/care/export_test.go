package care

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
)

// FoundBy returns, for each invariant by its name, whether it does not hold somewhere.
func FoundBy(ctx context.Context, s *base.Store) (map[string]bool, error) {
	in := newInspection(s, true, func(record.Problem) {})
	found := map[string]bool{}
	return found, s.DB.View(ctx, func(tx kv.Tx) error {
		in.tx = tx
		if err := findAll(in, storeInvariants, in, found); err != nil {
			return err
		}
		for _, id := range in.ids {
			rec, _, err := base.GetContext(tx, id)
			if err == nil {
				err = findAll(in, conversationInvariants, &conversation{inspection: in, id: id, rec: rec}, found)
			}
			if err != nil {
				return err
			}
		}
		if err := findAll(in, closingInvariants, in, found); err != nil {
			return err
		}
		return findAll(in, searchInvariants, in, found)
	})
}

func findAll[T any](in *inspection, list []invariant[T], of T, found map[string]bool) error {
	for _, v := range list {
		in.faults = nil
		if err := v.find(of); err != nil {
			return err
		}
		found[v.name] = found[v.name] || len(in.faults) > 0
	}
	return nil
}
