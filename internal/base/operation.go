package base

import (
	"encoding/binary"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// Operation is a stored entry of a journal: what was done, and what is needed to undo it.
type Operation struct {
	What    string    `cbor:"1,keyasint"`
	At      pool.Time `cbor:"2,keyasint"`
	By      string    `cbor:"3,keyasint,omitempty"`
	Chains  []Chain   `cbor:"4,keyasint,omitempty"`
	Changes []Change  `cbor:"5,keyasint,omitempty"`
	Undoes  uint64    `cbor:"6,keyasint,omitempty"` // the operation that this one undid, or redid if that is an undo
	Undone  uint64    `cbor:"7,keyasint,omitempty"` // the operation that undid this one; 0 if none has
	// Group is the number of the first of several operations that one command made and that are undone together. 0: the operation stands alone.
	Group uint64 `cbor:"8,keyasint,omitempty"`
	// Current and CurrentAt, in the store's journal, are the current context at that time and its next operation, so that undo can tell what came later.
	Current   pool.ID `cbor:"9,keyasint,omitzero"`
	CurrentAt uint64  `cbor:"10,keyasint,omitempty"`
	// Expired operations can no longer be undone: gc has removed their changes, and what only those needed.
	Expired bool `cbor:"11,keyasint,omitempty"`
	// User is who acted, in a store on a server: Store.User.
	User string `cbor:"12,keyasint,omitempty"`
	// Things lists, for each chain, the things of its subject that the operation changed, but those that Changes tell: histories and whole records. nil of an
	// operation that changed histories alone, as an append, and of those of before format 4.
	Things [][]string `cbor:"13,keyasint,omitempty"`

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// Chain ties an operation to what it changed: a branch, the context if Branch is zero, or in the store's journal a context. Prev is the previous operation on
// the same, Revision the one to which this operation led; of an undo or redo in the store's journal it is the context's next operation. Name is the branch's
// name at that time, for readers of the journal.
type Chain struct {
	_        struct{} `cbor:",toarray"`
	Name     string
	Branch   pool.ID
	Prev     uint64
	Revision uint64
}

// The kinds of a change.
const (
	RecordChange = 1 // Key in Bucket had the value Old, nil for none
	FieldsChange = 2 // the record Key in Bucket had these Fields
	SpliceChange = 3 // the branch with the id Key: at At, counted from 0, Removed gave way to Inserted
)

// Change is one change of an operation, with what is needed to undo it.
type Change struct {
	Kind     int                        `cbor:"1,keyasint"`
	Bucket   string                     `cbor:"2,keyasint,omitempty"`
	Key      []byte                     `cbor:"3,keyasint,omitempty"`
	Old      []byte                     `cbor:"4,keyasint,omitempty"`
	Fields   map[uint64]cbor.RawMessage `cbor:"5,keyasint,omitempty"`
	At       int                        `cbor:"6,keyasint,omitempty"`
	Removed  []branch.Piece             `cbor:"7,keyasint,omitempty"`
	Inserted []branch.Piece             `cbor:"8,keyasint,omitempty"`

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

func GetOperation(tx kv.Tx, id pool.ID, n uint64) (*Operation, error) {
	op := &Operation{}
	ok, err := GetRecord(tx, OperationBucket, OperationKey(id, n), op)
	if err != nil || !ok {
		return nil, err
	}
	return op, nil
}

// EachOperation calls fn for the operations whose keys lie in a range, with their numbers. If fn returns kv.ErrStop, it ends without an error.
func EachOperation(tx kv.Tx, r kv.Range, fn func(n uint64, op *Operation) error) error {
	return tx.Scan(OperationBucket, r, func(key, value []byte) error {
		op := &Operation{}
		if err := stored.Unmarshal(value, op); err != nil {
			return Damaged("operation %x: %v", key, err)
		}
		return fn(binary.BigEndian.Uint64(key[16:]), op)
	})
}

// NewestFirst is the range of a context's journal from its end, or of the store's journal for the zero id.
func NewestFirst(id pool.ID) kv.Range {
	r := kv.Prefix(id[:])
	r.Reverse = true
	return r
}

// Names returns the names of the branches that an operation was on.
func (op *Operation) Names() []string {
	var names []string
	for _, c := range op.Chains {
		if c.Name != "" {
			names = append(names, c.Name)
		}
	}
	return names
}
