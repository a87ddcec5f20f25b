package turn

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

// NotTakenError says that a provider would not get a message unchanged.
type NotTakenError struct{ Provider, What string }

// Error says which provider it is and what would change.
func (e *NotTakenError) Error() string {
	return fmt.Sprintf("%s would not get the message as it is: %s", e.Provider, e.What)
}

// Fits checks, before anything is stored, whether the request can be made and the provider would get the messages unchanged. If it would not, the error is a
// *NotTakenError.
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

// Question returns the last user message of a branch, and whether it is the branch's last message. It is an ErrEmpty if there is no user message.
func Question(ctx context.Context, snap *chatctx.Snapshot) (e *chatctx.Entry, last bool, err error) {
	for e, err := range snap.Entries(ctx, snap.Len(), 1) {
		if err != nil {
			return nil, false, err
		}
		if e.Role == pool.User && e.Kind == "" && !e.Hidden {
			return e, e.Position == snap.Len(), nil
		}
	}
	return nil, false, base.Says(chatctx.ErrEmpty, "no user has asked anything on %q", snap.Info.Name)
}

// Names is a set of names of branches that are taken.
type Names map[string]bool

// NamesOf returns the names of a context's branches. It first removes branches for answers of programs that died before anything arrived.
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

// Free returns a free name for the branch of an answer and takes it: the model's name, then .2, .3 …; without a model main.2, main.3 … after the branch's name.
func (n Names) Free(beside, model string) string {
	name, number := stem(beside, model), 1
	if model == "" {
		number = 2
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

// stem returns the name to which Free adds numbers.
func stem(beside, model string) string {
	if model != "" {
		return branchstore.PlainName(model)
	}
	name := branchstore.PlainName(beside)
	if i := strings.LastIndexByte(name, '.'); i > 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		name = name[:i]
	}
	return name
}

// stem returns the name to which numbers are added where somebody else has just taken the name of the turn's branch.
func (t *Turn) stem(beside string) string {
	model := ""
	_ = json.Unmarshal(t.Settings["model"], &model)
	return stem(beside, model)
}

// Beside makes a branch that ends with a message, for an answer to it: Answer.Ask asks there. Without a name the branch gets a free one after the name of the
// turn's branch. The answer's Turn is a copy that is on the new branch; the turn itself stays as it is.
func (t *Turn) Beside(ctx context.Context, name string, question *chatctx.Entry) (*Answer, error) {
	at := chatctx.ForkOptions{At: record.RefTo(question.ID)}
	if name == "" {
		taken, err := NamesOf(ctx, t.Context)
		if err != nil {
			return nil, err
		}
		name, at.Else = taken.Free(t.Branch, ""), stem(t.Branch, "")
	}
	b := t.Context.Begin(t.Branch)
	b.Name("retry")
	reply := b.ForkForReply(name, at)
	if _, err := b.Together(b).Commit(ctx); err != nil {
		return nil, err
	}
	own := *t
	own.Branch, own.PartOf = reply.Branch, b
	return &Answer{Turn: &own, reply: reply}, nil
}

// unmake removes the branch that Beside or Ask made, if its answer is none. It is no error if the branch is gone because nothing arrived.
func (t *Turn) unmake(ctx context.Context) error {
	err := t.after(ctx, func(b *chatctx.Batch) { b.RemoveBranch(t.Branch) })
	if errors.Is(err, chatctx.ErrNotFound) {
		return nil
	}
	return err
}

// after makes a command's last change, also after an interrupt.
func (t *Turn) after(ctx context.Context, fill func(*chatctx.Batch)) error {
	b := t.Context.Begin("")
	fill(b)
	_, err := b.Together(t.PartOf).Commit(context.WithoutCancel(ctx))
	return err
}

// Answer is an answer on a branch of its own.
type Answer struct {
	Turn    *Turn // its Branch is that of the answer
	Outcome *Outcome
	Err     error // it failed, is empty, or did not come to its end; its branch is gone unless Kept
	Stopped bool  // it was stopped after something had arrived, which is on its branch, unfinished

	reply *chatctx.Reply // has claimed the branch
}

// Ask asks, once, on the branch that Beside made. If the answer is kept, its branch becomes the active one, unless stay is set.
func (a *Answer) Ask(ctx context.Context, stay bool) {
	out, err := a.Turn.answer(ctx, a.reply)
	if a.settle(ctx, out, err); !stay && a.Kept() {
		a.Err = errors.Join(a.Err, a.Turn.after(ctx, func(b *chatctx.Batch) { b.Switch(a.Turn.Branch) }))
	}
}

// Kept reports whether the answer's branch is there: it was answered, stopped, or came to a limit or a failure after a round that was whole, of which calls may
// have run. There send --continue goes on.
func (a *Answer) Kept() bool {
	return a.Err == nil || a.Stopped || a.Outcome != nil && len(a.Outcome.Replies) > 0 && !a.Outcome.Replies[0].Unfinished && len(a.Outcome.Replies[0].Calls) > 0
}

// settle sets the result of Send. An empty or failed answer leaves no branch.
func (a *Answer) settle(ctx context.Context, out *Outcome, err error) {
	a.Outcome, a.Err = out, err
	if err == nil && isEmpty(out.Reply()) {
		a.Err = ErrNothing
	}
	if a.Stopped = ctx.Err() != nil && a.Err != nil && out != nil && !isEmpty(out.Reply()); !a.Kept() {
		a.Err = errors.Join(a.Err, a.Turn.unmake(ctx))
	}
}

// FitAll calls Fits for several turns that are to answer on branches beside one. It returns for each turn without a key the error, since that keeps nobody from
// asking the others; another error, or that of a turn if none has a key, is for all.
func FitAll(ctx context.Context, branchName string, turns []*Turn, messages ...*chatctx.Message) (without []error, err error) {
	without = make([]error, len(turns))
	for i, t := range turns {
		own, failed := *t, (*wire.Error)(nil)
		own.Branch = branchName
		if without[i] = own.Fits(ctx, messages...); without[i] != nil && !errors.As(without[i], &failed) {
			return nil, without[i]
		}
	}
	if !slices.Contains(without, nil) {
		return nil, cmp.Or(without...)
	}
	return without, nil
}

// Ask lets several turns answer at once. The message, if there is one, goes on the branch. Each answer goes on a new branch from there, or from the message
// at, with the name of its turn's Branch; where another program has just taken that, Branch is set to the next free one. The active branch stays. asking is
// called when everything is stored and before any model is asked, and told with each answer as it ends, one at a time; both may be nil. Undo takes all back
// together. A turn that cannot ask, for want of a key, gets the error as its answer while another can. An error means that no model was asked and nothing was
// stored.
func Ask(ctx context.Context, branchName string, m *chatctx.Message, at record.Ref, turns []*Turn, asking func(), told func(*Answer)) ([]*Answer, error) {
	if len(turns) == 0 {
		return nil, base.Invalid("there is no turn to ask")
	}
	var messages []*chatctx.Message
	b := turns[0].Context.Begin(branchName)
	b.Name("ask")
	if m != nil {
		messages = append(messages, m)
		b.AppendWith(chatctx.AppendOptions{System: turns[0].System}, m)
	}
	without, err := FitAll(ctx, branchName, turns, messages...)
	if err != nil {
		return nil, err
	}
	answers := make([]*Answer, len(turns))
	for i, t := range turns {
		if answers[i] = (&Answer{Turn: t, Err: without[i]}); answers[i].Err == nil {
			answers[i].reply = b.ForkForReply(t.Branch, chatctx.ForkOptions{At: at, Else: t.stem(branchName)})
		}
	}
	if _, err := b.Together(b).Commit(ctx); err != nil {
		return nil, err
	}
	for i, t := range turns {
		if reply := answers[i].reply; reply != nil {
			t.Branch = reply.Branch
		}
	}
	if asking != nil {
		asking()
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	asides := &window.Once{}
	for i, t := range turns {
		a := answers[i]
		if t.asides == nil {
			t.asides = asides
		}
		t.PartOf = b
		all.Go(func() {
			end := func() {}
			if a.Err == nil {
				out, err := t.answer(ctx, a.reply)
				end = func() { a.settle(ctx, out, err) }
			}
			mu.Lock()
			defer mu.Unlock()
			end()
			if told != nil {
				told(a)
			}
		})
	}
	all.Wait()
	return answers, nil
}

// ErrNothing is the error of an answer with neither words nor calls. It is a wire.ErrRefused.
var ErrNothing = fmt.Errorf("%w: the answer is empty", wire.ErrRefused)

// Refusal returns an error for a complete reply that is no answer, for programs that report it as one: a wire.ErrRefused if it was refused, ErrNothing if it is
// empty. It is nil for other replies and for none.
func Refusal(m *chatctx.Message) error {
	switch {
	case m == nil:
		return nil
	case pool.OutcomeOf(m).Refused():
		return wire.ErrRefused
	case isEmpty(m):
		return ErrNothing
	}
	return nil
}

// isEmpty reports whether a reply has neither words nor calls. A refused reply is not empty.
func isEmpty(m *chatctx.Message) bool {
	return m == nil || !pool.OutcomeOf(m).Refused() && pool.IsBlank(m)
}
