package base

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// The buckets of this package; docs/format.md describes them.
const (
	MetaBucket       = "meta"       // name: value
	ContextBucket    = "context"    // context: record
	RecentBucket     = "recent"     // time of last change, context: nothing
	TagBucket        = "tag"        // context, name: message
	LabelBucket      = "label"      // label, 0, context: nothing
	MarkBucket       = "mark"       // context, message: pinned or excluded
	OperationBucket  = "operation"  // context or zero, number: record
	KeyBucket        = "key"        // context, idempotency key: what it made
	SourceBucket     = "source"     // format, conversation, node: context, message
	CallBucket       = "call"       // context, message, index: record
	UnansweredBucket = "unanswered" // context, segment, position, index: message, call id
	OpenBucket       = "open"       // since, context, message, index: segment, position
	CallIDBucket     = "callid"     // context, the provider's id, 0, message, index: nothing
	RuleBucket       = "rule"       // context or zero, id: record
	ClaimBucket      = "claim"      // context, branch or call: who works on it
)

// ContextRecord is a stored context. The journal record in the meta bucket has this type too: the store's own counters.
type ContextRecord struct {
	Title    string                     `cbor:"1,keyasint,omitempty"`
	Derived  bool                       `cbor:"2,keyasint,omitempty"`
	Parent   pool.ID                    `cbor:"3,keyasint,omitzero"`
	Settings map[string]json.RawMessage `cbor:"4,keyasint,omitempty"`
	Active   pool.ID                    `cbor:"5,keyasint,omitzero"` // branch
	Created  pool.Time                  `cbor:"6,keyasint,omitempty"`
	Updated  pool.Time                  `cbor:"7,keyasint,omitempty"`
	Trashed  pool.Time                  `cbor:"8,keyasint,omitempty"`
	AppData  map[string]json.RawMessage `cbor:"9,keyasint,omitempty"`
	Messages uint64                     `cbor:"10,keyasint,omitempty"` // in the pool
	Branches uint64                     `cbor:"11,keyasint,omitempty"`
	// The next numbers to use.
	NextOperation uint64 `cbor:"12,keyasint,omitempty"`
	NextSegment   uint64 `cbor:"13,keyasint,omitempty"`
	// Last is the newest operation on the context itself that has not been undone, Newest the newest of all.
	Last   uint64 `cbor:"14,keyasint,omitempty"`
	Newest uint64 `cbor:"15,keyasint,omitempty"`
	// Redo lists the undos that can be redone, oldest first.
	Redo []uint64 `cbor:"16,keyasint,omitempty"`
	// StoreLast is the newest operation of the store's journal about this context that has not been undone, StoreAt the NextOperation at that time: they
	// tell, without a clock, which of the two journals is newer.
	StoreLast uint64       `cbor:"17,keyasint,omitempty"`
	StoreAt   uint64       `cbor:"18,keyasint,omitempty"`
	Revision  uint64       `cbor:"19,keyasint,omitempty"`
	Task      *record.Task `cbor:"20,keyasint,omitempty"` // of a sub-context
	// Renamed: somebody gave the title here, so a file imported again does not change it.
	Renamed bool `cbor:"21,keyasint,omitempty"`
	// Labels are sorted and without duplicates; LabelBucket leads from each to the context.
	Labels []string `cbor:"22,keyasint,omitempty"`
	// RenamedThere: somebody gave the title in the store that an export is from. A later export changes it, another program's file does not.
	RenamedThere bool `cbor:"23,keyasint,omitempty"`
	// Listed is its place among the last changed, if that is not Updated: a change stands before all earlier ones, whatever the clocks of their programs said.
	Listed pool.Time `cbor:"24,keyasint,omitempty"`
	// Gated: an agent's hook brings its calls; the level that held when the first one came.
	Gated string `cbor:"25,keyasint,omitempty"`

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// ListedAt returns the time in its key in the bucket recent.
func (r *ContextRecord) ListedAt() pool.Time { return max(r.Listed, r.Updated) }

// Named reports whether somebody gave the title, here or in another store.
func (r *ContextRecord) Named() bool { return r.Renamed || r.RenamedThere }

// ActiveField is the key of ContextRecord.Active.
const ActiveField = 5

// RemovedField is the key of branch.Branch.Removed.
const RemovedField = 18

func GetContext(tx kv.Tx, id pool.ID) (*ContextRecord, []byte, error) {
	raw, err := tx.Get(ContextBucket, id[:])
	if raw == nil || err != nil {
		return nil, nil, err
	}
	rec, err := DecodeContext(id, raw)
	return rec, raw, err
}

func DecodeContext(id pool.ID, raw []byte) (*ContextRecord, error) {
	if err := stored.CheckRecord(raw, nil); err != nil {
		return nil, fmt.Errorf("%w: the record of conversation %s: %w", kv.ErrDamaged, id, err)
	}
	return ContextFrom(id, raw)
}

// ContextFrom decodes a record that was assembled in memory and has no checksum.
func ContextFrom(id pool.ID, raw []byte) (*ContextRecord, error) {
	rec := &ContextRecord{}
	if err := stored.Unmarshal(raw, rec); err != nil {
		return nil, fmt.Errorf("%w: the record of conversation %s: %w", kv.ErrDamaged, id, err)
	}
	return rec, nil
}

func PutRecord(tx kv.RwTx, bucket string, key []byte, v any) error {
	raw, err := EncodeRecord(v)
	if err != nil {
		return err
	}
	return tx.Put(bucket, key, raw)
}

// EncodeRecord returns the bytes of a record, with a checksum. Settings, whose keys are names, have none.
func EncodeRecord(v any) ([]byte, error) {
	raw, err := stored.Marshal(v)
	if _, named := v.(map[string]json.RawMessage); named || err != nil {
		return raw, err
	}
	return stored.AddChecksum(raw, nil), nil
}

// Readable returns an error if a record is damaged.
func Readable(raw []byte) error {
	if err := stored.CheckRecord(raw, nil); err != nil {
		return err
	}
	var all map[uint64]any
	return stored.Unmarshal(raw, &all)
}

// GetRecord reads a record into v and reports whether it exists.
func GetRecord(tx kv.Tx, bucket string, key []byte, v any) (bool, error) {
	raw, err := tx.Get(bucket, key)
	if raw == nil || err != nil {
		return false, err
	}
	return true, DecodeKept(bucket, raw, v)
}

// DecodeKept reads a record of a bucket into v.
func DecodeKept(bucket string, raw []byte, v any) (err error) {
	if _, named := v.(*map[string]json.RawMessage); !named {
		err = stored.CheckRecord(raw, nil)
	}
	if err == nil {
		err = stored.Unmarshal(raw, v)
	}
	if err != nil {
		return fmt.Errorf("%w: a record in %s: %w", kv.ErrDamaged, bucket, err)
	}
	return nil
}

func RecentKey(at pool.Time, id pool.ID) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 24), uint64(at)), id[:]...)
}

// RecentTime returns the time in a key of the bucket recent.
func RecentTime(key []byte) pool.Time { return pool.Time(binary.BigEndian.Uint64(key)) }

func OperationKey(id pool.ID, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 24), id[:]...), n)
}

// Under is the key of a record that belongs to a context.
func Under(id pool.ID, rest ...byte) []byte { return append(id[:], rest...) }

// Fields splits a record by its keys.
func Fields(raw []byte) (map[uint64]cbor.RawMessage, error) {
	m := map[uint64]cbor.RawMessage{}
	if raw == nil {
		return m, nil
	}
	if err := stored.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("%w: a record is not a map: %w", kv.ErrDamaged, err)
	}
	return m, nil
}

// Absent is the old value of a key that the record did not have: CBOR's undefined.
var Absent = cbor.RawMessage{0xf7}

// IsAbsent reports whether a value stands for a key that the record did not have.
func IsAbsent(v cbor.RawMessage) bool { return string(v) == string(Absent) }

// ChangedFields returns the old values of those keys whose values differ between two records.
func ChangedFields(before, after []byte, keys map[uint64]bool) (map[uint64]cbor.RawMessage, error) {
	was, err := Fields(before)
	if err != nil {
		return nil, err
	}
	is, err := Fields(after)
	if err != nil {
		return nil, err
	}
	var out map[uint64]cbor.RawMessage
	for k := range keys {
		if string(was[k]) == string(is[k]) {
			continue
		}
		if out == nil {
			out = map[uint64]cbor.RawMessage{}
		}
		out[k] = Absent
		if v, ok := was[k]; ok {
			out[k] = v
		}
	}
	return out, nil
}

// ReplaceFields sets values in a record. It returns the new record and the replaced values.
func ReplaceFields(raw []byte, set map[uint64]cbor.RawMessage) ([]byte, map[uint64]cbor.RawMessage, error) {
	m, err := Fields(raw)
	if err != nil {
		return nil, nil, err
	}
	delete(m, 255) // the checksum
	had := make(map[uint64]cbor.RawMessage, len(set))
	for k, v := range set {
		had[k] = Absent
		if old, ok := m[k]; ok {
			had[k] = old
		}
		if string(v) == string(Absent) {
			delete(m, k)
		} else {
			m[k] = v
		}
	}
	out, err := stored.Marshal(m)
	return out, had, err
}
