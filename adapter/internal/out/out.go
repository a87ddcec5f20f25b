// Package out writes JSON in a fixed order, straight into bytes. Bodies are large and written for every request; what they
// hold is known, so nothing has to be looked up while they are written.
package out

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// JSON is a document being written. Commas come by themselves. The zero JSON is empty.
type JSON []byte

// Key begins a member of an object; its value has to follow.
func (j *JSON) Key(name string) {
	j.String(name)
	*j = append(*j, ':')
}

// Text writes a member of an object that is a text.
func (j *JSON) Text(name, value string) {
	j.Key(name)
	j.String(value)
}

// Value writes a member of an object that is JSON already.
func (j *JSON) Value(name string, value []byte) {
	j.Key(name)
	j.Raw(value)
}

// Open begins an object or an array: { or [.
func (j *JSON) Open(bracket byte) {
	j.comma()
	*j = append(*j, bracket)
}

// Close ends what Open began: } or ].
func (j *JSON) Close(bracket byte) { *j = append(*j, bracket) }

// Raw writes a value that is JSON already.
func (j *JSON) Raw(value []byte) {
	j.comma()
	*j = append(*j, value...)
}

// Bool writes true or false.
func (j *JSON) Bool(v bool) {
	j.comma()
	*j = strconv.AppendBool(*j, v)
}

// Base64 writes bytes as a string of base64, after a prefix that needs no escapes.
func (j *JSON) Base64(prefix string, data []byte) {
	j.comma()
	*j = append(*j, '"')
	*j = append(*j, prefix...)
	*j = base64.StdEncoding.AppendEncode(*j, data)
	*j = append(*j, '"')
}

// String writes text. What is no UTF-8 becomes U+FFFD.
func (j *JSON) String(s string) {
	j.comma()
	*j = appendString(*j, s)
}

func (j *JSON) comma() {
	if n := len(*j); n > 0 {
		switch (*j)[n-1] {
		case '{', '[', ':':
		default:
			*j = append(*j, ',')
		}
	}
}

const hex = "0123456789abcdef"

// plain tells which ASCII bytes stand in a string as they are.
var plain = func() (t [utf8.RuneSelf]bool) {
	for i := range t {
		t[i] = i >= 0x20 && i != '"' && i != '\\'
	}
	return t
}()

func appendString(b []byte, s string) []byte {
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

// Clean gives JSON in its shortest form with what no provider reads replaced by U+FFFD: bytes that are no UTF-8, halves of
// surrogate pairs. ok is false where raw is no JSON, is nested too deeply, or has a number that is too large for a float.
func Clean(raw []byte) (clean json.RawMessage, ok bool) {
	if !json.Valid(raw) {
		return nil, false
	}
	clean = make([]byte, 0, len(raw))
	quoted, large, start := false, false, 0
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			quoted = !quoted
			i++
		case !quoted && (c == ' ' || c == '\n' || c == '\r' || c == '\t'):
			clean = append(clean, raw[start:i]...)
			i++
			start = i
		case c == '\\':
			n, whole := escape(raw[i:])
			if !whole {
				clean = append(append(clean, raw[start:i]...), `\ufffd`...)
				start = i + n
			}
			i += n
		case c < utf8.RuneSelf:
			large = large || !quoted && c|0x20 == 'e' && isDigit(raw[i-1])
			i++
		default:
			r, n := utf8.DecodeRune(raw[i:])
			if r == utf8.RuneError && n == 1 {
				clean = append(append(clean, raw[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += n
		}
	}
	if clean = append(clean, raw[start:]...); large {
		var v any
		return clean, json.Unmarshal(clean, &v) == nil
	}
	return clean, true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// escape is the length of the escape at the beginning of raw, and whether it is more than half a surrogate pair.
func escape(raw []byte) (n int, whole bool) {
	if raw[1] != 'u' {
		return 2, true
	}
	switch high := unit(raw); {
	case high < 0xd800 || high > 0xdfff:
		return 6, true
	case high < 0xdc00 && len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u':
		if low := unit(raw[6:]); low >= 0xdc00 && low <= 0xdfff {
			return 12, true
		}
	}
	return 6, false
}

// unit is the UTF-16 unit of an escape.
func unit(raw []byte) uint64 {
	v, _ := strconv.ParseUint(string(raw[2:6]), 16, 32)
	return v
}
