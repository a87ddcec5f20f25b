package base

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/pool"
)

// SourceRecord is an imported conversation.
type SourceRecord struct {
	Context     pool.ID   `cbor:"1,keyasint"`
	Fingerprint pool.Hash `cbor:"2,keyasint"` // of its nodes and branches
	Digest      pool.Hash `cbor:"3,keyasint,omitzero"`
	// Dated is the newest time in any state of it that was imported. About has, for the title ("") and each app data of that state, a hash of its text.
	Dated pool.Time         `cbor:"4,keyasint,omitempty"`
	About map[string]uint64 `cbor:"5,keyasint,omitempty"`
	// Labels are the labels of that state.
	Labels []string `cbor:"6,keyasint,omitempty"`
	// Call is, in a note about a context that belongs to the conversation, the call there that it answers.
	Call string `cbor:"7,keyasint,omitempty"`

	// Unknown has the keys of the stored form that this program does not know.
	Unknown string `cbor:"-" json:"-"`
}

// SourceNode is an imported message of a conversation: the message that it became, and a short hash of its words in the file.
type SourceNode struct {
	Context, Message pool.ID
	Words            [8]byte
}

// sourceNodeSize is the length of a node's record, which distinguishes it from a SourceRecord.
const sourceNodeSize = 40

// Value returns the record of the node.
func (n SourceNode) Value() []byte {
	return slices.Concat(n.Context[:], n.Message[:], n.Words[:])
}

// ParseSourceNode decodes the record of a node; ok is false for any other record.
func ParseSourceNode(value []byte) (n SourceNode, ok bool) {
	if len(value) != sourceNodeSize {
		return n, false
	}
	return SourceNode{pool.ID(value[:16]), pool.ID(value[16:32]), [8]byte(value[32:])}, true
}

// SourceKey returns the key of a node's first record, or with the node "" that of a conversation.
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

// CutSourceKey returns the key of the first record of the node that key is about, and whether key is that of a further one.
func CutSourceKey(key []byte) (first []byte, further bool) {
	at := 0
	for range 3 {
		n, size := binary.Uvarint(key[at:])
		if size <= 0 || n > uint64(len(key)-at-size) {
			return key, false
		}
		at += size + int(n)
	}
	return slices.Clone(key[:at]), at < len(key)
}
