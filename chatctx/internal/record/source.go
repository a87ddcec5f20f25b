package record

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/chatctx/chatctx/pool"
)

// sourceRecord is a known conversation.
type SourceRecord struct {
	Context     pool.ID   `cbor:"1,keyasint"`
	Fingerprint pool.Hash `cbor:"2,keyasint"` // of its nodes and branches
	Digest      pool.Hash `cbor:"3,keyasint,omitzero"`
}

func SourceKey(format, conversation, node string) []byte {
	var key []byte
	for _, part := range []string{format, conversation, node} {
		if len(part) > 1024 {
			sum := sha256.Sum256([]byte(part))
			part = fmt.Sprintf("%x", sum)
		}
		key = binary.AppendUvarint(key, uint64(len(part)))
		key = append(key, part...)
	}
	return key
}
