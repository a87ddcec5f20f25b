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
	"github.com/chatctx/chatctx/internal/contract"
)

// Caller is the sender of a request: the name is recorded with its decisions; "" means the store's person.
type Caller struct {
	Name   string
	Scopes []Scope

	token *chatctx.Token // of the store; nil for another, or none
}

// May reports whether the caller has a scope.
func (c Caller) May(s Scope) bool { return slices.Contains(c.Scopes, s) }

// request is one call of a method, over any transport.
type request struct {
	ctx    context.Context
	server *Server
	store  *chatctx.Store
	who    Caller
	tell   func(event string, v any) error                 // for a method that streams
	beat   func() error                                    // for one that may be silent for long; nil if that does not matter
	write  func(mediaType, name string) (io.Writer, error) // for one that writes bytes; it is called once
	body   io.Reader                                       // for one that reads bytes
	room   *room                                           // for events that wait to be read
	lease  *lease                                          // of the server's room, for the answer
	came   *lease                                          // of the room for incoming bytes; nil if those are counted elsewhere
	params json.RawMessage                                 // as they arrived
	match  *match                                          // the content of If-Match; nil if there is none

	begun    bool    // a part of the answer was sent
	size     int     // the approximate size of the answer; 0 if unknown
	revision *uint64 // of the data in the answer or of the change; nil if there is none
}

// refusal is the error of a request that is refused whatever the store holds.
type refusal struct {
	status int // of HTTP
	kind   string
	text   string
}

func (e *refusal) Error() string { return e.text }

// need returns an error if the caller lacks a scope.
func (r *request) need(s Scope) error {
	if r.who.May(s) {
		return nil
	}
	return &refusal{403, "forbidden", "it needs the scope " + string(s)}
}

// target names a branch of a context. Both are required, since the terminal's current ones do not concern other programs.
type target struct {
	Context string `json:"context" doc:"the conversation: its id, or its title if that is unique"`
	Branch  string `json:"branch" doc:"the name of the branch"`
}

// keyed is embedded in the parameters of changes.
type keyed struct {
	Key string `json:"key,omitempty" doc:"makes the change only once for this key; over HTTP also Idempotency-Key"`
}

func (k *keyed) key() string { return k.Key }

// change is the target of a change of a branch.
type change struct {
	target
	Expect *uint64 `json:"expect,omitempty" doc:"the revision that the branch must have; any other is a conflict. Over HTTP also If-Match"`
	keyed
}

func (c *change) expected() (context, branch string, revision **uint64) {
	return c.Context, c.Branch, &c.Expect
}

// conversation names only a context.
type conversation struct {
	Context string `json:"context" doc:"the conversation: its id, or its title if that is unique"`
}

// contextChange names a context to change.
type contextChange struct {
	conversation
	Expect *uint64 `json:"expect,omitempty" doc:"the revision that the conversation must have; any other is a conflict. Over HTTP also If-Match"`
	keyed
}

func (c *contextChange) expected() (context, branch string, revision **uint64) {
	return c.Context, "", &c.Expect
}

// hold reserves room for messages of about size bytes before they are read: for them, and for their JSON.
func (r *request) hold(size int) error {
	r.size = size
	return r.lease.want(r.ctx, max(2*size, r.server.limits.page))
}

// holdWhole is hold for messages that make one answer without further pages.
func (r *request) holdWhole(size int) error {
	if most := 4 * r.server.limits.page; size > most {
		return &refusal{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("what differs has %d MB, and an answer holds %d MB: name places on the branches (BRANCH@POSITION) to compare less, or read them with messages.list", size>>20, most>>20)}
	}
	return r.hold(size)
}

// expect makes a change depend on the expected revision.
func (r *request) expect(in any) error {
	c, ok := in.(interface {
		expected() (context, branch string, revision **uint64)
	})
	if !ok {
		return nil
	}
	context, branch, revision := c.expected()
	want := r.match
	switch {
	case *revision != nil && want != nil:
		return chatctx.Invalid("give expect or If-Match, not both")
	case *revision != nil:
		want = &match{revisions: []uint64{**revision}}
	case want == nil:
		return nil
	}
	if context == "" {
		return chatctx.Invalid("expect needs context")
	}
	at, err := r.revisionOf(context, branch)
	switch {
	case err != nil || want.any:
		return err
	case want.has(at):
		r.store = r.store.Expecting(context, branch, at)
		return nil
	case len(want.revisions) == 0:
		return &refusal{http.StatusPreconditionFailed, "conflict", fmt.Sprintf("If-Match names no revision, and it is at revision %d: a weak tag, or one without a revision, matches nothing", at)}
	}
	return &chatctx.RevisionError{Branch: branch, Is: at, Not: want.revisions[0]}
}

// revisionOf returns the current revision of a branch, or, if branch is "", of a conversation.
func (r *request) revisionOf(context, branch string) (uint64, error) {
	c, err := r.store.Context(r.ctx, context)
	if err != nil {
		return 0, err
	}
	if branch == "" {
		info, err := c.Info(r.ctx)
		if err != nil {
			return 0, err
		}
		return info.Revision, nil
	}
	info, err := c.Branch(r.ctx, branch)
	if err != nil {
		return 0, err
	}
	return info.Revision, nil
}

// settled returns a conversation with what dead programs left of replies. It writes nothing.
func (r *request) settled(ref string) (*chatctx.ChatContext, error) {
	c, err := r.store.Context(r.ctx, ref)
	if err != nil {
		return nil, err
	}
	return c.Settled(r.ctx)
}

// snapshot returns the branch as it is now, with what a dead program left of a reply. It writes nothing.
func (r *request) snapshot(t target) (*chatctx.ChatContext, *chatctx.Snapshot, error) {
	c, err := r.store.Context(r.ctx, t.Context)
	if err != nil {
		return nil, nil, err
	}
	c, s, err := c.Present(r.ctx, t.Branch)
	if err == nil {
		r.revision = &s.Info.Revision
	}
	return c, s, err
}

// snapshotToChange is snapshot for a change at the end of the branch: it first puts what a dead program left of a reply there.
func (r *request) snapshotToChange(t target) (*chatctx.ChatContext, *chatctx.Snapshot, error) {
	c, err := r.store.Context(r.ctx, t.Context)
	if err != nil {
		return nil, nil, err
	}
	claim, err := c.Running(r.ctx, t.Branch)
	if err == nil && claim != nil && !chatctx.Held(claim, r.store.Now()) {
		_, err = c.Settle(r.ctx, t.Branch, chatctx.SettleOptions{})
	}
	if err != nil {
		return nil, nil, err
	}
	return r.snapshot(t)
}

// commit makes the changes that fill puts into a batch on the branch: one transaction, one operation.
func (r *request) commit(t change, fill func(*chatctx.Batch)) (*chatctx.Committed, error) {
	b := r.store.Begin(t.Context, t.Branch)
	fill(b)
	done, err := b.Commit(r.ctx)
	if err == nil {
		r.revision = &done.Revision
	}
	return done, err
}

// conversation returns a conversation as it is now.
func (r *request) conversation(ref string) (*chatctx.ChatContext, *chatctx.ContextInfo, error) {
	c, err := r.store.Context(r.ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	info, err := c.Info(r.ctx)
	if err == nil {
		r.revision = &info.Revision
	}
	return c, info, err
}

// onContext makes a change of a context as a whole.
func (r *request) onContext(ref string, fill func(*chatctx.Batch)) (*chatctx.Committed, error) {
	b := r.store.Begin(ref, "")
	fill(b)
	return b.Commit(r.ctx)
}

// list is a page of items.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // the cursor of the next page; "" on the last one
}

// listOf returns a list in which no items are [], not null.
func listOf[T any](items []T) list[T] {
	if items == nil {
		items = []T{}
	}
	return list[T]{Items: items}
}

// listEach returns a list of what of makes of each of all, unless err says that there is none.
func listEach[T, U any](all []T, err error, of func(T) U) (list[U], error) {
	if err != nil {
		return list[U]{}, err
	}
	items := make([]U, len(all))
	for i, one := range all {
		items[i] = of(one)
	}
	return listOf(items), nil
}

// kindOf returns an error's code, kind and HTTP status.
func kindOf(err error) (code int, kind string, status int) {
	var r *refusal
	if errors.As(err, &r) {
		return codes[r.kind], r.kind, r.status
	}
	if errors.Is(err, ErrNoAccess) {
		return contract.Failed, "unauthenticated", 401
	}
	code, kind = contract.Classify(err)
	var other *chatctx.RevisionError
	if errors.As(err, &other) {
		return code, kind, http.StatusPreconditionFailed
	}
	if s, ok := statuses[kind]; ok {
		return code, kind, s
	}
	if code == contract.Provider {
		return code, kind, 502
	}
	return code, kind, 500
}

// codes are the codes of refusals.
var codes = map[string]int{"usage": contract.Usage, "conflict": contract.Conflict, "forbidden": contract.Failed, "too_slow": contract.Failed, "too_large": contract.Failed, "too_many": contract.Failed, "failed": contract.Failed}

// statuses are the HTTP statuses of kinds.
var statuses = map[string]int{"usage": 400, "not_found": 404, "empty": 404, "ambiguous": 409, "conflict": 409, "exists": 409, "too_large": 413, "too_long": 413,
	"read_only": 403, "purged": 410, "locked": 503, "no_store": 503, "interrupted": 503, "waits": 409, "permission": 403}
