package chatctx

import (
	"github.com/chatctx/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/kv"
)

// Options of Open.
type Options = record.Options

// Place keeps where one person is in a store that many use at once: see Options.Place.
type Place = record.Place

// FormatVersion is the version of the file format that this program writes.
const FormatVersion = record.FormatVersion

// Open opens the store in a file, or at a URL as postgres://… whose engine the program has imported. Errors to test for: ErrNotExist, ErrNotOurs, ErrTooNew, ErrTooOld, ErrDamaged, ErrLocked.
func Open(path string, o Options) (*Store, error) { return frontOf(care.Open(path, o)) }

// OpenMemory makes a store in memory, gone with Close.
func OpenMemory(o Options) (*Store, error) { return frontOf(care.OpenMemory(o)) }

// OpenDB uses an engine that the caller opened; an empty one becomes a store. Close closes it.
func OpenDB(db kv.DB, o Options) (*Store, error) { return frontOf(care.OpenDB(db, o)) }

func frontOf(at *record.Store, err error) (*Store, error) {
	if err != nil {
		return nil, err
	}
	return &Store{at: at}, nil
}

// at is the context as the rooms below know it.
func (c *ChatContext) at() *record.Conversation {
	return &record.Conversation{ID: c.ID, Store: c.store.at}
}

// Close ends the use of the store. Everything that had returned without an error is durable already. End first what still runs: cancel the contexts of replies and wait for them. One
// that Close cuts off ends within a second and stores no more, and its branch stays claimed until nobody has renewed the claim for a minute.
func (s *Store) Close() error {
	return s.at.Close()
}
