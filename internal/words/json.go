package words

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// FromJSON returns the texts of a JSON value separated by spaces: strings and names without quotes and escapes, numbers and literals as they are. Text that
// is no JSON is returned unchanged.
func FromJSON(raw []byte) string {
	var b strings.Builder
	b.Grow(len(raw))
	for i := 0; i < len(raw); {
		switch c := raw[i]; c {
		case '"':
			i = unquote(&b, raw, i+1)
			b.WriteByte(' ')
		case '{', '}', '[', ']', ',', ':':
			i++
			if c == ',' {
				b.WriteByte(' ')
			}
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

// unquote writes the string that begins at i, and returns its end.
func unquote(b *strings.Builder, raw []byte, i int) int {
	for i < len(raw) && raw[i] != '"' {
		if raw[i] != '\\' || i+1 == len(raw) {
			b.WriteByte(raw[i])
			i++
			continue
		}
		switch c := raw[i+1]; c {
		case 'n', 'r', 't', 'b', 'f':
			b.WriteByte(map[byte]byte{'n': '\n', 'r': '\r', 't': '\t', 'b': ' ', 'f': ' '}[c])
		case 'u':
			r, n := escaped(raw[i:])
			b.WriteRune(r)
			i += n
			continue
		default:
			b.WriteByte(c)
		}
		i += 2
	}
	return min(i+1, len(raw))
}

// escaped decodes a \u escape, or two that form one character, and returns its length.
func escaped(raw []byte) (rune, int) {
	r, ok := hex4(raw)
	if !ok {
		return utf8.RuneError, min(len(raw), 2)
	}
	if utf16.IsSurrogate(r) {
		if second, ok := hex4(raw[6:]); ok {
			if both := utf16.DecodeRune(r, second); both != utf8.RuneError {
				return both, 12
			}
		}
	}
	return r, 6
}

func hex4(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 32)
	return rune(n), err == nil
}
