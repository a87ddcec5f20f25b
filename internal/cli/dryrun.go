package cli

import (
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/window"
)

// billJSON is what a request would cost.
type billJSON struct {
	DryRun bool `json:"dry_run"`
	contract.Bill
}

// billFields are the fields of billJSON, for help.
const billFields = "with --dry-run, a line each model: dry_run, " + contract.BillFields

// drySend says what sending a message would cost, and sends and stores nothing.
func (r *run) drySend(in *sendIn, m *chatctx.Message) error {
	c, name, err := r.talkOn(r.caching)
	if err != nil {
		return err
	}
	turns := []*turn.Turn{r.turn(c, name)}
	if r.many(in.askFlags, in.manyFlags) {
		askers, err := r.askers(turns[0], in.askFlags, in.manyFlags)
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
	v := billJSON{true, contract.BillOf(req, &b)}
	return r.emit(v, func() {
		r.printf("%s of %s: the request takes %s\n", clean(req.Model), req.Provider, window.Of(req).Forecast)
		if b.Price == nil {
			r.note("no price for %s: chatctx config --default prices=…", clean(req.Model))
			return
		}
		in := clean(b.Price.Currency)
		if b.Cached > 0 {
			r.printf("with the cache %s %s (%s tokens are the same as in the last request), without %s %s\n", b.With.Short(), in, window.Short(int(b.Cached)), b.Without.Short(), in)
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
