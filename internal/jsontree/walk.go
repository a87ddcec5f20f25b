package jsontree

import (
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Each calls fn for each member of an object, with its name still quoted, or for each element of a list, with a nil name. raw must be valid JSON and an object
// or a list. Names and values are slices of raw. An error of fn ends it and is returned.
func Each(raw []byte, fn func(name, value []byte) error) error {
	i := afterSpace(raw, 0)
	object := raw[i] == '{'
	for i = afterSpace(raw, i+1); raw[i] != '}' && raw[i] != ']'; {
		var name []byte
		if object {
			end := StringEnd(raw, i)
			name = raw[i:end]
			i = afterSpace(raw, afterSpace(raw, end)+1)
		}
		end := valueEnd(raw, i)
		if err := fn(name, raw[i:end]); err != nil {
			return err
		}
		if i = afterSpace(raw, end); raw[i] == ',' {
			i = afterSpace(raw, i+1)
		}
	}
	return nil
}

func afterSpace(raw []byte, i int) int {
	for isSpace(raw[i]) {
		i++
	}
	return i
}

// StringEnd returns the end of the string that begins at i in valid JSON.
func StringEnd(raw []byte, i int) int {
	for i++; raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// valueEnd returns the end of the value that begins at i in valid JSON.
func valueEnd(raw []byte, i int) int {
	for depth := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = StringEnd(raw, i) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 { // the end of the list or object around a number or a word
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// Escape returns the length of the escape sequence that raw begins with; the two of a surrogate pair count as one. half reports whether it is an unpaired half
// of a pair, which UTF-8 cannot hold.
func Escape(raw []byte) (size int, half bool) {
	unit := func(at int) uint64 {
		if len(raw) < at+6 || raw[at] != '\\' || raw[at+1] != 'u' {
			return 0
		}
		v, _ := strconv.ParseUint(string(raw[at+2:at+6]), 16, 32) // only invalid JSON has no number here
		return v
	}
	switch high := unit(0); {
	case len(raw) < 6 || raw[1] != 'u':
		return min(2, len(raw)), false
	case high < 0xd800 || high > 0xdfff:
		return 6, false
	case high < 0xdc00 && unit(6) >= 0xdc00 && unit(6) <= 0xdfff:
		return 12, false
	}
	return 6, true
}

// Whole returns valid JSON in which U+FFFD replaces what strict readers refuse: unpaired halves of surrogate pairs and bytes that are not UTF-8. n is the
// number of replacements; if it is 0, whole is raw itself. All other bytes stay.
func Whole(raw json.RawMessage) (whole json.RawMessage, n int) {
	start := 0
	replace := func(from, to int, with string) {
		whole = append(append(whole, raw[start:from]...), with...)
		start = to
		n++
	}
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '\\':
			size, half := Escape(raw[i:])
			if half {
				replace(i, i+size, `\ufffd`)
			}
			i += size
		case c < utf8.RuneSelf:
			i++
		default:
			r, size := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && size == 1 {
				replace(i, i+1, "\uFFFD")
			}
			i += size
		}
	}
	if n == 0 {
		return raw, 0
	}
	return append(whole, raw[start:]...), n
}

// plain holds the ASCII bytes that need no escape.
var plain = func() (t [utf8.RuneSelf]bool) {
	for i := range t {
		t[i] = i >= 0x20 && i != '"' && i != '\\'
	}
	return t
}()

// AppendString appends s as a JSON string, escaping only quotes, backslashes and control characters. U+FFFD replaces bytes that are not UTF-8.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if plain[c] {
				i++
				continue
			}
			b = appendEscape(append(b, s[start:i]...), c)
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			b = append(append(b, s[start:i]...), "\uFFFD"...)
			start = i + 1
		}
		i += n
	}
	return append(append(b, s[start:]...), '"')
}

func appendEscape(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, '\\', 'n')
	case '\r':
		return append(b, '\\', 'r')
	case '\t':
		return append(b, '\\', 't')
	}
	return append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}
