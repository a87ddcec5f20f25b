// Package words cuts texts into words and finds words, phrases and beginnings in them. Search and the index both use it, so that they agree on what a word
// is.
//
// A word is a run of letters, digits and marks, after Unicode's case folding and NFKC, without accents and vowel marks (café is cafe). Text beyond ASCII is
// first cut by Unicode's rules (UAX 29). Scripts that are written without spaces (Han, kana, Thai …) and symbols give a word for each character, so that
// any part of such a text is found as a phrase. All other characters only separate words: don't is the words don and t, os.path the words os and path.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/chatctx/chatctx/internal/fold"
	"github.com/rivo/uniseg"
	"golang.org/x/text/unicode/norm"
)

// Version counts the changes of the definition of a word, and of what an index keeps of one. An index of another version is built anew.
const Version = 3

// Segmenter cuts texts into words. It keeps buffers, so it is for one goroutine.
type Segmenter struct {
	buf    []byte
	folded map[string]string // cache of folded words
	marked bool              // accents and vowel marks stay
}

// NewSegmenter returns a new Segmenter.
func NewSegmenter() *Segmenter {
	return &Segmenter{folded: map[string]string{}}
}

// newMarked returns a Segmenter that keeps accents and vowel marks.
func newMarked() *Segmenter {
	s := NewSegmenter()
	s.marked = true
	return s
}

const (
	between = iota // an ASCII byte between words
	within         // a lower-case letter or a digit
	upper
	beyond // a byte of a character beyond ASCII
)

var class = func() (t [256]uint8) {
	for i := range t {
		switch c := byte(i); {
		case c >= 0x80:
			t[i] = beyond
		case c >= 'A' && c <= 'Z':
			t[i] = upper
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			t[i] = within
		}
	}
	return t
}()

// Each calls fn for each word of text, folded, with its place, until fn returns false. The word is valid until fn returns.
func (s *Segmenter) Each(text string, fn func(word []byte, from, to int) bool) {
	for i := 0; i < len(text); {
		if class[text[i]] == between {
			i++
			continue
		}
		from, capital := i, false
		for i < len(text) && (class[text[i]] == within || class[text[i]] == upper) {
			capital = capital || class[text[i]] == upper
			i++
		}
		if i < len(text) && class[text[i]] == beyond {
			for i < len(text) && class[text[i]] != between {
				i++
			}
			if !s.unicode(text[from:i], from, fn) {
				return
			}
			continue
		}
		s.buf = append(s.buf[:0], text[from:i]...)
		if capital {
			lower(s.buf)
		}
		if !fn(s.buf, from, i) {
			return
		}
	}
}

func lower(b []byte) {
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
}

// unicode cuts a stretch that is not all ASCII and contains no ASCII separators.
func (s *Segmenter) unicode(text string, at int, fn func(word []byte, from, to int) bool) bool {
	state := -1
	for len(text) > 0 {
		var part string
		part, text, state = uniseg.FirstWordInString(text, state)
		if !s.part(part, at, fn) {
			return false
		}
		at += len(part)
	}
	return true
}

// part finds the words between two of Unicode's word boundaries.
func (s *Segmenter) part(part string, at int, fn func(word []byte, from, to int) bool) bool {
	start := -1
	end := func(to int) bool {
		if start < 0 {
			return true
		}
		word := s.folding(part[start:to])
		from := start
		start = -1
		return len(word) == 0 || fn(append(s.buf[:0], word...), at+from, at+to)
	}
	alone := false // the current word takes no more letters
	for i, r := range part {
		switch {
		case unicode.Is(unicode.M, r):
			if start < 0 {
				start, alone = i, false
			}
			continue
		case r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.Is(unicode.So, r):
			if !end(i) {
				return false
			}
			continue
		}
		single := standsAlone(r)
		if (single || alone) && !end(i) {
			return false
		}
		if start < 0 {
			start = i
		}
		alone = single
	}
	return end(len(part))
}

// unspaced lists the scripts that put no spaces between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Bopomofo, unicode.Yi, unicode.So}

func standsAlone(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unspaced...) || r >= 0xA6 && r < 0x0E00 && unicode.Is(unicode.So, r)
}

// maxFolded bounds the cache of folded words.
const maxFolded = 8192

func (s *Segmenter) folding(word string) string {
	if w, ok := s.folded[word]; ok {
		return w
	}
	w := fold.String(norm.NFKC.String(word))
	if !s.marked {
		w = bare(w)
	}
	w = norm.NFKC.String(w)
	if len(s.folded) >= maxFolded {
		clear(s.folded)
	}
	s.folded[word] = w
	return w
}

// bare removes the accents of letters and the vowel marks of Hebrew and Arabic, which people leave out when they type. Marks of other scripts are letters
// of their own.
func bare(word string) string {
	return strings.Map(func(r rune) rune {
		if r >= 0x300 && r <= 0x36f || r >= 0x591 && r <= 0x5c7 && unicode.Is(unicode.Mn, r) || r >= 0x64b && r <= 0x65f || r == 0x670 {
			return -1
		}
		return r
	}, norm.NFD.String(word))
}

// Fold returns a text folded as words are.
func Fold(text string) string {
	return norm.NFKC.String(bare(fold.String(norm.NFKC.String(text))))
}
