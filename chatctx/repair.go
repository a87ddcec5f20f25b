package chatctx

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

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
	pages := slices.ContainsFunc(found, func(p Problem) bool { return p.Invariant == 0 && p.Where == "file" })
	if pages && o.DryRun {
		return s.rehearse(ctx)
	}
	if o.Path != "" && !o.DryRun {
		if out.Backup, err = s.copyBeside(ctx, o.Path, "before-repair"); err != nil {
			return nil, err
		}
	}
	if pages {
		if found, err = s.mendPages(ctx, out); err != nil {
			return out, err
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

// mendPages writes the file anew before anything else is mended: in pages whose keys are out of order nothing is found where it is looked for. It gives what a check
// finds then.
func (s *Store) mendPages(ctx context.Context, out *Repaired) ([]Problem, error) {
	if err := s.Vacuum(ctx); err != nil {
		return nil, fmt.Errorf("it cannot be mended in place: %w", err)
	}
	out.Mended = append(out.Mended, Mended{0, "file", "is written anew, page by page"})
	return s.problems(ctx)
}

// rehearse repairs a copy to see what a repair would do: with pages that have to be written anew nothing else shows it.
func (s *Store) rehearse(ctx context.Context) (*Repaired, error) {
	dir, err := os.MkdirTemp("", "chatctx-repair-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	f, err := os.OpenFile(filepath.Join(dir, "copy.db"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.Backup(ctx, f), f.Close()); err != nil {
		return nil, err
	}
	c, err := Open(f.Name(), Options{Program: s.program, By: s.by, Clock: s.clock})
	if err != nil {
		return nil, err
	}
	out, err := c.Repair(ctx, RepairOptions{})
	out.Left = nil
	return out, errors.Join(err, c.Close())
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
	var done []Mended
	err := s.db.Update(ctx, func(tx kv.RwTx) error {
		m := &mender{tx: tx, store: s, now: s.now()}
		err := m.all()
		if done = m.done; err == nil && dry {
			err = errDry
		}
		return err
	})
	out.Mended = append(out.Mended, done...)
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

// mendRest makes the search index anew where something is wrong with it.
func (s *Store) mendRest(ctx context.Context, dry bool, found []Problem, out *Repaired) error {
	if len(out.Mended) == 0 && !slices.ContainsFunc(found, func(p Problem) bool { return p.Invariant == 10 }) {
		return nil
	}
	out.Mended = append(out.Mended, Mended{10, "search index", "is made anew"})
	if dry {
		return nil
	}
	return s.Reindex(ctx, nil)
}
