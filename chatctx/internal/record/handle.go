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

	Indexing Beside
}

// Conversation is one context of a store.
type Conversation struct {
	ID    pool.ID
	Store *Store
}
