package record

import (
	"encoding/json"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/pool"
)

// Untaken names something that a file says otherwise than the store, and that was not taken.
type Untaken struct {
	Message string // of a message: its id in the file
	Branch  string // of a branch: its name in the file; neither: of the conversation
	What    string // such as "title" or "metadata.model_id"
}

// ImportedFile is a file that was imported completely. Importing it again adds nothing as long as its conversations are as that import left them.
type ImportedFile struct {
	Name          string // without folders, since some formats take a conversation's id from it
	Size          int64
	SHA256        pool.Hash
	Reader        uint64 // version of the reader: another version may read the file differently
	Conversations []SourceLink
	Report        []byte // the reader's own notes about the file
}

// Contents keeps the contents of messages until they are stored. Several goroutines may use it at the same time.
type Contents interface {
	// Has reports whether it keeps the contents of a message; if not, the message is complete.
	Has(m *pool.Message) bool
	// Get returns the complete message. It does not change m.
	Get(m *pool.Message) (*pool.Message, error)
	// Put replaces the message that Get returned for m.
	Put(m, whole *pool.Message) error
}

// Node is a message of the tree. Parent is the number of its parent node, counted from 1; 0 means that it is a root.
type Node struct {
	ID      string
	Parent  int
	Message *pool.Message
	// Further marks what is no message of its own in the file: a part of the message before it, or a text beside the messages. It is not counted.
	Further bool
	// CopyOf is the message of another conversation of this format that this one repeats. If that message is known, the copy is linked to it and counted as
	// known.
	CopyOf NodeLink
}

// NodeLink names an imported message; the zero value names none.
type NodeLink struct{ Conversation, Node string }

// IncomingBranch is a branch that ends at the node Leaf, a number counted from 1; 0 means an empty branch.
type IncomingBranch struct {
	// ID is the branch's id in our own format: it goes on as that branch. Zero: as the branch that holds its path or ends inside it.
	ID             pool.ID
	Name           string
	Leaf           int
	System, Prompt string // "": the conversation's
	Settings       map[string]json.RawMessage
	AppData        map[string]json.RawMessage
	Sessions       []branch.Session // a Summary is the id of a message in Loose or of a node's message
	// From is the name of the branch from which it was forked, and At the last message that they share; both only with an ID.
	From   string
	At     pool.ID
	Tokens *branch.Tokens
}

// SourceLink names an imported conversation.
type SourceLink struct{ Format, Conversation string }
