package intake

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestUnlike: the places are named at which a value says what the other does not. What is empty says nothing, and the items of a list may stand in any order.
func TestUnlike(t *testing.T) {
	deep := func(leaf string) string { return strings.Repeat(`[`, 900) + leaf + strings.Repeat(`]`, 900) }
	wide := func(first int) string {
		var out []string
		for i := range 20_000 {
			out = append(out, fmt.Sprint(first+i))
		}
		return `{"n":[` + strings.Join(out, ",") + `]}`
	}
	many := func(n int) string {
		var out []string
		for i := range 20_000 {
			out = append(out, fmt.Sprintf(`"k%05d":%d`, i, n))
		}
		return `{` + strings.Join(out, ",") + `}`
	}
	for _, c := range []struct {
		what, now, here string
		want            []string
	}{
		{"same", `{"a":1,"b":[1,2]}`, `{"b":[1,2],"a":1}`, nil},
		{"order of a list", `{"b":[2,1,{"c":"x"}]}`, `{"b":[{"c":"x"},1,2]}`, nil},
		{"empty values", `{"a":"","b":null,"c":{},"d":[],"e":false}`, `{}`, nil},
		{"false for true", `{"e":false}`, `{"e":true}`, []string{"v.e"}},
		{"one more", `{"a":1,"b":"new"}`, `{"a":1}`, []string{"v.b"}},
		{"one less", `{"a":1}`, `{"a":1,"b":"old"}`, nil},
		{"another number", `{"a":[1,{"n":2.50}]}`, `{"a":[1,{"n":2.5}]}`, []string{"v.a.n"}},
		{"redacted here", `{"a":"secret"}`, `{"a":"[redacted] key"}`, nil},
		{"another kind", `{"a":"1"}`, `{"a":1}`, []string{"v.a"}},
		{"a key twice", `{"a":"x","a":"y"}`, `{"a":"x","a":"y"}  `, nil},
		{"an earlier value of a key", `{"a":"new","a":"y"}`, `{"a":"x","a":"y"}`, []string{"v.a (earlier)"}},
		{"a key once more", `{"b":{"a":"new","a":"y"}}`, `{"b":{"a":"y"}}`, []string{"v.b.a (earlier)"}},
		{"deep", deep(`"x"`), deep(`"y"`), []string{"v"}},
		{"long lists", wide(0), wide(20_000), []string{"v.n"}},
		{"many members", many(1), many(2), []string{"v.k00000", "v.k00001", "v.k00002", "v.k00003", "19996 more"}},
		{"no JSON", `{`, `{}`, []string{"v"}},
	} {
		if got := unlike("v", []byte(c.now), []byte(c.here)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}
