package turn

import (
	"encoding/json"
	"time"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/chatctx/cost"
)

// Bill is the price of a request before its answer, by the tokens of Forecast. The provider's own count differs a little.
type Bill struct {
	Price *cost.Price // nil if no price of the model is known; then all sums are 0
	// Cached are the tokens that are the same as in the last request, Fresh the others. If a compaction is due, all are fresh.
	Cached, Fresh int64
	// With is the price if the provider's cache still has the last request, Without the price if it has nothing. Both include writing the rest to the cache.
	With, Without cost.Money
	// Answer is the price of the longest answer that max_tokens allows, 0 if that is not set.
	Answer cost.Money
}

// Bill returns the request's price.
func (r *Request) Bill() Bill {
	b := Bill{Price: r.made().Options.Prices.Of(r.Provider, r.Model, time.Time{}), Fresh: int64(r.made().Forecast.Tokens)}
	if p := &r.made().Prefix; r.made().Options.Cache && !r.made().Forecast.Due && p.Total > 0 {
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

// written returns a usage with the fresh input written to the cache, if the request asks for that, which only those to Anthropic do.
func (r *Request) written(u cost.Usage) cost.Usage {
	switch {
	case r.Provider != adapter.Anthropic || !r.made().Options.Cache:
	case r.made().Options.CacheTTL == "1h":
		u.Input, u.CacheWriteHour = 0, u.Input
	default:
		u.Input, u.CacheWrite = 0, u.Input
	}
	return u
}
