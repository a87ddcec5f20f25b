package chatctx

import (
	"context"
	"strconv"
	"strings"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/view"
)

// Titles gives conversations titles that a model made. Each is an operation of the store's own, durable when Give returns, and all are one group, which one
// undo takes back. Only Store.Titles makes a usable Titles; it is for one goroutine.
type Titles struct {
	store *Store
	first uint64 // the first operation of the group
}

// Titles begins a group of titles.
func (s *Store) Titles() *Titles { return &Titles{store: s} }

// Give gives a title to a conversation without one of its own. It also stores paid, the message that records what the title took, in the pool but on no
// branch; nil means none. It returns ErrConflict if the conversation has got a title meanwhile, and ErrInvalid if the title is not allowed.
func (t *Titles) Give(ctx context.Context, contextRef, title string, paid *Message) (*Committed, error) {
	s := t.store.at()
	if err := s.Title(&title); err != nil {
		return nil, err
	}
	if title == "" {
		return nil, base.Invalid("the title is empty: give one")
	}
	if paid != nil {
		if err := s.Ready([]*Message{paid}); err != nil {
			return nil, err
		}
	}
	done, err := journal.StoreOperation(ctx, s, "title", func(st *journal.StoreTxn) error {
		st.Group = t.first
		if t.first == 0 {
			st.Group = max(st.Rec.NextOperation, 1)
		}
		id, err := view.ResolveContext(s, st.Tx, contextRef)
		if err != nil {
			return err
		}
		c, err := journal.BeginAt(s, st.Tx, id)
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
