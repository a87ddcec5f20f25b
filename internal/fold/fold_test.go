package fold

import (
	"testing"
	"unicode"

	"golang.org/x/text/cases"
)

// TestString holds each character to the tables of x/text, but Cherokee to Unicode's: x/text turns its capitals into small letters and the other way round.
func TestString(t *testing.T) {
	like := cases.Fold()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.Is(unicode.Cherokee, r) {
			if got := String(string(r)); got != string(unicode.ToUpper(r)) {
				t.Errorf("%U %q folds to %q", r, r, got)
			}
		} else if got, want := String(string(r)), like.String(string(r)); got != want {
			t.Errorf("%U %q folds to %q, want %q", r, r, got, want)
		}
	}
	for _, text := range []string{"", "Straße", "ΌΣΟΣ ΣΑΣ", "İstanbul", "a\xff\xc3B\xe2\x82", "ᾈΔΗΣ", "ﬁn"} {
		if got, want := String(text), like.String(text); got != want {
			t.Errorf("%q folds to %q, want %q", text, got, want)
		}
	}
}
