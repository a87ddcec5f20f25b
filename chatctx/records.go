package chatctx

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// The buckets of this package; docs/format.md describes them.
const (
	metaBucket       = "meta"       // name: value
	contextBucket    = "context"    // context: record
	recentBucket     = "recent"     // time of last change, context: nothing
	tagBucket        = "tag"        // context, name: message
	markBucket       = "mark"       // context, message: pinned or excluded
	operationBucket  = "operation"  // context or zero, number: record
	keyBucket        = "key"        // context, idempotency key: what it made
	sourceBucket     = "source"     // format, conversation, node: context, message
	callBucket       = "call"       // context, message, index: record
	unansweredBucket = "unanswered" // context, segment, position, index: message, call id
	openBucket       = "open"       // since, context, message, index: segment, position
	callIDBucket     = "callid"     // context, the provider's id, 0, message, index: nothing
	ruleBucket       = "rule"       // context or zero, id: record
	claimBucket      = "claim"      // context, branch or call: who works on it
)

// FormatVersion is the version of the file format that this program writes, and OldestVersion the oldest that it reads.
const (
	FormatVersion = 2
	OldestVersion = 2
)

var (
	encMode = must(cbor.CoreDetEncOptions().EncMode())
	decMode = must(cbor.DecOptions{MaxArrayElements: 1 << 24, MaxMapPairs: 1 << 24}.DecMode())
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// contextRecord is a context as it is stored. The record of the zero id in the meta bucket is the store's own: its journal's counters.
type contextRecord struct {
	Title    string                     `cbor:"1,keyasint,omitempty"`
	Derived  bool                       `cbor:"2,keyasint,omitempty"`
	Parent   ID                         `cbor:"3,keyasint,omitzero"`
	Settings map[string]json.RawMessage `cbor:"4,keyasint,omitempty"`
	Active   ID                         `cbor:"5,keyasint,omitzero"` // branch
	Created  pool.Time                  `cbor:"6,keyasint,omitempty"`
	Updated  pool.Time                  `cbor:"7,keyasint,omitempty"` // the time in its key in recent
	Trashed  pool.Time                  `cbor:"8,keyasint,omitempty"`
	AppData  map[string]json.RawMessage `cbor:"9,keyasint,omitempty"`
	Messages uint64                     `cbor:"10,keyasint,omitempty"` // in the pool
	Branches uint64                     `cbor:"11,keyasint,omitempty"`
	// The next numbers to use.
	NextOperation uint64 `cbor:"12,keyasint,omitempty"`
	NextSegment   uint64 `cbor:"13,keyasint,omitempty"`
	// Last is the newest operation on the context itself that has not been undone, Newest the newest at all.
	Last   uint64 `cbor:"14,keyasint,omitempty"`
	Newest uint64 `cbor:"15,keyasint,omitempty"`
	// Redo are the undos that can be redone, oldest first.
	Redo []uint64 `cbor:"16,keyasint,omitempty"`
	// StoreLast is the newest operation of the store's journal about this context that has not been undone, and StoreAt the NextOperation at
	// that time: which of the two journals is newer is read from it, and not from a clock.
	StoreLast uint64 `cbor:"17,keyasint,omitempty"`
	StoreAt   uint64 `cbor:"18,keyasint,omitempty"`
	Revision  uint64 `cbor:"19,keyasint,omitempty"`
	Task      *Task  `cbor:"20,keyasint,omitempty"` // of a sub-context
}

// The keys of a contextRecord that an operation changes and an undo puts back; all others only count.
var contextFields = map[uint64]bool{1: true, 2: true, 3: true, 4: true, 5: true, 8: true, 9: true}

// activeField is the key of contextRecord.Active, derivedFields those of a title made from a message.
const activeField = 5

// removedField is the key of branch.Branch.Removed.
const removedField = 18

// The keys of a branch.Branch that an undo puts back as they are. Pieces go by splices; the rest only counts.
var branchFields = map[uint64]bool{5: true, 6: true, 7: true, 8: true, 9: true, 10: true, 12: true, 16: true, 17: true, removedField: true}

func getContext(tx kv.Tx, id ID) (*contextRecord, []byte, error) {
	raw, err := tx.Get(contextBucket, id[:])
	if raw == nil || err != nil {
		return nil, nil, err
	}
	rec, err := decodeContext(id, raw)
	return rec, raw, err
}

func decodeContext(id ID, raw []byte) (*contextRecord, error) {
	if err := pool.CheckRecord(raw, nil); err != nil {
		return nil, fmt.Errorf("%w: the record of context %s: %w", kv.ErrDamaged, id, err)
	}
	return contextFrom(id, raw)
}

// contextFrom reads a record whose fields were put together here.
func contextFrom(id ID, raw []byte) (*contextRecord, error) {
	rec := &contextRecord{}
	if err := decMode.Unmarshal(raw, rec); err != nil {
		return nil, fmt.Errorf("%w: the record of context %s: %w", kv.ErrDamaged, id, err)
	}
	return rec, nil
}

func putRecord(tx kv.RwTx, bucket string, key []byte, v any) error {
	raw, err := encodeRecord(v)
	if err != nil {
		return err
	}
	return tx.Put(bucket, key, raw)
}

// encodeRecord gives the bytes of a record, with a checksum. Settings, whose keys are names, have none.
func encodeRecord(v any) ([]byte, error) {
	raw, err := encMode.Marshal(v)
	if _, named := v.(map[string]json.RawMessage); named || err != nil {
		return raw, err
	}
	return pool.AddChecksum(raw, nil), nil
}

// getRecord reads a record into v and says whether it was there.
func getRecord(tx kv.Tx, bucket string, key []byte, v any) (bool, error) {
	raw, err := tx.Get(bucket, key)
	if raw == nil || err != nil {
		return false, err
	}
	if _, named := v.(*map[string]json.RawMessage); !named {
		err = pool.CheckRecord(raw, nil)
	}
	if err == nil {
		err = decMode.Unmarshal(raw, v)
	}
	if err != nil {
		return false, fmt.Errorf("%w: a record in %s: %w", kv.ErrDamaged, bucket, err)
	}
	return true, nil
}

func recentKey(at pool.Time, id ID) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, 24), uint64(at)), id[:]...)
}

func operationKey(id ID, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(make([]byte, 0, 24), id[:]...), n)
}

// under is the key of something that belongs to a context.
func under(id ID, rest ...byte) []byte { return append(id[:], rest...) }

// fields splits a record into its keys.
func fields(raw []byte) (map[uint64]cbor.RawMessage, error) {
	m := map[uint64]cbor.RawMessage{}
	if raw == nil {
		return m, nil
	}
	if err := decMode.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("%w: a record that is no map: %w", kv.ErrDamaged, err)
	}
	return m, nil
}

// absent stands in a change for a key that the record did not have: CBOR's undefined.
var absent = cbor.RawMessage{0xf7}

// changedFields gives the old values of those keys in which two records differ.
func changedFields(before, after []byte, keys map[uint64]bool) (map[uint64]cbor.RawMessage, error) {
	was, err := fields(before)
	if err != nil {
		return nil, err
	}
	is, err := fields(after)
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
		out[k] = absent
		if v, ok := was[k]; ok {
			out[k] = v
		}
	}
	return out, nil
}

// replaceFields puts values into a record and gives the new record and the values that it had.
func replaceFields(raw []byte, set map[uint64]cbor.RawMessage) ([]byte, map[uint64]cbor.RawMessage, error) {
	m, err := fields(raw)
	if err != nil {
		return nil, nil, err
	}
	delete(m, 255) // the checksum
	had := make(map[uint64]cbor.RawMessage, len(set))
	for k, v := range set {
		had[k] = absent
		if old, ok := m[k]; ok {
			had[k] = old
		}
		if string(v) == string(absent) {
			delete(m, k)
		} else {
			m[k] = v
		}
	}
	out, err := encMode.Marshal(m)
	return out, had, err
}
