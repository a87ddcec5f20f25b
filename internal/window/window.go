package window

import (
	"context"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// Window is the room that a draft has. The steps of a pipeline share one. It is not safe for concurrent use.
type Window struct {
	Counter *tokens.Counter // nil means one for any model
	// Budget is the size of a request, in tokens; 0 means no budget, and nothing is shortened.
	Budget int
	// Headroom is the share of the budget that stays free, 0.1 for a tenth.
	Headroom float64
	// ClearAtLeast is how many tokens a step clears if it must clear any, so that it seldom changes the cached beginning of the requests; 0 means a tenth of
	// the limit.
	ClearAtLeast int
	// Context, if not nil, remembers which questions of the squeeze step have no usable answer, and what those took.
	Context *chatctx.ChatContext
	// Keep, if not nil, stores the draft's session, which has one more shortened digest, together with the record of what that took. It is called for each answer
	// as it comes, before the next question.
	Keep func(ctx context.Context, session branch.Session, paid *pool.Message) error

	measured *chatctx.Draft
	ratio    float64 // the ratio of the provider's figures to our counts, at least 1
	// The messages behind each digest of the draft, by their hash and by the digest's id.
	behind   map[pool.Hash][]*chatctx.DraftMessage
	byDigest map[pool.ID][]*chatctx.DraftMessage
	trimmed  []*chatctx.DraftMessage // what trim left out
	// The original messages of those that are shortened, and what each rule did.
	whole map[pool.ID]*pool.Message
	rules []enhancer.RuleFigures
	paid  []*pool.Message // records of what a model's answers cost, without Keep
}

// replace puts a shorter form of count tokens in place of a message, only in the draft.
func (w *Window) replace(m *chatctx.DraftMessage, shorter *pool.Message, count int) {
	if w.whole[m.ID] == nil {
		w.whole[m.ID] = m.Message
	}
	m.Message, m.Tokens = shorter, count
}

// wholeOf returns a message as it was before any step shortened it.
func (w *Window) wholeOf(m *chatctx.DraftMessage) *pool.Message {
	if whole := w.whole[m.ID]; whole != nil {
		return whole
	}
	return m.Message
}

// remember keeps the messages that a digest replaced.
func (w *Window) remember(of pool.Hash, id pool.ID, messages []*chatctx.DraftMessage) {
	w.behind[of], w.byDigest[id] = messages, messages
}

// Limit returns the budget less the headroom, 0 without a budget.
func (w *Window) Limit() int {
	limit := float64(w.Budget) * (1 - w.Headroom)
	if limit >= float64(w.Budget) { // also a limit that no int can hold
		return w.Budget
	}
	return int(limit)
}

// Measure counts the draft's messages and sets the ratio of the provider's figures to our counts. It does so once for a draft, before the first step; a step
// outside of a pipeline calls it itself. A ratio below 1 counts as 1, since a draft must also fit by our count.
func (w *Window) Measure(ctx context.Context, d *chatctx.Draft) error {
	if w.measured == d {
		return nil
	}
	if err := w.counter().Fill(ctx, d); err != nil {
		return err
	}
	w.measured, w.ratio = d, 1
	w.trimmed = nil
	w.whole, w.rules, w.paid = map[pool.ID]*pool.Message{}, nil, nil
	w.behind, w.byDigest = map[pool.Hash][]*chatctx.DraftMessage{}, map[pool.ID][]*chatctx.DraftMessage{}
	if !w.Counter.Model.Own {
		if ratio, ok := w.Counter.Ratio(d); ok {
			w.ratio = max(1, ratio)
		}
	}
	return nil
}

// Size returns the draft's size in tokens, in the provider's figures.
func (w *Window) Size(d *chatctx.Draft) int { return w.scale(w.counter().Sizes(d).Total()) }

// counter returns the window's counter, and makes one if there is none.
func (w *Window) counter() *tokens.Counter {
	if w.Counter == nil {
		w.Counter = tokens.NewCounter("", nil, nil)
	}
	return w.Counter
}

func (w *Window) scale(n int) int {
	if w.ratio <= 1 {
		return n
	}
	return int(float64(n)*w.ratio) + 1
}

// Over returns by how many tokens, by our count, the draft is over the limit; 0 if it fits or there is no budget.
func (w *Window) Over(d *chatctx.Draft) int {
	if w.Budget == 0 {
		return 0
	}
	return max(0, w.counter().Sizes(d).Total()-w.counted(w.Limit()))
}

// counted converts one of the provider's figures to our counts.
func (w *Window) counted(n int) int {
	if w.ratio <= 1 {
		return n
	}
	return int(float64(n)/w.ratio) - 1
}

// goal returns how much to clear if over tokens must go: the next multiple of ClearAtLeast.
func (w *Window) goal(over int) int {
	unit := w.ClearAtLeast
	if unit <= 0 {
		unit = max(1, w.counted(w.Limit())/10)
	}
	return (over + unit - 1) / unit * unit
}

// of returns the count of a message.
func (w *Window) of(d *chatctx.Draft, m *chatctx.DraftMessage) int { return w.counter().Of(d, m) }
