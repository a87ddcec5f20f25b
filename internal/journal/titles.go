package journal

import (
	"context"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Titles gives conversations titles that a model made. Each is an operation of the store's own, durable when Give returns, and all are one group, which one
// undo takes back. Only NewTitles makes a usable Titles; it is for one goroutine.
type Titles struct {
	store *base.Store
	first uint64 // the first operation of the group
}

// NewTitles begins a group of titles.
func NewTitles(s *base.Store) *Titles { return &Titles{store: s} }

// Give gives a title to a conversation without one of its own. It also stores paid, the message that records what the title took, in the pool but on no
// branch; nil means none. It returns ErrConflict if the conversation has got a title meanwhile, and ErrInvalid if the title is not allowed.
func (t *Titles) Give(ctx context.Context, contextRef, title string, paid *pool.Message) (*record.Committed, error) {
	s := t.store
	if err := s.Title(&title); err != nil {
		return nil, err
	}
	if title == "" {
		return nil, base.Invalid("the title is empty: give one")
	}
	if paid != nil {
		if err := s.Ready([]*pool.Message{paid}); err != nil {
			return nil, err
		}
	}
	done, err := StoreOperation(ctx, s, "title", func(st *StoreTxn) error {
		st.Group = t.first
		if t.first == 0 {
			st.Group = max(st.Rec.NextOperation, 1)
		}
		id, err := view.ResolveContext(s, st.Tx, contextRef)
		if err != nil {
			return err
		}
		c, err := BeginAt(s, st.Tx, id)
		if err != nil {
			return err
		}
		if paid != nil {
			if err := c.StoreLoose(paid); err != nil {
				return err
			}
		}
		return st.Entitle(c, title)
	})
	if err == nil && t.first == 0 {
		t.first, err = strconv.ParseUint(strings.TrimPrefix(done.Operation, "s"), 10, 64)
	}
	return done, err
}
