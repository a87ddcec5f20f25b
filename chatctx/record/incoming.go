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

// Incoming is a conversation to import, as a tree. Nodes stand after their parents.
type Incoming struct {
	// Format, Conversation and a node's id are the key by which a message is recognised on the next import. Without a Conversation no message is.
	Format, Conversation string
	File                 string // names the file that it is from, if one is
	Title                string
	Derived              bool // the title was made from a message
	Created, Updated     pool.Time
	Settings             map[string]json.RawMessage
	System, Prompt       string
	AppData              map[string]json.RawMessage
	Labels               []string    // they follow the file as its title does, but labels added or removed here stay so
	Parent               *SourceLink // the conversation that owns this one, if this is a sub-context
	Answers              string      // of one with Parent: the id of the call there that it answers
	Follows              string      // of one without Parent: the id of the message that it continues, in an unnamed conversation of this format
	Nodes                []Node
	Branches             []IncomingBranch // the active one first
	Tags                 map[string]int   // names of nodes; the numbers count from 1
	Loose                []*pool.Message  // summaries of sessions, which are on no branch
	// Digest is the digest of the conversation's record in the file; zero: not known. Unchanged recognises the conversation by it.
	Digest pool.Hash
	// Contents keeps the messages' contents if they are too large for memory; nil: the messages of Nodes are complete.
	Contents Contents
	// Stored is set by Import. It refuses a conversation once more, since its messages have their ids by then.
	Stored bool
}

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

// Imported is the result of importing an Incoming.
type Imported struct {
	Context     pool.ID
	Title       string
	Created     bool // the context is new
	Restored    bool // it was in the trash, and the file has something new
	Trashed     bool // it is in the trash and stays there, since the file has nothing new
	Messages    int  // added, as counted in the file
	Known       int  // already there, or copies of messages of other conversations that were
	Purged      int  // not brought, since they were purged here
	Copied      int  // of our own format: stored under new ids, since another conversation has theirs
	Wiped       bool // nothing was brought, since the conversation was purged here
	Branches    int  // in the context afterwards
	NewBranches int
	// Changed counts messages that are here already and differ in this file; ChangedOn names the new branches that have the file's versions.
	Changed   int
	ChangedOn []string
	// Untaken lists what the file says otherwise than is here and that was not taken: the first thousand. UntakenCount counts them all.
	Untaken      []Untaken
	UntakenCount int
	// Notes say what the import changed beside adding messages, a sentence each.
	Notes []string
	// Operation is the operation that changed a context that was here, "" if none did.
	Operation string
}
