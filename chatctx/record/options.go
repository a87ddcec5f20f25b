package record

import (
	"time"

	"github.com/chatctx/chatctx/pool"
)

// OpenOptions are options of Open. The zero value opens an existing store to read and write.
type OpenOptions struct {
	Create   bool          // make the file if it does not exist
	ReadOnly bool          // refuse writes (ErrReadOnly)
	Wait     time.Duration // the longest wait for other programs that hold the file; 0: 5 s
	IdleHold time.Duration // how long the file stays open for the next use; 0: 2 ms; negative: not at all
	Program  string        // recorded on the journal as the one that acted; "": the executable's name
	By       string        // the person who decides; "": the name of the user
	// Decider is the passphrase of the store's gate, which shows that an agent's calls may be decided through this store, and what they depend on be changed.
	// nil: only what others decide may be done, and the rest is ErrDecider. A wrong one is ErrDecider at once. Keep it out of arguments and environments.
	Decider []byte
	// BeforeStore, if not nil, is called with every text before it is stored, whatever way it comes, and may change it (redaction) or refuse it with an
	// error. It gets each message, complete or partial. It gets a text that is no message as a message with the zero ID, one text part, and a Kind that
	// says what it is: title, prompt, setting, data (an embedder's own), edit, summary, digest, reason, arguments, goal, tool (a tool's own texts),
	// artifact; the message's Text is stored. It does not get names, keys, patterns or the way a tool is run. It runs outside transactions, may run on
	// several goroutines at the same time, and may get a text twice.
	BeforeStore func(*pool.Message) error
	// Judge knows the language of rules: approval.Rules{}. Without one, no rules can be added, and calls cannot be decided in a store with rules.
	Judge Judge
	// Place returns the keeper of this person's place in a store on a server, by the store's id; nil: the store keeps one place for all its users.
	Place func(store pool.ID) Place
	// Clock returns the time; nil means the clock of the server that keeps the store, else the system's. No order depends on it.
	Clock func() time.Time
}

// Place keeps one person's place, outside a store that many use at the same time: the current context, and the active branch of each context. Without a
// Place the store keeps these itself, for all its users.
type Place interface {
	// Context returns the person's current context, the zero id if there is none.
	Context() (pool.ID, error)
	// Branch returns the person's active branch of a context; the zero id means the context's own.
	Branch(context pool.ID) (pool.ID, error)
	// Use makes a context the current one, the zero id none.
	Use(context pool.ID) error
	// Switch makes a branch the active one of a context.
	Switch(context, branch pool.ID) error
}
