package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/codec"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/gate"
	"github.com/chatctx/chatctx/internal/view"
)

// Request is one call of an operation, from any side. What a side does not have is nil.
type Request struct {
	Ctx     context.Context
	Store   *chatctx.Store
	Name    string          // of the store, as others may see it
	By      string          // the caller's name, which is recorded with decisions; "" means the store's person
	Rights  []Right         // the caller's
	Folder  string          // in which the caller works; "" if that is not known
	Folders []string        // the names of the folder whose conversations alone the caller may recall; nil: those of all
	Page    int             // the approximate largest size of an answer, in bytes; 0 for a caller that takes the items of a list as they come
	Reserve func(int) error // reserves room for an answer of about so many bytes; it may wait

	Tell     func(event string, v any) error                 // for a stream
	Teller   func() Teller                                   // for answers that come in words
	Write    func(mediaType, name string) (io.Writer, error) // for an operation that writes bytes; it is called once
	Whole    func(most int) ([]byte, error)                  // reads the bytes that came
	Executor func(*chatctx.ChatContext) (e *approval.Executor, end func())
	Outlive  func() (ctx context.Context, end func()) // for what is finished also if the caller goes away; nil: nothing is
	Turn     func(*turn.Turn)                         // prepares a turn before it asks a model
	Path     string                                   // of the store, which may be a URL
	Home     *gate.Home                               // of the caller, where his agents keep their settings
	Progress func(text string)                        // says how far a long operation has come; nil for nobody
	// WriteFile writes a file completely or not at all, and returns its size.
	WriteFile func(target string, fill func(io.Writer) error) (int64, error)
	Save      func(dir, name, mediaType string, place int, b []byte) (path string, err error) // writes a new file, named after a part of a message or its place there
	Dismiss   func()                                                                          // ends the sessions of tokens that are gone

	// What the operation says beside its result.
	Size     int     // the approximate size of the answer; 0 if unknown
	Revision *uint64 // of the data in the answer or of the change; nil if there is none
	Done     *record.Committed
}

// Teller passes events to a reader that may be slower than their source.
type Teller interface {
	Delta(Delta) // words; consecutive ones may become one event, and some may be left out
	Put(event string, v any)
	Flush()
	Close()
}

// Refusal is the error of a request that is refused whatever the store holds.
type Refusal struct {
	Status int // of HTTP
	Kind   string
	Text   string
}

// Refused returns the error of a refused request.
func Refused(status int, kind, text string) *Refusal { return &Refusal{status, kind, text} }

func (e *Refusal) Error() string { return e.Text }

// Classify returns the code and the kind of an error.
func Classify(err error) (code int, kind string) {
	var r *Refusal
	if errors.As(err, &r) {
		return kindNamed(r.Kind).Codes[0], r.Kind
	}
	return contract.Classify(err)
}

// ErrorOf returns the JSON of an error that has a code and a kind.
func ErrorOf(err error, code int, kind string) contract.Error {
	e := contract.ErrorOf(err, code, kind)
	var stale *StaleError
	if errors.As(err, &stale) {
		e.Card, _ = codec.AppendAnswer(nil, stale.Now) // it always encodes
	}
	if kind == "interrupted" {
		e.Message = strings.ReplaceAll(e.Message, context.Canceled.Error(), "interrupted: the request was cancelled, or its connection or input ended")
	}
	return e
}

func errorOf(err error) contract.Error {
	code, kind := Classify(err)
	return ErrorOf(err, code, kind)
}

// May reports whether the caller has a right.
func (r *Request) May(right Right) bool { return slices.Contains(r.Rights, right) }

// need returns an error if the caller lacks a right.
func (r *Request) need(right Right) error {
	if r.May(right) {
		return nil
	}
	return &Refusal{403, "forbidden", "it needs the scope " + string(right)}
}

// Target names a branch of a conversation. The API requires both, since the terminal's current ones do not concern other programs.
type Target struct {
	Context string `json:"context" doc:"the conversation: its id, or its title if that is unique"`
	Branch  string `json:"branch" doc:"the name of the branch"`
}

// located are parameters that name a conversation, and perhaps a branch. locate names them, unless they name some already.
type located interface {
	locate(context, branch string) Place
}

// Locate says where an operation works that does not say so itself, and returns what it is about.
func Locate(in any, context, branch string) Place {
	if l, ok := in.(located); ok {
		return l.locate(context, branch)
	}
	return OnStore
}

func (t *Target) locate(context, branch string) Place {
	t.Context, t.Branch = context, branch
	return OnBranch
}

func (c *Conversation) locate(context, _ string) Place { c.Context = context; return OnContext }

// DryRun is embedded in the parameters of operations that can be tried.
type DryRun struct {
	DryRun bool `json:"dry_run,omitempty" flag:"dry-run" doc:"show what would happen"`
}

// Dry reports whether the operation is only tried.
func (d *DryRun) Dry() bool { return d.DryRun }

// Try says whether the operation is only tried.
func (d *DryRun) Try(dry bool) { d.DryRun = dry }

// Unasked is embedded in the parameters of operations of which people expect a question, though undo takes them back.
type Unasked struct {
	Yes bool `json:"-" flag:"yes" doc:"do not ask"`
}

// Sure reports whether a person need not be asked.
func (u *Unasked) Sure() bool { return u.Yes }

// RawInput is embedded in the parameters of commands that read standard input.
type RawInput struct {
	Raw bool `json:"-" flag:"raw" doc:"keep the last newline of what comes from standard input"`
}

// Keyed is embedded in the parameters of changes.
type Keyed struct {
	Key string `json:"key,omitempty" doc:"makes the change only once for this key; over HTTP also Idempotency-Key"`
}

// OnlyOnce returns the key.
func (k *Keyed) OnlyOnce() string { return k.Key }

// Change is the target of a change of a branch.
type Change struct {
	Target
	Expect *uint64 `json:"expect,omitempty" doc:"the revision that the branch must have; any other is a conflict. Over HTTP also If-Match"`
	Keyed
}

// Expected returns what a change is about, and the revision that it must have.
func (c *Change) Expected() (context, branch string, revision *uint64) {
	return c.Context, c.Branch, c.Expect
}

// BranchChange is a change of a branch as a whole, which the command line always names.
type BranchChange struct {
	Conversation
	Branch string  `json:"branch" arg:"BRANCH" doc:"the name of the branch"`
	Expect *uint64 `json:"expect,omitempty" doc:"the revision that the branch must have; any other is a conflict. Over HTTP also If-Match"`
	Keyed
}

// Expected returns what a change is about, and the revision that it must have.
func (c *BranchChange) Expected() (context, branch string, revision *uint64) {
	return c.Context, c.Branch, c.Expect
}

func (c *BranchChange) change() Change { return Change{Target: Target{c.Context, c.Branch}} }

// Conversation names only a conversation.
type Conversation struct {
	Context string `json:"context" doc:"the conversation: its id, or its title if that is unique"`
}

// ContextChange names a conversation to change.
type ContextChange struct {
	Conversation
	Expect *uint64 `json:"expect,omitempty" doc:"the revision that the conversation must have; any other is a conflict. Over HTTP also If-Match"`
	Keyed
}

// Expected returns what a change is about, and the revision that it must have.
func (c *ContextChange) Expected() (context, branch string, revision *uint64) {
	return c.Context, "", c.Expect
}

// Owner names a conversation, or the store: to the API that is no name, while the command line has a current conversation then.
type Owner struct {
	Context string `json:"context,omitempty" doc:"the conversation; by default the store"`
	here    bool   // it is a conversation, though Context be ""
}

func (in *Owner) locate(context, _ string) Place {
	in.Context, in.here = context, true
	return OnContext
}

// ofStore reports whether the store is meant.
func (in *Owner) ofStore() bool { return in.Context == "" && !in.here }

// Scoped is an owner that the command line can say too.
type Scoped struct {
	Owner
	Store bool `json:"-" flag:"global" old:"store" doc:"of the whole store, in place of one conversation"`
}

func (in *Scoped) locate(context, _ string) Place {
	if !in.Store {
		in.Owner.locate(context, "")
	}
	return OnContext
}

// Makes reports whether an operation with these parameters makes the store if there is none.
func (o *Operation) Makes(in any) bool {
	s, ok := in.(interface{ wantsStore() bool })
	return o.Creates && (!ok || s.wantsStore())
}

func (in *Scoped) wantsStore() bool { return in.Store }

// id returns the id of the conversation, zero for the store.
func (in *Owner) id(r *Request) (chatctx.ID, error) {
	if in.ofStore() {
		return chatctx.ID{}, nil
	}
	c, err := r.Store.Context(r.Ctx, in.Context)
	if err != nil {
		return chatctx.ID{}, err
	}
	return c.ID, nil
}

// ScopedChange is a change of a conversation, or of the store, which has no revision.
type ScopedChange struct {
	Scoped
	Expect *uint64 `json:"expect,omitempty" doc:"the revision that the conversation must have; any other is a conflict. Over HTTP also If-Match"`
	Keyed
}

// Expected returns what a change is about, and the revision that it must have.
func (c *ScopedChange) Expected() (context, branch string, revision *uint64) {
	return c.Context, "", c.Expect
}

// hold reserves room for messages of about size bytes before they are read: for them, and for their JSON.
func (r *Request) hold(size int) error {
	r.Size = size
	if r.Reserve == nil {
		return nil
	}
	return r.Reserve(max(2*size, r.Page))
}

// holdWhole is hold for messages that make one answer without further pages. size returns their size.
func (r *Request) holdWhole(size func() (int, error)) error {
	if r.Page == 0 {
		return nil
	}
	n, err := size()
	if err != nil {
		return err
	}
	if most := 4 * r.Page; n > most {
		return &Refusal{413, "too_large", fmt.Sprintf("what differs has %d MB, and an answer holds %d MB: name places on the branches (BRANCH@POSITION) to compare less, or read them with messages.list", n>>20, most>>20)}
	}
	return r.hold(n)
}

// settled returns a conversation with what dead programs left of replies. It writes nothing.
func (r *Request) settled(ref string) (*chatctx.ChatContext, error) {
	c, err := r.Store.Context(r.Ctx, ref)
	if err != nil {
		return nil, err
	}
	return c.Settled(r.Ctx)
}

// snapshot returns the branch as it is now, with what a dead program left of a reply. It writes nothing.
func (r *Request) snapshot(t Target) (*chatctx.ChatContext, *chatctx.Snapshot, error) {
	c, err := r.Store.Context(r.Ctx, t.Context)
	if err != nil {
		return nil, nil, err
	}
	c, s, err := Present(r.Ctx, c, t.Branch)
	if err == nil {
		r.Revision = &s.Info.Revision
	}
	return c, s, err
}

// snapshotToChange is snapshot for a change at the end of the branch: it first puts what a dead program left of a reply there.
func (r *Request) snapshotToChange(t Target) (*chatctx.ChatContext, *chatctx.Snapshot, error) {
	c, err := r.Store.Context(r.Ctx, t.Context)
	if err != nil {
		return nil, nil, err
	}
	claim, err := view.Running(r.Ctx, base.ContextOf(c.Store(), c.ID), t.Branch)
	if err == nil && claim != nil && !base.Held(claim, base.Of(r.Store).Now()) {
		_, err = c.Settle(r.Ctx, t.Branch, chatctx.SettleOptions{})
	}
	if err != nil {
		return nil, nil, err
	}
	return r.snapshot(t)
}

// commit makes the changes that fill puts into a batch on the branch: one transaction, one operation.
func (r *Request) commit(t Change, fill func(*chatctx.Batch)) (*record.Committed, error) {
	b := r.Store.Begin(t.Context, t.Branch)
	fill(b)
	done, err := b.Commit(r.Ctx)
	if err == nil {
		r.Done, r.Revision = done, &done.Revision
	}
	return done, err
}

// onContext makes a change of a conversation as a whole.
func (r *Request) onContext(ref string, fill func(*chatctx.Batch)) (done *record.Committed, err error) {
	b := r.Store.Begin(ref, "")
	fill(b)
	r.Done, err = b.Commit(r.Ctx)
	return r.Done, err
}

// conversation returns a conversation as it is now.
func (r *Request) conversation(ref string) (*chatctx.ChatContext, *record.ContextInfo, error) {
	c, err := r.Store.Context(r.Ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	info, err := c.Info(r.Ctx)
	if err == nil {
		r.Revision = &info.Revision
	}
	return c, info, err
}

// List is a page of items.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"` // the cursor of the next page; "" on the last one
	all   iter.Seq2[T, error]
}

// Each calls fn with every item.
func (l List[T]) Each(fn func(any) error) error {
	if l.all != nil {
		for item, err := range l.all {
			if err == nil {
				err = fn(item)
			}
			if err != nil {
				return err
			}
		}
	}
	for _, item := range l.Items {
		if err := fn(item); err != nil {
			return err
		}
	}
	return nil
}

// FirstOf returns a list of the first items of all, at most limit: those of a page, or as they are read for a caller without pages, where 0 is no limit.
func FirstOf[T any](r *Request, all iter.Seq2[T, error], limit int) (List[T], error) {
	first := func(yield func(T, error) bool) {
		n := 0
		for item, err := range all {
			if n++; !yield(item, err) || n == limit {
				return
			}
		}
	}
	if r.Page == 0 {
		return List[T]{all: first}, nil
	}
	items := []T{}
	for item, err := range first {
		if err != nil {
			return List[T]{}, err
		}
		items = append(items, item)
	}
	return ListOf(items), nil
}

// PageOf returns a page of all: at most so many items, and the cursor of the last one if others follow. A caller without pages gets all, or the first of them, as they are read.
func PageOf[T any](r *Request, all iter.Seq2[T, error], most *int, cursor func(T) string) (out List[T], err error) {
	limit := 0
	if most != nil {
		limit = *most
	}
	if r.Page == 0 {
		return FirstOf(r, all, limit)
	}
	if limit, err = limitOf(limit); err != nil {
		return out, err
	}
	out.Items = []T{}
	for item, err := range all {
		if err != nil {
			return out, err
		}
		if len(out.Items) == limit {
			out.Next = cursor(out.Items[limit-1])
			break
		}
		out.Items = append(out.Items, item)
	}
	return out, nil
}

// ListOf returns a list in which no items are [], not null.
func ListOf[T any](items []T) List[T] {
	if items == nil {
		items = []T{}
	}
	return List[T]{Items: items}
}

// ListEach returns a list of what of makes of each of all, unless err says that there is none.
func ListEach[T, U any](all []T, err error, of func(T) U) (List[U], error) {
	if err != nil {
		return List[U]{}, err
	}
	items := make([]U, len(all))
	for i, one := range all {
		items[i] = of(one)
	}
	return ListOf(items), nil
}

// Present returns a snapshot of a branch ("" means the active one) with what a dead program left of its reply, and the context that it is from.
func Present(ctx context.Context, c *chatctx.ChatContext, branchName string) (*chatctx.ChatContext, *chatctx.Snapshot, error) {
	s, err := c.Snapshot(ctx, branchName)
	if err != nil || s.Claim == nil || !base.Dead(s.Claim, base.Of(c.Store()).Now()) {
		return c, s, err
	}
	if c, err = c.Settled(ctx); err == nil {
		s, err = c.Snapshot(ctx, branchName)
	}
	return c, s, err
}
