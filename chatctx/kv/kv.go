// Package kv is the seam between the store and the engine that keeps its bytes: ordered keys in named buckets, read and written in serializable
// transactions.
//
// Everything above it runs unchanged on any engine that passes chatctx/kv/kvtest. The package itself has no engine: see kv/boltkv for one file on disk,
// kv/memkv for memory, and kv/pgkv for a PostgreSQL server.
package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Tx is a reading transaction. It sees one state of the database, that at its beginning.
type Tx interface {
	// Get returns the value of key, or nil if there is none. An empty value is not nil. The slice is valid until the transaction ends and must not be
	// changed.
	Get(bucket string, key []byte) ([]byte, error)
	// GetMany calls fn once for each key, in the given order, with nil for a key without a value. The value is valid until the transaction ends. An error
	// from fn ends the call and is returned; ErrStop ends it without an error.
	GetMany(bucket string, keys [][]byte, fn func(i int, value []byte) error) error
	// Scan calls fn for each key in r, in order. Key and value are valid until fn returns. An error from fn ends the scan and is returned; ErrStop ends it
	// without an error. A bucket that was never written to is empty. fn must not write.
	Scan(bucket string, r Range, fn func(key, value []byte) error) error
}

// Key names a record or, if Range is not nil, the records of that range.
type Key struct {
	Bucket string
	Key    []byte
	Range  *Range
}

// In names the records of a range.
func In(bucket string, r Range) Key { return Key{Bucket: bucket, Range: &r} }

// Fetch says which records a transaction will read by Get or GetMany, and which ranges from their beginning by Scan. An engine on a server fetches them all
// at once, of a range its beginning; other engines do nothing. Fetch does not change what is read.
func Fetch(tx Tx, keys ...Key) error {
	if f, is := tx.(interface{ Fetch(keys []Key) error }); is {
		return f.Fetch(keys)
	}
	return nil
}

// RwTx reads and writes. It sees its own writes.
type RwTx interface {
	Tx
	// Put sets a value, and makes the bucket if it does not exist. The engine copies key and value or uses them until the transaction ends, so the caller
	// must not change them before. It returns ErrTooLarge for a key or value that the engine cannot hold.
	Put(bucket string, key, value []byte) error
	// Delete removes a key. A missing key is no error.
	Delete(bucket string, key []byte) error
}

// DB is an open database. Many goroutines may use it at the same time.
type DB interface {
	// View runs fn in a reading transaction. Keep it short: an engine may hold a file for it.
	View(ctx context.Context, fn func(Tx) error) error
	// Update runs fn in a writing transaction and returns once its writes are durable. If fn fails, nothing is written and its error is returned unchanged.
	// fn may run more than once (transactions are committed in groups, and retried), so it must have no effects outside the transaction except those that a
	// further run replaces.
	Update(ctx context.Context, fn func(RwTx) error) error
	// Watch returns a channel that gets a value within 300 ms after a commit of this or another process may have changed a key with the prefix in the
	// bucket. Several commits may give one value, and a value may come without a change. The channel is closed when ctx ends or the database is closed.
	Watch(ctx context.Context, bucket string, prefix []byte) (<-chan struct{}, error)
	// Close closes the database after the transactions under way. A second Close does nothing.
	Close() error
}

// Keeper is implemented by engines that keep a file.
type Keeper interface {
	// Backup writes a copy of one state of the database to w. However slow w is, writers wait only for a copy on disk.
	Backup(ctx context.Context, w io.Writer) error
	// Rewrite copies the database to a new file without free space and puts that in the place of the old one. Other processes wait or go on with the new
	// file. The changes of edit, if it is not nil, are made in the new file alone, which never has a byte of what edit deletes; its writes are held in
	// memory. If anything fails, the old file stays.
	Rewrite(ctx context.Context, edit func(RwTx) error) error
	// CheckPages reads the whole file and calls problem for each fault of the engine's own structure. It returns ErrDamaged if reading all records would
	// never end.
	CheckPages(ctx context.Context, problem func(text string)) error
	Sized
}

// Sized is implemented by engines that know the size of the database.
type Sized interface {
	// Space returns the size of the database.
	Space(ctx context.Context) (Space, error)
}

// Care is a task that concerns a database as a whole.
type Care string

// The kinds of care.
const (
	CareBackup  Care = "backup"  // make a copy
	CareRestore Care = "restore" // put a copy in its place
	CareVacuum  Care = "vacuum"  // give back free space
	CarePages   Care = "pages"   // check the engine's own structure
	CareErase   Care = "erase"   // erase the bytes of what was deleted
)

// Space is the size of a database in bytes. Used and Free add up to File. RewriteDue says that so much is free that a Rewrite would make the database
// faster.
type Space struct {
	File       int64 `json:"file_bytes"`
	Used       int64 `json:"used_bytes"`
	Free       int64 `json:"free_bytes"`
	RewriteDue bool  `json:"-"`
}

// Range is a part of a bucket: the keys from From (inclusive) to To (exclusive), where nil means the end of the bucket. With Reverse the same keys come
// last first.
type Range struct {
	From, To []byte
	Reverse  bool
}

// Prefix returns the range of all keys with the prefix p.
func Prefix(p []byte) Range {
	to := bytes.Clone(p)
	for i := len(to) - 1; i >= 0; i-- {
		to[i]++
		if to[i] != 0 {
			return Range{From: p, To: to[:i+1]}
		}
	}
	return Range{From: p}
}

// MaxKey and MaxValue are the sizes in bytes that the engines of this module hold; another engine may hold less. Layers above stay far below both: their
// keys are under 1 KB, and large contents are cut into pieces of 256 KiB.
const (
	MaxKey   = 32 << 10
	MaxValue = 64 << 20
)

// Fits is the check that an engine with these limits makes before a Put. It returns nil, an ErrTooLarge that says what is too large, or another error if
// the name of the bucket or the key is empty.
func Fits(bucket string, key, value []byte) error {
	switch {
	case bucket == "":
		return errors.New("kv: a bucket needs a name")
	case len(key) == 0:
		return fmt.Errorf("kv: a key in bucket %s is empty", bucket)
	case len(key) > MaxKey:
		return fmt.Errorf("%w: a key of %d bytes in bucket %s, at most %d", ErrTooLarge, len(key), bucket, MaxKey)
	case len(value) > MaxValue:
		return fmt.Errorf("%w: a value of %d bytes in bucket %s, at most %d", ErrTooLarge, len(value), bucket, MaxValue)
	}
	return nil
}

// Errors to test for with errors.Is.
var (
	// ErrStop, returned by a callback of Scan or GetMany, ends it without an error.
	ErrStop = errors.New("kv: stop")
	// ErrClosed means that the database was closed.
	ErrClosed = errors.New("the store was closed")
	// ErrNotExist means that there is no database at that path, and none was to be made.
	ErrNotExist = errors.New("no store there")
	// ErrNotOurs means that the file is something else: text, another program's database, a folder, an empty file.
	ErrNotOurs = errors.New("not a chatctx store")
	// ErrTooNew means that a newer program made this file.
	ErrTooNew = errors.New("the store is from a newer version of chatctx")
	// ErrTooOld means that the file's format is no longer read.
	ErrTooOld = errors.New("the store's format is too old")
	// ErrDamaged means that the file was a store but cannot be read any more.
	ErrDamaged = errors.New("the store is damaged")
	// ErrLocked means that others held the file for longer than the wait. The error is a *LockedError that names them.
	ErrLocked = errors.New("the store is locked")
	// ErrReadOnly means that the file, or its handle, can only be read.
	ErrReadOnly = errors.New("the store can only be read")
	// ErrTooLarge means that the engine cannot hold a key or value.
	ErrTooLarge = errors.New("too large for the engine")
	// ErrEnded means that a transaction was used after its function had returned.
	ErrEnded = errors.New("kv: the transaction has ended")
	// ErrUnknownOutcome means that the last step of a commit failed: its changes may be stored or not.
	ErrUnknownOutcome = errors.New("it is not known whether the change was stored")
)

// Holder is a program that uses a database. Zero fields are unknown.
type Holder struct {
	PID     int       `json:"pid,omitempty"`
	Command string    `json:"command,omitempty"`
	Purpose string    `json:"purpose,omitempty"`
	Since   time.Time `json:"since"`
	// Waits means that it does not have the database open: it is the next to enter, and nobody passes it.
	Waits bool `json:"waits,omitempty"`
}

// String says in words who it is and what it does there.
func (h Holder) String() string {
	who := "another program"
	if h.PID != 0 {
		who = fmt.Sprintf("%s (process %d)", h.Command, h.PID)
	}
	if h.Purpose != "" {
		who += " for " + h.Purpose
	}
	does := "has it open"
	switch {
	case h.Waits:
		return who + " waits for it too: if no other program has it open, that one was stopped: let it go on, or end it"
	case !h.Since.IsZero():
		does = "has had it open since " + h.Since.Local().Format("15:04:05")
	}
	return who + " " + does
}

// LockedError is the ErrLocked after a wait that was too long.
type LockedError struct {
	Holder Holder
	Waited time.Duration
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("the store is locked: %s; waited %s", e.Holder, e.Waited.Round(time.Millisecond))
}

// Unwrap returns ErrLocked.
func (e *LockedError) Unwrap() error { return ErrLocked }
