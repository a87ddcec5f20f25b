package base

import (
	"fmt"

	"github.com/chatctx/chatctx/chatctx/kv"
)

func Damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", kv.ErrDamaged, fmt.Sprintf(format, args...))
}
