package view

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/pool"
)

// ModelWindow is the context window that a server reported for a model.
type ModelWindow struct {
	Tokens int  // 0: unknown
	Sure   bool // the server runs the model with this window; else it may be smaller
}

// ModelWindowOf returns what SetModelWindow stored for a model at a server.
func ModelWindowOf(ctx context.Context, s *base.Store, server, model string) (w ModelWindow, err error) {
	err = s.DB.View(ctx, func(tx kv.Tx) error {
		raw, err := tx.Get(base.MetaBucket, windowKey(server, model))
		digits, unsure := strings.CutSuffix(string(raw), "?")
		if n, bad := strconv.Atoi(digits); bad == nil && n > 0 { // an unreadable value is asked for again
			w = ModelWindow{n, !unsure}
		}
		return err
	})
	return w, err
}

// SetModelWindow stores what a server reports of a model. It is no operation, so it cannot be undone.
func SetModelWindow(ctx context.Context, s *base.Store, server, model string, w ModelWindow) error {
	for _, word := range []string{server, model} {
		if err := base.CheckKey("the name of a server or a model", word); err != nil {
			return err
		}
	}
	value := strconv.Itoa(w.Tokens)
	if !w.Sure {
		value += "?"
	}
	return s.Update(base.Remakeable(ctx), func(tx kv.RwTx) error { return tx.Put(base.MetaBucket, windowKey(server, model), []byte(value)) })
}

// FirstTold reports whether nobody was told yet that the window of a model is unknown in a conversation, and keeps that it was. It is no operation, and no export has
// it. Where it cannot be kept, it is told again.
func FirstTold(ctx context.Context, s *base.Store, id pool.ID, model string) (first bool) {
	key := windowKey("told "+id.String(), model)
	err := s.DB.View(ctx, func(tx kv.Tx) error {
		raw, err := tx.Get(base.MetaBucket, key)
		first = raw == nil
		return err
	})
	if err == nil && first {
		_ = s.Update(base.Remakeable(ctx), func(tx kv.RwTx) error { return tx.Put(base.MetaBucket, key, []byte("told")) })
	}
	return first || err != nil
}

// windowKey hashes the names, since they may be private.
func windowKey(server, model string) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", server, model))
	return append(slices.Clone(base.MetaWindow), hex.EncodeToString(sum[:16])...)
}
