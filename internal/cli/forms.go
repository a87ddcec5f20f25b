package cli

import (
	"time"

	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/pool"
)

// instant is a time that a flag takes: a date, or how long ago it was.
type instant pool.Time

func (t *instant) UnmarshalText(b []byte) error {
	at, err := operation.When(string(b), time.Now())
	*t = instant(at)
	return err
}
