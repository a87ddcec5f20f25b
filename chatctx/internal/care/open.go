package care

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/pool"
)

// sequential are the buckets whose keys mostly come in order, so that their pages can be filled.
var sequential = []string{"pool", branch.EntryBucket, record.OperationBucket, "artifact", index.DocBucket, index.TermBucket}

// Open opens the store in a file, or at a URL whose scheme has a driver.
//
// It does not wait for other programs, so that a command that finds the store held waits once and not twice.
func Open(path string, o record.Options) (*record.Store, error) {
	var due atomic.Bool
	db, err := openDB(path, o, func(tx kv.Tx) error {
		if err := view.CheckFormat(tx); err != nil {
			return err
		}
		begun, err := tx.Get(record.MetaBucket, metaPurging)
		due.Store(begun != nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	s := newStore(db, o)
	if due.Load() && !o.ReadOnly {
		// Where that cannot be done now, for want of space, all else still can: PurgeDue says it.
		_ = finishPurge(kv.WithPurpose(context.Background(), "purge"), s, &Collected{})
	}
	return s, nil
}

func openDB(path string, o record.Options, check func(kv.Tx) error) (kv.DB, error) {
	if kv.Scheme(path) != "" {
		return openURL(context.Background(), path, o, check)
	}
	return boltkv.Open(path, boltkv.Options{Create: o.Create, ReadOnly: o.ReadOnly, Wait: o.Wait, IdleHold: o.IdleHold,
		Sequential: sequential, Check: check, Init: func(tx kv.RwTx) error { return initStore(tx) }})
}

// openURL opens a database of a server, and makes it where it is not there and Create is set.
func openURL(ctx context.Context, url string, o record.Options, check func(kv.Tx) error) (kv.DB, error) {
	ko := kv.OpenOptions{ReadOnly: o.ReadOnly, Wait: o.Wait, Program: o.Program, Check: check}
	db, err := kv.Open(ctx, url, ko)
	if !errors.Is(err, kv.ErrNotExist) || !o.Create {
		return db, err
	}
	if err := kv.Init(ctx, url, initStore); err != nil && !errors.Is(err, fs.ErrExist) { // somebody else may have been faster
		return nil, err
	}
	return kv.Open(ctx, url, ko)
}

// OpenMemory makes a store in memory, gone with Close.
func OpenMemory(o record.Options) (*record.Store, error) { return OpenDB(memkv.New(), o) }

// OpenDB uses an engine that the caller opened; an empty one becomes a store. Close closes it.
func OpenDB(db kv.DB, o record.Options) (*record.Store, error) {
	err := db.View(context.Background(), view.CheckFormat)
	if errors.Is(err, record.ErrNotOurs) {
		err = db.Update(context.Background(), initEmpty)
	}
	if err != nil {
		return nil, err
	}
	return newStore(db, o), nil
}

func newStore(db kv.DB, o record.Options) *record.Store {
	s := &record.Store{DB: db, Program: o.Program, Person: o.By, Before: o.BeforeStore, Clock: o.Clock, Judge: o.Judge}
	if s.Program == "" {
		s.Program = filepath.Base(os.Args[0])
	}
	if s.Person == "" {
		if u, err := user.Current(); err == nil {
			s.Person = u.Username
		}
	}
	if s.Clock == nil {
		s.Clock = time.Now
	}
	return s
}

func initEmpty(tx kv.RwTx) error {
	for _, bucket := range []string{record.MetaBucket, record.ContextBucket, pool.Bucket} {
		err := tx.Scan(bucket, kv.Range{}, func(_, _ []byte) error {
			return fmt.Errorf("%w: it is a database of another program", kv.ErrNotOurs)
		})
		if err != nil {
			return err
		}
	}
	return initStore(tx)
}

// initStore writes the marks of a new store.
func initStore(tx kv.RwTx) error {
	id := pool.NewID()
	created, err := json.Marshal(time.Now().UTC().Format(time.RFC3339))
	if err != nil {
		return err
	}
	for _, p := range []struct{ key, value []byte }{
		{record.MetaFormat, fmt.Append(nil, record.FormatVersion)}, {record.MetaStore, id[:]}, {record.MetaCreated, created},
	} {
		if err := tx.Put(record.MetaBucket, p.key, p.value); err != nil {
			return err
		}
	}
	return index.Save(tx, index.New(words.Version, false))
}
