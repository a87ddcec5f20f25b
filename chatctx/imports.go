package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/internal/intake"
)

// Incoming is a conversation to import, as a tree. Nodes stand after their parents.
//
// Fields: Format, Conversation, File, Title string; Derived bool; Created, Updated pool.Time; Settings map[string]json.RawMessage; System, Prompt string;
// AppData map[string]json.RawMessage; Labels []string; Parent *SourceLink; Answers, Follows string; Nodes []Node; Branches []IncomingBranch; Tags
// map[string]int; Loose []*Message; Digest pool.Hash; Contents Contents. For more of each: go doc internal/intake.Incoming
type Incoming = intake.Incoming

// Imported is the result of importing an Incoming.
//
// Fields: Context ID; Title string; Created, Restored, Trashed bool; Messages, Known, Purged int; Wiped bool; Branches, NewBranches, Changed int; ChangedOn
// []string; Untaken []Untaken; UntakenCount int; Notes []string; Operation string. For more of each: go doc internal/intake.Imported
type Imported = intake.Imported

// Import stores conversations in one transaction. For several calls that one undo takes back see ImportRun.
func (s *Store) Import(ctx context.Context, in []*Incoming) ([]Imported, error) {
	return intake.Import(ctx, s.at(), in)
}
