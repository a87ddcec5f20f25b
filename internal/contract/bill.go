package contract

import (
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/window"
)

// Bill is the expected cost of a request.
type Bill struct {
	Provider string      `json:"provider"`
	Model    string      `json:"model"`
	Window   Window      `json:"window"`
	Cached   int64       `json:"cached_tokens"`
	Fresh    int64       `json:"fresh_tokens"`
	With     *cost.Money `json:"with_cache_nano"` // null if no price is known
	Without  *cost.Money `json:"without_cache_nano"`
	Answer   *cost.Money `json:"longest_answer_nano"` // null if nothing limits the answer
	Currency string      `json:"currency,omitempty"`
	Source   string      `json:"source,omitempty"`
	Date     string      `json:"date,omitempty"`
}

// BillFields lists the fields of a Bill, for help.
const BillFields = "provider, model, window, cached_tokens, fresh_tokens, with_cache_nano, without_cache_nano, longest_answer_nano, currency, source, date"

// BillOf returns the JSON of a request's bill.
func BillOf(req *turn.Request, b *turn.Bill) Bill {
	v := Bill{Provider: req.Provider, Model: req.Model, Window: WindowOf(window.Of(req).Forecast), Cached: b.Cached, Fresh: b.Fresh}
	if b.Price != nil {
		v.With, v.Without, v.Currency, v.Source, v.Date = &b.With, &b.Without, b.Price.Currency, b.Price.Source, b.Price.Date
		if b.Answer > 0 {
			v.Answer = &b.Answer
		}
	}
	return v
}
