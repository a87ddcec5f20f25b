package chatctx

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Vacuum writes the file anew without free space. Other programs wait or go on with the new file. ErrInvalid on an engine that keeps no file.
func (s *Store) Vacuum(ctx context.Context) error {
	k, ok := s.db.(kv.Keeper)
	if !ok {
		return invalid("a store in memory has no file to write anew")
	}
	return k.Rewrite(kv.WithPurpose(ctx, "vacuum"), nil)
}

// upgrades has at i what makes format i+2 of format i+1. Version 1 is the first, so there is none yet.
var upgrades []func(kv.RwTx) error

// Upgraded says what Upgrade did. Backup is "" where the store had the newest format already.
type Upgraded struct {
	From, To int
	Backup   string
}

// Upgrade brings the store in the file path to the newest format, after a backup beside it, and writes it anew. Older programs can no longer read it.
func (s *Store) Upgrade(ctx context.Context, path string) (*Upgraded, error) {
	return s.upgrade(ctx, path, upgrades)
}

func (s *Store) upgrade(ctx context.Context, path string, steps []func(kv.RwTx) error) (*Upgraded, error) {
	k, ok := s.db.(kv.Keeper)
	if !ok {
		return nil, invalid("a store in memory has no file to upgrade")
	}
	out := &Upgraded{To: len(steps) + 1}
	err := s.db.View(ctx, func(tx kv.Tx) (err error) {
		out.From, err = formatOf(tx)
		return err
	})
	if err != nil || out.From >= out.To {
		return out, err
	}
	if out.Backup, err = s.backupBeside(ctx, path, fmt.Sprintf("format-%d", out.From)); err != nil {
		return nil, err
	}
	err = k.Rewrite(kv.WithPurpose(ctx, "upgrade"), func(tx kv.RwTx) error {
		from, err := formatOf(tx)
		for _, step := range steps[max(from-1, 0):] {
			if err == nil {
				err = step(tx)
			}
		}
		if err != nil {
			return err
		}
		return tx.Put(metaBucket, metaFormat, fmt.Append(nil, out.To))
	})
	return out, err
}

// formatOf reads the version of the format.
func formatOf(tx kv.Tx) (int, error) {
	raw, err := tx.Get(metaBucket, metaFormat)
	if err != nil {
		return 0, err
	}
	var version int
	if raw == nil || json.Unmarshal(raw, &version) != nil {
		return 0, fmt.Errorf("%w: it is a database of another program", kv.ErrNotOurs)
	}
	return version, nil
}
