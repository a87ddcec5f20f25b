package tokens

import "unicode/utf8"

// merger merges the bytes of one piece, and reuses its memory for the next.
type merger struct {
	coding     *coding
	vocabulary *vocabulary
	left       int                 // how many bytes of long pieces the library may still count
	start      [longest + 1]int32  // where each part begins; after the last part, the end of the piece
	join       [longest + 1]uint32 // the rank of each part joined with the next one
}

// piece returns the number of tokens of a piece of any length.
func (m *merger) piece(piece string) int {
	switch {
	case len(piece) < 2 || m.vocabulary.rank(piece) != noToken:
		return min(len(piece), 1)
	case len(piece) <= longest:
		return m.count(piece)
	case len(piece) <= longestWhole && m.left >= len(piece):
		m.left -= len(piece)
		return m.coding.whole(piece)
	}
	total := 0
	for len(piece) > cutLength {
		cut := cutLength
		for !utf8.RuneStart(piece[cut]) {
			cut--
		}
		total += m.piece(piece[:cut])
		piece = piece[cut:]
	}
	return total + m.piece(piece)
}

// count returns the number of tokens of a piece of at most longest bytes. The parts begin as single bytes; the pair with the lowest rank is joined until no
// pair is a token.
func (m *merger) count(piece string) int {
	n := len(piece)
	for i := 0; i <= n; i++ {
		m.start[i] = int32(i)
	}
	for i := range n - 1 {
		m.join[i] = m.vocabulary.rank(piece[i : i+2])
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
		m.rejoin(piece, at, n)
		if at > 0 {
			m.rejoin(piece, at-1, n)
		}
	}
	return n
}

// rejoin sets the rank of part i of n joined with the next one.
func (m *merger) rejoin(piece string, i, n int) {
	m.join[i] = noToken
	if i+2 <= n {
		m.join[i] = m.vocabulary.rank(piece[m.start[i]:m.start[i+2]])
	}
}
