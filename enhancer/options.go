package enhancer

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/pool"
)

// Options are the settings of the window. Zero numbers are used as they are; standard.Options returns the usual ones.
type Options struct {
	Model          string
	Encoding       string  // in place of the one that is known of the model
	Budget         int     // tokens; 0 means none
	Headroom       float64 // share of the budget
	KeepBlocks     int
	DigestTokens   int // of all digests together
	Squeeze        bool
	PruneThreshold int // tokens
	PruneKeep      int // tokens
	PrunePolicy    string
	// CompactAt is the share of the budget above which a conversation is compacted, CompactMessages the number of messages; 0 turns the latter off.
	CompactAt           float64
	CompactKeep         int // tokens
	CompactMessages     int
	CompactKeepMessages int
	CompactTurns        int // 0 turns it off
	CompactProvider     string
	CompactModel        string
	CompactSystem       string
	ResumeShare         float64 // of the budget, up to which a session is resumed whole
	Notify              bool
	Cache               bool
	CacheTTL            string // 5m or 1h
	Prices              *cost.Prices
	// StepsOff are the names of the steps that are turned off.
	StepsOff []string
	// The following fields are not settings: a program sets them.

	// Offer gives the model ArtifactTool once an output was put aside, for a program that answers its calls with ReadArtifact.
	Offer bool
	// Rules are tried on outputs of any size before OutputRules: the first that fits and makes the output shorter wins.
	Rules []Rule
	// TextRules shorten old answers, one after the other, if shorter outputs are not enough. Texts of users are never changed.
	TextRules []Rule
	// Artifacts keeps what is put aside; nil means that the branch itself keeps it.
	Artifacts ArtifactStore
}

// Rule is a named change that makes a text shorter or leaves it unchanged. It must be deterministic, and applying it twice must equal applying it once, since a
// rule is applied again to each request.
type Rule struct {
	Name string
	// Tool and Kind say for which outputs the rule is: those of one tool, of one kind; "" means any.
	Tool string
	Kind Kind
	// Apply must be safe for concurrent use.
	Apply func(text string) string
}

// Kind is the kind of a tool output.
type Kind string

// The kinds, as a pointer names them.
const (
	JSON   Kind = "JSON"
	YAML   Kind = "YAML"
	Log    Kind = "LOG"
	Error  Kind = "ERROR"
	Binary Kind = "BINARY"
	Text   Kind = "TEXT"
)

// Artifact is an output or an attachment of a branch.
type Artifact struct {
	Key       string // the whole SHA-256 in hex
	Message   pool.ID
	Tool      string // "" for an attachment
	Kind      Kind   // Binary for images and documents
	MediaType string
	Name      string
	Size      int
	Data      []byte // nil for an attachment that List returns: ArtifactStore.Find reads it
}

// ArtifactStore keeps artifacts that are put aside. Its methods must be safe for concurrent use. BranchArtifacts is the built-in one.
type ArtifactStore interface {
	// Keep keeps an artifact, with its Data, before a pointer stands for it. It is called for each request with that pointer, so also for artifacts that it has
	// already. If it fails, the output is sent unchanged.
	Keep(ctx context.Context, a Artifact) error
	// List returns the artifacts that a model may ask for, each once; Data may be missing.
	List(ctx context.Context) ([]Artifact, error)
	// Find returns, with Data, all artifacts whose key begins with the given digits. It finds nothing for fewer than four digits.
	Find(ctx context.Context, key string) ([]Artifact, error)
}
