package chatctx

import (
	"context"
	"iter"

	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/toolcall"
)

// Operation is an entry of a journal.
type Operation = journal.Operation

// Operations gives a context's journal, newest first; "" is the current context.
func (s *Store) Operations(ctx context.Context, contextRef string) iter.Seq2[*Operation, error] {
	return journal.Operations(ctx, s.at, contextRef)
}

// Changed is a value that an operation put in the place of another.
type Changed = journal.Changed

// AllOperations gives a context's journal, newest first, and among it those of the store's own operations that were about this context or about no other, or that this person made while it was the current one.
func (s *Store) AllOperations(ctx context.Context, contextRef string) iter.Seq2[*Operation, error] {
	return journal.AllOperations(ctx, s.at, contextRef)
}

// StoreOperations gives the store's own journal, newest first.
func (s *Store) StoreOperations(ctx context.Context) iter.Seq2[*Operation, error] {
	return journal.StoreOperations(ctx, s.at)
}

// Undone says what was taken back or brought back.
type Undone = journal.Undone

// Undo takes back the operation op, or with "" the newest that holds on the branch, or on its context or in the store where that came after. An operation of the store that another user of a server made is taken back only by its name. What one command
// made as several operations is taken back together. ErrConflict where something newer stands on it, where what it made is about a call that runs or an answer that is being written stands on it, and where it breaks an example that is kept with a rule; ErrNotFound where there is nothing to take back.
func (s *Store) Undo(ctx context.Context, contextRef, branchName, op string) (*Undone, error) {
	return s.keeping(ctx, func(k *toolcall.Kept) (*Undone, error) {
		return journal.Undo(ctx, s.at, contextRef, branchName, op, k.Around)
	})
}

// Redo brings back what the newest undo took away on the branch or on the context, as long as nothing else was done there since; else what this person's newest in the store did.
// Where the undo took a whole branch away, it is redone on that branch's name or on the branch that it had been forked from. ErrConflict where a later undo
// stands on it; ErrNotFound where there is nothing to bring back.
func (s *Store) Redo(ctx context.Context, contextRef, branchName string) (*Undone, error) {
	return s.keeping(ctx, func(k *toolcall.Kept) (*Undone, error) {
		return journal.Redo(ctx, s.at, contextRef, branchName, k.Around)
	})
}

// keeping runs an undo or a redo so that the examples of rules hold after it, like with any other change of rules.
func (s *Store) keeping(ctx context.Context, do func(*toolcall.Kept) (*Undone, error)) (*Undone, error) {
	var done *Undone
	broken, err := toolcall.Keeping(s.at, func(k *toolcall.Kept) error {
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
