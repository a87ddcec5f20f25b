package tokens

import (
	"sync"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
)

// Encoding is a way to cut text into tokens.
type Encoding string

// The encodings. P50kEdit differs from P50k in tokens that no text has.
const (
	O200k    = Encoding(tiktoken.MODEL_O200K_BASE)
	CL100k   = Encoding(tiktoken.MODEL_CL100K_BASE)
	P50k     = Encoding(tiktoken.MODEL_P50K_BASE)
	P50kEdit = Encoding(tiktoken.MODEL_P50K_EDIT)
	R50k     = Encoding(tiktoken.MODEL_R50K_BASE)
)

// otherNames are names of encodings that count like another one.
var otherNames = map[string]Encoding{"gpt2": R50k, "o200k_harmony": O200k}

// encodingNamed returns the encoding of a name; ok is false if there is none.
func encodingNamed(name string) (e Encoding, ok bool) {
	if e, ok = otherNames[name]; !ok {
		e = Encoding(name)
		_, ok = codings[e]
	}
	return e, ok
}

// coding is how an encoding counts. What it reads is read when it is first needed.
type coding struct {
	next       func(s *scanner, i int) int // the end of the piece at i
	vocabulary func() *vocabulary
	whole      func(piece string) int // the count of a piece by the library
}

// codings has all encodings.
var codings = func() map[Encoding]*coding {
	p50k := newCoding(P50k, (*scanner).r50k)
	return map[Encoding]*coding{
		O200k: newCoding(O200k, (*scanner).o200k), CL100k: newCoding(CL100k, (*scanner).cl100k),
		P50k: p50k, P50kEdit: p50k, R50k: newCoding(R50k, (*scanner).r50k),
	}
}()

func newCoding(e Encoding, next func(*scanner, int) int) *coding {
	return &coding{next, sync.OnceValue(func() *vocabulary { return readVocabulary(e) }), byLibrary(e)}
}

func (e Encoding) coding() *coding {
	known, ok := encodingNamed(string(e))
	if !ok {
		known = CL100k
	}
	return codings[known]
}

// How a piece is counted depends on its length in bytes, since merging takes quadratic time in it.
const (
	// Pieces of up to longest bytes are merged here.
	longest = 256
	// Longer ones, up to longestWhole, are rare. The library's encoder counts them, as long as a text has no more than mostWhole bytes of them.
	longestWhole, mostWhole = 1 << 10, 64 << 10
	// The others are cut into pieces of cutLength, each of which may add one token.
	cutLength = 128
)

// Count returns the number of tokens of text. Bytes that are not UTF-8 count as the replacement character, as which they are sent. A run of more than 1 KB without
// a space or a change of kind, which no language has, is cut, which may add one token for each 128 bytes; so are runs of more than 256 bytes after the first 64 KB
// of them. The first call reads the vocabulary. It is safe for concurrent use. An unknown encoding counts like CL100k.
func (e Encoding) Count(text string) int {
	if text == "" {
		return 0
	}
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	c := e.coding()
	s, m := scanner{text, basicPlane()}, merger{coding: c, vocabulary: c.vocabulary(), left: mostWhole}
	total := 0
	for i := 0; i < len(text); {
		end := c.next(&s, i)
		total += m.piece(text[i:end])
		i = end
	}
	return total
}
