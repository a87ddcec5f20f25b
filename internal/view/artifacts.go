package view

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// ArtifactParts writes an artifact some 4 MB at a time, each part read in a short transaction. Before the first part it calls head once with the artifact's
// description to get the writer. It returns ErrNotFound if there is no artifact with that hash, and ErrDamaged, after the last part, if the bytes are not
// those that were stored.
func ArtifactParts(ctx context.Context, s *base.Store, h pool.Hash, head func(pool.ArtifactInfo) (io.Writer, error)) (info pool.ArtifactInfo, err error) {
	read := func(do func(kv.Tx) error) {
		if err == nil {
			err = s.DB.View(ctx, do)
		}
	}
	read(func(tx kv.Tx) error {
		has, err := poolstore.HasArtifact(tx, h)
		if err == nil && !has {
			return base.NotFound("artifact", fmt.Sprintf("%x", h[:]))
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
		err = fmt.Errorf("%w: the artifact %s is not what was stored", base.ErrDamaged, h)
	}
	return info, err
}
