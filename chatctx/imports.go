package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/pool"
)

// Incoming is a conversation to import, as a tree. Nodes stand after their parents.
//
// Fields: Format, Conversation, File, Title string; Derived bool; Created, Updated pool.Time; Settings map[string]json.RawMessage; System, Prompt string;
// AppData map[string]json.RawMessage; Labels []string; Parent *SourceLink; Answers, Follows string; Nodes []Node; Branches []IncomingBranch; Tags
// map[string]int; Loose []*Message; Digest pool.Hash; Contents Contents. For more of each: go doc chatctx/internal/intake.Incoming
type Incoming = intake.Incoming

// Contents keeps the contents of an Incoming's messages that are too large for memory.
//
// Methods: Has(m *Message) bool; Get(m *Message) (*Message, error); Put(m, whole *Message) error. For more of each: go doc chatctx/internal/intake.Contents
type Contents = intake.Contents

// Node is a message of the tree. Parent is the number of its parent node, counted from 1; 0 means that it is a root.
//
// Fields: ID string; Parent int; Message *Message; Further bool; CopyOf NodeLink. For more of each: go doc chatctx/internal/intake.Node
type Node = intake.Node

// NodeLink names an imported message; the zero value names none.
//
// Fields: Conversation, Node string. For more of each: go doc chatctx/internal/intake.NodeLink
type NodeLink = intake.NodeLink

// IncomingBranch is a branch that ends at the node Leaf, a number counted from 1; 0 means an empty branch.
//
// Fields: ID ID; Name string; Leaf int; System, Prompt string; Settings, AppData map[string]json.RawMessage; Sessions []branch.Session; From string; At ID;
// Tokens *branch.Tokens. For more of each: go doc chatctx/internal/intake.IncomingBranch
type IncomingBranch = intake.IncomingBranch

// SourceLink names an imported conversation.
//
// Fields: Format, Conversation string. For more of each: go doc chatctx/internal/intake.SourceLink
type SourceLink = intake.SourceLink

// Imported is the result of importing an Incoming.
//
// Fields: Context ID; Title string; Created, Restored, Trashed bool; Messages, Known, Purged int; Wiped bool; Branches, NewBranches, Changed int; ChangedOn
// []string; Untaken []Untaken; UntakenCount int; Notes []string; Operation string. For more of each: go doc chatctx/internal/intake.Imported
type Imported = intake.Imported

// Untaken names something that a file says otherwise than the store, and that was not taken.
//
// Fields: Message, Branch, What string. For more of each: go doc chatctx/internal/intake.Untaken
type Untaken = intake.Untaken

// Import stores conversations in one transaction. For several calls that one undo takes back see ImportRun.
func (s *Store) Import(ctx context.Context, in []*Incoming) ([]Imported, error) {
	return intake.Import(ctx, s.at, in)
}

// ImportRun makes the imports of one command. One undo takes them all back.
//
// Fields: Purged bool. Methods: Note(f ImportedFile); Import(ctx context.Context, in []*Incoming) ([]Imported, error); Ready(in *Incoming) error; Native(ctx
// context.Context, n Native) (*NativeImport, error); Below(ctx context.Context, child, parent ID, task *Task) (done bool, err error); Hold(ctx
// context.Context, set map[string]json.RawMessage) error. For more of each: go doc chatctx/internal/intake.ImportRun
type ImportRun = intake.ImportRun

// ImportRun begins the imports of one command.
func (s *Store) ImportRun() *ImportRun {
	return intake.NewImportRun(s.at, care.RemoveContext)
}

// Unchanged reports whether a conversation was imported with that digest of its record and is still there: then importing it adds nothing. Known in its
// result is 0, since only the file tells how many messages it has.
func (s *Store) Unchanged(ctx context.Context, from SourceLink, digest pool.Hash) (Imported, bool, error) {
	return intake.Unchanged(ctx, s.at, from, digest)
}

// ImportedFile is a file that was imported completely. Importing it again adds nothing as long as its conversations are as that import left them.
//
// Fields: Name string; Size int64; SHA256 pool.Hash; Reader uint64; Conversations []SourceLink; Report []byte. For more of each: go doc
// chatctx/internal/intake.ImportedFile
type ImportedFile = intake.ImportedFile

// KnownFile returns what was noted of a file and the contexts of its conversations, in order. It returns nil if the file must be read: it was not noted, or
// one of its conversations is gone, or was imported in another version since. f has the name, size and reader; sum returns the SHA-256 and
// is called only if a file of that name and size was noted.
func (s *Store) KnownFile(ctx context.Context, f ImportedFile, sum func() (pool.Hash, error)) (*ImportedFile, []Imported, error) {
	return intake.KnownFile(ctx, s.at, f, sum)
}
