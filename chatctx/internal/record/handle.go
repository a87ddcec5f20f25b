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
	Before  func(*pool.Message) error
	Clock   func() time.Time
	Judge   Judge // nil: none

	Indexing Beside
}

// Conversation is one context of a store.
type Conversation struct {
	ID    pool.ID
	Store *Store
}
