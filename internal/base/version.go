package base

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/pool"
)

// FormatVersion is the version of the file format that this program writes, OldestVersion the oldest that it reads.
const (
	FormatVersion = 5
	OldestVersion = 2
)

// shortKeys is the first version in which all entries have short keys. Version 4 differs from 3 only in that operations list the things that they changed,
// and version 5 from 4 in that calls of other programs' agents have records and are on no branch.
const shortKeys = 3

// CopyMark and MoveMark replace the format number of an unfinished copy and of a store that has moved. Behind them stands which store is copied, or where
// the store went.
const (
	CopyMark = "copy of "
	MoveMark = "moved to "
)

// CheckFormat returns an error if a database is no store, or one of a version that this program does not read.
func CheckFormat(tx kv.Tx) error {
	raw, err := tx.Get(MetaBucket, MetaFormat)
	if err == nil {
		_, err = Version(raw)
	}
	return err
}

// Version returns the number that the value of the format stands for, nil if there is none, or the error of CheckFormat.
func Version(raw []byte) (int, error) {
	version, err := strconv.Atoi(string(raw))
	switch {
	case bytes.HasPrefix(raw, []byte(CopyMark)):
		return 0, Conflict("a copy into this store was begun and is not whole: go on with the same chatctx copy, or remove what is there")
	case bytes.HasPrefix(raw, []byte(MoveMark)):
		return 0, Conflict("this store has moved to %s (where that copy was cut short: go on with the same chatctx copy); to use it here again: chatctx copy --reopen", raw[len(MoveMark):])
	case err != nil:
		return 0, fmt.Errorf("%w: it is a database of another program", kv.ErrNotOurs)
	case version > FormatVersion:
		return 0, fmt.Errorf("%w: its format is %d, this program reads up to %d: update chatctx", kv.ErrTooNew, version, FormatVersion)
	case version < OldestVersion:
		return 0, fmt.Errorf("%w: its format is %d, this program reads %d and later: export it with the chatctx that wrote it", kv.ErrTooOld, version, OldestVersion)
	}
	return version, nil
}

// BringUp rewrites what is stored otherwise in an older version, and sets the number. It is the only place that does so.
func BringUp(tx kv.RwTx, from int) error {
	if from < shortKeys {
		if err := branchstore.ShortenKeys(tx); err != nil {
			return err
		}
	}
	return tx.Put(MetaBucket, MetaFormat, strconv.AppendInt(nil, FormatVersion, 10))
}

// Format guards the version of an open database. Each Update looks at the number, so that a program stops (ErrTooNew) when another one has raised it
// meanwhile. Older versions are read as they are, and the first change brings the database up, in its own transaction.
type Format struct {
	number   atomic.Int32 // of the database, when it was last looked at; 0: it was not, and is today's
	warnings *Warnings
}

// NewFormat returns the guard of a database that is yet to be opened.
func NewFormat(w *Warnings) *Format { return &Format{warnings: w} }

// Found is Version for a database that was just opened.
func (f *Format) Found(raw []byte) error {
	version, err := Version(raw)
	f.number.Store(int32(version))
	return err
}

// Number returns the version of the database.
func (f *Format) Number() int {
	if n := f.number.Load(); n != 0 {
		return int(n)
	}
	return FormatVersion
}

// Older reports whether the database is of an older version than this program writes.
func (f *Format) Older() bool { return f.Number() < FormatVersion }

// Guard returns the database with the guard in front of it.
func (f *Format) Guard(db kv.DB) kv.DB { return guarded{db, f} }

type guarded struct {
	kv.DB
	*Format
}

func (g guarded) View(ctx context.Context, fn func(kv.Tx) error) error {
	return g.DB.View(ctx, func(tx kv.Tx) error {
		if g.Number() < shortKeys {
			tx = branchstore.WithLongKeys(tx)
		}
		return fn(tx)
	})
}

type remakeable struct{}

// Remakeable says that the Updates under ctx only store what can be made again at any time. They are no change: an older store is left as it is, without
// them.
func Remakeable(ctx context.Context) context.Context {
	return context.WithValue(ctx, remakeable{}, true)
}

func (g guarded) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	if ctx.Value(remakeable{}) != nil && g.Older() {
		return nil
	}
	var t *versionTx
	err := g.DB.Update(ctx, func(tx kv.RwTx) (err error) {
		t, err = run(tx, fn)
		return err
	})
	if err == nil {
		g.done(t)
	}
	return err
}

// Edit returns fn for a transaction that is not one of Update, with the same look at the number.
func (f *Format) Edit(fn func(kv.RwTx) error) func(kv.RwTx) error {
	return func(tx kv.RwTx) error {
		_, err := run(tx, fn)
		return err
	}
}

// run calls fn. If fn returns nil for an error of the look at the number, run returns that.
func run(tx kv.RwTx, fn func(kv.RwTx) error) (*versionTx, error) {
	t := &versionTx{Tx: tx, rw: tx}
	if err := fn(t); err != nil {
		return t, err
	}
	return t, t.err
}

// done notes and reports what a transaction did beside its changes.
func (f *Format) done(t *versionTx) {
	if t.from != 0 {
		f.number.Store(FormatVersion)
		f.warnings.Add(fmt.Sprintf("the store was of format %d and was brought to format %d: an older chatctx does not read it any more", t.from, FormatVersion))
	}
	if t.doubt {
		f.warnings.Add(DoubtText)
	}
}

// versionTx looks at the number with the first read, since an engine on a server brings both in one round trip.
type versionTx struct {
	kv.Tx // what fn reads
	rw    kv.RwTx
	seen  bool
	older int // the number, if it is an older one
	from  int // the number from which it was raised
	err   error

	changes bool // it has written
	doubt   bool // it has noted that the newest change may be lost
}

// look reads the number, and names the keys that are read next.
func (t *versionTx) look(next ...kv.Key) error {
	if t.seen {
		return t.err
	}
	t.seen = true
	if t.err = kv.Fetch(t.rw, append([]kv.Key{{Bucket: MetaBucket, Key: MetaFormat}}, next...)...); t.err != nil {
		return t.err
	}
	raw, err := t.rw.Get(MetaBucket, MetaFormat)
	if err != nil {
		t.err = err
		return err
	}
	var version int
	if version, t.err = Version(raw); t.err == nil && version < FormatVersion {
		if t.older = version; version < shortKeys {
			t.Tx = branchstore.WithLongKeys(t.rw)
		}
	}
	return t.err
}

func (t *versionTx) Fetch(keys []kv.Key) error {
	if err := t.look(keys...); err != nil {
		return err
	}
	return kv.Fetch(t.Tx, keys...)
}

func (t *versionTx) Get(bucket string, key []byte) ([]byte, error) {
	if err := t.look(kv.Key{Bucket: bucket, Key: key}); err != nil {
		return nil, err
	}
	return t.Tx.Get(bucket, key)
}

func (t *versionTx) GetMany(bucket string, keys [][]byte, fn func(i int, value []byte) error) error {
	if err := t.look(); err != nil {
		return err
	}
	return t.Tx.GetMany(bucket, keys, fn)
}

func (t *versionTx) Scan(bucket string, r kv.Range, fn func(key, value []byte) error) error {
	if err := t.look(); err != nil {
		return err
	}
	return t.Tx.Scan(bucket, r, fn)
}

func (t *versionTx) Put(bucket string, key, value []byte) error {
	if err := t.change(); err != nil {
		return err
	}
	return t.rw.Put(bucket, key, value)
}

func (t *versionTx) Delete(bucket string, key []byte) error {
	if err := t.change(); err != nil {
		return err
	}
	return t.rw.Delete(bucket, key)
}

// change prepares the first write.
func (t *versionTx) change() error {
	if err := t.look(); err != nil || t.changes {
		return err
	}
	t.changes = true
	if t.older != 0 {
		if t.err = BringUp(t.rw, t.older); t.err == nil {
			t.from, t.older, t.Tx = t.older, 0, t.rw
		}
	}
	if t.err == nil && engine.Doubt(t.rw) {
		t.doubt = true
		t.err = t.rw.Put(MetaBucket, MetaDoubt, binary.BigEndian.AppendUint64(nil, uint64(pool.Now())))
	}
	return t.err
}

// DoubtText is the warning that the newest change may be lost.
const DoubtText = "the newest of the two records at the beginning of the file was damaged and the one before it counts, so the last change before may be lost: " +
	"look whether it is there, and run chatctx check, which ends this warning"
