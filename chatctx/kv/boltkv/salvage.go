package boltkv

import (
	"context"
	"fmt"
	"os"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// Salvage reads a file that may be broken in any way, page by page, and calls fn for everything that looks like a key with its value: from any bucket, in
// use or left over, whole or not. Both live until fn returns. Salvage follows no references, so a broken page spoils only its own records.
func Salvage(ctx context.Context, path string, fn func(key, value []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return openError(path, false, err)
	}
	defer f.Close()
	info, err := regular(path)
	if err != nil {
		return err
	}
	size := int64(pageSize)
	if m, err := readMeta(f); err == nil {
		size = m.pageSize
	}
	s := salvage{fn: fn}
	head := make([]byte, pageHead)
	for id := int64(0); id*size < info.Size(); id++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := f.ReadAt(head, id*size); err != nil {
			continue
		}
		if order.Uint64(head) != uint64(id) || order.Uint16(head[8:]) != leafPage {
			continue
		}
		length := (int64(order.Uint32(head[12:])) + 1) * size
		if length > kv.MaxValue+size {
			length = size
		}
		data := make([]byte, min(length, info.Size()-id*size))
		if n, err := f.ReadAt(data, id*size); err != nil {
			data = data[:n]
		}
		if err := s.leaf(data); err != nil {
			return fmt.Errorf("page %d: %w", id, err)
		}
	}
	return nil
}

type salvage struct {
	fn func(key, value []byte) error
}

func (s *salvage) leaf(data []byte) error {
	for i := range int(order.Uint16(data[10:])) {
		e, ok := element(data, i)
		if !ok {
			return nil
		}
		offset, keySize, valueSize := order.Uint32(e[4:]), order.Uint32(e[8:]), order.Uint32(e[12:])
		key, ok := part(data, i, offset, keySize)
		value, ok2 := part(data, i, offset+keySize, valueSize)
		if !ok || !ok2 || offset+keySize < offset {
			continue
		}
		if order.Uint32(e)&bucketFlag == 0 {
			if err := s.fn(key, value); err != nil {
				return err
			}
			continue
		}
		if len(value) > bucketLength+pageHead { // a small bucket lies within
			if err := s.leaf(value[bucketLength:]); err != nil {
				return err
			}
		}
	}
	return nil
}
