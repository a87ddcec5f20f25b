package chatctx

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
)

// Token lets a program use a store through one that serves it (package serve). The secret is stored nowhere: the store has its hash, which no export
// includes.
//
// Fields: Name string; Scopes []string; Created pool.Time; By, Unknown string. For more of each: go doc internal/base.Token
type Token = base.Token

// tokenPrefix begins every secret, so that a search for secrets finds one that was left somewhere.
const tokenPrefix = "chatctx_"

// NewSecret returns a new secret that cannot be guessed.
func NewSecret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// AddToken makes a token and returns its secret, which cannot be read again. It returns ErrInvalid for a name that is empty, not UTF-8 or has control
// characters, and ErrConflict for one in use. It is on no journal: RemoveToken takes it back.
func (s *Store) AddToken(ctx context.Context, name string, scopes []string) (secret string, err error) {
	if strings.TrimSpace(name) != name || name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(name) > 100 {
		return "", base.Invalid("a token needs a name of at most 100 characters, none of them a control character")
	}
	if branchstore.IsStep(name) {
		return "", base.Invalid("a token cannot be named %q: no address reaches it", name)
	}
	if err := base.CheckKey("a token's name", name); err != nil {
		return "", err
	}
	secret = NewSecret()
	t := Token{Name: name, Scopes: scopes, Created: s.at().Now(), By: s.at().Maker()}
	err = s.at().Update(ctx, func(tx kv.RwTx) error {
		key, err := tokenKey(tx, name)
		if err != nil {
			return err
		}
		if key != nil {
			return base.Conflict("there is a token %q already", name)
		}
		hash := sha256.Sum256([]byte(secret))
		return base.PutRecord(tx, base.TokenBucket, hash[:], t)
	})
	return secret, err
}

// tokenKey returns the key of the token with a name, nil if there is none.
func tokenKey(tx kv.Tx, name string) (found []byte, err error) {
	err = eachToken(tx, func(key []byte, t *Token) {
		if t.Name == name {
			found = slices.Clone(key)
		}
	})
	return found, err
}

func eachToken(tx kv.Tx, fn func(key []byte, t *Token)) error {
	var keys [][]byte
	err := tx.Scan(base.TokenBucket, kv.Range{}, func(key, _ []byte) error {
		keys = append(keys, slices.Clone(key))
		return nil
	})
	for _, key := range keys {
		if err != nil {
			break
		}
		t := &Token{}
		if _, err = base.GetRecord(tx, base.TokenBucket, key, t); err == nil {
			fn(key, t)
		}
	}
	return err
}

// Tokens returns all tokens, by name.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	var all []Token
	err := s.at().DB.View(ctx, func(tx kv.Tx) error {
		all = all[:0]
		return eachToken(tx, func(_ []byte, t *Token) { all = append(all, *t) })
	})
	slices.SortFunc(all, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// TokenOf returns the token of a secret. It returns ErrNotFound if there is none.
func (s *Store) TokenOf(ctx context.Context, secret string) (*Token, error) {
	t := &Token{}
	hash := sha256.Sum256([]byte(secret))
	err := s.at().DB.View(ctx, func(tx kv.Tx) error {
		ok, err := base.GetRecord(tx, base.TokenBucket, hash[:], t)
		if err == nil && !ok {
			err = base.NotFound("token", "")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// RemoveToken removes a token: its secret is no longer accepted. It returns ErrNotFound if there is none with that name.
func (s *Store) RemoveToken(ctx context.Context, name string) error {
	return s.at().Update(ctx, func(tx kv.RwTx) error {
		key, err := tokenKey(tx, name)
		if err != nil {
			return err
		}
		if key == nil {
			return base.NotFound("token", name)
		}
		return tx.Delete(base.TokenBucket, key)
	})
}
