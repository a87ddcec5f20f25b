package chatctx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// RepairOptions of Repair.
type RepairOptions struct {
	// Path is the store's file: its backup is written beside it. "": none is made.
	Path string
	// DryRun says what would be done, and does nothing.
	DryRun bool
}

// Mended is something that Repair did, or would do. Invariant is a number of docs/design.md, 0 for the file itself.
type Mended struct {
	Invariant int
	Where     string
	Text      string
}

// Repaired says what Repair did.
type Repaired struct {
	Backup string // the file as it was; "" where nothing had to be done
	Mended []Mended
	Left   []Problem // what it cannot mend; after a dry run nothing
}

// RecoveredBranch is the name of the branch that gets what has lost its place.
const RecoveredBranch = "recovered"

// Repair makes every invariant hold again, as far as what is left allows, after a backup. A context is one transaction. What is readable stays; what has lost its place comes onto the
// branch recovered; what cannot be read is in the backup alone. Where the pages themselves cannot be read it fails with ErrDamaged: Salvage reads what it can into a new file.
func (s *Store) Repair(ctx context.Context, o RepairOptions) (*Repaired, error) {
	ctx = kv.WithPurpose(ctx, "repair")
	out := &Repaired{}
	found, err := s.problems(ctx)
	if err != nil || len(found) == 0 {
		return out, err
	}
	if o.Path != "" && !o.DryRun {
		if out.Backup, err = s.copyBeside(ctx, o.Path, "before-repair"); err != nil {
			return nil, err
		}
	}
	if err := s.mend(ctx, o.DryRun, out); err != nil {
		return out, fmt.Errorf("it cannot be mended in place: %w", err)
	}
	if err := s.mendRest(ctx, o.DryRun, found, out); err != nil || o.DryRun {
		return out, err
	}
	out.Left, err = s.problems(ctx)
	return out, err
}

// problems is what a full check finds.
func (s *Store) problems(ctx context.Context) ([]Problem, error) {
	var all []Problem
	err := s.Check(ctx, true, func(p Problem) { all = append(all, p) })
	return all, err
}

// copyBeside copies the file, as a backup or, where that cannot be made of it, byte for byte.
func (s *Store) copyBeside(ctx context.Context, path, what string) (string, error) {
	name, err := s.backupBeside(ctx, path, what)
	if !errors.Is(err, kv.ErrDamaged) {
		return name, err
	}
	if name, err = freeFile(path, what); err != nil {
		return "", err
	}
	from, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer from.Close()
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, from)
	if err = errors.Join(err, to.Sync(), to.Close()); err != nil {
		return "", errors.Join(err, os.Remove(name))
	}
	return name, nil
}

// mend mends all in one transaction.
func (s *Store) mend(ctx context.Context, dry bool, out *Repaired) error {
	err := s.db.Update(ctx, func(tx kv.RwTx) error {
		m := &mender{tx: tx, store: s, now: s.now()}
		err := m.all()
		if out.Mended = m.done; err == nil && dry {
			err = errDry
		}
		return err
	})
	if errors.Is(err, errDry) {
		return nil
	}
	return err
}

// all mends everything.
func (m *mender) all() error {
	if err := m.artifacts(); err != nil {
		return err
	}
	ids, err := m.owners()
	if err != nil {
		return err
	}
	if err := m.strayed(ids); err != nil {
		return err
	}
	for _, id := range ids {
		if err := m.context(id); err != nil {
			return err
		}
	}
	return m.rest()
}

// owners lists the contexts that have a record or anything else.
func (m *mender) owners() ([]ID, error) {
	var ids []ID
	seen := map[ID]bool{{}: true}
	for _, bucket := range append([]string{contextBucket}, ownBuckets...) {
		err := eachOwner(m.tx, bucket, func(id []byte) {
			if len(id) == 16 && !seen[ID(id)] {
				seen[ID(id)] = true
				ids = append(ids, ID(id))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// eachOwner calls fn for the ids that keys of a bucket begin with, once each; it may be given less than 16 bytes. It reads one record for each.
func eachOwner(tx kv.Tx, bucket string, fn func(id []byte)) error {
	var r kv.Range
	for {
		var id []byte
		err := tx.Scan(bucket, r, func(key, _ []byte) error {
			id = bytes.Clone(key[:min(len(key), 16)])
			return kv.ErrStop
		})
		if err != nil || id == nil {
			return err
		}
		fn(id)
		if len(id) < 16 {
			r.From = append(id, 0)
			continue
		}
		next := kv.Prefix(id)
		if next.To == nil {
			return nil
		}
		r.From = next.To
	}
}

// mendRest makes the index and the pages anew where something is wrong with them.
func (s *Store) mendRest(ctx context.Context, dry bool, found []Problem, out *Repaired) error {
	pages, words := false, len(out.Mended) > 0
	for _, p := range found {
		pages = pages || p.Invariant == 0 && p.Where == "file"
		words = words || p.Invariant == 10
	}
	if words {
		out.Mended = append(out.Mended, Mended{10, "search index", "is made anew"})
		if !dry {
			if err := s.Reindex(ctx, nil); err != nil {
				return err
			}
		}
	}
	if _, ok := s.db.(kv.Keeper); pages && ok {
		out.Mended = append(out.Mended, Mended{0, "file", "is written anew, page by page"})
		if !dry {
			return s.Vacuum(ctx)
		}
	}
	return nil
}
