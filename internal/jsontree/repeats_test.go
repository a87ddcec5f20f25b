package jsontree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/testkit"
)

func TestUnique(t *testing.T) {
	deep := strings.Repeat(`[`, 3000) + `{"a":1,"a":2}` + strings.Repeat(`]`, 3000)
	many := &bytes.Buffer{}
	for i := range 3 * manyNames {
		fmt.Fprintf(many, `"n%d":%d,`, i, i)
	}
	for raw, want := range map[string]string{
		`{"a":1,"a":2}`:                         `{"a":2}`,
		` {"a" : 1 , "b":2, "a" : 3}`:           `{"a":3,"b":2}`,
		`{"a":1,"\u0061":2}`:                    `{"a":2}`,
		`[{"x":{"a":1,"a":{"b":1,"b":2}}}]`:     `[{"x":{"a":{"b":2}}}]`,
		`{"":1,"":null}`:                        `{"":null}`,
		`{"\ud800":1,"\ud800":2}`:               `{"\ud800":2}`,
		`{"a":1e400,"a":-0.0}`:                  `{"a":-0.0}`,
		`{"a":1,"a":[1,"a","a"],"b":"a"}`:       `{"a":[1,"a","a"],"b":"a"}`,
		deep:                                    strings.Replace(deep, `"a":1,`, "", 1),
		"{" + many.String() + `"n0":1,"n95":2}`: "{" + strings.Replace(many.String(), `"n0":0`, `"n0":1`, 1)[:many.Len()-3] + "2}",
	} {
		got, same := Unique([]byte(raw))
		if same || string(got) != want {
			t.Errorf("%.80s: %.80s, %v, not %.80s", raw, got, same, want)
		}
	}
	for _, raw := range []string{`1`, `"a"`, `{"a":"a","b":["a:","a"],"c":{"a":1}}`, `[{"a":1},{"a":1}]`, ` { "a" : { "a" : 1 } } `, `{"a\"":1,"a":2}`, `[]`,
		"{" + many.String() + `"x":{` + many.String() + `"x":1}}`} {
		if got, same := Unique([]byte(raw)); !same || string(got) != raw {
			t.Errorf("%s became %s", raw, got)
		}
	}
}

// TestUniqueAsParsers: whatever the JSON, the result has each name once and says what encoding/json reads, for which the last of two counts.
func TestUniqueAsParsers(t *testing.T) {
	for seed := range testkit.Seeds(t, 2000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		raw := []byte(randomJSON(rnd, 5))
		got, same := Unique(raw)
		if err := testkit.UniqueNames(got); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if same != (testkit.UniqueNames(raw) == nil) {
			t.Fatalf("%s is said to be the same: %v", raw, same)
		}
		var a, b any
		if json.Unmarshal(raw, &a) != nil || json.Unmarshal(got, &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%s became %s", raw, got)
		}
	}
}

func randomJSON(rnd *rand.Rand, depth int) string {
	var parts []string
	switch n := rnd.IntN(4); {
	case depth == 0 || n == 0:
		return []string{`1`, `"a"`, `"a\":"`, `null`, `""`, `[]`, `{}`}[rnd.IntN(7)]
	case n == 1:
		for range rnd.IntN(4) {
			parts = append(parts, randomJSON(rnd, depth-1))
		}
		return "[ " + strings.Join(parts, ", ") + "]"
	}
	names := []string{`"a"`, `"b"`, `"\u0062"`, `"\""`, `""`, `"é"`, `"c"`, `"d"`, `"e"`, `"f"`}
	for range rnd.IntN(5) {
		parts = append(parts, names[rnd.IntN(len(names))]+" : "+randomJSON(rnd, depth-1))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
