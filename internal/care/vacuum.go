package care

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/engine"
)

// Vacuum rewrites the file without free space, and finishes a purge that was cut short. Other programs wait or go on with the new file. It returns
// ErrInvalid if the engine keeps no file.
func Vacuum(ctx context.Context, s *base.Store) error {
	k, ok := s.Engine.(kv.Keeper)
	if !ok {
		return notKept(s, kv.CareVacuum, "a store in memory has no file to write anew")
	}
	due, err := PurgeDue(ctx, s)
	if err != nil {
		return err
	}
	if due {
		return finishPurge(engine.WithPurpose(ctx, "vacuum"), s, &record.Collected{})
	}
	return k.Rewrite(engine.WithPurpose(ctx, "vacuum"), nil)
}
