package codec

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

type (
	inner struct {
		ID   string `json:"id"`
		Name string `json:"name" after:"extra"`
		None string `json:"none" empty:"null"`
	}
	outer struct {
		*inner
		Extra  []string       `json:"extra"`
		Own    int            `json:"own,omitempty" after:"id"`
		After  time.Duration  `json:"after,omitempty"`
		Hidden int            `json:"hidden" only:"lines"`
		Map    map[string]any `json:"map"`
		Plain  string         `json:"plain"`
	}
	stored struct {
		By    inner  `cbor:"1,keyasint" json:"by"`
		Kept  int    `cbor:"2,keyasint" json:"kept,omitempty"`
		Empty string `cbor:"3,keyasint,omitempty" json:"empty"`
	}
)

// TestTags: each tag does what the package says.
func TestTags(t *testing.T) {
	for _, c := range []struct {
		v     any
		codec *Codec
		want  string
	}{
		{outer{}, answers, `{"extra":[],"map":{},"plain":""}`},
		{outer{inner: &inner{ID: "i", Name: "n"}, Own: 1, After: 90 * time.Second, Hidden: 2, Map: map[string]any{"b": []int(nil), "a": nil}, Plain: "<&>"}, answers,
			`{"id":"i","own":1,"none":null,"extra":[],"name":"n","after":"1m30s","map":{"a":null,"b":[]},"plain":"\u003c\u0026\u003e"}`},
		{map[string]any{"x": json.RawMessage(`{"a": 1, "a": 2}`), "y": "<"}, text, `{"x":{"a":2},"y":"<"}`},
		{stored{}, answers, `{"by":{"id":"","name":"","none":null},"empty":""}`},
		{stored{}, &Codec{Lines: map[string]string{}}, `{"by":{"id":"","name":"","none":""},"kept":0}`},
		{stored{By: inner{ID: "i"}}, &Codec{Lines: map[string]string{"stored.by": "", "inner.id": "by_id", "inner.none": "-", "inner.name": "name,omitempty", "stored.kept": "k after by_id"}},
			`{"by_id":"i","k":0}`},
	} {
		got, err := c.codec.Append(nil, c.v)
		if err != nil || string(got) != c.want {
			t.Errorf("%T is\n%s, not\n%s (%v)", c.v, got, c.want, err)
		}
	}
}

// TestRead: a codec reads what it writes, and passes over what it does not know.
func TestRead(t *testing.T) {
	c := &Codec{Lines: map[string]string{"stored.by": "", "inner.id": "by_id"}}
	want := []stored{{By: inner{ID: "i", Name: "n"}, Kept: 3, Empty: "e"}, {}}
	raw, err := c.Append(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	var got []stored
	if err := c.Read(append(raw, ' '), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%s is read as %+v (%v)", raw, got, err)
	}
	if err := c.Read([]byte(`[{"by_id":"x","by_ID":"y","other":{"by_id":[]}}]`), &got); err != nil || len(got) != 1 || got[0].By.ID != "x" {
		t.Errorf("%+v (%v)", got, err)
	}
	for _, wrong := range []string{`{`, `{}`, `[{"by_id":7}]`, `[7]`} {
		if c.Read([]byte(wrong), &got) == nil {
			t.Errorf("%s is read as %+v", wrong, got)
		}
	}
}
