package base

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// TestLatelyByBytes: the bytes in the store decide, and each caller gets a record of its own.
func TestLatelyByBytes(t *testing.T) {
	var l Lately[*ContextRecord]
	id, other := pool.NewID(), pool.NewID()
	decoded := errors.New("decoded")
	decode := func(pool.ID, []byte) (*ContextRecord, error) { return nil, decoded }
	rec := &ContextRecord{Title: "one", Redo: []uint64{1, 2}}
	l.Note(id, []byte("one"), rec, (*ContextRecord).Copy)
	rec.Title, rec.Redo[0] = "changed since", 9
	got, err := l.Decode(id, []byte("one"), decode)
	if err != nil || got.Title != "one" || got.Redo[0] != 1 {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := l.Decode(id, []byte("one"), decode); err != decoded {
		t.Errorf("a record was given to two callers: %v", err)
	}
	l.Note(id, []byte("one"), got, (*ContextRecord).Copy)
	if _, err := l.Decode(id, []byte("two"), decode); err != decoded {
		t.Errorf("other bytes were not decoded: %v", err)
	}
	l.Note(id, []byte("one"), got, (*ContextRecord).Copy)
	if _, err := l.Decode(other, []byte("one"), decode); err != decoded {
		t.Errorf("another id was not decoded: %v", err)
	}
	large := make([]byte, largestLately+1)
	l.Note(id, large, got, (*ContextRecord).Copy)
	if _, err := l.Decode(id, large, decode); err != decoded {
		t.Errorf("a record of %d bytes was kept", len(large))
	}
	for range 3 * mostLately {
		l.Note(pool.NewID(), []byte("x"), got, (*ContextRecord).Copy)
	}
	if len(l.of) > mostLately {
		t.Errorf("%d records are remembered, want at most %d", len(l.of), mostLately)
	}
}

// TestCopiesShareNothing: in a copy of a record with a value in each field, every map, list and pointer is another one, however deep, except JSON, which
// nobody changes in place.
func TestCopiesShareNothing(t *testing.T) {
	var b branch.Branch
	var c ContextRecord
	for _, v := range []any{&b, &c} {
		fill(t, reflect.ValueOf(v).Elem())
	}
	b.Ended = branch.End{}
	for _, pair := range [][2]any{{&b, branchstore.Copy(&b)}, {&c, c.Copy()}} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%T: the copy differs: %+v, %+v", pair[0], pair[0], pair[1])
		}
		apart(t, reflect.TypeOf(pair[0]).Elem().Name(), reflect.ValueOf(pair[0]).Elem(), reflect.ValueOf(pair[1]).Elem())
	}
}

// unchanged are the types whose values are replaced and never changed in place.
var unchanged = map[reflect.Type]bool{reflect.TypeFor[json.RawMessage](): true, reflect.TypeFor[cbor.RawMessage](): true}

// fill puts something into each exported field.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		key, item := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key)
		fill(t, item)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, item)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(1)
	default:
		t.Fatalf("a %s: say how it is filled", v.Type())
	}
}

// apart reports what two values share.
func apart(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	if unchanged[a.Type()] {
		return
	}
	switch a.Kind() {
	case reflect.Map, reflect.Slice, reflect.Pointer:
		if a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
			return
		}
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			if a.Type().Field(i).IsExported() {
				apart(t, path+"."+a.Type().Field(i).Name, a.Field(i), b.Field(i))
			}
		}
	case reflect.Pointer:
		apart(t, path, a.Elem(), b.Elem())
	case reflect.Slice:
		for i := range a.Len() {
			apart(t, path, a.Index(i), b.Index(i))
		}
	case reflect.Map:
		for _, key := range a.MapKeys() {
			apart(t, path, a.MapIndex(key), b.MapIndex(key))
		}
	}
}
