package cli

import (
	"time"

	"github.com/chatctx/chatctx/pool"
)

// instant is a time that a flag takes: a date, or how long ago it was.
type instant pool.Time

func (t *instant) UnmarshalText(b []byte) error {
	at, err := when(string(b), time.Now())
	*t = instant(at)
	return err
}

// elapsed is how long ago something was, with the words for it that were typed.
type elapsed struct {
	time.Duration
	typed string
}

func (e *elapsed) UnmarshalText(b []byte) (err error) {
	e.typed = string(b)
	e.Duration, err = age(e.typed)
	return err
}

// byteCount is a number of bytes: 1000, 500MB, 2GiB.
type byteCount int64

func (n *byteCount) UnmarshalText(b []byte) error {
	bytes, err := byteSize(string(b))
	*n = byteCount(bytes)
	return err
}
