package chatctx

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/view"
)

// RevisionError means that a branch, or with Branch "" a conversation, is at the revision Is and not at the expected Not. It is an ErrConflict.
type RevisionError struct {
	Branch  string
	Is, Not uint64
}

func (e *RevisionError) Error() string {
	if e.Branch == "" {
		return fmt.Sprintf("the conversation is at revision %d, not %d: read it again", e.Is, e.Not)
	}
	return fmt.Sprintf("the branch %q is at revision %d, not %d: read it again", e.Branch, e.Is, e.Not)
}

// Unwrap returns ErrConflict.
func (e *RevisionError) Unwrap() error { return ErrConflict }

// Expecting returns the store for one request. The request's first operation on a conversation is made only while a branch of it, or with "" the
// conversation itself, is at a revision; else it fails with a *RevisionError. Later operations of the request do not depend on it.
func (s *Store) Expecting(contextRef, branchName string, revision uint64) *Store {
	at := *s.at()
	at.DB = &expecting{DB: at.DB, store: s.at(), context: contextRef, branch: branchName, revision: revision}
	return storeOf(&at)
}

// expecting is an engine whose transactions only write while something is at a revision, until one of them has made an operation.
type expecting struct {
	kv.DB
	store           *base.Store
	context, branch string
	revision        uint64
	made            atomic.Bool
}

func (e *expecting) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	if e.made.Load() {
		return e.DB.Update(ctx, fn)
	}
	made := false // in the run of fn that was committed
	err := e.DB.Update(ctx, func(tx kv.RwTx) error {
		made = false
		id, was, err := e.check(tx)
		if err == nil {
			err = fn(tx)
		}
		if err != nil {
			return err
		}
		is, _, err := base.GetContext(tx, id)
		made = is == nil || is.NextOperation != was.NextOperation || is.StoreLast != was.StoreLast
		return err
	})
	if err == nil && made {
		e.made.Store(true)
	}
	return err
}

// check returns a *RevisionError if the revision is another, else the conversation.
func (e *expecting) check(tx kv.Tx) (ID, *base.ContextRecord, error) {
	id, err := view.ResolveContext(e.store, tx, e.context)
	if err != nil {
		return id, nil, err
	}
	rec, _, err := base.GetContext(tx, id)
	switch {
	case err != nil:
		return id, nil, err
	case rec == nil:
		return id, nil, base.NotFound("conversation", e.context)
	case e.branch == "":
		if rec.Revision != e.revision {
			err = &RevisionError{Is: rec.Revision, Not: e.revision}
		}
		return id, rec, err
	}
	b, err := view.BranchOf(tx, id, rec, e.branch)
	if err == nil && b.Revision != e.revision {
		err = &RevisionError{Branch: b.Name, Is: b.Revision, Not: e.revision}
	}
	return id, rec, err
}
