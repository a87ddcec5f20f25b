package turn

import (
	"encoding/json"
	"time"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx/cost"
)

// Bill is what a request costs before its answer: by the tokens of Forecast, which a provider counts a little otherwise.
type Bill struct {
	Price *cost.Price // nil: none is known of the model, and no sum says anything
	// Cached are the tokens that are the same as in the last request, Fresh the others. Where a compaction is due, all are fresh.
	Cached, Fresh int64
	// With is the price where the provider's cache still holds the last request, Without where it holds nothing; both with what it costs to put the rest there.
	With, Without cost.Money
	// Answer is what the longest answer costs that max_tokens allows, 0 where that is not set.
	Answer cost.Money
}

// Bill reckons the request's price.
func (r *Request) Bill() Bill {
	b := Bill{Price: r.Options.Prices.Of(r.Provider, r.Model, time.Time{}), Fresh: int64(r.Forecast.Tokens)}
	if p := &r.Prefix; r.Options.Cache && !r.Forecast.Due && p.Total > 0 {
		b.Cached = b.Fresh * int64(p.Tokens) / int64(p.Total)
		b.Fresh -= b.Cached
	}
	if b.Price == nil {
		return b
	}
	b.With = b.Price.Of(r.written(cost.Usage{CacheRead: b.Cached, Input: b.Fresh}))
	b.Without = b.Price.Of(r.written(cost.Usage{Input: b.Cached + b.Fresh}))
	var limit int64
	if json.Unmarshal(r.Draft.Settings[adapter.MaxTokens], &limit) == nil && limit > 0 {
		b.Answer = b.Price.Of(cost.Usage{Output: limit})
	}
	return b
}

// written is a usage where what is new is put into the cache, as far as that is asked for: at Anthropic alone.
func (r *Request) written(u cost.Usage) cost.Usage {
	switch {
	case r.Provider != adapter.Anthropic || !r.Options.Cache:
	case r.Options.CacheTTL == "1h":
		u.Input, u.CacheWriteHour = 0, u.Input
	default:
		u.Input, u.CacheWrite = 0, u.Input
	}
	return u
}
