package wiretest

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// odd are values that no provider sends at these places.
var odd = []any{nil, 1.0, -1.5, 1e300, "", "x", "\x00", []any{}, []any{nil}, map[string]any{}, true}

// Mangle puts odd values into the events of a stream, one or two at a time, and checks that the message can be stored in any case.
func (p Provider) Mangle(t *testing.T, stream []byte) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		lines := strings.Split(string(stream), "\n")
		for range 1 + random.IntN(2) {
			i := random.IntN(len(lines))
			head, body := "", lines[i]
			if rest, ok := strings.CutPrefix(body, "data: "); ok {
				head, body = "data: ", rest
			}
			var v any
			if json.Unmarshal([]byte(body), &v) != nil {
				continue
			}
			out, _ := json.Marshal(mangled(random, v))
			lines[i] = head + string(out)
		}
		m, err := p.Read(strings.NewReader(strings.Join(lines, "\n")))
		if m == nil && err == nil {
			t.Fatalf("neither a message nor an error of\n%s", strings.Join(lines, "\n"))
		}
		if m != nil {
			if err := m.Validate(); err != nil {
				t.Fatalf("%v: %+v of\n%s", err, m, strings.Join(lines, "\n"))
			}
		}
	}
}

// mangled returns v with an odd value somewhere in it.
func mangled(random *rand.Rand, v any) any {
	if random.IntN(4) > 0 {
		switch x := v.(type) {
		case map[string]any:
			if names := slices.Sorted(maps.Keys(x)); len(names) > 0 {
				name := names[random.IntN(len(names))]
				if x[name] = mangled(random, x[name]); random.IntN(8) == 0 {
					delete(x, name)
				}
				return x
			}
		case []any:
			if len(x) > 0 {
				i := random.IntN(len(x))
				x[i] = mangled(random, x[i])
				return x
			}
		}
	}
	return odd[random.IntN(len(odd))]
}
