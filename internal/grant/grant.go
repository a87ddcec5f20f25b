// Package grant keeps the tokens with which programs use a store that another one serves. It stores hashes of secrets, never a secret, and writes on no journal.
package grant

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

// tokenPrefix begins every secret, so that a search for secrets finds one that was left somewhere.
const tokenPrefix = "chatctx_"

// NewSecret returns a new secret that cannot be guessed.
func NewSecret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// Add makes a token and returns its secret, which cannot be read again. It returns ErrInvalid for a name that is empty, not UTF-8 or has control
// characters, and ErrConflict for one in use. It is on no journal: Remove takes it back.
func Add(ctx context.Context, s *base.Store, name string, scopes []string) (secret string, err error) {
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
	t := base.Token{Name: name, Scopes: scopes, Created: s.Now(), By: s.Maker()}
	err = s.Update(ctx, func(tx kv.RwTx) error {
		key, err := tokenKey(tx, name)
		if err != nil {
			return err
		}
		if key != nil {
			return base.Conflict("there is a token %q already", name)
		}
		if t.Decides, err = base.Decider(tx); err != nil {
			return err
		}
		hash := sha256.Sum256([]byte(secret))
		return base.PutRecord(tx, base.TokenBucket, hash[:], t)
	})
	return secret, err
}

// tokenKey returns the key of the token with a name, nil if there is none.
func tokenKey(tx kv.Tx, name string) (found []byte, err error) {
	err = eachToken(tx, func(key []byte, t *base.Token) {
		if t.Name == name {
			found = slices.Clone(key)
		}
	})
	return found, err
}

func eachToken(tx kv.Tx, fn func(key []byte, t *base.Token)) error {
	var keys [][]byte
	err := tx.Scan(base.TokenBucket, kv.Range{}, func(key, _ []byte) error {
		keys = append(keys, slices.Clone(key))
		return nil
	})
	for _, key := range keys {
		if err != nil {
			break
		}
		t := &base.Token{}
		if _, err = base.GetRecord(tx, base.TokenBucket, key, t); err == nil {
			fn(key, t)
		}
	}
	return err
}

// List returns all tokens, by name.
func List(ctx context.Context, s *base.Store) ([]base.Token, error) {
	var all []base.Token
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		all = all[:0]
		return eachToken(tx, func(_ []byte, t *base.Token) { all = append(all, *t) })
	})
	slices.SortFunc(all, func(a, b base.Token) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// Of returns the token of a secret. It returns ErrNotFound if there is none.
func Of(ctx context.Context, s *base.Store, secret string) (*base.Token, error) {
	t := &base.Token{}
	hash := sha256.Sum256([]byte(secret))
	err := s.DB.View(ctx, func(tx kv.Tx) error {
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

// Remove removes a token: its secret is no longer accepted. It returns ErrNotFound if there is none with that name.
func Remove(ctx context.Context, s *base.Store, name string) error {
	return s.Update(ctx, func(tx kv.RwTx) error {
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
