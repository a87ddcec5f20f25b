package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/pool"
)

// Incoming is one conversation on its way in, as a tree. Nodes stand after their parents.
type Incoming = intake.Incoming

// Node is a message of the tree. Parent is the number of the node above it, counted from 1; 0 for a root.
type Node = intake.Node

// NodeLink names an imported message; the zero one none.
type NodeLink = intake.NodeLink

// IncomingBranch ends at the node Leaf, a number counted from 1; 0 for an empty one.
type IncomingBranch = intake.IncomingBranch

// SourceLink names an imported conversation.
type SourceLink = intake.SourceLink

// Imported says what became of an Incoming.
type Imported = intake.Imported

// Import stores conversations in one transaction. See ImportRun for several.
func (s *Store) Import(ctx context.Context, in []*Incoming) ([]Imported, error) {
	return intake.Import(ctx, s.at, in)
}

// ImportRun makes the imports of one command, which one undo takes back.
type ImportRun = intake.ImportRun

// ImportRun begins the imports of one command.
func (s *Store) ImportRun() *ImportRun {
	return intake.NewImportRun(s.at)
}

// Known counts the messages of a conversation that the store has already, and says whether it has the conversation. Nothing is written.
func (s *Store) Known(ctx context.Context, in *Incoming) (messages int, has bool, err error) {
	return intake.Known(ctx, s.at, in)
}

// Unchanged tells whether a conversation was imported with that digest of its record, and is there: then importing it adds nothing.
// Known, in what it gives, is 0: only the file knows how many messages it has.
func (s *Store) Unchanged(ctx context.Context, from SourceLink, digest pool.Hash) (Imported, bool, error) {
	return intake.Unchanged(ctx, s.at, from, digest)
}

// ImportedFile is a file that was imported to its end. Importing it again adds nothing as long as its conversations are as that import left them.
type ImportedFile = intake.ImportedFile

// KnownFile finds what was noted of a file and the contexts of its conversations, in order. It gives nil where the file has to be read: it was not
// noted, or a conversation is gone, in the trash or was imported in another version since. f has the name, size and reader; sum gives
// the SHA-256 and is called only when there is one of that name and size.
func (s *Store) KnownFile(ctx context.Context, f ImportedFile, sum func() (pool.Hash, error)) (*ImportedFile, []Imported, error) {
	return intake.KnownFile(ctx, s.at, f, sum)
}
