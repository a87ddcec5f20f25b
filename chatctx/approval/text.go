package approval

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// textOf is the text of a value that conditions on texts look at: a string, or the JSON of a number or boolean.
func textOf(v *jsontree.Value) (string, bool) {
	switch v.Kind {
	case jsontree.String:
		return norm.NFC.String(v.Text), true
	case jsontree.Number, jsontree.Bool:
		return v.Text, true
	}
	return "", false
}

// fold makes texts equal that differ by case alone.
func fold(s string) string {
	return norm.NFC.String(strings.Map(lowest, norm.NFC.String(s)))
}

// lowest is the smallest of the characters that are one but for case.
func lowest(r rune) rune {
	low := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		low = min(low, next)
	}
	return low
}

// hasHalves reports whether a text holds halves of surrogate pairs: programs differ about what these are.
func hasHalves(s string) bool { return !utf8.ValidString(s) }
