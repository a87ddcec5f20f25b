package chatctx

import (
	"context"
	"errors"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/grant"
)

// Options are options of Open. The zero value opens an existing store to read and write.
//
// Fields: Create, ReadOnly bool; Wait, IdleHold time.Duration; Program, By string; BeforeStore func(*Message) error; Judge Judge; Place func(store ID) Place;
// Clock func() time.Time. For more of each: go doc chatctx/record.OpenOptions
type Options = record.OpenOptions

// FormatVersion is the version of the file format that this program writes.
const FormatVersion = base.FormatVersion

// Open opens the store in a file, or at a URL such as postgres://… if the program imports its engine. Errors to test for: ErrNotExist, ErrNotOurs,
// ErrTooNew, ErrTooOld, ErrDamaged, ErrLocked.
func Open(path string, o Options) (*Store, error) { return frontOf(o)(care.Open(path, o)) }

// OpenMemory makes a store in memory. Close discards it.
func OpenMemory(o Options) (*Store, error) { return frontOf(o)(care.OpenMemory(o)) }

// OpenDB makes a store of an engine that the caller opened; an empty one is initialised. The store's Close closes the engine.
func OpenDB(db kv.DB, o Options) (*Store, error) { return frontOf(o)(care.OpenDB(db, o)) }

// frontOf returns the store that was opened with options, in the hands of who decides if they have the passphrase.
func frontOf(o Options) func(*base.Store, error) (*Store, error) {
	return func(at *base.Store, err error) (*Store, error) {
		if err == nil && o.Decider != nil {
			if _, err = grant.Prove(context.Background(), at, o.Decider); err != nil {
				return nil, errors.Join(err, at.Close())
			}
			at.Deciding = base.Decides
		}
		if err != nil {
			return nil, err
		}
		return storeOf(at), nil
	}
}

// Trial calls do with a store that shows this one and keeps what do changes to itself, in a temporary file, so that it shows what a change would do. When do
// returns, that store is gone. It searches what it adds without an index. Others may change this store meanwhile, except that the trial does not see changes
// of records that it has changed itself.
func (s *Store) Trial(do func(*Store) error) error {
	if do == nil {
		return nil
	}
	return care.Trial(s.at(), func(at *base.Store) error { return do(storeOf(at)) })
}

// at returns the context as the rooms below know it.
func (c *ChatContext) at() *base.Conversation {
	return base.ContextOf(c.store, c.ID)
}

// Close closes the store. Every change that returned without an error is durable already. Before Close, cancel the contexts of running replies and wait for
// them. A reply that Close cuts off ends within a second and stores no more, and its branch stays claimed until the claim has not been renewed for a
// minute.
func (s *Store) Close() error {
	return s.at().Close()
}
