package approval

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// textOf returns the text of a value for conditions on texts: a string, or the JSON of a number or boolean.
func textOf(v *jsontree.Value) (string, bool) {
	switch v.Kind {
	case jsontree.String:
		return norm.NFC.String(v.Text), true
	case jsontree.Number, jsontree.Bool:
		return v.Text, true
	}
	return "", false
}

// fold maps texts that differ only in case to one text.
func fold(s string) string {
	return norm.NFC.String(strings.Map(lowest, norm.NFC.String(s)))
}

// lowest returns the smallest of the characters that differ only in case.
func lowest(r rune) rune {
	low := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		low = min(low, next)
	}
	return low
}

// hasHalves reports whether a text contains halves of surrogate pairs, which programs read differently.
func hasHalves(s string) bool { return !utf8.ValidString(s) }
