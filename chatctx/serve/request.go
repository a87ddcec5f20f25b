package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
)

// Caller is the sender of a request: the name is recorded with its decisions; "" means the store's person.
type Caller struct {
	Name   string
	Scopes []Scope

	token *base.Token // of the store; nil for another, or none
}

// deciding notes whether the caller may decide about agents' calls: only with a token that a decider made. A browser's session, the run's token, a socket and
// standard input show nothing.
func (c Caller) deciding(ctx context.Context) context.Context {
	if c.token != nil && c.token.Decides {
		return base.WithDeciding(ctx, base.Decides)
	}
	return base.WithDeciding(ctx, base.DecidesNot)
}

// May reports whether the caller has a scope.
func (c Caller) May(s Scope) bool { return slices.Contains(c.Scopes, s) }

// request is one call of a method, over any transport.
type request struct {
	operation.Request
	server *Server
	who    Caller
	beat   func() error    // for one that may be silent for long; nil if that does not matter
	body   io.Reader       // for one that reads bytes
	room   *room           // for events that wait to be read
	lease  *lease          // of the server's room, for the answer
	came   *lease          // of the room for incoming bytes; nil if those are counted elsewhere
	params json.RawMessage // as they arrived
	match  *match          // the content of If-Match; nil if there is none

	begun bool // a part of the answer was sent
}

// equip gives a request what its server has for operations.
func (r *request) equip() {
	s := r.server
	r.By, r.Page, r.Turn, r.Executor = r.who.Name, s.limits.page, s.options.Turn, s.executor
	for _, scope := range r.who.Scopes {
		r.Rights = append(r.Rights, operation.Right(scope))
	}
	r.Reserve = func(size int) error { return r.lease.want(r.Ctx, size) }
	r.Whole = func(most int) ([]byte, error) { return whole(r, r.body, -1, most) }
	r.Teller = func() operation.Teller { return newPump(r.Ctx, r.Tell, r.room) }
	r.Outlive = func() (context.Context, func()) { return contextOf(context.WithoutCancel(r.Ctx), s.ctx) }
	r.Dismiss = func() { s.dismiss(r.Ctx) }
}

// expect makes a change depend on the expected revision.
func (r *request) expect(in any) error {
	c, ok := in.(interface {
		Expected() (context, branch string, revision *uint64)
	})
	if !ok {
		return nil
	}
	context, branch, revision := c.Expected()
	want := r.match
	switch {
	case revision != nil && want != nil:
		return base.Invalid("give expect or If-Match, not both")
	case revision != nil:
		want = &match{revisions: []uint64{*revision}}
	case want == nil:
		return nil
	}
	if context == "" {
		return base.Invalid("expect needs context")
	}
	at, err := r.revisionOf(context, branch)
	switch {
	case err != nil || want.any:
		return err
	case want.has(at):
		r.Store = r.Store.Expecting(context, branch, at)
		return nil
	case len(want.revisions) == 0:
		return operation.Refused(http.StatusPreconditionFailed, "conflict", fmt.Sprintf("If-Match names no revision, and it is at revision %d: a weak tag, or one without a revision, matches nothing", at))
	}
	return &chatctx.RevisionError{Branch: branch, Is: at, Not: want.revisions[0]}
}

// revisionOf returns the current revision of a branch, or, if branch is "", of a conversation.
func (r *request) revisionOf(context, branch string) (uint64, error) {
	c, err := r.Store.Context(r.Ctx, context)
	if err != nil {
		return 0, err
	}
	if branch == "" {
		info, err := c.Info(r.Ctx)
		if err != nil {
			return 0, err
		}
		return info.Revision, nil
	}
	info, err := c.Branch(r.Ctx, branch)
	if err != nil {
		return 0, err
	}
	return info.Revision, nil
}

// kindOf returns an error's code, kind and HTTP status.
func kindOf(err error) (code int, kind string, status int) {
	if errors.Is(err, ErrNoAccess) {
		return contract.Failed, "unauthenticated", 401
	}
	code, kind = operation.Classify(err)
	if r := (*operation.Refusal)(nil); errors.As(err, &r) {
		return code, kind, r.Status
	}
	var other *chatctx.RevisionError
	if errors.As(err, &other) {
		return code, kind, http.StatusPreconditionFailed
	}
	if status = operation.StatusOf(kind); status == http.StatusBadGateway && code != contract.Provider {
		status = http.StatusInternalServerError
	}
	return code, kind, status
}
