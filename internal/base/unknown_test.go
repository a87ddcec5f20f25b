package base

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// laterKey is a key that no record has, laterValue its value.
const laterKey = 7000

var laterValue = []byte{0x82, 0x01, 0x61, 'x'}

// withLater puts the key into a value and into every record within it. It returns how many records there are.
func withLater(t *testing.T, typ reflect.Type, raw []byte) ([]byte, int) {
	t.Helper()
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct && !isArray(typ.Elem()):
		var list []cbor.RawMessage
		read(t, raw, &list)
		n := 0
		for i := range list {
			var in int
			list[i], in = withLater(t, typ.Elem(), list[i])
			n += in
		}
		return write(t, list), n
	case typ.Kind() != reflect.Struct || isArray(typ):
		return raw, 0
	}
	m := map[uint64]cbor.RawMessage{}
	read(t, raw, &m)
	n := 1
	for i := range typ.NumField() {
		key, is := keyOf(typ.Field(i))
		if value, has := m[key]; is && has {
			var in int
			m[key], in = withLater(t, typ.Field(i).Type, value)
			n += in
		}
	}
	m[laterKey] = laterValue
	return write(t, m), n
}

func isArray(typ reflect.Type) bool {
	return typ.NumField() > 0 && typ.Field(0).Tag.Get("cbor") == ",toarray"
}

func keyOf(f reflect.StructField) (key uint64, ok bool) {
	tag := f.Tag.Get("cbor")
	for _, d := range tag {
		if d < '0' || d > '9' {
			break
		}
		key, ok = 10*key+uint64(d-'0'), true
	}
	return key, ok
}

func read(t *testing.T, raw []byte, v any) {
	t.Helper()
	if err := stored.Unmarshal(raw, v); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := stored.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestUnknownKeysAreKept gives every record, and every record within one, a key of a later version, and rewrites it as each change does.
func TestUnknownKeysAreKept(t *testing.T) {
	id := pool.NewID()
	for _, c := range []struct {
		v       any
		records int
	}{
		{&ContextRecord{Title: "T", Task: &record.Task{Goal: "g", State: record.TaskRunning}, Settings: map[string]json.RawMessage{"a": []byte("1")}}, 2},
		{&branch.Branch{ID: id, Name: "main", Tokens: &branch.Tokens{Input: 1}, Sessions: []branch.Session{{ID: id, Digests: []branch.Digest{{From: 1, To: 2, Text: "d"}}}}}, 4},
		{&record.CallRecord{CallID: "c", Tool: "t", Decisions: []record.Decision{{From: "a", To: "b"}}}, 2},
		{&Operation{What: "append", Changes: []Change{{Kind: 1, Bucket: "tag", Key: []byte("k")}}, Chains: []Chain{{Name: "main"}}}, 2},
		{&record.Tool{Name: "t", Remotes: []record.Remote{{Name: "r"}}}, 2},
		{&record.Rule{Effect: "allow", Tool: "*", When: []record.Condition{{Op: "glob", Value: "x"}}, Unless: []record.Condition{{Op: "glob", Value: "y"}}}, 3},
		{&record.Claim{Token: id, Program: "p"}, 1},
		{&SourceRecord{Context: id}, 1},
		{&Token{Name: "n", Scopes: []string{"read"}}, 1},
	} {
		typ := reflect.TypeOf(c.v).Elem()
		later, n := withLater(t, typ, write(t, c.v))
		if n != c.records {
			t.Errorf("%T: the key stands in %d records, want %d", c.v, n, c.records)
		}
		sealed := stored.AddChecksum(later, nil)
		back := reflect.New(reflect.TypeOf(c.v).Elem()).Interface()
		if err := DecodeKept("x", sealed, back); err != nil {
			t.Errorf("%T: %v", c.v, err)
			continue
		}
		if again, err := EncodeRecord(back); err != nil || !bytes.Equal(again, sealed) {
			t.Errorf("%T: the rewritten record is %x, want %x (%v)", c.v, again, sealed, err)
		}
	}
	twoWays(t, id)
}

// twoWays rewrites the two records that have readers of their own.
func twoWays(t *testing.T, id pool.ID) {
	t.Helper()
	raw, _ := withLater(t, reflect.TypeFor[ContextRecord](), write(t, &ContextRecord{Title: "T"}))
	rec, err := DecodeContext(id, stored.AddChecksum(raw, nil))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := EncodeRecord(rec.Copy()); err != nil || !bytes.Equal(again, stored.AddChecksum(raw, nil)) {
		t.Errorf("a context's record: %x (%v)", again, err)
	}
	raw, _ = withLater(t, reflect.TypeFor[branch.Branch](), write(t, &branch.Branch{ID: id, Name: "main"}))
	b, err := branchstore.Decode(id, stored.AddChecksum(raw, nil))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := branchstore.Encode(branchstore.Copy(b)); err != nil || !bytes.Equal(again, stored.AddChecksum(raw, nil)) {
		t.Errorf("a branch's record: %x (%v)", again, err)
	}
	if after, had, err := ReplaceFields(stored.AddChecksum(raw, nil), map[uint64]cbor.RawMessage{17: {0x61, 'b'}}); err != nil || !bytes.Contains(after, laterValue) || len(had) != 1 {
		t.Errorf("an undo: %x (%v)", after, err)
	}
}
