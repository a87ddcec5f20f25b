// Package kv is the seam between the store and the engine that keeps its bytes: ordered keys in named buckets, read and
// written in serializable transactions.
//
// Everything above it runs unchanged on any engine that passes chatctx/kv/kvtest. The package itself holds no engine: see
// kv/boltkv for one file on disk and kv/memkv for one in memory.
package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Tx reads. It sees one state of the database, the one at its begin.
type Tx interface {
	// Get returns the value of key, or nil if there is none. An empty value is not nil. The slice lives until the
	// transaction ends and must not be written to.
	Get(bucket string, key []byte) ([]byte, error)
	// GetMany calls fn once for each key, in the order given, with nil for a key that has no value. The value lives until
	// the transaction ends. An error from fn ends the call and is returned; ErrStop ends it with nil.
	GetMany(bucket string, keys [][]byte, fn func(i int, value []byte) error) error
	// Scan calls fn for each key in r, in order. Key and value live until fn returns. An error from fn ends the scan and is
	// returned; ErrStop ends it with nil. A bucket that was never written to is empty. fn must not write.
	Scan(bucket string, r Range, fn func(key, value []byte) error) error
}

// Key names a record, or where Range is not nil the records of a Scan of that range.
type Key struct {
	Bucket string
	Key    []byte
	Range  *Range
}

// In names the records of a range.
func In(bucket string, r Range) Key { return Key{Bucket: bucket, Range: &r} }

// Fetch says which records a transaction is going to read by Get or GetMany, and which ranges from their beginning by Scan. An
// engine whose reads take a way to a server brings them all at once, of a range what comes first; others do nothing. It changes
// nothing of what is read.
func Fetch(tx Tx, keys ...Key) error {
	if f, is := tx.(interface{ Fetch(keys []Key) error }); is {
		return f.Fetch(keys)
	}
	return nil
}

// RwTx reads and writes. It sees its own writes.
type RwTx interface {
	Tx
	// Put sets a value, in a bucket that is made when it is not there. The engine copies key and value or uses them until
	// the transaction ends; the caller does not change them meanwhile. ErrTooLarge names a key or value that the engine
	// cannot hold.
	Put(bucket string, key, value []byte) error
	// Delete removes a key. One that is not there is no error.
	Delete(bucket string, key []byte) error
}

// DB is an open database. Its methods may be called by many goroutines.
type DB interface {
	// View runs fn in a reading transaction. Keep it short: an engine may hold a file for it.
	View(ctx context.Context, fn func(Tx) error) error
	// Update runs fn in a writing transaction and returns once what it wrote is durable. If fn fails, nothing of it is
	// written and its error is returned as it is. fn may run more than once (transactions are committed in groups, and
	// retried), so it has no effect outside the transaction but ones that a second run replaces.
	Update(ctx context.Context, fn func(RwTx) error) error
	// Watch returns a channel that gets a value some time, at most 300 ms, after a commit of this or another process may
	// have changed a key of the bucket with the prefix. Several commits may give one value, and a value may come for
	// nothing. The channel is closed when ctx ends or the database is closed.
	Watch(ctx context.Context, bucket string, prefix []byte) (<-chan struct{}, error)
	// Close ends the use of the database. Transactions under way end first. A second Close does nothing.
	Close() error
}

// Keeper is what an engine that keeps a file offers beyond DB.
type Keeper interface {
	// Backup writes a copy of the database, one state of it, to w. However slow w is, writers wait only for a copy on disk.
	Backup(ctx context.Context, w io.Writer) error
	// Rewrite puts the database into a new file without free space and swaps it in. Other processes wait or go on with the
	// new file. What edit does, if it is not nil, becomes part of the new file alone, and of what it deletes not a byte is
	// left there; what it writes is held in memory. If anything fails, the old file stays.
	Rewrite(ctx context.Context, edit func(RwTx) error) error
	// CheckPages reads the whole file and calls problem for each fault of the engine's own structure. ErrDamaged where reading
	// all records would never end.
	CheckPages(ctx context.Context, problem func(text string)) error
	Sized
}

// Sized is what an engine offers that knows what the database takes.
type Sized interface {
	// Space tells what the database takes.
	Space(ctx context.Context) (Space, error)
}

// Hosted is what an engine offers whose bytes a server keeps: that one's own programs do what a Keeper does for a file.
type Hosted interface {
	// User is who the server takes this program for.
	User() string
	// Instead says in a sentence what to do in place of what a Keeper does: a line to type, in which no password stands.
	Instead(of Care) string
}

// Guarded is what an engine offers whose Updates do without scans where they can: it scans beforehand and sees by a record's key whether that still holds.
type Guarded interface {
	// Guard says what guards a range: a record that, once it is changed by an Update that changes a record of the range, never has an earlier value again; nil where there is none. An Update that
	// changes a record of the range alone is noted by the engine itself. A Key without a key has no record, only that note. It is called before the database is used, and all programs say the same.
	Guard(of func(bucket string, r Range) *Key)
}

// Namer is what an engine offers that tells watchers which keys changed.
type Namer interface {
	// WatchNames is DB.Watch with a function that takes the keys that may have changed since it was called last: some as they are, of others at least the first 16 bytes. all: any may have.
	WatchNames(ctx context.Context, bucket string, prefix []byte) (signal <-chan struct{}, changed func() (keys [][]byte, all bool), err error)
}

// Granter is what an engine offers that knows users.
type Granter interface {
	// Grant gives a user of the database one role and takes the others away. fs.ErrNotExist where there is no such user,
	// fs.ErrPermission where this one may not grant.
	Grant(ctx context.Context, role Role, user string) error
}

// Role is what a user may do with a database.
type Role string

// The roles. An owner may do everything, a writer read and change records, a reader read them.
const (
	RoleOwner  Role = "owner"
	RoleWriter Role = "writer"
	RoleReader Role = "reader"
	RoleNone   Role = "none"
)

// Care is something that is done with a database as a whole.
type Care string

// The kinds of care.
const (
	CareBackup  Care = "backup"  // a copy of it
	CareRestore Care = "restore" // a copy put in its place
	CareVacuum  Care = "vacuum"  // free space given back
	CarePages   Care = "pages"   // the engine's own structure looked through
	CareErase   Care = "erase"   // where bytes of what was deleted are left, and how they go
)

// Space is the size of a database file in bytes. Used and Free add up to File. RewriteDue says that so much of it is free that
// a Rewrite would make it faster.
type Space struct {
	File, Used, Free int64
	RewriteDue       bool
}

// Range is a part of a bucket: keys from From (included) to To (not included), nil for the ends of the bucket. Reverse
// gives the same keys last first.
type Range struct {
	From, To []byte
	Reverse  bool
}

// Prefix is the range of all keys that begin with p.
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

// MaxKey and MaxValue are the sizes in bytes that the engines of this module hold; another engine may hold less. Layers above
// stay far below both: their keys are under 1 KB, and what is large is cut into pieces of 256 KiB.
const (
	MaxKey   = 32 << 10
	MaxValue = 64 << 20
)

// Fits is the check that an engine with these limits makes before a Put: nil, an ErrTooLarge that says what and how large, or
// another error where the bucket's name or the key is empty.
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

// Errors that a caller may test with errors.Is.
var (
	// ErrStop, returned by a callback of Scan or GetMany, ends it without an error.
	ErrStop = errors.New("kv: stop")
	// ErrClosed: the database was closed.
	ErrClosed = errors.New("the store was closed")
	// ErrNotExist: there is no database at that path, and none was to be made.
	ErrNotExist = errors.New("no store there")
	// ErrNotOurs: the file is something else: text, another program's database, a folder, an empty file.
	ErrNotOurs = errors.New("not a chatctx store")
	// ErrTooNew: a newer program made this file.
	ErrTooNew = errors.New("the store is from a newer version of chatctx")
	// ErrTooOld: the file's format is no longer read.
	ErrTooOld = errors.New("the store's format is too old")
	// ErrDamaged: the file was a store and cannot be read any more.
	ErrDamaged = errors.New("the store is damaged")
	// ErrLocked: somebody else held the file for longer than the wait. A *LockedError says who.
	ErrLocked = errors.New("the store is locked")
	// ErrReadOnly: a write to a file, or through a handle, that can only be read.
	ErrReadOnly = errors.New("the store can only be read")
	// ErrTooLarge: a key or value that the engine cannot hold.
	ErrTooLarge = errors.New("too large for the engine")
	// ErrEnded: a transaction was used after the function it was given to had returned.
	ErrEnded = errors.New("kv: the transaction has ended")
	// ErrUnknownOutcome: the last step of a commit failed; what it wrote may be there or not.
	ErrUnknownOutcome = errors.New("it is not known whether the change was stored")
)

// Holder is who has a database in use. Zero fields are unknown.
type Holder struct {
	PID     int       `json:"pid,omitempty"`
	Command string    `json:"command,omitempty"`
	Purpose string    `json:"purpose,omitempty"`
	Since   time.Time `json:"since"`
}

// LockedError is the ErrLocked of a wait that ran out.
type LockedError struct {
	Holder Holder
	Waited time.Duration
}

func (e *LockedError) Error() string {
	h := e.Holder
	who := "another program"
	if h.PID != 0 {
		who = fmt.Sprintf("%s (process %d)", h.Command, h.PID)
	}
	if h.Purpose != "" {
		who += " for " + h.Purpose
	}
	has := "has it open"
	if !h.Since.IsZero() {
		has = "has had it open since " + h.Since.Local().Format("15:04:05")
	}
	return fmt.Sprintf("the store is locked: %s %s; waited %s", who, has, e.Waited.Round(time.Millisecond))
}

// Unwrap makes errors.Is(e, ErrLocked) true.
func (e *LockedError) Unwrap() error { return ErrLocked }

type purposeKey struct{}

// WithPurpose says what the transactions under ctx are for: a word that others see while they wait. Waits do not run out
// against a holder whose purpose is one of LongPurposes.
func WithPurpose(ctx context.Context, purpose string) context.Context {
	return context.WithValue(ctx, purposeKey{}, purpose)
}

// Purpose is what WithPurpose said, or "".
func Purpose(ctx context.Context) string {
	p, _ := ctx.Value(purposeKey{}).(string)
	return p
}

// LongPurposes are the uses that may hold a file for as long as the disk takes.
var LongPurposes = []string{"backup", "vacuum", "purge", "check", "gc", "redact", "repair", "restore", "index"}
