// Package out writes JSON in a fixed order, straight into bytes. Bodies are large and written for every request, and their members are known, so nothing is
// looked up while they are written.
package out

import (
	"encoding/base64"
	"encoding/json"
	"strconv"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// JSON is a document that is being written. It adds commas by itself. The zero JSON is empty.
type JSON []byte

// Key begins a member of an object; its value must follow.
func (j *JSON) Key(name string) {
	j.String(name)
	*j = append(*j, ':')
}

// Text writes a member whose value is a text.
func (j *JSON) Text(name, value string) {
	j.Key(name)
	j.String(value)
}

// Value writes a member whose value is JSON already.
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

// Array writes a member whose value is an array: write writes each of list.
func Array[T any](j *JSON, name string, list []T, write func(*JSON, *T)) {
	j.Key(name)
	j.Open('[')
	for i := range list {
		write(j, &list[i])
	}
	j.Close(']')
}

// Each returns a function that appends one value of a list to bytes.
func Each[T any](list []T, write func(*JSON, *T)) func(body []byte, i int) []byte {
	return func(body []byte, i int) []byte {
		j := JSON(body)
		write(&j, &list[i])
		return j
	}
}

// Append returns a function that appends a value to bytes.
func Append(write func(*JSON)) func(body []byte, _ int) []byte {
	return func(body []byte, _ int) []byte {
		j := JSON(body)
		write(&j)
		return j
	}
}

// URL writes an address, or without one the bytes as a data URL of a media type.
func (j *JSON) URL(address, mediaType string, data []byte) {
	if address != "" {
		j.String(address)
	} else {
		j.Base64("data:"+mediaType+";base64,", data)
	}
}

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

// Base64 writes bytes as a base64 string, after a prefix that needs no escapes.
func (j *JSON) Base64(prefix string, data []byte) {
	j.comma()
	*j = append(*j, '"')
	*j = append(*j, prefix...)
	*j = base64.StdEncoding.AppendEncode(*j, data)
	*j = append(*j, '"')
}

// String writes a text. Bytes that are not UTF-8 become U+FFFD.
func (j *JSON) String(s string) {
	j.comma()
	*j = jsontree.AppendString(*j, s)
}

func (j *JSON) comma() {
	if n := len(*j); n > 0 {
		switch (*j)[n-1] {
		case '{', '[', ':', ',': // a comma stands there if the bytes before are another writer's
		default:
			*j = append(*j, ',')
		}
	}
}

// Clean returns JSON in its shortest form, with U+FFFD for anything that no provider reads: bytes that are not UTF-8, halves of surrogate pairs. ok is false if
// raw is not JSON, is nested too deeply, or has a number that is too large for a float64.
func Clean(raw []byte) (clean json.RawMessage, ok bool) {
	if !json.Valid(raw) {
		return nil, false
	}
	whole, _ := jsontree.Whole(raw)
	clean = make([]byte, 0, len(whole))
	large, start := false, 0
	for i := 0; i < len(whole); {
		switch c := whole[i]; c {
		case '"':
			i = jsontree.StringEnd(whole, i)
		case ' ', '\n', '\r', '\t':
			clean = append(clean, whole[start:i]...)
			i++
			start = i
		default:
			large = large || c|0x20 == 'e' && whole[i-1] >= '0' && whole[i-1] <= '9'
			i++
		}
	}
	if clean = append(clean, whole[start:]...); large {
		var v any
		return clean, json.Unmarshal(clean, &v) == nil
	}
	return clean, true
}
