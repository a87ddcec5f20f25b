package chatctx

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// ID identifies a context, a message or a branch.
type ID = pool.ID

// Message is a message; see package pool.
type Message = pool.Message

// Entry is a message at its place on a branch.
type Entry = pool.Entry

// Store is an open store. Many goroutines may use it at the same time, and other processes may use the same file.
type Store struct{ handle }

// handle is what the rooms know a store by, through base.Of.
type handle = base.Handle

func storeOf(at *base.Store) *Store { return &Store{base.HandleOf(at)} }

func (s *Store) at() *base.Store { return base.Of(s) }

// As returns the store in the hands of a user who calls themselves name, such as one whom a server lets in. The name is recorded with everything that is
// done through it: in brackets after the program's or the person's, and as claimed with a decision. It is not checked. It closes with the store.
func (s *Store) As(name string) *Store { return storeOf(s.at().As(name)) }

// ID returns the id of the store, made with it: a copy of the file has the same.
func (s *Store) ID(ctx context.Context) (id ID, err error) {
	if s.at().ID != (ID{}) {
		return s.at().ID, nil
	}
	err = s.at().DB.View(ctx, func(tx kv.Tx) error {
		raw, err := tx.Get(base.MetaBucket, base.MetaStore)
		if err == nil && len(raw) != len(id) {
			err = base.Damaged("the store has no id")
		}
		copy(id[:], raw)
		return err
	})
	return id, err
}

// Warnings returns sentences about the store itself that its user should read, the oldest first: that it was brought to a newer format, or that its newest
// change may be lost. They become more while the store is open.
func (s *Store) Warnings() []string { return s.at().Warnings.All() }

// Settings returns the defaults that all contexts of the store share.
func (s *Store) Settings(ctx context.Context) (map[string]json.RawMessage, error) {
	var out map[string]json.RawMessage
	err := s.at().DB.View(ctx, func(tx kv.Tx) (err error) {
		out, err = view.StoreSettings(tx)
		return err
	})
	return out, err
}

// SetSettings sets the store's defaults; null removes a key.
func (s *Store) SetSettings(ctx context.Context, set map[string]json.RawMessage) (*record.Committed, error) {
	if err := s.at().Values("setting", &set); err != nil {
		return nil, err
	}
	return journal.StoreOperation(ctx, s.at(), "config", func(t *journal.StoreTxn) error {
		have, err := view.StoreSettings(t.Tx)
		if err != nil {
			return err
		}
		merged, changed, err := view.ChangeStoreSettings(have, set)
		if err != nil || !changed {
			return err
		}
		return t.Put(base.MetaSettings, merged)
	})
}

// Artifact reads an artifact's bytes and media type. It returns ErrNotFound if there is none with that hash.
func (s *Store) Artifact(ctx context.Context, h pool.Hash) (data []byte, mediaType string, err error) {
	err = s.at().DB.View(ctx, func(tx kv.Tx) error {
		has, err := poolstore.HasArtifact(tx, h)
		if err != nil {
			return err
		}
		if !has {
			return base.NotFound("artifact", fmt.Sprintf("%x", h[:]))
		}
		data, mediaType, err = poolstore.Artifact(tx, h)
		return err
	})
	return data, mediaType, err
}

// PutArtifact stores bytes under their hash. If nothing refers to them after a day, gc removes them.
func (s *Store) PutArtifact(ctx context.Context, data []byte, mediaType string) (h pool.Hash, err error) {
	if textual(mediaType) && utf8.Valid(data) {
		text := string(data)
		if err := s.at().Texts("artifact", &text); err != nil {
			return h, err
		}
		data = []byte(text)
	}
	err = s.at().Update(ctx, func(tx kv.RwTx) (err error) {
		if h, err = poolstore.PutArtifact(tx, data, mediaType); err != nil {
			return err
		}
		return tx.Put(base.LooseBucket, h[:], binary.BigEndian.AppendUint64(nil, uint64(s.at().Now())))
	})
	return h, err
}

// textual reports whether contents of a media type are text.
func textual(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || strings.HasPrefix(mediaType, "application/json")
}
