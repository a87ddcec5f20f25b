package base

import (
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// Store is an open store as the rooms below the front door see it: the engine and its user.
type Store struct {
	DB      kv.DB  // the engine, with the guard of the format in front of it
	Engine  kv.DB  // the engine itself
	Program string // recorded on the journal as the one that acted
	Person  string // the person who decides
	User    string // of a store on a server: the server's user, a slash, and the user who started this program
	Before  func(*pool.Message) error
	Clock   func() time.Time
	Judge   record.Judge // nil: none
	ID      pool.ID      // of a store at a URL; else zero
	Place   record.Place // nil: the store keeps the place

	Deciding Deciding // whether its user may change what a gate guards

	Claimed string // the name that the user of this handle gave; Program contains it already

	Folders []string // where programs that use the store leave files if they are killed

	// Unfinished does what opening left undone of an older store, once, after the first change; nil: there is nothing.
	Unfinished func()

	Sweeping *Sweeping // nil: there are no such files
	Indexing *Beside
	Hints    *Hints

	Format   *Format
	Warnings *Warnings
}

// As returns the store in the hands of a user who calls themselves name. The name is not checked; it is recorded as claimed.
func (s *Store) As(name string) *Store {
	as := *s
	as.Claimed, as.Program = name, s.Program+" ("+name+")"
	return &as
}

// Own reports whether an operation of a user is this person's. In a file every operation is, wherever it came from.
func (s *Store) Own(user string) bool { return s.User == "" || s.User == user }

// Maker is the name recorded on what a person makes by hand.
func (s *Store) Maker() string {
	if s.Claimed == "" {
		return s.Person
	}
	return s.Person + " (" + s.Claimed + ")"
}

// Conversation is one context of a store.
type Conversation struct {
	ID    pool.ID
	Store *Store
}

// ContextOf returns a context of a public store.
func ContextOf(s Opened, id pool.ID) *Conversation { return &Conversation{ID: id, Store: Of(s)} }

// Handle stands in a public type for an open store. Its method is not exported, so that only rooms reach the store, by Of.
type Handle struct{ store *Store }

// HandleOf returns the handle of a store.
func HandleOf(s *Store) Handle { return Handle{s} }

func (h Handle) opened() *Store { return h.store }

// Opened is a public type with a Handle: *chatctx.Store.
type Opened interface{ opened() *Store }

// Of returns the store that a public one stands for.
func Of(s Opened) *Store { return s.opened() }
