package record

import (
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Restored is the result of Restore. Kept is the new name of the store that was at path before, "" if there was none.
type Restored struct {
	Kept  string
	Stats Stats // of the restored store
}

// Problem is a fault that Check found. Invariant is its number in docs/design.md, 0 for a fault of the file itself.
type Problem struct {
	Invariant int    `json:"invariant"`
	Where     string `json:"where"`
	Text      string `json:"text"`
}

// Stats has sizes in bytes, and counts.
type Stats struct {
	kv.Space
	Contexts   int `json:"contexts"`
	Branches   int `json:"branches"`
	Messages   int `json:"messages"`
	Artifacts  int `json:"artifacts"`
	Operations int `json:"operations"`
}

// CopyOptions are options of CopyStore.
type CopyOptions struct {
	// Keep leaves the original in use; the copy is then a separate store with an id of its own. Without Keep the store moves: from the beginning of the
	// copy on the original refuses to open and says where the store went, until Reopen takes it back.
	Keep bool
	// Progress, if not nil, is called now and then with the number of records copied.
	Progress func(records int)
}

// Copied is the result of CopyStore.
type Copied struct {
	Records int
	Digest  pool.Hash // of all records, the same for both stores
	Stats   Stats     // of the copy
}

// GCOptions says what GC may remove. A zero field removes nothing.
type GCOptions struct {
	// OlderThan removes conversations that were longer in the trash, and operations that are older.
	OlderThan time.Duration
	// KeepOperations is how many of the newest operations of each context stay at any age.
	KeepOperations int
	// MaxSize is the aim in bytes. If more would be in use afterwards, GC shortens OlderThan, of a year if it is 0, as far as needed, to a minute at the least. 0: no aim.
	MaxSize int64
	// DryRun changes nothing: GC only returns what it would remove.
	DryRun bool
}

// Secret is a part of a text to redact. From and To are byte offsets; What is the name of the rule or the expression that found it.
type Secret struct {
	From, To int
	What     string
}

// RedactOptions are options of Redact.
type RedactOptions struct {
	// Context is a reference to a context; "" means all contexts, including those in the trash.
	Context string
	// Find returns the secrets of a text, in order and without overlaps. It may be called more than once for a text.
	Find func(text string) ([]Secret, error)
	// DryRun changes nothing: Redact only returns what it would redact. Its caller gives it a trial.
	DryRun bool
}

// Redaction is a secret that was found. Shown is its beginning.
type Redaction struct {
	Context pool.ID
	Title   string
	Message pool.ID // zero: the title, a prompt or settings
	Field   string  // text, thinking, call, result, file, title, prompt, settings, branch, tag, tool, rule, undo …
	What    string
	Shown   string
	Left    string // why it stays; "" if it is redacted
}

// Mended is something that Repair did or would do. Invariant is its number in docs/design.md, 0 for the file itself.
type Mended struct {
	Invariant int    `json:"invariant"`
	Where     string `json:"where"`
	Text      string `json:"text"`
}

// Repaired is the result of Repair.
type Repaired struct {
	Backup string // a copy of the file before the repair; "" if there was nothing to do
	Mended []Mended
	Left   []Problem // problems that remain; empty after a dry run
}

// Salvaged is the result of Salvage.
type Salvaged struct {
	Contexts, Branches, Messages, Artifacts int
	// Mended is what the repair of the new store did.
	Mended []Mended
}

// ContextSpace is the space that one context takes: keys and values of its records, and the artifacts that its messages refer to. An artifact that several
// contexts share counts in each.
type ContextSpace struct {
	ID             pool.ID   `json:"context"`
	Title          string    `json:"title"`
	Trashed        pool.Time `json:"-"`
	Messages       int       `json:"messages"`
	Bytes          int64     `json:"bytes"`           // of all records
	MessageBytes   int64     `json:"message_bytes"`   // of these in the pool
	OperationBytes int64     `json:"operation_bytes"` // of these in the journal
	ArtifactBytes  int64     `json:"artifact_bytes"`
}

// Collected is what GC removed or would remove. Bytes counts keys and values.
type Collected struct {
	Contexts, Messages, Operations, Artifacts int
	Bytes                                     int64
	OlderThan                                 time.Duration // the age that was applied
	// Kept counts the messages that no branch holds but that stay, by the reason: an operation that can be undone, a tag, a mark, a session's summary, the
	// queue.
	Kept map[string]int
	// Leftovers are files and folders of other programs that may hold what was removed.
	Leftovers []string
}

// Purged is what a purge removed or would remove.
type Purged struct {
	What      string // context, branch or message
	Context   pool.ID
	Title     string
	Branches  []string // branches that lost something
	Copies    int      // copies of messages, on forks and in other contexts, that were removed too
	Collected Collected
}

// Redacted is what Redact did or would do.
type Redacted struct {
	Found     []Redaction
	Collected Collected
	// NotSearched counts the artifacts that are no text and show no secret as they are, by kind (image, archive, PDF, file …): one may be in what is packed.
	NotSearched map[string]int
}

// RepairOptions are options of Repair.
type RepairOptions struct {
	// Path is the store's file; the backup is written beside it. "" means no backup.
	Path string
	// DryRun changes nothing: Repair only returns what it would do.
	DryRun bool
}
