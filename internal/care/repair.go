package care

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
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/leftover"
)

// RecoveredBranch is the name of the branch for messages that have lost their place.
const RecoveredBranch = "recovered"

// Repair makes every invariant hold again, as far as possible, after a backup. All records are mended in one transaction. Readable records stay; messages that have lost
// their place come onto the branch recovered; what cannot be read is in the backup alone. If the pages themselves cannot be read, it fails with ErrDamaged;
// then Salvage reads what it can into a new file.
func Repair(ctx context.Context, s *base.Store, o record.RepairOptions) (*record.Repaired, error) {
	return repair(ctx, s, o, false)
}

// repair is Repair. With pages the file is rewritten, whatever the check finds.
func repair(ctx context.Context, s *base.Store, o record.RepairOptions, pages bool) (*record.Repaired, error) {
	ctx = engine.WithPurpose(ctx, "repair")
	out := &record.Repaired{}
	found, err := Problems(ctx, s)
	if err != nil || len(found) == 0 && !pages {
		return out, err
	}
	if !o.DryRun && !pages {
		err := s.DB.View(ctx, func(tx kv.Tx) error {
			return base.MayDecide(ctx, tx, s, "a store with agents' calls cannot be mended here")
		})
		if err != nil {
			return out, err
		}
	}
	ctx = base.AsGate(ctx)
	pages = pages || slices.ContainsFunc(found, func(p record.Problem) bool { return p.Invariant == 0 && p.Where == "file" })
	if pages && o.DryRun {
		return rehearse(ctx, s)
	}
	if o.Path != "" && !o.DryRun {
		if out.Backup, err = copyBeside(ctx, s, o.Path, "before-repair"); err != nil {
			return nil, err
		}
	}
	if pages {
		if found, err = mendPages(ctx, s, out); err != nil {
			return out, err
		}
	}
	if err := mend(ctx, s, o.DryRun, out); err != nil {
		return out, fmt.Errorf("it cannot be mended in place: %w", err)
	}
	if err := mendRest(ctx, s, o.DryRun, found, out); err != nil || o.DryRun {
		return out, err
	}
	out.Left, err = Problems(ctx, s)
	return out, err
}

// mendPages rewrites the file before anything else is mended, since records cannot be found in pages whose keys are out of order. It returns what a check
// finds then.
func mendPages(ctx context.Context, s *base.Store, out *record.Repaired) ([]record.Problem, error) {
	if err := Vacuum(ctx, s); err != nil {
		return nil, fmt.Errorf("it cannot be mended in place: %w", err)
	}
	out.Mended = append(out.Mended, record.Mended{Invariant: 0, Where: "file", Text: "is written anew, page by page"})
	return Problems(ctx, s)
}

// rehearse repairs a copy to show what a repair would do. If pages have to be rewritten, there is no other way.
func rehearse(ctx context.Context, s *base.Store) (*record.Repaired, error) {
	dir, err := os.MkdirTemp("", leftover.Name("repair"))
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	f, err := os.OpenFile(filepath.Join(dir, "copy.db"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(Backup(ctx, s, f), f.Close()); err != nil {
		return nil, err
	}
	c, err := Open(f.Name(), record.OpenOptions{Program: s.Program, By: s.Person, Clock: s.Clock})
	if err != nil {
		return nil, err
	}
	out, err := repair(ctx, c, record.RepairOptions{}, true) // a copy lacks the faults that only the file has
	out.Left = nil
	return out, errors.Join(err, c.Close())
}

// Problems returns what a full check finds.
func Problems(ctx context.Context, s *base.Store) ([]record.Problem, error) {
	var all []record.Problem
	err := Check(ctx, s, true, func(p record.Problem) { all = append(all, p) })
	return all, err
}

// copyBeside copies the file: as a backup or, if that fails for damage, byte for byte.
func copyBeside(ctx context.Context, s *base.Store, path, what string) (string, error) {
	due, err := PurgeDue(ctx, s)
	if err != nil && !errors.Is(err, kv.ErrDamaged) {
		return "", err
	}
	name := ""
	if !due && err == nil {
		if name, err = BackupBeside(ctx, s, path, what); !errors.Is(err, kv.ErrDamaged) {
			return name, err
		}
	}
	if name, err = freeFile(path, what); err != nil {
		return "", err
	}
	from, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer from.Close()
	return name, newFile(name, func(to *os.File) error { _, err := io.Copy(to, from); return err })
}

// eachOwner calls fn once for each id with which keys of a bucket begin. A damaged key may give less than 16 bytes. It reads one record for each id.
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

// mendRest rebuilds the search index if something is wrong with it or anything was mended.
func mendRest(ctx context.Context, s *base.Store, dry bool, found []record.Problem, out *record.Repaired) error {
	if len(out.Mended) == 0 && !slices.ContainsFunc(found, func(p record.Problem) bool { return p.Invariant == 10 }) {
		return nil
	}
	out.Mended = append(out.Mended, record.Mended{Invariant: 10, Where: "search index", Text: "is made anew"})
	if dry {
		return nil
	}
	return find.Reindex(ctx, s, nil)
}

// update runs a change in a transaction. With dry it only shows the change to fn and writes nothing.
func update(ctx context.Context, s *base.Store, dry bool, fn func(kv.RwTx) error) error {
	if !dry {
		return s.Update(ctx, fn)
	}
	return s.DB.View(ctx, func(tx kv.Tx) error { return fn(kv.Overlay(tx)) })
}
