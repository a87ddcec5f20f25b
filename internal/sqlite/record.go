package sqlite

import (
	"encoding/binary"
	"math"
	"unicode/utf16"
)

// values decodes a record. Each value is nil, an int64, a float64, a string or a []byte of its own. Texts keep their bytes: the caller replaces bytes that are
// not UTF-8.
func (db *DB) values(record []byte) ([]any, error) {
	head, n := varint(record)
	if n == 0 || head < uint64(n) || head > uint64(len(record)) {
		return nil, damaged("a record has a header of %d bytes", head)
	}
	types, body := record[n:head], record[head:]
	var out []any
	for len(types) > 0 {
		t, n := varint(types)
		if n == 0 {
			return nil, damaged("a record's header is cut off")
		}
		types = types[n:]
		size, ok := width(t)
		if !ok || size > uint64(len(body)) {
			return nil, damaged("a value of type %d in %d bytes", t, len(body))
		}
		out = append(out, db.value(t, body[:size]))
		body = body[size:]
	}
	return out, nil
}

// width returns the number of bytes of a value of type t, false for a type that is not defined.
func width(t uint64) (uint64, bool) {
	switch {
	case t >= 12:
		return (t - 12) / 2, true
	case t == 10 || t == 11:
		return 0, false
	}
	return uint64([...]uint8{0, 1, 2, 3, 4, 6, 8, 8, 0, 0}[t]), true
}

func (db *DB) value(t uint64, b []byte) any {
	switch {
	case t == 0:
		return nil
	case t <= 6:
		v := int64(int8(b[0]))
		for _, c := range b[1:] {
			v = v<<8 | int64(c)
		}
		return v
	case t == 7:
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	case t <= 9:
		return int64(t - 8)
	case t%2 == 0:
		return append([]byte{}, b...)
	case db.encoding >= 2:
		return utf16Text(b, db.encoding == 3)
	}
	return string(b)
}

func utf16Text(b []byte, big bool) string {
	var order binary.ByteOrder = binary.LittleEndian
	if big {
		order = binary.BigEndian
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = order.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}
