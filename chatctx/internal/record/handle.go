package record

import (
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Store is an open store as the rooms below the front door see it: the engine, and who uses it.
type Store struct {
	DB      kv.DB
	Program string // stands on the journal as who did it
	Person  string // who decides
	User    string // of a store that a server keeps: who the server takes this program for, a slash, and who started it
	Before  func(*pool.Message) error
	Clock   func() time.Time
	Judge   Judge   // nil: none
	ID      pool.ID // of a store at a URL; else zero
	Place   Place   // nil: the store keeps it

	Claimed string // the name that who uses this handle gave; it stands in Program already

	Indexing *Beside
	Hints    *Hints
}

// As is the store in the hands of who calls themselves name. Nobody checks that here: it is noted as claimed.
func (s *Store) As(name string) *Store {
	as := *s
	as.Claimed, as.Program = name, s.Program+" ("+name+")"
	return &as
}

// Maker is who stands on what is made by hand.
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
