package stored

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// checksumKey begins the last pair of a record with a checksum: the key 255, and a number of 4 bytes.
var checksumKey = []byte{0x18, 0xff, 0x1a}

// checksumSize is the length of that pair.
const checksumSize = 7

// errChecksum: the record has changed since it was written.
var errChecksum = errors.New("its checksum is wrong")

// AddChecksum adds a pair to a record, which must be a CBOR map of fewer than 255 pairs with integer keys in the core deterministic encoding: under the key
// 255 the CRC-32C of with followed by the record. Readers that do not know this key can still read the record.
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

// withoutChecksum returns a record as it was before AddChecksum.
func withoutChecksum(record []byte) []byte {
	end := len(record) - checksumSize
	switch n := record[0]; {
	case n <= 0xb7:
		return append([]byte{n - 1}, record[1:end]...)
	case record[1] == 24:
		return append([]byte{0xb7}, record[2:end]...)
	default:
		return append([]byte{n, record[1] - 1}, record[2:end]...)
	}
}

// CheckRecord returns an error unless a record is as AddChecksum made it.
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
