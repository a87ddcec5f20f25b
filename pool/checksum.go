package pool

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// checksumKey begins the last pair of a record that is a map with a checksum: the key 255, and a number of 4 bytes.
var checksumKey = []byte{0x18, 0xff, 0x1a}

// checksumSize is the length of that pair.
const checksumSize = 7

// errChecksum: a record is not as it was written.
var errChecksum = errors.New("its checksum is wrong")

// AddChecksum gives a record, a CBOR map of fewer than 255 pairs with whole numbers as keys in the core deterministic encoding, one more pair: under the key 255 the
// CRC-32C of with and the record as it was before. A reader that does not know this key reads the record all the same.
func AddChecksum(record, with []byte) []byte {
	sum := crc32.Update(crc32.Checksum(with, castagnoli()), castagnoli(), record)
	out := make([]byte, 0, len(record)+checksumSize+1)
	switch n := record[0]; {
	case n < 0xb7:
		out = append(append(out, n+1), record[1:]...)
	case n == 0xb7:
		out = append(append(out, 0xb8, 24), record[1:]...)
	default:
		out = append(append(out, n, record[1]+1), record[2:]...)
	}
	return binary.BigEndian.AppendUint32(append(out, checksumKey...), sum)
}

// CheckRecord reports whether a record is as AddChecksum made it.
func CheckRecord(record, with []byte) error {
	end := len(record) - checksumSize
	if end < 1 || string(record[end:end+3]) != string(checksumKey) {
		return errChecksum
	}
	var head []byte
	body := record[1:end]
	switch n := record[0]; {
	case n > 0xa0 && n <= 0xb7:
		head = []byte{n - 1}
	case n == 0xb8 && end > 1 && record[1] == 24:
		head, body = []byte{0xb7}, record[2:end]
	case n == 0xb8 && end > 1 && record[1] > 24:
		head, body = []byte{n, record[1] - 1}, record[2:end]
	default:
		return errChecksum
	}
	sum := crc32.Update(crc32.Update(crc32.Checksum(with, castagnoli()), castagnoli(), head), castagnoli(), body)
	if sum != binary.BigEndian.Uint32(record[end+3:]) {
		return errChecksum
	}
	return nil
}
