package compare

import (
	"strings"
	"unicode"

	"github.com/sergi/go-diff/diffmatchpatch"
)

// Kind says on which sides a stretch of text is.
type Kind string

// The kinds: on both sides, only on the first, only on the second.
const (
	Same Kind = "same"
	Gone Kind = "gone"
	New  Kind = "new"
)

// Edit is a stretch of text that is on both sides or on one of them.
type Edit struct {
	Kind Kind   `json:"kind"`
	Text string `json:"text"`
}

// maxWords bounds the texts that are compared word by word, since the comparison takes quadratic time.
const maxWords = 20_000

// Words compares two texts word by word. Between two common stretches, what is gone comes before what is new. Texts of more than 20,000 words together are
// not compared by words. The same texts always give the same edits.
func Words(a, b string) []Edit {
	var v vocabulary
	ra, rb := v.encode(a), v.encode(b)
	if len(ra)+len(rb) > maxWords {
		return grouped([]Edit{{Gone, a}, {New, b}})
	}
	dmp := diffmatchpatch.New()
	dmp.DiffTimeout = 0 // the result must not depend on the machine's speed
	var edits []Edit
	for _, d := range dmp.DiffMainRunes(ra, rb, false) {
		kind := map[diffmatchpatch.Operation]Kind{diffmatchpatch.DiffEqual: Same, diffmatchpatch.DiffDelete: Gone, diffmatchpatch.DiffInsert: New}[d.Type]
		edits = append(edits, Edit{kind, v.decode(d.Text)})
	}
	return grouped(edits)
}

// Alike returns the share of the longer text that both have in common, from 0 to 1.
func Alike(edits []Edit) float64 {
	n := map[Kind]int{}
	for _, e := range edits {
		n[e.Kind] += len(e.Text)
	}
	if all := n[Same] + max(n[Gone], n[New]); all > 0 {
		return float64(n[Same]) / float64(all)
	}
	return 1
}

// grouped puts what is gone before what is new between two common stretches.
func grouped(edits []Edit) []Edit {
	var out []Edit
	var gone, added strings.Builder
	flush := func() {
		for _, e := range []Edit{{Gone, gone.String()}, {New, added.String()}} {
			if e.Text != "" {
				out = append(out, e)
			}
		}
		gone.Reset()
		added.Reset()
	}
	for _, e := range edits {
		switch e.Kind {
		case Gone:
			gone.WriteString(e.Text)
		case New:
			added.WriteString(e.Text)
		default:
			flush()
			out = append(out, e)
		}
	}
	flush()
	return out
}

// vocabulary encodes each word as one character, since the library compares characters.
type vocabulary struct {
	index map[string]rune
	words []string
}

func (v *vocabulary) encode(text string) []rune {
	if v.index == nil {
		v.index = map[string]rune{}
	}
	var out []rune
	for _, w := range split(text) {
		c, ok := v.index[w]
		if !ok {
			c = wordRune(len(v.words))
			v.index[w] = c
			v.words = append(v.words, w)
		}
		out = append(out, c)
	}
	return out
}

func (v *vocabulary) decode(text string) string {
	var b strings.Builder
	for _, c := range text {
		b.WriteString(v.words[wordIndex(c)])
	}
	return b.String()
}

// wordRune returns the character for a word. It skips the surrogates, which no string can hold.
func wordRune(i int) rune {
	if i += 1; i >= 0xd800 {
		i += 0x800
	}
	return rune(i)
}

func wordIndex(c rune) int {
	i := int(c)
	if i >= 0xe000 {
		i -= 0x800
	}
	return i - 1
}

// The classes of characters. Adjacent characters of one class form a word, except single ones.
const (
	single = iota
	letter
	space
)

func classOf(c rune) int {
	switch {
	case unicode.IsLetter(c), unicode.IsDigit(c), unicode.IsMark(c), c == '_', c == '\'':
		if unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai) {
			return single // written without spaces
		}
		return letter
	case c == '\n':
		return single
	case unicode.IsSpace(c):
		return space
	}
	return single
}

// split cuts text into words, runs of white space, and other single characters.
func split(s string) []string {
	var out []string
	start, last := 0, -1
	for i, c := range s {
		k := classOf(c)
		if i > 0 && (k == single || k != last) {
			out = append(out, s[start:i])
			start = i
		}
		last = k
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}
