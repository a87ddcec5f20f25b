// Package replies has what the replies of several providers share.
package replies

import (
	"encoding/json"
)

// Sum returns the sum of counts, ignoring nil ones; it is nil if all are.
func Sum(counts ...*int64) *int64 {
	var sum *int64
	for _, c := range counts {
		if c == nil {
			continue
		}
		if sum == nil {
			sum = new(int64)
		}
		*sum += *c
	}
	return sum
}

// Array returns values as a JSON array, byte for byte.
func Array(values []json.RawMessage) json.RawMessage {
	b := []byte{'['}
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}
