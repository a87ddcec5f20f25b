package exchange

import (
	"strings"
	"testing"
)

// TestTornLines: the whole records behind a torn one on its line are read; what is inside of one that ends too early is none.
func TestTornLines(t *testing.T) {
	const first = `{"role":"user","content":"a"}` + "\n" + `{"role":"assistant","content":"b"}` + "\n"
	for line, want := range map[string]string{
		`{"role":"user","content":"torn{"role":"user","content":"c"}`:                                   "a b c",
		`{"role":"user","content":"torn{"role":"user","content":"c"}{"role":"assistant","content":"d"}`: "a b c d",
		`{"role":"user","content":"torn{"role":"user","content":"c"} {"role":"assistant","content":"to`: "a b",
		`{"role":"assistant","content":"torn","x":{"role":"user","content":"inner"}`:                    "a b",
		`{"role":"assistant","x":[{"role":"user","content":"inner"}]`:                                   "a b",
	} {
		s, rep := imported(t, []byte(first+line+"\n"))
		var got []string
		for _, info := range contextsOf(t, s) {
			c, err := s.Context(t.Context(), info.ID.String())
			if err != nil {
				t.Fatal(err)
			}
			snap, err := c.Snapshot(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			for e, err := range snap.Entries(t.Context(), 1, 0) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e.Text())
			}
		}
		if strings.Join(got, " ") != want || len(rep.Warnings) == 0 {
			t.Errorf("%s: %q, not %q; %+v", line, got, want, rep)
		}
	}
}
