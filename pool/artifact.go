package pool

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// HashOf returns the name of an artifact with these bytes.
func HashOf(data []byte) Hash { return sha256.Sum256(data) }

// String returns the hash in hex digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ParseHash parses 64 hex digits.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if n, err := hex.Decode(h[:], []byte(s[:min(len(s), 2*len(h))])); err != nil || n != len(h) || len(s) != 2*len(h) {
		return Hash{}, fmt.Errorf("%w: %q is not a SHA-256 in 64 hex digits", ErrInvalid, s)
	}
	return h, nil
}

// ArtifactInfo describes an artifact.
type ArtifactInfo struct {
	SHA256    Hash
	MediaType string
	Size      int64
}
