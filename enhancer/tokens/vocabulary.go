package tokens

import (
	"embed"
	"fmt"
	"sync"
	"unicode/utf8"
)

// Encoding is a way to cut text into tokens.
type Encoding string

// The two encodings.
const (
	O200k  Encoding = "o200k_base"
	CL100k Encoding = "cl100k_base"
)

// longest is the length in bytes up to which a piece is counted exactly. A longer one (a run without a space or a change of kind, which no language has) is cut
// into pieces of that length, which may add one token for each cut, since merging takes quadratic time in the length of a piece.
const longest = 128

// Count returns the number of tokens of text. Bytes that are not UTF-8 count as the replacement character, as which they are sent. The first call reads the
// vocabulary. It is safe for concurrent use.
func (e Encoding) Count(text string) int {
	if text == "" {
		return 0
	}
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	v := e.vocabulary()
	s := scanner{text, basicPlane()}
	next := s.cl100k
	if e == O200k {
		next = s.o200k
	}
	var m merger
	total := 0
	for i := 0; i < len(text); {
		end := next(i)
		for end-i > longest {
			cut := i + longest
			for !utf8.RuneStart(text[cut]) {
				cut--
			}
			total += m.count(v, text[i:cut])
			i = cut
		}
		total += m.count(v, text[i:end])
		i = end
	}
	return total
}

var (
	readO200k  = sync.OnceValue(func() *vocabulary { return readVocabulary(O200k) })
	readCL100k = sync.OnceValue(func() *vocabulary { return readVocabulary(CL100k) })
)

func (e Encoding) vocabulary() *vocabulary {
	if e == O200k {
		return readO200k()
	}
	return readCL100k()
}

// vocabulary has the rank of each token. Tokens of up to seven bytes are stored under a number, which is faster to find.
type vocabulary struct {
	short map[uint64]uint32
	long  map[string]uint32
}

const noToken = ^uint32(0)

// key packs up to seven bytes and their number into one number.
func key(b string) uint64 {
	k := uint64(len(b)) << 56
	for i := range len(b) {
		k |= uint64(b[i]) << (8 * i)
	}
	return k
}

func (v *vocabulary) rank(b string) uint32 {
	var r uint32
	var ok bool
	if len(b) < 8 {
		r, ok = v.short[key(b)]
	} else {
		r, ok = v.long[b]
	}
	if !ok {
		return noToken
	}
	return r
}

// files has the vocabularies that OpenAI publishes with tiktoken (MIT).
//
//go:embed o200k_base.tokens cl100k_base.tokens
var files embed.FS

// readVocabulary reads a file of tokens in the order of their ranks, each after a byte with its length. It panics if the file is missing, since it is part of
// the program.
func readVocabulary(e Encoding) *vocabulary {
	data, err := files.ReadFile(string(e) + ".tokens")
	if err != nil {
		panic(fmt.Sprintf("tokens: the vocabulary %s is missing from the program: %v", e, err))
	}
	v := &vocabulary{short: make(map[uint64]uint32, 130_000), long: make(map[string]uint32, 90_000)}
	text := string(data)
	for rank := uint32(0); text != ""; rank++ {
		n := int(text[0])
		token := text[1 : 1+n]
		text = text[1+n:]
		if n < 8 {
			v.short[key(token)] = rank
		} else {
			v.long[token] = rank
		}
	}
	return v
}

// merger merges the bytes of one piece, and reuses its memory for the next.
type merger struct {
	start [longest + 1]int32  // where each part begins; after the last part, the end of the piece
	join  [longest + 1]uint32 // the rank of each part joined with the next one
}

// count returns the number of tokens of a piece of at most longest bytes. The parts begin as single bytes; the pair with the lowest rank is joined until no
// pair is a token.
func (m *merger) count(v *vocabulary, piece string) int {
	if len(piece) < 2 || v.rank(piece) != noToken {
		return min(len(piece), 1)
	}
	n := len(piece)
	for i := 0; i <= n; i++ {
		m.start[i] = int32(i)
	}
	for i := range n - 1 {
		m.join[i] = v.rank(piece[i : i+2])
	}
	m.join[n-1] = noToken
	for n > 1 {
		best, at := noToken, 0
		for i, r := range m.join[:n-1] {
			if r < best {
				best, at = r, i
			}
		}
		if best == noToken {
			break
		}
		copy(m.start[at+1:n], m.start[at+2:n+1])
		copy(m.join[at+1:n-1], m.join[at+2:n])
		n--
		m.rejoin(v, piece, at, n)
		if at > 0 {
			m.rejoin(v, piece, at-1, n)
		}
	}
	return n
}

// rejoin sets the rank of part i of n joined with the next one.
func (m *merger) rejoin(v *vocabulary, piece string, i, n int) {
	m.join[i] = noToken
	if i+2 <= n {
		m.join[i] = v.rank(piece[m.start[i]:m.start[i+2]])
	}
}
