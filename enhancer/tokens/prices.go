package tokens

import (
	"encoding/json"
	"fmt"
)

// Prices are in any one currency for a million tokens.
type Prices struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// ParsePrices reads the prices setting: an object with the four prices, or one of such objects by model name, of which the longest that begins the
// model's name is taken. nil gives nil.
func ParsePrices(setting json.RawMessage, model string) (*Prices, error) {
	if len(setting) == 0 {
		return nil, nil
	}
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(setting, &byName); err != nil {
		return nil, fmt.Errorf("prices is an object like {\"input\": 3, \"output\": 15, \"cache_read\": 0.3, \"cache_write\": 3.75}: %w", err)
	}
	if len(byName) == 0 {
		return nil, nil
	}
	chosen, length := setting, -1
	for name, p := range byName {
		if p[0] != '{' {
			length = 0
			continue
		}
		if base := baseName(model); len(name) > length && len(name) <= len(base) && base[:len(name)] == name {
			chosen, length = p, len(name)
		}
	}
	if length < 0 {
		return nil, nil
	}
	var out Prices
	if err := json.Unmarshal(chosen, &out); err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	return &out, nil
}

// Cost is the price of a request of which cached tokens were read from the cache, written were put there, and fresh were neither, with an
// answer of output tokens.
func (p *Prices) Cost(fresh, cached, written, output int) float64 {
	return (float64(fresh)*p.Input + float64(cached)*p.CacheRead + float64(written)*p.CacheWrite + float64(output)*p.Output) / 1e6
}
