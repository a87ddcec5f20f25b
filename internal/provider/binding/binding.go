// Package binding ties a reply's thinking to the request that it answers, by a hash of the request's pieces.
package binding

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"slices"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/pool"
)

// prefixKey is the key in a reply's ProviderData for the hash of the request that it answers.
const prefixKey = "chatctx.prefix"

// Chain hashes pieces, one after the other.
type Chain struct{ hash hash.Hash }

// NewChain returns the chain of pieces.
func NewChain(pieces ...adapter.Piece) *Chain {
	c := &Chain{sha256.New()}
	for _, p := range pieces {
		c.Add(p.Bytes)
	}
	return c
}

// Add adds a piece.
func (c *Chain) Add(piece []byte) {
	var size [8]byte
	binary.BigEndian.PutUint64(size[:], uint64(len(piece)))
	c.hash.Write(size[:])
	c.hash.Write(piece)
}

// Sum returns a hash of all pieces so far.
func (c *Chain) Sum() string { return hex.EncodeToString(c.hash.Sum(nil)[:16]) }

// Bind keeps in a reply with thinking, before it is stored, the Sum of its request's pieces. Some providers accept thinking only if everything before it is
// unchanged; with this an adapter can tell.
func Bind(m *pool.Message, sum string) {
	if !slices.ContainsFunc(m.Content, func(p pool.Part) bool { return p.Type == pool.ThinkingPart }) {
		return
	}
	if m.Meta.ProviderData == nil {
		m.Meta.ProviderData = map[string]json.RawMessage{}
	}
	m.Meta.ProviderData[prefixKey] = json.RawMessage(`"` + sum + `"`)
}

// BoundTo returns the Sum that Bind kept, "" if there is none.
func BoundTo(m *pool.Message) string {
	var sum string
	if raw := m.Meta.ProviderData[prefixKey]; len(raw) > 0 {
		_ = json.Unmarshal(raw, &sum) // anything but a text is not from Bind
	}
	return sum
}
