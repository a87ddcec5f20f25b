package window

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// Compactor lets a provider compact messages by itself. Package chatctx/turn has it.
type Compactor interface {
	// Name identifies the provider and the model, as that of a Completer.
	Name() string
	// Compact returns what stands for the messages of a draft: a message of pool.CompactionParts, which only this provider and model can read. It need not be
	// usable. With an error it is what had arrived, or nil. Compact may change the draft. took is as in enhancer.Prompt.
	Compact(ctx context.Context, d *chatctx.Draft, took func(*pool.Message) error) (*pool.Message, error)
}

// compacting is the Completer that lets a provider compact a draft.
type compacting struct {
	Compactor
	draft *chatctx.Draft
}

func (c *compacting) Complete(ctx context.Context, p enhancer.Prompt) (*pool.Message, error) {
	return c.Compact(ctx, c.draft, p.Took)
}

// byProvider lets the provider compact the messages that a plan leaves out.
func (p *Plan) byProvider(ctx context.Context, c *chatctx.ChatContext, w *Window, d *chatctx.Draft, by Compactor) (*summary, error) {
	if err := p.gains(w); err != nil {
		return nil, err
	}
	before := *d
	before.Messages = make([]*chatctx.DraftMessage, len(p.Gone))
	for i, m := range p.Gone {
		one := *m
		before.Messages[i] = &one
	}
	fits := func(m *pool.Message) error {
		n := w.Counter.Message(&pool.Message{Role: pool.Assistant, Kind: "summary", Content: m.Content}, nil)
		if float64(p.GoneTokens+p.Before.Summary-n) < p.least() {
			return fmt.Errorf("the provider's compaction has %d tokens, and what it stands for has %d", n, p.GoneTokens+p.Before.Summary)
		}
		return nil
	}
	answer, err := Ask(ctx, c, &compacting{by, &before}, Question{Kind: "summary", About: p.about(d), compacted: fits})
	if err != nil {
		return nil, fmt.Errorf("the provider's compaction failed, nothing was compacted: %w", err)
	}
	return &summary{answer: answer}, nil
}

// compaction returns the parts of a reply that is a whole compaction.
func compaction(reply *pool.Message, fits func(*pool.Message) error) ([]pool.Part, error) {
	if o := pool.OutcomeOf(reply); o != pool.Answered {
		return nil, &pool.OutcomeError{Outcome: o, Ending: reply.Ending()}
	}
	if slices.ContainsFunc(reply.Content, func(p pool.Part) bool { return p.Type != pool.CompactionPart || len(p.Raw) == 0 }) {
		return nil, fmt.Errorf("the provider's answer is no compaction")
	}
	return reply.Content, fits(reply)
}

// most returns the largest request, in tokens, that a compaction by the provider leaves.
func (p *Plan) most(w *Window) int { return w.scale(p.Before.Total() - int(math.Ceil(p.least()))) }

// sessionFor returns the function that finds the session in which a compaction begins: the one with which requests begin if the provider compacts, since it can read
// its own compaction.
func (o *Options) sessionFor() func([]branch.Session) int {
	if o.ProviderCompacts {
		return o.SessionOf
	}
	return branchstore.Current
}
