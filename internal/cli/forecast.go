package cli

import (
	"errors"

	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/enhancer"
)

// foresee is the branch's next request as far as the draft, and what it takes; a branch that cannot be made to fit takes what is left of it, and over says why.
func (r *run) foresee(t *turn.Turn) (req *turn.Request, over, err error) {
	if req, err = t.Fit(r.ctx); req != nil {
		r.notInForce(req.Draft.Ignored)
	}
	var budget *enhancer.BudgetError
	if errors.As(err, &budget) {
		req.Forecast.Tokens = budget.Size
		return req, err, nil
	}
	return req, nil, talkHint(err)
}
