package journal

import (
	"bytes"
	"cmp"
	"fmt"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// keyLife is how long an idempotency key counts.
const keyLife = pool.Time(24 * time.Hour / time.Microsecond)

// keyRecord is what an idempotency key made. It has ids, since names change.
type keyRecord struct {
	At       pool.Time   `cbor:"1,keyasint"`
	Branch   pool.ID     `cbor:"2,keyasint"`
	Placed   []keptPlace `cbor:"3,keyasint,omitempty"`
	Revision uint64      `cbor:"4,keyasint"`
}

// keptPlace is a Placement in a keyRecord.
type keptPlace struct {
	Message  pool.ID `cbor:"1,keyasint"`
	Position int     `cbor:"2,keyasint"`
}

// KeyRange holds the record of a key, and nothing else. An engine that does without scans in an Update reads a range aside (engine.Guarded); to read the record by its key, which most often is not
// there, would meet whoever puts another context's key beside it.
func KeyRange(id pool.ID, key string) kv.Range {
	at := base.Under(id, []byte(key)...)
	return kv.Range{From: at, To: append(bytes.Clone(at), 0)}
}

// Known reports whether an append of msgs with this key was made already, and puts what it made into made. An empty key is never known. It returns
// ErrConflict if the key was used on another branch or for other messages, or if one of these has left the branch: then neither doing nothing nor appending
// them again is what the caller wants.
func (t *Txn) Known(key string, msgs []*pool.Message, made *record.Step) (bool, error) {
	if key == "" {
		return false, nil
	}
	if err := base.CheckKey("the key of an append", key); err != nil {
		return false, err
	}
	var rec keyRecord
	ok := false
	err := t.Tx.Scan(base.KeyBucket, KeyRange(t.ID, key), func(_, value []byte) error {
		ok = true
		return base.DecodeKept(base.KeyBucket, value, &rec)
	})
	if err != nil || !ok || rec.At+keyLife < t.Now {
		return false, err
	}
	b, err := view.BranchByID(t.Tx, t.ID, rec.Branch)
	if err != nil {
		return false, err
	}
	if b == nil || b.ID != t.Target.ID {
		where := "a branch that is gone"
		if b != nil {
			where = fmt.Sprintf("the branch %q", b.Name)
		}
		if len(rec.Placed) > 0 {
			where += fmt.Sprintf(", for message %s", rec.Placed[0].Message)
		}
		return false, base.Conflict("the key %q was used on %s: take another key", key, where)
	}
	if err := t.asMade(key, &rec, msgs); err != nil {
		return false, err
	}
	*made = record.Step{What: made.What, Branch: b.Name, Revision: rec.Revision, Again: true}
	for _, p := range rec.Placed {
		made.Placed = append(made.Placed, record.Placement{Message: p.Message, Position: p.Position})
	}
	return true, nil
}

// asMade checks that a key made exactly these messages, and that they are still on the branch or wait for it.
func (t *Txn) asMade(key string, rec *keyRecord, msgs []*pool.Message) error {
	if len(rec.Placed) != len(msgs) {
		return base.Conflict("the key %q was used for %s, not %d: take another key", key, plural.Count(len(rec.Placed), "message"), len(msgs))
	}
	queued := map[pool.ID]bool{}
	err := t.Tx.Scan(base.QueuedBucket, kv.Prefix(base.Under(t.ID, rec.Branch[:]...)), func(_, value []byte) error {
		if len(value) == len(pool.ID{}) {
			queued[pool.ID(value)] = true
		}
		return nil
	})
	for i, p := range rec.Placed {
		if err != nil {
			return err
		}
		var was *pool.Message
		if was, err = poolstore.Get(t.Tx, t.ID, p.Message); err != nil {
			return err
		}
		at := 0
		if was != nil {
			if same, err := poolstore.Same(was, msgs[i]); err != nil || !same {
				return cmp.Or(err, base.Conflict("the key %q was used for message %s, which says something else: take another key", key, p.Message))
			}
			at, err = t.Reader().StandsAt(t.Target, was)
		}
		if at == 0 && !queued[p.Message] && err == nil {
			err = base.Conflict("the key %q was used for message %s, which is no longer on the branch: take another key to add it again", key, p.Message)
		}
	}
	return err
}

// MostKey is the longest key of an append, in bytes.
const MostKey = 1000

// CheckKey returns ErrInvalid if the key cannot be stored.
func CheckKey(o *record.AppendOptions) error {
	if len(o.Key) > MostKey || !utf8.ValidString(o.Key) {
		return base.Invalid("the key must be UTF-8 of at most %d bytes, and has %d", MostKey, len(o.Key))
	}
	return nil
}

// Appending is an append in a batch.
type Appending struct {
	Msgs  []*pool.Message
	O     record.AppendOptions
	Fresh map[pool.ID]pool.ID // of CopyIDs
}

// Step appends the messages, unless the key is known.
func (a *Appending) Step(t *Txn, s *record.Step) error {
	if again, err := t.Known(a.O.Key, a.Msgs, s); again || err != nil {
		return err
	}
	if err := t.Expect(a.O.Expect); err != nil {
		return err
	}
	msgs, err := t.Copies(a.Msgs, a.Fresh)
	if err != nil {
		return err
	}
	if s.Placed, err = t.Append(t.Target, msgs); err != nil {
		return err
	}
	if err := t.Begins(a.O); err != nil {
		return err
	}
	return t.Stands(s, t.Target)
}

// Begins sets the system prompt that an append brings along.
func (t *Txn) Begins(o record.AppendOptions) error {
	if o.System == "" {
		return nil
	}
	return t.SetPrompt(&t.Target.System, o.System)
}

// SetPrompt sets a prompt of the batch's branch, which is a field of it; "" removes it.
func (t *Txn) SetPrompt(of *string, text string) error {
	id, err := t.PutPrompt(text)
	if err == nil && *of != id {
		*of = id
		t.Touch(t.Target)
	}
	return err
}

// Expect returns ErrConflict if a revision is expected and the branch is at another one.
func (t *Txn) Expect(revision *uint64) error {
	if revision != nil && *revision != t.Target.Revision {
		return base.Conflict("the branch %q is at revision %d, not %d: read it again", t.Target.Name, t.Target.Revision, *revision)
	}
	return nil
}

// keysEvery says at which revisions of a branch keys are checked for their age, and keysLooked how many: as they are more than come meanwhile, old keys go faster than new ones come. At each
// revision it would cost every append a scan.
const (
	keysEvery  = 8
	keysLooked = 64
)

// Keep stores what a key made, and now and then removes neighbouring keys that are too old.
func (t *Txn) Keep(key string, made *record.Step) error {
	if key == "" || made.Again {
		return nil
	}
	if made.Revision%keysEvery == 0 {
		if err := t.dropOldKeys(key); err != nil {
			return err
		}
	}
	rec := keyRecord{At: t.Now, Branch: t.on[made], Revision: made.Revision}
	for _, p := range made.Placed {
		rec.Placed = append(rec.Placed, keptPlace{p.Message, p.Position})
	}
	return base.PutRecord(t.Tx, base.KeyBucket, base.Under(t.ID, []byte(key)...), rec)
}

// dropOldKeys removes those of the keys that follow one which are too old.
func (t *Txn) dropOldKeys(key string) error {
	var old [][]byte
	r := kv.Prefix(t.ID[:])
	r.From = base.Under(t.ID, []byte(key)...)
	left := keysLooked
	err := t.Tx.Scan(base.KeyBucket, r, func(k, value []byte) error {
		var rec keyRecord
		if err := stored.Unmarshal(value, &rec); err != nil || rec.At+keyLife < t.Now {
			old = append(old, bytes.Clone(k))
		}
		if left--; left == 0 {
			return kv.ErrStop
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, k := range old {
		if err := t.Tx.Delete(base.KeyBucket, k); err != nil {
			return err
		}
	}
	return nil
}

// Group ties the operations of several batches together, so that they are undone as one command.
type Group struct {
	mu    sync.Mutex
	begun map[pool.ID]begun // by context
}

// begun is the part of a group in a context: the operation with which it began there, or began anew after somebody else's (Txn.regroup), and the newest one.
type begun struct{ first, last uint64 }

// NewGroup returns a group without operations.
func NewGroup() *Group { return &Group{begun: map[pool.ID]begun{}} }

// Join makes an operation a part of the group, which may be nil. It counts once it is stored.
func (g *Group) Join(t *Txn) {
	if g == nil {
		return
	}
	at := g.Begun(t.ID)
	t.joined = g
	if t.group, t.ours = at.first, at.last; t.group == 0 {
		t.group = t.number()
	}
}

// stored records an operation that joined the group.
func (g *Group) stored(done *record.Committed, group uint64) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.begun[done.Context]
	g.begun[done.Context] = begun{max(at.first, group), max(at.last, OperationNumber(done.Operation))}
}

// Begun returns the group's part in a context, zero if it has no operation there.
func (g *Group) Begun(id pool.ID) begun {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.begun[id]
}

// OperationNumber returns the number of a context's operation.
func OperationNumber(op string) uint64 {
	n, _ := strconv.ParseUint(op, 10, 64)
	return n
}
