package charset

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

var utf8Set = set{utf8.DecodeRune, utf8.AppendRune}

// wide are the encodings that may have no mark, the widest first.
var wide = []set{utf32Set(binary.LittleEndian), utf32Set(binary.BigEndian), utf16Set(binary.LittleEndian), utf16Set(binary.BigEndian)}

// order is a byte order.
type order interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func utf16Set(o order) set {
	return set{
		func(b []byte) (rune, int) {
			if len(b) < 2 {
				return utf8.RuneError, len(b)
			}
			r := rune(o.Uint16(b))
			if !utf16.IsSurrogate(r) {
				return r, 2
			}
			if len(b) >= 4 {
				if both := utf16.DecodeRune(r, rune(o.Uint16(b[2:]))); both != utf8.RuneError {
					return both, 4
				}
			}
			return utf8.RuneError, 2
		},
		func(b []byte, r rune) []byte {
			for _, unit := range utf16.AppendRune(nil, r) {
				b = o.AppendUint16(b, unit)
			}
			return b
		},
	}
}

func utf32Set(o order) set {
	return set{
		func(b []byte) (rune, int) {
			if len(b) < 4 {
				return utf8.RuneError, len(b)
			}
			if r := o.Uint32(b); r <= utf8.MaxRune && utf8.ValidRune(rune(r)) {
				return rune(r), 4
			}
			return utf8.RuneError, 4
		},
		func(b []byte, r rune) []byte { return o.AppendUint32(b, uint32(r)) },
	}
}

// oneByte is a set of a table. Bytes without a character are control characters, as browsers read them.
func oneByte(m *charmap.Charmap) set {
	return set{
		func(b []byte) (rune, int) {
			if r := m.DecodeByte(b[0]); r != utf8.RuneError {
				return r, 1
			}
			return rune(b[0]), 1
		},
		func(b []byte, r rune) []byte {
			c, known := m.EncodeRune(r)
			if !known {
				c = '?'
			}
			return append(b, c)
		},
	}
}

// mixed is UTF-8 in which some bytes are Windows-1252, as in logs of several programs.
var mixed = set{
	func(b []byte) (rune, int) {
		if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
			return r, n
		}
		return oneByte(charmap.Windows1252).next(b)
	},
	utf8.AppendRune,
}

// guessed is the set of a text that is not UTF-8 and names none.
func guessed(data []byte) set {
	good, bad := 0, 0
	for at := 0; at < len(data); {
		r, n := utf8.DecodeRune(data[at:])
		if n > 1 {
			good++
		} else if r == utf8.RuneError {
			bad++
		}
		at += n
	}
	if good > bad {
		return mixed
	}
	return oneByte(charmap.Windows1252)
}

// marks are the byte order marks, the longer one first where one begins with the other.
var marks = []struct {
	mark string
	set  set
}{
	{"\xff\xfe\x00\x00", utf32Set(binary.LittleEndian)}, {"\x00\x00\xfe\xff", utf32Set(binary.BigEndian)},
	{"\xff\xfe", utf16Set(binary.LittleEndian)}, {"\xfe\xff", utf16Set(binary.BigEndian)},
	{"\xef\xbb\xbf", utf8Set},
}

func fromMark(data []byte) (*Text, bool) {
	for _, m := range marks {
		if bytes.HasPrefix(data, []byte(m.mark)) {
			if t := read(data, len(m.mark), m.set); t.readable() {
				return t, true
			}
		}
	}
	return nil, false
}

// spaced reports whether a quarter of the characters of a wide set, and more than one, have the zeros that letters and spaces of most scripts have there. Bytes
// of another kind rarely do, while nearly all read as some character.
func spaced(data []byte, s set) bool {
	if bytes.IndexByte(data, 0) < 0 {
		return false
	}
	narrow, all := 0, 0
	for at := 0; at < len(data); {
		r, n := s.next(data[at:])
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' || r == utf8.RuneError || r&0xfffe == 0xfffe {
			return false
		}
		if all++; r < 0x250 {
			narrow++
		}
		at += n
	}
	return narrow > 1 && narrow*4 >= all
}
