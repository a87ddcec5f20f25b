package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// NotTakenError says that a provider would not get a message as it is.
type NotTakenError struct{ Provider, What string }

// Error says so.
func (e *NotTakenError) Error() string {
	return fmt.Sprintf("%s would not get the message as it is: %s", e.Provider, e.What)
}

// Fits finds out, before anything is stored, whether the request can be made and whether the provider takes the messages whole: else a *NotTakenError.
func (t *Turn) Fits(ctx context.Context, messages ...*chatctx.Message) error {
	req, err := t.Request(ctx, messages...)
	if err != nil {
		return err
	}
	if _, _, err := t.NewClient(ctx, req.Provider); err != nil {
		return err
	}
	for _, m := range messages {
		for _, note := range req.Repairs {
			if note.Message == m.ID {
				return &NotTakenError{req.Provider, note.What}
			}
		}
	}
	return nil
}

// Question finds the last user message of a branch, and whether nothing stands after it. ErrEmpty where no user has asked anything.
func Question(ctx context.Context, snap *chatctx.Snapshot) (e *chatctx.Entry, last bool, err error) {
	for e, err := range snap.Entries(ctx, snap.Len(), 1) {
		if err != nil {
			return nil, false, err
		}
		if e.Role == pool.User && e.Kind == "" && !e.Hidden {
			return e, e.Position == snap.Len(), nil
		}
	}
	return nil, false, fmt.Errorf("%w: no user has asked anything on %q", chatctx.ErrEmpty, snap.Info.Name)
}

// Names are the names of branches that are taken.
type Names map[string]bool

// NamesOf reads the names of a context's branches. Branches that were made for answers of programs that died before any came are taken away first.
func NamesOf(ctx context.Context, c *chatctx.ChatContext) (Names, error) {
	if err := c.SettleDead(ctx); err != nil {
		return nil, err
	}
	list, err := c.Branches(ctx)
	taken := Names{}
	for _, b := range list {
		taken[b.Name] = true
	}
	return taken, err
}

// Free takes a name for the branch of an answer: the model's name, then .2, .3 …; without a model main.2, main.3 … beside the branch.
func (n Names) Free(beside, model string) string {
	name, number := branch.PlainName(model), 1
	if model == "" {
		name, number = branch.PlainName(beside), 2
		if i := strings.LastIndexByte(name, '.'); i > 0 && strings.Trim(name[i+1:], "0123456789") == "" {
			name = name[:i]
		}
	}
	for ; ; number++ {
		free := name
		if number > 1 {
			free = fmt.Sprintf("%s.%d", name, number)
		}
		if !n[free] {
			n[free] = true
			return free
		}
	}
}

// Beside makes a branch that ends with a message, and has the turn ask there. Its name is a free one beside the turn's branch where none is given.
func (t *Turn) Beside(ctx context.Context, name string, question *chatctx.Entry) error {
	if name == "" {
		taken, err := NamesOf(ctx, t.Context)
		if err != nil {
			return err
		}
		name = taken.Free(t.Branch, "")
	}
	b := t.Context.Begin(t.Branch)
	b.Name("retry")
	reply := b.ForkForReply(name, chatctx.RefTo(question.ID))
	if _, err := b.Together(b).Commit(ctx); err != nil {
		return err
	}
	t.Branch, t.PartOf, t.reply = name, b, reply
	return nil
}

// Unmake takes the branch off that Beside or Ask made for an answer that is none, unless it went by itself since nothing came.
func (t *Turn) Unmake(ctx context.Context) error {
	err := t.after(ctx, func(b *chatctx.Batch) { b.RemoveBranch(t.Branch) })
	if errors.Is(err, chatctx.ErrNotFound) {
		return nil
	}
	return err
}

// GoTo makes the turn's branch the active one, as a part of the same command.
func (t *Turn) GoTo(ctx context.Context) error {
	return t.after(ctx, func(b *chatctx.Batch) { b.Switch(t.Branch) })
}

// after is what a command ends with, also where it was interrupted.
func (t *Turn) after(ctx context.Context, fill func(*chatctx.Batch)) error {
	b := t.Context.Begin("")
	fill(b)
	_, err := b.Together(t.PartOf).Commit(context.WithoutCancel(ctx))
	return err
}

// Answer is what became of one of those who were asked.
type Answer struct {
	*Turn
	Outcome *Outcome
	Err     error // it failed or is empty, and its branch is gone
	Stopped bool  // it was stopped after something had come, which is on its branch, unfinished
}

// Ask asks several at once. The message, if there is one, goes on the branch; each answer on a new branch from there, or from the message at, which has the name that its
// turn asks on. The active branch stays. asking is called when all is stored and before anybody is asked, told with each answer as it ends, one at a time; both may be nil. Undo takes all back together. The error is for
// what kept it from asking anybody: then nothing is stored.
func Ask(ctx context.Context, branchName string, m *chatctx.Message, at chatctx.Ref, turns []*Turn, asking func(), told func(*Answer)) ([]*Answer, error) {
	if len(turns) == 0 {
		return nil, fmt.Errorf("%w: there is no turn to ask", chatctx.ErrInvalid)
	}
	var messages []*chatctx.Message
	b := turns[0].Context.Begin(branchName)
	b.Name("ask")
	if m != nil {
		messages = append(messages, m)
		b.Append(m)
	}
	replies := make([]*chatctx.Reply, len(turns))
	for i, t := range turns {
		own := *t
		own.Branch = branchName
		if err := own.Fits(ctx, messages...); err != nil {
			return nil, err
		}
		replies[i] = b.ForkForReply(t.Branch, at)
	}
	if _, err := b.Together(b).Commit(ctx); err != nil {
		return nil, err
	}
	if asking != nil {
		asking()
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	answers, asides := make([]*Answer, len(turns)), &enhancer.Once{}
	for i, t := range turns {
		if t.Asides == nil {
			t.Asides = asides
		}
		a := &Answer{Turn: t}
		answers[i], t.PartOf, t.reply = a, b, replies[i]
		all.Go(func() {
			a.Outcome, a.Err = t.Send(ctx)
			mu.Lock()
			defer mu.Unlock()
			if a.Err == nil && isEmpty(a.Outcome.Reply()) {
				a.Err = fmt.Errorf("%w: the answer is empty", wire.ErrRefused)
			}
			if a.Stopped = ctx.Err() != nil && a.Err != nil && a.Outcome != nil && !isEmpty(a.Outcome.Reply()); a.Err != nil && !a.Stopped {
				a.Err = errors.Join(a.Err, t.Unmake(ctx))
			}
			if told != nil {
				told(a)
			}
		})
	}
	all.Wait()
	return answers, nil
}

// isEmpty reports whether a reply says nothing and calls nothing. One that was refused says that.
func isEmpty(m *chatctx.Message) bool {
	return m == nil || !wire.OutcomeOf(m).Refused() && len(m.Calls) == 0 && !slices.ContainsFunc(m.Content, func(p pool.Part) bool {
		return p.Type != pool.ThinkingPart && (p.Type != pool.TextPart || p.Text != "")
	})
}
