package chatctx

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// keyLife is how long an idempotency key is known.
const keyLife = pool.Time(24 * time.Hour / time.Microsecond)

// keyRecord is what an idempotency key made, by ids: names change.
type keyRecord struct {
	At       pool.Time   `cbor:"1,keyasint"`
	Branch   ID          `cbor:"2,keyasint"`
	Placed   []Placement `cbor:"3,keyasint,omitempty"`
	Revision uint64      `cbor:"4,keyasint"`
}

// known looks for what an append with this key has made already. No key is known.
func (t *txn) known(key string, made *Appended) (bool, error) {
	if key == "" {
		return false, nil
	}
	var rec keyRecord
	ok, err := getRecord(t.tx, keyBucket, under(t.id, []byte(key)...), &rec)
	if err != nil || !ok || rec.At+keyLife < t.now {
		return false, err
	}
	*made = Appended{Context: t.id, Placed: rec.Placed, Revision: rec.Revision, Again: true}
	b, err := branchByID(t.tx, t.id, rec.Branch)
	if b != nil {
		made.Branch = b.Name
	}
	return true, err
}

// appending is an append of a batch.
type appending struct {
	msgs  []*Message
	o     AppendOptions
	fresh map[ID]ID // the ids that messages of other contexts get, by those that they come with
	res   *Appended
	on    ID // the branch
}

// copyIDs makes the ids for messages of other contexts.
func (a *appending) copyIDs() {
	a.fresh = map[ID]ID{}
	for _, m := range a.msgs {
		if a.o.Copies && m.ID != (ID{}) && a.fresh[m.ID] == (ID{}) {
			a.fresh[m.ID] = pool.NewID()
		}
	}
}

func (a *appending) step(t *txn) error {
	if again, err := t.known(a.o.Key, a.res); again || err != nil {
		return err
	}
	if err := t.expect(a.o.Expect); err != nil {
		return err
	}
	msgs, err := t.copies(a.msgs, a.fresh)
	if err != nil {
		return err
	}
	*a.res, a.on = Appended{Context: t.id, Branch: t.target.Name}, t.target.ID
	a.res.Placed, err = t.append(t.target, msgs)
	return err
}

// expect refuses a branch that is at another revision, if one is expected.
func (t *txn) expect(revision *uint64) error {
	if revision != nil && *revision != t.target.Revision {
		return conflict("the branch %q is at revision %d, not %d: read it again", t.target.Name, t.target.Revision, *revision)
	}
	return nil
}

// finish notes what the finished operation made of the append, also under its key.
func (a *appending) finish(t *txn) error {
	if a.res.Again {
		return nil
	}
	if l := t.branches[a.on]; l != nil {
		a.res.Branch, a.res.Revision = l.Name, l.Revision
	}
	return t.keep(a.o.Key, a.on, a.res)
}

// again reports whether the batch was made before: its appends have keys, and all of these are known.
func (b *Batch) again(t *txn) (bool, error) {
	keyed := false
	for _, a := range b.appends {
		known, err := t.known(a.o.Key, a.res)
		if err != nil || a.o.Key != "" && !known {
			return false, err
		}
		keyed = keyed || known
	}
	return keyed, nil
}

// keysLooked is how many keys are looked at when one is noted: more than one is enough for the old ones to go.
const keysLooked = 8

// keep notes what a key made, and forgets those of the keys next to it that are too old.
func (t *txn) keep(key string, on ID, made *Appended) error {
	if key == "" {
		return nil
	}
	var old [][]byte
	r := kv.Prefix(t.id[:])
	r.From = under(t.id, []byte(key)...)
	left := keysLooked
	err := t.tx.Scan(keyBucket, r, func(k, value []byte) error {
		var rec keyRecord
		if err := decMode.Unmarshal(value, &rec); err != nil || rec.At+keyLife < t.now {
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
		if err := t.tx.Delete(keyBucket, k); err != nil {
			return err
		}
	}
	return putRecord(t.tx, keyBucket, under(t.id, []byte(key)...), keyRecord{At: t.now, Branch: on, Placed: made.Placed, Revision: made.Revision})
}

// group ties the operations of several batches together, so that they are undone as the one command they are.
type group struct {
	mu    sync.Mutex
	first map[ID]uint64
}

func newGroup() *group { return &group{first: map[ID]uint64{}} }

// Together makes later batches parts of one command with this one: Undo takes them back together. A batch is tied to itself where
// only replies follow (Reply.Together). It returns the batch.
func (b *Batch) Together(with *Batch) *Batch {
	if with.group == nil {
		with.group = newGroup()
	}
	b.group = with.group
	return b
}

func (g *group) join(t *txn) {
	if g == nil {
		return
	}
	t.group = g.begun(t.id)
	if t.group == 0 {
		t.group = t.number()
	}
}

func (g *group) remember(done *Committed) {
	if g == nil || done.Operation == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first[done.Context] == 0 {
		g.first[done.Context] = operationNumber(done.Operation)
	}
}

// begun is the first operation that was made in a context, 0 for none.
func (g *group) begun(id ID) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.first[id]
}

// operationNumber is the number of an operation of a context.
func operationNumber(op string) uint64 {
	n, _ := strconv.ParseUint(op, 10, 64)
	return n
}
