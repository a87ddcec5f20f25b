package chatctx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/kv"
)

// ModelWindow is what a server said that a model takes there.
type ModelWindow struct {
	Tokens int  // 0: nobody has asked
	Sure   bool // the server runs the model so; else it may be less
}

// ModelWindow is what SetModelWindow stored for a model at a server.
func (s *Store) ModelWindow(ctx context.Context, server, model string) (w ModelWindow, err error) {
	err = s.at.DB.View(ctx, func(tx kv.Tx) error {
		raw, err := tx.Get(record.MetaBucket, windowKey(server, model))
		digits, unsure := strings.CutSuffix(string(raw), "?")
		if n, bad := strconv.Atoi(digits); bad == nil && n > 0 { // what cannot be read is asked again
			w = ModelWindow{n, !unsure}
		}
		return err
	})
	return w, err
}

// SetModelWindow remembers what a server says that a model takes. It is no operation: there is nothing to take back.
func (s *Store) SetModelWindow(ctx context.Context, server, model string, w ModelWindow) error {
	for _, word := range []string{server, model} {
		if err := record.CheckKey("the name of a server or a model", word); err != nil {
			return err
		}
	}
	value := strconv.Itoa(w.Tokens)
	if !w.Sure {
		value += "?"
	}
	return s.at.DB.Update(ctx, func(tx kv.RwTx) error { return tx.Put(record.MetaBucket, windowKey(server, model), []byte(value)) })
}

// windowKey has no name in it: it may be one that nobody else is to read.
func windowKey(server, model string) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", server, model))
	return append(slices.Clone(record.MetaWindow), hex.EncodeToString(sum[:16])...)
}
