package base

import (
	"cmp"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// CheckOptions returns an ErrInvalid if a store cannot be opened with the options.
func CheckOptions(o *record.OpenOptions) error {
	return cmp.Or(CheckKey("the program's name", o.Program), CheckKey("the name of who decides", o.By))
}

func (s *Store) Now() pool.Time { return pool.TimeOf(s.Clock()) }

// Close closes the store. Every change that returned without an error is durable already.
func (s *Store) Close() error {
	s.Indexing.close()
	return s.DB.Close()
}
