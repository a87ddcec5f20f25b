package cli

import (
	"errors"

	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/window"
)

// foresee makes the branch's next request up to the draft, and says what it takes. If the branch cannot be made to fit, it is the request with what is
// left, and over says why.
func (r *run) foresee(t *turn.Turn) (req *turn.Request, over, err error) {
	if req, err = t.Fit(r.ctx); req != nil {
		r.notInForce(req.Draft.Ignored)
	}
	var budget *enhancer.BudgetError
	if errors.As(err, &budget) {
		window.Of(req).Forecast.Tokens = budget.Size
		return req, err, nil
	}
	return req, nil, talkHint(err)
}
