package cost

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/internal/tokens"
)

// Price has prices for a million tokens.
type Price struct {
	Input, CacheRead, CacheWrite, CacheWriteHour, Output Money
	// Over is the input in tokens above which the whole request has the prices Long; 0 means that there are none.
	Over     int64
	Long     *Price
	Currency string
	Source   string // where the price was found
	Date     string // when it was read there
}

// Of returns the cost of a usage, rounded once.
func (p *Price) Of(u Usage) Money {
	if p.Long != nil && AllInput(u) > p.Over {
		p = p.Long
	}
	var sum perMillion
	sum.add(u.Input, p.Input)
	sum.add(u.CacheRead, p.CacheRead)
	sum.add(u.CacheWrite, p.CacheWrite)
	sum.add(u.CacheWriteHour, p.CacheWriteHour)
	sum.add(u.Output, p.Output)
	return sum.money()
}

// Prices has the prices of models: those of a setting, before those of priceTable. The zero value and nil have only the table.
type Prices struct {
	own map[string]*Price // by a model's name, or by the beginning of names followed by *
}

// Of returns the price of a model at a time, zero meaning now; nil if it is unknown. The table applies if the model's maker answers, or a host at the
// maker's prices; a model that ollama runs is not in it.
func (p *Prices) Of(provider, model string, at time.Time) *Price {
	base := tokens.ForModel(model).Base
	if own := p.ownOf(base); own != nil {
		return own
	}
	if provider == "ollama" || base == "" {
		return nil
	}
	day := "9999"
	if !at.IsZero() {
		day = at.UTC().Format(time.DateOnly)
	}
	var best *row
	for i := range priceTable {
		r := &priceTable[i]
		if named(base, r.Model) && (r.Until == "" || day < r.Until) && (best == nil || len(r.Model) > len(best.Model) || len(r.Model) == len(best.Model) && r.Until != "") {
			best = r
		}
	}
	if best == nil {
		return nil
	}
	return best.price()
}

func (p *Prices) ownOf(base string) *Price {
	if p == nil {
		return nil
	}
	var found *Price
	longest := -1
	for name, price := range p.own {
		start, open := strings.CutSuffix(name, "*")
		length := 2 * len(start)
		if !open {
			length++ // a name precedes one of the same length with a *
		}
		if fits := !open && named(base, name) || open && strings.HasPrefix(base, start); fits && length > longest {
			longest, found = length, price
		}
	}
	return found
}

// named reports whether a model has this name, or is a dated or otherwise marked edition of it. gpt-5-mini is no edition of gpt-5.
func named(base, name string) bool {
	rest, ok := strings.CutPrefix(base, name)
	if !ok || rest == "" {
		return ok
	}
	if !strings.ContainsRune("-@:", rune(rest[0])) {
		return false
	}
	version := false
	for _, w := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune("-@:", r) }) {
		number := strings.Trim(w, "0123456789") == ""
		isVersion := len(w) > 1 && w[0] == 'v' && strings.Trim(w[1:], "0123456789") == ""
		if !(number && (len(w) > 1 || version) || isVersion || w == "latest" || w == "preview") {
			return false
		}
		version = isVersion
	}
	return true
}

// Parse parses the setting prices: an object from models' names to prices for a million tokens, such as
//
//	{"gpt-4o": {"input": 2.5, "output": 10, "cache_read": 1.25}, "llama*": {"input": 0, "output": 0, "currency": "EUR"}}
//
// or such prices alone, for every model, or the path of a file with one of both. A name also stands for its dated editions, and with a * for all names that
// begin with it; the longest match wins. cache_read and cache_write default to input, cache_write_1h to cache_write. over and long give the prices of
// requests with more input tokens than over. nil and null give the table alone.
func Parse(setting json.RawMessage) (*Prices, error) {
	if len(setting) == 0 || string(setting) == "null" {
		return nil, nil
	}
	source := "the setting prices"
	var path string
	if json.Unmarshal(setting, &path) == nil {
		var err error
		if setting, err = readFile(path); err != nil {
			return nil, fmt.Errorf("prices: %w", err)
		}
		source = filepath.Base(path)
	}
	var byName map[string]json.RawMessage
	if err := json.Unmarshal(setting, &byName); err != nil {
		return nil, fmt.Errorf("prices must be an object like {\"gpt-4o\": {\"input\": 2.5, \"output\": 10, \"cache_read\": 1.25}}, or a file with one: %w", err)
	}
	if _, one := byName["input"]; one {
		byName = map[string]json.RawMessage{"*": setting}
	}
	p := &Prices{own: map[string]*Price{}}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		price, err := parsePrice(byName[name], "USD")
		if err != nil {
			return nil, fmt.Errorf("prices of %q: %w", name, err)
		}
		price.Source = source
		key := tokens.ForModel(name).Base
		if key == "" {
			return nil, fmt.Errorf("prices: a model has no name")
		}
		p.own[key] = price
	}
	return p, nil
}

// largest is the size of the largest file of prices that is read, in bytes.
const largest = 1 << 20

func readFile(path string) (json.RawMessage, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%q is not an object; if it is a file, give its whole path", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > largest {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", path, largest)
	}
	return os.ReadFile(path)
}

// priceJSON is a price as the setting has it.
type priceJSON struct {
	Input          *json.Number    `json:"input"`
	Output         *json.Number    `json:"output"`
	CacheRead      *json.Number    `json:"cache_read"`
	CacheWrite     *json.Number    `json:"cache_write"`
	CacheWriteHour *json.Number    `json:"cache_write_1h"`
	Currency       string          `json:"currency"`
	Over           int64           `json:"over"`
	Long           json.RawMessage `json:"long"`
}

func parsePrice(raw json.RawMessage, currency string) (*Price, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	d.DisallowUnknownFields()
	var j priceJSON
	if err := d.Decode(&j); err != nil {
		return nil, err
	}
	if j.Input == nil || j.Output == nil {
		return nil, fmt.Errorf("input or output is missing: give both")
	}
	p := &Price{Currency: currency, Over: j.Over}
	if j.Currency != "" {
		p.Currency = j.Currency
	}
	var first error
	read := func(n *json.Number, otherwise Money) Money {
		if n == nil {
			return otherwise
		}
		m, err := parseMoney(n.String())
		if err != nil && first == nil {
			first = err
		}
		return m
	}
	p.Input, p.Output = read(j.Input, 0), read(j.Output, 0)
	p.CacheRead, p.CacheWrite = read(j.CacheRead, p.Input), read(j.CacheWrite, p.Input)
	p.CacheWriteHour = read(j.CacheWriteHour, p.CacheWrite)
	if first != nil {
		return nil, first
	}
	if (j.Over > 0) != (len(j.Long) > 0) || j.Over < 0 {
		return nil, fmt.Errorf("over (a number of tokens) and long (the prices above it) go together: give both")
	}
	if j.Long != nil {
		var err error
		if p.Long, err = parsePrice(j.Long, p.Currency); err != nil {
			return nil, fmt.Errorf("long: %w", err)
		}
		if p.Long.Long != nil {
			return nil, fmt.Errorf("long cannot contain another long")
		}
	}
	return p, nil
}
