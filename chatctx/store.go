package chatctx

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx/kv"
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
type Store struct{ at *base.Store }

// Program is the name recorded on the journal as the one that acted.
func (s *Store) Program() string { return s.at.Program }

// By is the person in whose name this store decides.
func (s *Store) By() string { return s.at.Person }

// As returns the store in the hands of a user who calls themselves name, such as one whom a server lets in. The name is recorded with everything that is
// done through it: in brackets after the program's or the person's, and as claimed with a decision. It is not checked. It closes with the store.
func (s *Store) As(name string) *Store { return &Store{s.at.As(name)} }

// User is, for a store on a server, the server's user, a slash, and the user who started this program; "" for others.
func (s *Store) User() string { return s.at.User }

// Now returns the store's time: that of the server that keeps it, else of Options.Clock.
func (s *Store) Now() pool.Time { return s.at.Now() }

// ID returns the id of the store, made with it: a copy of the file has the same.
func (s *Store) ID(ctx context.Context) (id ID, err error) {
	if s.at.ID != (ID{}) {
		return s.at.ID, nil
	}
	err = s.at.DB.View(ctx, func(tx kv.Tx) error {
		raw, err := tx.Get(base.MetaBucket, base.MetaStore)
		if err == nil && len(raw) != len(id) {
			err = base.Damaged("the store has no id")
		}
		copy(id[:], raw)
		return err
	})
	return id, err
}

// DB returns the engine. Writing to it directly may break the store.
func (s *Store) DB() kv.DB { return s.at.Engine }

// Format returns the version of the store's format. That of an older store becomes FormatVersion with the first change.
func (s *Store) Format() int { return s.at.Format.Number() }

// Warnings returns sentences about the store itself that its user should read, the oldest first: that it was brought to a newer format, or that its newest
// change may be lost. They become more while the store is open.
func (s *Store) Warnings() []string { return s.at.Warnings.All() }

// Settings returns the defaults that all contexts of the store share.
func (s *Store) Settings(ctx context.Context) (map[string]json.RawMessage, error) {
	var out map[string]json.RawMessage
	err := s.at.DB.View(ctx, func(tx kv.Tx) (err error) {
		out, err = view.StoreSettings(tx)
		return err
	})
	return out, err
}

// SetSettings sets the store's defaults; null removes a key.
func (s *Store) SetSettings(ctx context.Context, set map[string]json.RawMessage) (*Committed, error) {
	if err := s.at.Values("setting", &set); err != nil {
		return nil, err
	}
	return journal.StoreOperation(ctx, s.at, "config", func(t *journal.StoreTxn) error {
		have, err := view.StoreSettings(t.Tx)
		if err != nil {
			return err
		}
		merged, changed, err := view.ChangeSettings(have, set)
		if err != nil || !changed {
			return err
		}
		return t.Put(base.MetaSettings, merged)
	})
}

// Artifact reads an artifact's bytes and media type. It returns ErrNotFound if there is none with that hash.
func (s *Store) Artifact(ctx context.Context, h pool.Hash) (data []byte, mediaType string, err error) {
	err = s.at.DB.View(ctx, func(tx kv.Tx) error {
		has, err := poolstore.HasArtifact(tx, h)
		if err != nil {
			return err
		}
		if !has {
			return NotFound("artifact", fmt.Sprintf("%x", h[:]))
		}
		data, mediaType, err = poolstore.Artifact(tx, h)
		return err
	})
	return data, mediaType, err
}

// ArtifactParts writes an artifact some 4 MB at a time, each part read in a short transaction. Before the first part it calls head once with the artifact's
// description to get the writer. It returns ErrNotFound if there is no artifact with that hash, and ErrDamaged, after the last part, if the bytes are not
// those that were stored.
func (s *Store) ArtifactParts(ctx context.Context, h pool.Hash, head func(pool.ArtifactInfo) (io.Writer, error)) (info pool.ArtifactInfo, err error) {
	read := func(do func(kv.Tx) error) {
		if err == nil {
			err = s.at.DB.View(ctx, do)
		}
	}
	read(func(tx kv.Tx) error {
		has, err := poolstore.HasArtifact(tx, h)
		if err == nil && !has {
			return NotFound("artifact", fmt.Sprintf("%x", h[:]))
		}
		if err == nil {
			info, err = poolstore.StatArtifact(tx, h)
		}
		return err
	})
	if err != nil {
		return info, err
	}
	w, err := head(info)
	sum := sha256.New()
	for n := 0; err == nil; n++ {
		var part []byte
		read(func(tx kv.Tx) (err error) {
			part, err = poolstore.ArtifactPart(tx, info, n)
			return err
		})
		if err == nil && len(part) == 0 {
			break
		}
		if sum.Write(part); err == nil {
			_, err = w.Write(part)
		}
	}
	if err == nil && pool.Hash(sum.Sum(nil)) != h {
		err = fmt.Errorf("%w: the artifact %s is not what was stored", ErrDamaged, h)
	}
	return info, err
}

// PutArtifact stores bytes under their hash. If nothing refers to them after a day, gc removes them.
func (s *Store) PutArtifact(ctx context.Context, data []byte, mediaType string) (h pool.Hash, err error) {
	if textual(mediaType) && utf8.Valid(data) {
		text := string(data)
		if err := s.at.Texts("artifact", &text); err != nil {
			return h, err
		}
		data = []byte(text)
	}
	err = s.at.Update(ctx, func(tx kv.RwTx) (err error) {
		if h, err = poolstore.PutArtifact(tx, data, mediaType); err != nil {
			return err
		}
		return tx.Put(base.LooseBucket, h[:], binary.BigEndian.AppendUint64(nil, uint64(s.at.Now())))
	})
	return h, err
}

// textual reports whether contents of a media type are text.
func textual(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || strings.HasPrefix(mediaType, "application/json")
}
