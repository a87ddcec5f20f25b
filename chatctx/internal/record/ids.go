package record

import (
	"encoding/hex"
	"fmt"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Ref names a message: its id or a unique beginning or ending of it (4 digits or more), a tag, a turn's label (u3, a3), a branch's name (its head), @ (the
// head of the branch on which it is read), @-2 (two before the head), @3 (the third message), or BRANCH@… with any of these. tag:, branch: and id: before
// it say which is meant.
type Ref string

// RefTo returns the reference to an id.
func RefTo(id pool.ID) Ref { return Ref(id.String()) }

// Short returns an id as people see it: its last 8 hex digits, since ids made within a second begin alike.
func Short(id pool.ID) string { return hex.EncodeToString(id[12:]) }

func Damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", kv.ErrDamaged, fmt.Sprintf(format, args...))
}
