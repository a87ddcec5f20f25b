package cli

import (
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/contract"
)

// billJSON is what a request would cost.
type billJSON struct {
	DryRun   bool            `json:"dry_run"`
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Window   contract.Window `json:"window"`
	Cached   int64           `json:"cached_tokens"`
	Fresh    int64           `json:"fresh_tokens"`
	With     *cost.Money     `json:"with_cache_nano"` // null where no price is known
	Without  *cost.Money     `json:"without_cache_nano"`
	Answer   *cost.Money     `json:"longest_answer_nano"` // null where nothing bounds it
	Currency string          `json:"currency,omitempty"`
	Source   string          `json:"source,omitempty"`
	Date     string          `json:"date,omitempty"`
}

// billFields are those of billJSON, for help.
const billFields = "with --dry-run, a line each model: dry_run, provider, model, window, cached_tokens, fresh_tokens, with_cache_nano, without_cache_nano, longest_answer_nano, currency, source, date"

// drySend says what sending a message would cost, and sends and stores nothing.
func (r *run) drySend(m *chatctx.Message) error {
	if err := r.counting(); err != nil {
		return err
	}
	c, name, err := r.talk()
	if err != nil {
		return err
	}
	turns := []*turn.Turn{r.turn(c, name)}
	if r.many() {
		askers, err := r.askers(turns[0])
		if err != nil {
			return err
		}
		turns = nil
		for _, a := range askers {
			a.Branch = name
			turns = append(turns, a.Turn)
		}
	}
	var msgs []*chatctx.Message
	if m != nil {
		msgs = append(msgs, m)
	}
	for _, t := range turns {
		req, err := t.Request(r.ctx, msgs...)
		if err != nil {
			return talkHint(err)
		}
		if err := r.printBill(req); err != nil || r.stopped() {
			return err
		}
	}
	return nil
}

func (r *run) printBill(req *turn.Request) error {
	b := req.Bill()
	v := billJSON{DryRun: true, Provider: req.Provider, Model: req.Model, Window: contract.WindowOf(req.Forecast), Cached: b.Cached, Fresh: b.Fresh}
	if b.Price != nil {
		v.With, v.Without, v.Currency, v.Source, v.Date = &b.With, &b.Without, b.Price.Currency, b.Price.Source, b.Price.Date
		if b.Answer > 0 {
			v.Answer = &b.Answer
		}
	}
	return r.emit(v, func() {
		r.printf("%s of %s: the request takes %s\n", clean(req.Model), req.Provider, req.Forecast)
		if b.Price == nil {
			r.note("no price is known of %s: chatctx config --default prices=…", clean(req.Model))
			return
		}
		in := clean(b.Price.Currency)
		if b.Cached > 0 {
			r.printf("with the cache %s %s (%s tokens are the same as in the last request), without %s %s\n", b.With.Short(), in, enhancer.Short(int(b.Cached)), b.Without.Short(), in)
		} else {
			r.printf("%s %s; nothing of it is in the cache\n", b.Without.Short(), in)
		}
		answer := fmt.Sprintf("the answer: %s %s for 1,000 tokens", b.Price.Of(cost.Usage{Output: 1000}).Short(), in)
		if b.Answer > 0 {
			answer += fmt.Sprintf(", at most %s %s", b.Answer.Short(), in)
		}
		r.printf("%s\n", answer)
	})
}
