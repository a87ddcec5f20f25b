package chatctx

// SKELETON: the signatures that other rooms build against while the bodies are being written. Split into files by concept as they are.

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

type (
	ID      = pool.ID
	Message = pool.Message
	Entry   = pool.Entry
)

// Ref names a message on a branch: its id, a unique prefix or ending (4 or more) of that, a tag, @ (the head), @-2 (two before the head), @3 (the
// third from the start).
type Ref string

// Options of Open.
type Options struct {
	Create   bool          // make the file when it is not there
	ReadOnly bool          // refuse writes
	Wait     time.Duration // for others that hold the file; 0: 5 s
	IdleHold time.Duration // how long to keep the file for a next use; 0: 2 ms; negative: not at all
	Program  string        // stands on the journal as who did it; "": the executable's name
	By       string        // the person who decides; "": the user's name
	// BeforeStore is called for each message before it is stored, and may change it (redaction). It runs outside
	// transactions.
	BeforeStore func(*Message) error
}

// Store is an open store.
type Store struct{ db kv.DB }

func Open(path string, o Options) (*Store, error) { panic("skeleton") }
func OpenMemory(o Options) (*Store, error)        { panic("skeleton") }

// OpenDB uses an engine that the caller opened.
func OpenDB(db kv.DB, o Options) (*Store, error) { panic("skeleton") }
func (s *Store) Close() error                    { panic("skeleton") }

// NewContext is what a new context begins with.
type NewContext struct {
	Title          string
	System, Prompt string
	Settings       map[string]json.RawMessage
	Parent         ID // of a sub-context
	Messages       []*Message
	Stay           bool // do not make it the store's current context
}

func (s *Store) New(ctx context.Context, n NewContext) (*ChatContext, error) { panic("skeleton") }

// Context finds a context by title, id, unique prefix or ending; "" is the store's current one.
func (s *Store) Context(ctx context.Context, ref string) (*ChatContext, error) { panic("skeleton") }

// Copy makes a new context with everything of another: a deep copy, calls that wait are pending in it.
func (s *Store) Copy(ctx context.Context, ref, title string) (*ChatContext, error) { panic("skeleton") }

// ContextInfo describes a context.
type ContextInfo struct {
	ID               ID
	Title            string
	Derived          bool // the title was made from the first message
	Current          bool
	Active           string // branch
	Branches         int
	Messages         int // in the pool
	Created, Updated pool.Time
	Trashed          pool.Time // zero: not in the trash
	Parent           ID
	ParentGone       bool
	Settings         map[string]json.RawMessage
	AppData          map[string]json.RawMessage
}

// ListOptions narrow a list of contexts.
type ListOptions struct {
	Word         string    // in the title, case folded
	Since, Until pool.Time // last changed
	Trash        bool      // those in the trash instead
	Parent       ID        // only children of this context
}

// Contexts gives contexts, last changed first.
func (s *Store) Contexts(ctx context.Context, o ListOptions) iter.Seq2[*ContextInfo, error] {
	panic("skeleton")
}
func (s *Store) Use(ctx context.Context, ref string) (*ContextInfo, error)        { panic("skeleton") }
func (s *Store) Trash(ctx context.Context, ref string) (*Committed, error)        { panic("skeleton") }
func (s *Store) Restore(ctx context.Context, ref string) (*Committed, error)      { panic("skeleton") }
func (s *Store) Settings(ctx context.Context) (map[string]json.RawMessage, error) { panic("skeleton") }

// SetSettings sets the store's defaults; a null value takes a key away.
func (s *Store) SetSettings(ctx context.Context, set map[string]json.RawMessage) (*Committed, error) {
	panic("skeleton")
}

// Artifact reads an artifact's bytes and media type.
func (s *Store) Artifact(ctx context.Context, h pool.Hash) ([]byte, string, error) { panic("skeleton") }

// ChatContext is one conversation with all its branches.
type ChatContext struct {
	ID    ID
	store *Store
}

func (c *ChatContext) Info(ctx context.Context) (*ContextInfo, error) { panic("skeleton") }

// BranchInfo describes a branch.
type BranchInfo struct {
	branch.Branch
	Active                 bool
	Messages               int
	Head                   ID // zero on an empty branch
	SystemText, PromptText string
}

// Branches are all branches, the active one first, then in the order they were made.
func (c *ChatContext) Branches(ctx context.Context) ([]*BranchInfo, error) { panic("skeleton") }

// Branch is one branch; "" is the active one.
func (c *ChatContext) Branch(ctx context.Context, name string) (*BranchInfo, error) {
	panic("skeleton")
}

// Snapshot is a branch as it was at one moment. It holds nothing: no file, no lock, no memory to speak of. Writers do not change it.
type Snapshot struct {
	ctx  *ChatContext
	Info *BranchInfo
}

func (c *ChatContext) Snapshot(ctx context.Context, branchName string) (*Snapshot, error) {
	panic("skeleton")
}
func (s *Snapshot) Len() int { panic("skeleton") }

// Entries gives the messages at positions from to to, both included, counted from 1; reversed if from is after to. 0 for to: the
// last. Messages are read in batches, a short transaction each.
func (s *Snapshot) Entries(ctx context.Context, from, to int) iter.Seq2[*Entry, error] {
	panic("skeleton")
}

// Page is Entries as a slice.
func (s *Snapshot) Page(ctx context.Context, from, to int) ([]*Entry, error) { panic("skeleton") }

// Find resolves a reference on this branch; a message of the context that the branch does not hold has Position 0.
func (s *Snapshot) Find(ctx context.Context, ref Ref) (*Entry, error) { panic("skeleton") }

// IDs are the ids of the whole history.
func (s *Snapshot) IDs(ctx context.Context) ([]ID, error) { panic("skeleton") }

// Difference is what two branches do not share.
type Difference struct {
	A, B         string
	Ancestor     *Entry // the last message of the common beginning, nil for none
	OnlyA, OnlyB []*Entry
}

func (c *ChatContext) Diff(ctx context.Context, a, b string) (*Difference, error) { panic("skeleton") }

// Tree shows how branches stand to each other: each leaves an earlier one of the list (From, an index; -1 for a root) after Shared messages.
type TreeBranch struct {
	*BranchInfo
	From   int
	Shared int
}

func (c *ChatContext) Tree(ctx context.Context) ([]*TreeBranch, error) { panic("skeleton") }

// Tags are the context's tags: name to message.
func (c *ChatContext) Tags(ctx context.Context) (map[string]ID, error) { panic("skeleton") }

// Marks are the messages marked pinned or excluded.
func (c *ChatContext) Marks(ctx context.Context) (map[ID]string, error) { panic("skeleton") }

// Tokens are the figures of a branch: those set, else the last reply's; zero after clear.
func (c *ChatContext) Tokens(ctx context.Context, branchName string) (branch.Tokens, error) {
	panic("skeleton")
}
func (c *ChatContext) Message(ctx context.Context, id ID) (*Message, error) { panic("skeleton") }

// Effective are the settings in force on a branch: the store's, the context's, the branch's, later ones winning.
func (c *ChatContext) Effective(ctx context.Context, branchName string) (map[string]json.RawMessage, error) {
	panic("skeleton")
}
func (c *ChatContext) Append(ctx context.Context, branchName string, messages ...*Message) (*Appended, error) {
	panic("skeleton")
}

// Batch collects changes and makes them as one operation, in one transaction, when it is committed. References are resolved in that transaction.
// What the steps return is filled in by Commit. A Batch is used once, by one goroutine.
type Batch struct{ store *Store }

// Begin starts a batch on a context ("" the current one) and a branch ("" the active one).
func (s *Store) Begin(contextRef, branchName string) *Batch { panic("skeleton") }
func (c *ChatContext) Begin(branchName string) *Batch       { panic("skeleton") }

// AppendOptions: Expect, if not nil, is the revision that the branch must have (else ErrConflict); Key makes the append happen once: a second one with the same
// key within 24 hours gives what the first made.
type AppendOptions struct {
	Expect *uint64
	Key    string
}

// Placement is where a message was put.
type Placement struct {
	Message  ID
	Position int
}

// Appended is what an append made.
type Appended struct {
	Context  ID
	Branch   string
	Placed   []Placement
	Revision uint64
	Again    bool // the idempotency key was known: nothing was added
}

// Forked is a new branch.
type Forked struct {
	Branch   string
	From     string
	At       ID // the last message shared; zero for none
	Messages int
}

// Moved counts what a change of a history did.
type Moved struct {
	Added    []Placement
	Removed  int
	Head     ID
	Messages int
}

func (b *Batch) Append(msgs []*Message, o AppendOptions) *Appended { panic("skeleton") }
func (b *Batch) Insert(before Ref, msgs []*Message) *Moved         { panic("skeleton") }

// Fork makes a branch with everything up to and with at ("" the head); stay: do not make it active.
func (b *Batch) Fork(name string, at Ref, stay bool) *Forked { panic("skeleton") }

// EditOptions: Name "" takes main.2, main.3 …
type EditOptions struct {
	Name     string
	KeepRest bool
}

// Edit makes a branch with everything before ref and a copy of that message with its text replaced.
func (b *Batch) Edit(ref Ref, text string, o EditOptions) *Forked { panic("skeleton") }
func (b *Batch) Rewind(ref Ref) *Moved                            { panic("skeleton") }
func (b *Batch) Drop(refs ...Ref) *Moved                          { panic("skeleton") }
func (b *Batch) Clear() *Moved                                    { panic("skeleton") }
func (b *Batch) Interrupt(all bool) *Moved                        { panic("skeleton") }
func (b *Batch) Pick(from string, refs ...Ref) *Moved             { panic("skeleton") }

// Merge appends what from holds since the common ancestor; with a summary, one message with that text that links to where it came from.
func (b *Batch) Merge(from string, summary *string) *Moved { panic("skeleton") }
func (b *Batch) Switch(name string)                        { panic("skeleton") }
func (b *Batch) RemoveBranch(name string)                  { panic("skeleton") }
func (b *Batch) RenameBranch(name, to string)              { panic("skeleton") }
func (b *Batch) Tag(name string, ref Ref)                  { panic("skeleton") }
func (b *Batch) Untag(name string)                         { panic("skeleton") }
func (b *Batch) SetTitle(title string)                     { panic("skeleton") }

// SetSystem sets the branch's system prompt; nil takes it away.
func (b *Batch) SetSystem(text *string) { panic("skeleton") }
func (b *Batch) SetPrompt(text *string) { panic("skeleton") }

// SetSettings sets the branch's settings, or the context's; a null value takes a key away.
func (b *Batch) SetSettings(onContext bool, set map[string]json.RawMessage) { panic("skeleton") }
func (b *Batch) SetTokens(t branch.Tokens)                                  { panic("skeleton") }
func (b *Batch) SetCompactSummary(ref Ref, text string)                     { panic("skeleton") }

// Mark marks a message pinned or excluded; "" takes the mark away.
func (b *Batch) Mark(ref Ref, mark string) { panic("skeleton") }

// SetAppData sets a name on the context (""), or on the branch.
func (b *Batch) SetContextData(name string, v json.RawMessage) { panic("skeleton") }
func (b *Batch) SetBranchData(name string, v json.RawMessage)  { panic("skeleton") }

// SetSessions puts a branch's sessions.
func (b *Batch) SetSessions(s []branch.Session) { panic("skeleton") }

// Committed says what a batch did.
type Committed struct {
	Operation string // how op log and undo name it: a number; the store's begin with s. "" where nothing changed
	What      string
	Context   ID
	Title     string
	Branch    string
	Revision  uint64
}

func (b *Batch) Commit(ctx context.Context) (*Committed, error) { panic("skeleton") }

// Operation is an entry of the journal.
type Operation struct {
	ID       string
	Context  ID // zero: the store's
	At       pool.Time
	What     string // append, fork, edit …
	By       string // program
	Branches []string
	Undone   bool
	Undoes   string // the operation that this one took back
}

// Operations gives a context's journal ("" the current context; with the store's operations on it), newest first.
func (s *Store) Operations(ctx context.Context, contextRef string) iter.Seq2[*Operation, error] {
	panic("skeleton")
}

// StoreOperations gives the store's own journal, newest first.
func (s *Store) StoreOperations(ctx context.Context) iter.Seq2[*Operation, error] { panic("skeleton") }

// Undone says what was taken back.
type Undone struct {
	Committed
	Undid *Operation
}

// Undo takes back the operation op, or with "" the newest of the branch, or of its context or the store if that came after.
func (s *Store) Undo(ctx context.Context, contextRef, branchName, op string) (*Undone, error) {
	panic("skeleton")
}
func (s *Store) Redo(ctx context.Context, contextRef, branchName string) (*Undone, error) {
	panic("skeleton")
}

// Change is what Watch tells of.
type Change struct {
	Context   ID
	Branch    string // "" where the change is not on one branch
	Kind      string // the operation's What
	Operation string
}

// Watch tells of changes, also by other processes, within 300 ms. The channel is closed when ctx ends.
func (s *Store) Watch(ctx context.Context) (<-chan Change, error) { panic("skeleton") }

// Problem is something that check found.
type Problem struct {
	Invariant int
	Where     string
	Text      string
}

// Check reads the store and calls problem for what breaks an invariant. full: every page, every record, every hash too.
func (s *Store) Check(ctx context.Context, full bool, problem func(Problem)) error { panic("skeleton") }
func (s *Store) Backup(ctx context.Context, w io.Writer) error                     { panic("skeleton") }

// Stats are sizes and counts.
type Stats struct {
	kv.Space
	Contexts, Branches, Messages, Artifacts, Operations int
}

func (s *Store) Stats(ctx context.Context) (*Stats, error) { panic("skeleton") }

// Tool is a tool that a model may call.
type Tool struct {
	Name        string          `cbor:"1,keyasint"`
	Description string          `cbor:"2,keyasint,omitempty"`
	Schema      json.RawMessage `cbor:"3,keyasint,omitempty"` // JSON Schema of the arguments; nil: any object
	// How it is run: a command's argument list, or an MCP server's; empty: by a Go function of the program.
	Command    []string          `cbor:"4,keyasint,omitempty"`
	MCP        bool              `cbor:"5,keyasint,omitempty"`
	URL        string            `cbor:"6,keyasint,omitempty"`
	Dir        string            `cbor:"7,keyasint,omitempty"`
	Env        map[string]string `cbor:"8,keyasint,omitempty"`
	Timeout    time.Duration     `cbor:"9,keyasint,omitempty"`
	Repeatable bool              `cbor:"10,keyasint,omitempty"`
	Prune      string            `cbor:"11,keyasint,omitempty"` // prune, summarise, keep
}

// Draft is a branch on its way to a provider: a copy that enhancers change and adapters read.
type Draft struct {
	Context  ID
	Branch   string
	Revision uint64
	Settings map[string]json.RawMessage // in force
	System   string                     // the branch's system prompt
	Prompt   string                     // the branch's user prompt
	// Summary stands for what came before Messages: the summary of the session before. Nil: none.
	Summary *DraftMessage
	// Messages are those of the current session, in order.
	Messages []*DraftMessage
	Tools    []Tool
	Session  branch.Session // the current one; ID zero where the branch was never compacted
	Notes    []Note
	// Artifact reads the bytes of an image, a document, an output that was put aside.
	Artifact func(pool.Hash) ([]byte, error)
}

// DraftMessage is a message of a draft: its own copy of the top, whose parts are shared with nobody once an enhancer replaced them.
type DraftMessage struct {
	Entry
	State  string // in, pruned, digested, summarised, pinned, excluded, trimmed
	Step   string // which enhancer set State last
	Pinned bool
	Tokens int  // counted, 0: not yet
	Cache  bool // a cache breakpoint stands after it
}

// Note records what an enhancer did or an adapter repaired.
type Note struct {
	Step          string // the enhancer's name, or adapter
	Message       ID     // zero: the draft as a whole
	What          string
	Before, After int // tokens, where a step counts them
}

// Draft reads one consistent snapshot of a branch.
func (c *ChatContext) Draft(ctx context.Context, branchName string) (*Draft, error) {
	panic("skeleton")
}

// Incoming is one conversation on its way in, as a tree. Nodes stand after their parents.
type Incoming struct {
	Format, Conversation string // with a node's id the key by which it is known again
	Title                string
	Derived              bool // the title was made from a message
	Created, Updated     pool.Time
	Settings             map[string]json.RawMessage
	System, Prompt       string
	AppData              map[string]json.RawMessage
	Parent               *SourceLink // of a sub-context: the conversation that it belongs to
	Nodes                []Node
	Branches             []IncomingBranch // the active one first
}

// Node is a message of the tree. Parent is an index of Nodes, -1 for a root.
type Node struct {
	ID      string
	Parent  int
	Message *Message
}

// IncomingBranch ends at the node Leaf (an index, -1: empty).
type IncomingBranch struct {
	Name           string
	Leaf           int
	System, Prompt string // "": the conversation's
	Settings       map[string]json.RawMessage
	Sessions       []branch.Session // a Summary there is the id of a message in Loose
}

// SourceLink names an imported conversation.
type SourceLink struct{ Format, Conversation string }

// Imported says what became of an Incoming.
type Imported struct {
	Context     ID
	Title       string
	Created     bool // the context is new
	Restored    bool // it was in the trash
	Messages    int  // added
	Known       int  // were there already
	Branches    int  // in the context afterwards
	NewBranches int
}

// Import stores conversations, several in a transaction, each as one operation of the store. A known conversation gets what is new: nodes that are
// not there yet, branches that no branch holds.
func (s *Store) Import(ctx context.Context, in []*Incoming) ([]Imported, error) { panic("skeleton") }
