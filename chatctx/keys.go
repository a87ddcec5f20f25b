package chatctx

import (
	"bytes"
	"strconv"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// keyLife is how long an idempotency key is known.
const keyLife = pool.Time(24 * time.Hour / time.Microsecond)

// keyRecord is what an idempotency key made.
type keyRecord struct {
	At   pool.Time `cbor:"1,keyasint"`
	Made *Appended `cbor:"2,keyasint"`
}

// known looks for what an append with this key has made already.
func (t *txn) known(key string, made *Appended) (bool, error) {
	var rec keyRecord
	ok, err := getRecord(t.tx, keyBucket, under(t.id, []byte(key)...), &rec)
	if err != nil || !ok || rec.At+keyLife < t.now {
		return false, err
	}
	*made = *rec.Made
	made.Again = true
	return true, nil
}

// keysLooked is how many keys are looked at when one is noted: more than one is enough for the old ones to go.
const keysLooked = 8

// keep notes what a key made, and forgets those of the keys next to it that are too old.
func (t *txn) keep(key string, made *Appended) error {
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
	return putRecord(t.tx, keyBucket, under(t.id, []byte(key)...), keyRecord{At: t.now, Made: made})
}

// group ties the operations of several batches together, so that they are undone as the one command they are.
type group struct{ first map[ID]uint64 }

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
	t.group = g.first[t.id]
	if t.group == 0 {
		t.group = t.number()
	}
}

func (g *group) remember(done *Committed) {
	if g == nil || done.Operation == "" || g.first[done.Context] != 0 {
		return
	}
	g.first[done.Context] = operationNumber(done.Operation)
}

// operationNumber is the number of an operation of a context.
func operationNumber(op string) uint64 {
	n, _ := strconv.ParseUint(op, 10, 64)
	return n
}
