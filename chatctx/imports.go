package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/intake"
)

// Import stores conversations in one transaction. For several calls that one undo takes back see ImportRun.
func (s *Store) Import(ctx context.Context, in []*record.Incoming) ([]record.Imported, error) {
	return intake.Import(ctx, s.at(), in)
}
