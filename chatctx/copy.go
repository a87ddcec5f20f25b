package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/internal/intake"
)

// Copy makes a new context with everything of another except its journal. Its messages have ids of their own and name their originals. Calls that wait
// there also wait in the copy, undecided. An empty title means the other's. With use, the copy becomes the current one.
func (s *Store) Copy(ctx context.Context, ref, title string, use bool) (*ChatContext, error) {
	return s.CopyBranch(ctx, ref, "", title, use)
}

// CopyBranch is Copy of one branch alone, under its name. The tags, marks and rules of messages that the branch does not have stay behind. "" copies all branches.
func (s *Store) CopyBranch(ctx context.Context, ref, branch, title string, use bool) (*ChatContext, error) {
	id, err := intake.Copy(ctx, s.at(), ref, branch, title, use)
	return s.made(id, err)
}
