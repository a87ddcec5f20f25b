package care

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/pool"
)

// Salvage reads everything that can still be read of the file from, however broken, into a new store at to, which must not exist (ErrConflict): contexts,
// branches, messages, prompts, calls and artifacts. Removed ones may come back with them. The journal, tags, marks, rules and tools are not read. The error
// is ErrNotOurs where nothing of a store is left, and then no new one is made.
func Salvage(ctx context.Context, from, to string, o record.OpenOptions) (out *record.Salvaged, err error) {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return nil, base.Conflict("%s is there already: name a new file", to)
	}
	ctx = engine.WithPurpose(ctx, "repair")
	if err := sameVersion(ctx, from); err != nil {
		return nil, err
	}
	out = &record.Salvaged{}
	o.Create, o.ReadOnly = true, false
	var s *base.Store
	v := &salvager{ctx: ctx, begin: func() (_ *base.Store, err error) {
		s, err = Open(to, o)
		return s, err
	}}
	defer func() {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := boltkv.Salvage(ctx, from, v.take); err != nil {
		return nil, err
	}
	if err := v.flush(); err != nil {
		return nil, err
	}
	if s == nil {
		return nil, fmt.Errorf("%w: nothing in %s belongs to one", kv.ErrNotOurs, from)
	}
	mended := &record.Repaired{}
	if err := mend(ctx, s, false, mended); err != nil {
		return nil, err
	}
	out.Mended = mended.Mended
	if err := find.Reindex(ctx, s, nil); err != nil {
		return nil, err
	}
	stats, err := Measure(ctx, s)
	if err != nil {
		return nil, err
	}
	out.Contexts, out.Branches, out.Messages, out.Artifacts = stats.Contexts, stats.Branches, stats.Messages, stats.Artifacts
	return out, nil
}

// sameVersion refuses a store of another version, since its records would be misread. A store that cannot be opened passes.
func sameVersion(ctx context.Context, path string) error {
	s, err := Open(path, record.OpenOptions{ReadOnly: true})
	if err == nil {
		err = errors.Join(s.DB.View(ctx, base.CheckFormat), s.Close())
	}
	if errors.Is(err, base.ErrTooNew) || errors.Is(err, base.ErrTooOld) {
		return err
	}
	return nil
}

// salvager puts the records that it recognises into a new store, in transactions of some megabytes. The first one makes the store.
type salvager struct {
	ctx   context.Context
	begin func() (*base.Store, error)
	store *base.Store
	held  []foundRecord
	bytes int
}

type foundRecord struct {
	bucket     string
	key, value []byte
}

// take keeps a record if it recognises it.
func (v *salvager) take(key, value []byte) error {
	bucket := bucketOf(key, value)
	if bucket == "" {
		return nil
	}
	if bucket == branchstore.EntryBucket {
		key = branchstore.Shortened(key)
	}
	v.held = append(v.held, foundRecord{bucket, bytes.Clone(key), bytes.Clone(value)})
	if v.bytes += len(key) + len(value); v.bytes < 4<<20 {
		return nil
	}
	return v.flush()
}

func (v *salvager) flush() (err error) {
	if len(v.held) == 0 {
		return nil
	}
	if v.store == nil {
		if v.store, err = v.begin(); err != nil {
			return err
		}
	}
	err = v.store.Update(v.ctx, func(tx kv.RwTx) error {
		for _, r := range v.held {
			old, err := tx.Get(r.bucket, r.key)
			if err == nil && newer(&r, old) {
				err = tx.Put(r.bucket, r.key, r.value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	v.held, v.bytes = nil, 0
	return err
}

// bucketOf recognises a record's bucket by form and checksum; "" if it cannot tell.
func bucketOf(key, value []byte) string {
	switch len(key) {
	case 16:
		if rec, err := base.DecodeContext(pool.ID(key), value); err == nil && rec.Active != (pool.ID{}) {
			return base.ContextBucket
		}
	case 32:
		if bucket := bucketOf32(key, value); bucket != "" {
			return bucket
		}
	case 36:
		if len(value) > 0 && binary.BigEndian.Uint32(key[32:]) < 1<<24 {
			return poolstore.ArtifactBucket
		}
	}
	if isEntry(key, value) {
		return branchstore.EntryBucket
	}
	if len(key) == 34 && stored.CheckRecord(value, nil) == nil {
		if rec, err := base.DecodeCall(key, value); err == nil && rec.Status != "" && rec.Execution != "" {
			return base.CallBucket
		}
	}
	return ""
}

// isEntry recognises a history entry, which has no checksum.
func isEntry(key, value []byte) bool {
	segment, position, ok := branchstore.EntryAt(branchstore.Shortened(key))
	if !ok || len(value) < 17 || segment >= 1<<40 || position >= 1<<40 {
		return false
	}
	_, n := binary.Uvarint(value[16:])
	return n > 0 && 16+n == len(value)
}

func bucketOf32(key, value []byte) string {
	m := &pool.Message{}
	if poolstore.Decode(value, m) == nil && m.ID == pool.ID(key[16:]) && m.Role != "" {
		return poolstore.Bucket
	}
	if poolstore.IsArtifactHeader(value) {
		return poolstore.ArtifactBucket
	}
	if branchstore.PromptID(string(value)) == string(key[16:]) {
		return branchstore.PromptBucket
	}
	if b, err := branchstore.Decode(pool.ID(key[16:]), value); err == nil && branchstore.CheckName(b.Name) == nil {
		return branchstore.Bucket
	}
	return ""
}

// newer reports whether a record replaces another one with its key: free pages still have older versions.
func newer(r *foundRecord, old []byte) bool {
	if old == nil {
		return true
	}
	switch r.bucket {
	case branchstore.Bucket:
		a, errA := branchstore.Decode(pool.ID(r.key[16:]), r.value)
		b, errB := branchstore.Decode(pool.ID(r.key[16:]), old)
		return errA == nil && errB == nil && (a.Revision > b.Revision || a.Revision == b.Revision && a.High > b.High)
	case base.ContextBucket:
		a, errA := base.DecodeContext(pool.ID(r.key), r.value)
		b, errB := base.DecodeContext(pool.ID(r.key), old)
		return errA == nil && errB == nil && (a.NextOperation > b.NextOperation || a.NextOperation == b.NextOperation && a.Updated > b.Updated)
	case base.CallBucket:
		a, errA := base.DecodeCall(r.key, r.value)
		b, errB := base.DecodeCall(r.key, old)
		return errA == nil && errB == nil && len(a.Decisions) > len(b.Decisions)
	}
	return false
}
