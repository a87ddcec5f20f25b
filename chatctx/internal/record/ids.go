package record

import (
	"encoding/hex"
	"fmt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Ref names a message on a branch: its id, a unique prefix or ending (4 or more) of that, a tag, @ (the head), @-2 (two before
// the head), @3 (the third from the start).
type Ref string

// RefTo is the reference to an id.
func RefTo(id pool.ID) Ref { return Ref(id.String()) }

// Short is an id as people see it: its last 8 hex digits, since ids made within a second share their beginning.
func Short(id pool.ID) string { return hex.EncodeToString(id[12:]) }

func Damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", kv.ErrDamaged, fmt.Sprintf(format, args...))
}
