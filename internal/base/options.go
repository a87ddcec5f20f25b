package base

import (
	"cmp"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Options are options of Open. The zero value opens an existing store to read and write.
type Options struct {
	Create   bool          // make the file if it does not exist
	ReadOnly bool          // refuse writes (ErrReadOnly)
	Wait     time.Duration // the longest wait for other programs that hold the file; 0: 5 s
	IdleHold time.Duration // how long the file stays open for the next use; 0: 2 ms; negative: not at all
	Program  string        // recorded on the journal as the one that acted; "": the executable's name
	By       string        // the person who decides; "": the name of the user
	// BeforeStore, if not nil, is called with every text before it is stored, whatever way it comes, and may change it (redaction) or refuse it with an
	// error. It gets each message, complete or partial. It gets a text that is no message as a message with the zero ID, one text part, and a Kind that
	// says what it is: title, prompt, setting, data (an embedder's own), edit, summary, digest, reason, arguments, goal, tool (a tool's own texts),
	// artifact; the message's Text is stored. It does not get names, keys, patterns or the way a tool is run. It runs outside transactions, may run on
	// several goroutines at the same time, and may get a text twice.
	BeforeStore func(*pool.Message) error
	// Judge knows the language of rules: approval.Rules{}. Without one, no rules can be added, and calls cannot be decided in a store with rules.
	Judge record.Judge
	// Place returns the keeper of this person's place in a store on a server, by the store's id; nil: the store keeps one place for all its users.
	Place func(store pool.ID) Place
	// Clock returns the time; nil means the clock of the server that keeps the store, else the system's. No order depends on it.
	Clock func() time.Time
}

// Check returns an ErrInvalid if a store cannot be opened with the options.
func (o *Options) Check() error {
	return cmp.Or(CheckKey("the program's name", o.Program), CheckKey("the name of who decides", o.By))
}

func (s *Store) Now() pool.Time { return pool.TimeOf(s.Clock()) }

// Close closes the store. Every change that returned without an error is durable already.
func (s *Store) Close() error {
	s.Indexing.close()
	return s.DB.Close()
}
