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
