package turn

import (
	"context"
	"errors"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// Replay has the user messages of a branch, to ask them again, with the results that tools gave then.
type Replay struct {
	from      *chatctx.Snapshot
	first     *chatctx.Entry // the first message that is asked again
	before    chatctx.ID     // the message before that; zero for none
	questions []*chatctx.Message
	results   map[string][]*pool.Result // by tool and arguments, in order
	// Positions are those of the questions, and Output is the number of tokens of the old answers: as their providers counted them, else reckoned.
	Positions []int
	Output    int64
}

// Replayed is the kind of a tool's result that was recorded earlier and reused.
const Replayed = "replayed"

// ReadReplay returns the user messages of a branch from a position on, to be asked again. It is an ErrEmpty if there is none.
func ReadReplay(ctx context.Context, snap *chatctx.Snapshot, from int) (*Replay, error) {
	p := &Replay{from: snap, results: map[string][]*pool.Result{}}
	calls := map[string]string{}
	counter := tokens.NewCounter("", nil, nil)
	for e, err := range snap.Entries(ctx, from, 0) {
		if err != nil {
			return nil, err
		}
		if e.Role == pool.User && e.Kind == "" && !e.Hidden {
			if p.first == nil {
				p.first, p.before = e, e.Parent
			}
			id := e.ID
			p.questions = append(p.questions, &chatctx.Message{Role: pool.User, Content: e.Content, CopiedFrom: &id})
			p.Positions = append(p.Positions, e.Position)
		}
		for i := range e.Calls {
			calls[e.Calls[i].ID] = callKey(&e.Calls[i])
		}
		if r := e.Result; r != nil && calls[r.RequestID] != "" {
			key := calls[r.RequestID]
			p.results[key] = append(p.results[key], r)
		}
		switch {
		case e.Role != pool.Assistant:
		case e.Meta.OutputTokens != nil:
			p.Output += *e.Meta.OutputTokens
		default:
			p.Output += int64(counter.Text(e.Text()))
		}
	}
	if p.first == nil {
		return nil, base.Says(chatctx.ErrEmpty, "no user asks anything on %q from #%d on", snap.Info.Name, from)
	}
	return p, nil
}

// Questions returns how many messages are asked again.
func (p *Replay) Questions() int { return len(p.questions) }

// callKey returns the same text for calls of one tool with the same arguments.
func callKey(c *pool.Call) string { return c.Tool + "\x00" + string(jsontree.Canonical(c.Arguments)) }

// Run asks on a new branch with the name of the turn's Branch; where another program has just taken that, Branch is set to the next free one. It begins
// before the first question, with the old branch's prompts, or with another system prompt. A call with the tool and the arguments of an earlier one gets the
// earlier result, each used once and in order; the result's kind is Replayed. The first call without one waits and ends the run: no tool is run and nothing
// is decided. Undo takes all back together, with what the turn's PartOf began. With an error the outcomes say how far it came; where nothing was answered,
// the branch is gone. PartOf is set once it is made.
func (p *Replay) Run(ctx context.Context, t *Turn, system *string) ([]*Outcome, error) {
	if err := p.begin(ctx, t, system); err != nil {
		return nil, err
	}
	left := map[string][]*pool.Result{}
	for key, list := range p.results {
		left[key] = list
	}
	own := *t // after begin, which sets the batch that everything belongs to
	own.Calls = func(ctx context.Context, branch string, reply *chatctx.Message, _ []string) (bool, error) {
		return own.recorded(ctx, branch, reply, left)
	}
	all, err := p.ask(ctx, t, &own)
	if err != nil && !slices.ContainsFunc(all, func(o *Outcome) bool { return !isEmpty(o.Reply()) }) {
		err = errors.Join(err, t.unmake(ctx))
	}
	return all, err
}

// ask asks the questions, up to one that has no answer or whose calls wait.
func (p *Replay) ask(ctx context.Context, t, own *Turn) (all []*Outcome, err error) {
	for _, q := range p.questions {
		m := *q
		b := t.Context.Begin(t.Branch)
		b.Append(&m)
		if _, err := b.Together(t.PartOf).Commit(ctx); err != nil {
			return all, err
		}
		out, err := own.Send(ctx)
		if out != nil {
			all = append(all, out)
		}
		if err == nil && out.Waiting == 0 && isEmpty(out.Reply()) {
			err = ErrNothing
		}
		if err != nil || out.Waiting > 0 {
			return all, err
		}
	}
	return all, nil
}

// begin makes the branch.
func (p *Replay) begin(ctx context.Context, t *Turn, system *string) error {
	b := t.Context.Begin(p.from.Info.Name)
	b.Name("replay")
	at := p.before
	if at == (chatctx.ID{}) {
		at = p.first.ID
	}
	b.Fork(t.Branch, chatctx.ForkOptions{At: record.RefTo(at), Stay: true, Else: t.stem(p.from.Info.Name)})
	with := t.PartOf
	if with == nil {
		with = b
	}
	done, err := b.Together(with).Commit(ctx)
	if err != nil {
		return err
	}
	t.Branch, t.PartOf = done.Last().Branch, b
	more := t.Context.Begin(t.Branch)
	if p.before == (chatctx.ID{}) {
		more.Clear()
	}
	if system != nil {
		more.SetSystem(*system)
	}
	if more.Len() == 0 {
		return nil
	}
	_, err = more.Together(b).Commit(ctx)
	return err
}

// recorded gives the calls of a reply the results of the same earlier calls, up to the first one without. It reports whether all have one.
func (t *Turn) recorded(ctx context.Context, branch string, reply *chatctx.Message, left map[string][]*pool.Result) (bool, error) {
	for i := range reply.Calls {
		c := &reply.Calls[i]
		key := callKey(c)
		if len(left[key]) == 0 {
			return false, nil
		}
		was := *left[key][0]
		left[key] = left[key][1:]
		was.RequestID = c.ID
		b := t.Context.Begin(branch)
		b.Append(&chatctx.Message{Role: pool.ToolRole, Kind: Replayed, Result: &was})
		if _, err := b.Together(t.PartOf).Commit(ctx); err != nil {
			return false, err
		}
	}
	return true, nil
}
