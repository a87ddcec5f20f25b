package adapter

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"hash"
	"slices"

	"github.com/chatctx/chatctx/pool"
)

// prefixKey is where a reply keeps the hash of the request that it answers, among its metadata's ProviderData.
const prefixKey = "chatctx.prefix"

// Chain hashes pieces, one after the other.
type Chain struct{ hash hash.Hash }

// NewChain is the chain of pieces.
func NewChain(pieces ...Piece) *Chain {
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

// Sum is a word for all pieces so far.
func (c *Chain) Sum() string { return hex.EncodeToString(c.hash.Sum(nil)[:16]) }

// Bind keeps on a reply with thinking, before it is stored, what it answers: the Sum of its request's pieces. Some providers
// take thinking back only where all that stood before it is as it was; with this an adapter can tell.
func Bind(m *pool.Message, sum string) {
	if !slices.ContainsFunc(m.Content, func(p pool.Part) bool { return p.Type == pool.ThinkingPart }) {
		return
	}
	if m.Meta.ProviderData == nil {
		m.Meta.ProviderData = map[string]json.RawMessage{}
	}
	m.Meta.ProviderData[prefixKey] = json.RawMessage(`"` + sum + `"`)
}

// BoundTo is what Bind kept, "" for nothing.
func BoundTo(m *pool.Message) string {
	var sum string
	if raw := m.Meta.ProviderData[prefixKey]; len(raw) > 0 {
		_ = json.Unmarshal(raw, &sum) // what is no text was not kept by Bind
	}
	return sum
}
