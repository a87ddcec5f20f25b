package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/internal/intake"
)

// Copy makes a new context with everything of another except its journal. Its messages have ids of their own and name their originals. Calls that wait
// there also wait in the copy, undecided. An empty title means the other's.
func (s *Store) Copy(ctx context.Context, ref, title string) (*ChatContext, error) {
	id, err := intake.Copy(ctx, s.at, ref, title)
	return s.made(id, err)
}
