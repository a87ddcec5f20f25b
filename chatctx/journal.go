package chatctx

import (
	"context"
	"iter"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/toolcall"
)

// Operations returns a context's journal, newest first; "" means the current context.
func (s *Store) Operations(ctx context.Context, contextRef string) iter.Seq2[*record.Operation, error] {
	return journal.Operations(ctx, s.at(), contextRef)
}

// Undo undoes the operation op, or with "" the newest in force on the branch, or on its context or the store if that came later. An operation of the store
// that another user of a server made is undone only by its name. Several operations that one command made are undone together. It returns ErrConflict if
// something newer stands on the operation, if it concerns a running call, if an answer is being written on its messages, or if the undo would break an
// example of a rule; and ErrNotFound if there is nothing to undo.
func (s *Store) Undo(ctx context.Context, contextRef, branchName, op string) (*record.Undone, error) {
	return s.keeping(ctx, func(k *toolcall.Kept) (*record.Undone, error) {
		return journal.Undo(ctx, s.at(), contextRef, branchName, op, k.Around)
	})
}

// Undo undoes the newest operation in force on a branch ("" for the active one) or on the context, as Store.Undo does, but never one of the store, such as the
// import of the conversation. It returns ErrNotFound if there is none.
func (c *ChatContext) Undo(ctx context.Context, branchName string) (*record.Undone, error) {
	return c.store.keeping(ctx, func(k *toolcall.Kept) (*record.Undone, error) {
		return journal.UndoHere(ctx, c.store.at(), c.ID, branchName, k.Around)
	})
}

// Redo redoes the newest undo: on the branch or on its context, as long as nothing else was done there since, or this person's in the store. If the undo
// removed a whole branch, it is redone by that branch's name, or on the branch from which that was forked or people came to it. It returns ErrConflict if a
// later undo stands on it, and ErrNotFound if there is nothing to redo.
func (s *Store) Redo(ctx context.Context, contextRef, branchName string) (*record.Undone, error) {
	return s.keeping(ctx, func(k *toolcall.Kept) (*record.Undone, error) {
		return journal.Redo(ctx, s.at(), contextRef, branchName, k.Around)
	})
}

// keeping runs an undo or redo so that the examples of rules hold afterwards, as with any other change of rules.
func (s *Store) keeping(ctx context.Context, do func(*toolcall.Kept) (*record.Undone, error)) (*record.Undone, error) {
	var done *record.Undone
	broken, err := toolcall.Keeping(s.at(), func(k *toolcall.Kept) error {
		return s.settled(ctx, func() (err error) {
			done, err = do(k)
			return err
		})
	})
	if done != nil {
		done.Broken = broken
	}
	return done, err
}
