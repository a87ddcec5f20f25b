package grant

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/chatctx/chatctx/internal/base"
)

// The passphrase of a gate. At the level own it is what a person knows and an agent does not; the store has its Argon2id hash.

// The costs of the hash: some 0.1 s, and 64 MB for that time.
const (
	phraseTime    = 3
	phraseMemory  = 64 << 10 // KiB
	phraseThreads = 2
	// ShortestPhrase is how many characters a passphrase has at least.
	ShortestPhrase = 8
)

func hashOf(phrase, salt []byte) []byte {
	return argon2.IDKey(phrase, salt, phraseTime, phraseMemory, phraseThreads, 32)
}

// SetPhrase gives the store's gate a passphrase. If it has one, whoever changes it decides already, else it returns ErrDecider.
func SetPhrase(ctx context.Context, s *base.Store, phrase []byte) error {
	switch {
	case utf8.RuneCount(phrase) < ShortestPhrase:
		return base.Invalid("a passphrase has at least %d characters", ShortestPhrase)
	case !utf8.Valid(phrase) || bytes.ContainsAny(phrase, "\r\n\x00"):
		return base.Invalid("a passphrase is one line of text")
	}
	salt := make([]byte, 16)
	rand.Read(salt) // never fails
	hash := hashOf(phrase, salt)
	return base.ChangeGate(ctx, s, func(g *base.GateState) error {
		g.Salt, g.Phrase = salt, hash
		if g.Since == 0 {
			g.Since = max(s.Now(), 1)
		}
		return nil
	})
}

// Prove returns a context for one who knows the passphrase of the store's gate: what is done with it may decide about agents' calls. For a wrong one, or if
// the gate has none yet, it returns ErrDecider.
func Prove(ctx context.Context, s *base.Store, phrase []byte) (context.Context, error) {
	g, err := base.ReadGate(ctx, s)
	switch {
	case err != nil:
		return ctx, err
	case g.Phrase == nil:
		return ctx, base.Says(base.ErrDecider, "the gate has no passphrase yet, so nobody can show to be a person: chatctx gate passphrase sets it")
	case subtle.ConstantTimeCompare(hashOf(phrase, g.Salt), g.Phrase) != 1:
		return ctx, base.Says(base.ErrDecider, "that is not the passphrase of the gate")
	}
	return base.WithDeciding(ctx, base.Decides), nil
}
