package care

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/pool"
)

// sequential lists the buckets whose keys mostly come in order, so that their pages can be filled.
var sequential = []string{"pool", branchstore.EntryBucket, base.OperationBucket, "artifact", index.DocBucket, index.TermBucket}

// Open opens the store in a file, or at a URL whose scheme has a driver.
//
// It does not wait for other programs, so a command that finds the store held waits once and not twice.
func Open(path string, o record.OpenOptions) (*base.Store, error) {
	if err := base.CheckOptions(&o); err != nil {
		return nil, err
	}
	found := &opening{warnings: &base.Warnings{}}
	found.format = base.NewFormat(found.warnings)
	db, err := openDB(path, o, found.check)
	if err != nil {
		return nil, err
	}
	s := newStore(db, o, found.format, found.warnings)
	s.Folders = folders(path)
	s.Sweeping = base.NewSweeping(func() { Leftovers(s) })
	if found.settle(s, path, o) && !o.ReadOnly {
		finish := finishLater(s)
		if s.Unfinished = finish; !found.format.Older() { // opening changes nothing of an older one
			finish()
		}
	}
	return s, nil
}

// finishLater returns what finishes a purge that was cut short, once. If that fails, for want of space, all else still works; PurgeDue reports it.
func finishLater(s *base.Store) func() {
	var begun atomic.Bool
	return func() {
		if begun.CompareAndSwap(false, true) { // it changes the store itself
			_ = finishPurge(engine.WithPurpose(context.Background(), "purge"), s, &record.Collected{})
		}
	}
}

// opening is what Open reads of a store, in one round trip.
type opening struct {
	format   *base.Format
	warnings *base.Warnings

	mu  sync.Mutex // an engine checks again after the file was replaced
	id  pool.ID
	due bool // a purge was cut short
}

var openingKeys = [][]byte{base.MetaFormat, base.MetaStore, metaPurging, base.MetaDoubt}

func (f *opening) check(tx kv.Tx) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if engine.Doubt(tx) {
		f.warnings.Add(base.DoubtText)
	}
	return tx.GetMany(base.MetaBucket, openingKeys, func(i int, value []byte) error {
		switch {
		case i == 0:
			return f.format.Found(value)
		case i == 1 && len(value) == len(f.id):
			f.id = pool.ID(value)
		case i == 2:
			f.due = value != nil
		case i == 3 && value != nil:
			f.warnings.Add(base.DoubtText)
		}
		return nil
	})
}

// settle sets the store's fields from what was read, and reports whether a purge was cut short.
func (f *opening) settle(s *base.Store, path string, o record.OpenOptions) (due bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.ID = f.id; kv.Scheme(path) != "" && o.Place != nil {
		s.Place = o.Place(s.ID)
	}
	return f.due
}

// openDB first removes what programs left that were killed: such a file may hold all of the store.
func openDB(path string, o record.OpenOptions, check func(kv.Tx) error) (kv.DB, error) {
	leftover.Sweep(folders(path)...)
	if kv.Scheme(path) != "" {
		return openURL(context.Background(), path, o, check)
	}
	return boltkv.Open(path, boltkv.Options{Create: o.Create, ReadOnly: o.ReadOnly, Wait: o.Wait, IdleHold: o.IdleHold,
		Sequential: sequential, Check: check, Init: func(tx kv.RwTx) error { return initStore(tx) }})
}

// folders are those in which programs that use a store make files which they remove again.
func folders(path string) []string {
	all := []string{os.TempDir()}
	if kv.Scheme(path) != "" {
		return all
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		all = append(all, filepath.Dir(real))
	}
	return append(all, filepath.Dir(path))
}

// Leftovers removes what programs left that were killed while they used the store: copies of it, and files of imports, exports and dry runs. It returns what
// else of the kind is there, in the store's folder and in that for temporary files: it belongs to programs that run, or cannot be removed. Each may hold all of
// the store.
func Leftovers(s *base.Store) []string { return leftover.Sweep(s.Folders...) }

// openURL opens a database on a server. If it does not exist and Create is set, it makes it.
func openURL(ctx context.Context, url string, o record.OpenOptions, check func(kv.Tx) error) (kv.DB, error) {
	ko := kv.OpenOptions{ReadOnly: o.ReadOnly, Wait: o.Wait, Program: o.Program, Check: check}
	for _, key := range openingKeys {
		ko.Checks = append(ko.Checks, kv.Key{Bucket: base.MetaBucket, Key: key})
	}
	db, err := kv.Open(ctx, url, ko)
	if !errors.Is(err, kv.ErrNotExist) || !o.Create {
		return db, err
	}
	if err := kv.Init(ctx, url, initStore); err != nil && !errors.Is(err, fs.ErrExist) { // another program may have made it first
		return nil, err
	}
	return kv.Open(ctx, url, ko)
}

// OpenMemory makes a store in memory. Close discards it.
func OpenMemory(o record.OpenOptions) (*base.Store, error) { return OpenDB(memkv.New(), o) }

// OpenDB makes a store of an engine that the caller opened; an empty one is initialised. The store's Close closes the engine.
func OpenDB(db kv.DB, o record.OpenOptions) (*base.Store, error) {
	if err := base.CheckOptions(&o); err != nil {
		return nil, err
	}
	w := &base.Warnings{}
	format := base.NewFormat(w)
	err := db.View(context.Background(), func(tx kv.Tx) error {
		raw, err := tx.Get(base.MetaBucket, base.MetaFormat)
		if err != nil {
			return err
		}
		return format.Found(raw)
	})
	if errors.Is(err, base.ErrNotOurs) {
		err = db.Update(context.Background(), initEmpty)
	}
	if err != nil {
		return nil, err
	}
	return newStore(db, o, format, w), nil
}

func newStore(db kv.DB, o record.OpenOptions, format *base.Format, w *base.Warnings) *base.Store {
	s := &base.Store{DB: format.Guard(db), Engine: db, Program: o.Program, Person: o.By, Before: o.BeforeStore, Clock: o.Clock, Judge: o.Judge,
		Indexing: &base.Beside{Step: find.IndexStep}, Hints: &base.Hints{}, Format: format, Warnings: w}
	if s.Program == "" {
		s.Program = strings.ToValidUTF8(filepath.Base(os.Args[0]), "\uFFFD")
	}
	local := ""
	if u, err := user.Current(); err == nil {
		local = strings.ToValidUTF8(u.Username, "\uFFFD")
	}
	s.Person = cmp.Or(s.Person, local)
	if h, is := db.(engine.Hosted); is {
		s.User = h.User() + "/" + local
	}
	if g, is := db.(engine.Guarded); is {
		g.Guard(base.Guard)
	}
	if s.Clock == nil {
		s.Clock = clockOf(db)
	}
	return s
}

// clockOf returns the clock that all users of a database share, else this machine's. While the server does not answer, this machine's must do: nothing can
// be stored then.
func clockOf(db kv.DB) func() time.Time {
	c, is := db.(kv.Clock)
	if !is {
		return time.Now
	}
	return func() time.Time {
		now, err := c.Now(context.Background())
		if err != nil {
			return time.Now()
		}
		return now
	}
}

func initEmpty(tx kv.RwTx) error {
	for _, bucket := range []string{base.MetaBucket, base.ContextBucket, poolstore.Bucket} {
		err := tx.Scan(bucket, kv.Range{}, func(_, _ []byte) error {
			return fmt.Errorf("%w: it is a database of another program", kv.ErrNotOurs)
		})
		if err != nil {
			return err
		}
	}
	return initStore(tx)
}

// initStore writes the format, id and date of a new store.
func initStore(tx kv.RwTx) error {
	id := pool.NewID()
	created := jsontree.AppendString(nil, time.Now().UTC().Format(time.RFC3339))
	for _, p := range []struct{ key, value []byte }{
		{base.MetaFormat, fmt.Append(nil, base.FormatVersion)}, {base.MetaStore, id[:]}, {base.MetaCreated, created},
	} {
		if err := tx.Put(base.MetaBucket, p.key, p.value); err != nil {
			return err
		}
	}
	return index.Save(tx, index.New(words.Version, false))
}
