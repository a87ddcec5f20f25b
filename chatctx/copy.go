package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/internal/intake"
)

// Copy makes a new context with everything of another except its journal. Its messages have ids of their own and name their originals. Calls that wait
// there also wait in the copy, undecided. An empty title means the other's. With use, the copy becomes the current one.
func (s *Store) Copy(ctx context.Context, ref, title string, use bool) (*ChatContext, error) {
	id, err := intake.Copy(ctx, s.at(), ref, title, use)
	return s.made(id, err)
}
