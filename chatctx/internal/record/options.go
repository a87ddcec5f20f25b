package record

import (
	"cmp"
	"time"

	"github.com/chatctx/chatctx/pool"
)

// Options of Open.
type Options struct {
	Create   bool          // make the file when it is not there
	ReadOnly bool          // refuse writes
	Wait     time.Duration // for others that hold the file; 0: 5 s
	IdleHold time.Duration // how long to keep the file for a next use; 0: 2 ms; negative: not at all
	Program  string        // stands on the journal as who did it; "": the executable's name
	By       string        // the person who decides; "": the user's name
	// BeforeStore, if not nil, is called with every text before it is stored, through whatever door it comes, and may change it (redaction) or refuse it with
	// an error. It gets each message, whole or partial. A text that is no message comes as one too: with the zero ID, one text part, and a Kind that says
	// what it is: title, prompt, setting, data (a program's own), edit, summary, digest, reason, arguments, goal, tool (what a tool says
	// of itself), artifact; what Text then gives is stored. Names, keys and patterns do not come, and how a tool is run does not. It runs outside
	// transactions, on several goroutines at once, and may get a text twice.
	BeforeStore func(*pool.Message) error
	// Judge knows the language of rules: approval.Rules{}. Without one rules cannot be added, and calls that rules are about cannot be decided.
	Judge Judge
	// Place gives what keeps where this person is in a store that a server keeps, by the store's id; nil: the store keeps it, for all who use it.
	Place func(store pool.ID) Place
	// Clock gives the time; nil: the server's where one keeps the store, else the system's. No order depends on it.
	Clock func() time.Time
}

// Check says why a store cannot be opened with options; nil if it can. ErrInvalid.
func (o *Options) Check() error {
	return cmp.Or(CheckKey("the program's name", o.Program), CheckKey("the name of who decides", o.By))
}

func (s *Store) Now() pool.Time { return pool.TimeOf(s.Clock()) }

// Close ends the use of the store. Everything that had returned without an error is durable already.
func (s *Store) Close() error {
	s.Indexing.close()
	return s.DB.Close()
}
