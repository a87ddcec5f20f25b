package chatctx

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/view"
)

func countKeys(id ID, encoding string, ids []ID) [][]byte {
	size := len(id) + len(ID{}) + len(encoding)
	all := make([]byte, 0, size*len(ids))
	keys := make([][]byte, len(ids))
	for i := range ids {
		at := len(all)
		all = append(append(append(all, id[:]...), ids[i][:]...), encoding...)
		keys[i] = all[at:]
	}
	return keys
}

// scanFrom is the number of counts above which it is quicker to read all counts of the context.
const scanFrom = 256

// Counts returns the stored token counts of messages in an encoding, 0 if there is none.
func (c *ChatContext) Counts(ctx context.Context, encoding string, ids []ID) ([]int, error) {
	out := make([]int, len(ids))
	all := []kv.Key{kv.In(base.CountBucket, kv.Prefix(c.ID[:]))}
	var keys [][]byte
	if len(ids) < scanFrom {
		all, keys = nil, countKeys(c.ID, encoding, ids)
	}
	for _, key := range keys {
		all = append(all, kv.Key{Bucket: base.CountBucket, Key: key})
	}
	err := view.At(ctx, c.at(), func(tx kv.Tx, _ *base.ContextRecord) error {
		if len(ids) >= scanFrom {
			return c.scanCounts(tx, encoding, ids, out)
		}
		return tx.GetMany(base.CountBucket, keys, func(i int, value []byte) error {
			n, _ := binary.Uvarint(value)
			out[i] = int(n)
			return nil
		})
	}, all...)
	return out, err
}

func (c *ChatContext) scanCounts(tx kv.Tx, encoding string, ids []ID, out []int) error {
	known := make(map[ID]int, len(ids))
	name := []byte(encoding)
	err := tx.Scan(base.CountBucket, kv.Prefix(c.ID[:]), func(key, value []byte) error {
		if bytes.Equal(key[2*len(ID{}):], name) {
			n, _ := binary.Uvarint(value)
			known[ID(key[len(ID{}):2*len(ID{})])] = int(n)
		}
		return nil
	})
	for i, id := range ids {
		out[i] = known[id]
	}
	return err
}

// SetCounts stores token counts, one for each message (else ErrInvalid). In a read-only store it does nothing.
func (c *ChatContext) SetCounts(ctx context.Context, encoding string, ids []ID, counts []int) error {
	if len(counts) != len(ids) {
		return base.Invalidf("%d counts were given for %d messages: give one for each", len(counts), len(ids))
	}
	if err := base.CheckKey("the name of an encoding", encoding); err != nil {
		return err
	}
	keys := countKeys(c.ID, encoding, ids)
	err := c.store.at().Update(base.Remakeable(ctx), func(tx kv.RwTx) error {
		for i, key := range keys {
			if err := tx.Put(base.CountBucket, key, binary.AppendUvarint(nil, uint64(max(counts[i], 0)))); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, ErrReadOnly) {
		return nil
	}
	return err
}
