package compare

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzWords: both texts can be read out of the difference.
func FuzzWords(f *testing.F) {
	f.Add("a b c", "a x c")
	f.Add("", "\xff")
	f.Add("日本語", "日本 go")
	f.Fuzz(func(t *testing.T, a, b string) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return
		}
		var left, right strings.Builder
		for _, d := range Words(a, b) {
			if d.Kind != New {
				left.WriteString(d.Text)
			}
			if d.Kind != Gone {
				right.WriteString(d.Text)
			}
		}
		if left.String() != a || right.String() != b {
			t.Errorf("%q and %q come back as %q and %q", a, b, left.String(), right.String())
		}
	})
}

func TestWordRunes(t *testing.T) {
	for i := range 1_100_000 {
		if c := wordRune(i); c >= 0xd800 && c < 0xe000 || wordIndex(c) != i {
			t.Fatalf("word %d stands as %x and comes back as %d", i, c, wordIndex(c))
		}
	}
}
