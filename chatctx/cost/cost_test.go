package cost

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/pool"
)

func n(v int64) *int64 { return &v }

func answer(model string, in, out int64) *pool.Message {
	m := pool.NewText(pool.Assistant, "Yes.")
	m.Meta = pool.Metadata{Model: model, InputTokens: n(in), OutputTokens: n(out), Usage: json.RawMessage(`{}`)}
	return m
}

func TestMoney(t *testing.T) {
	for _, c := range []struct {
		m           Money
		want, short string
	}{
		{0, "0.00", "0.00"}, {1, "0.000000001", "0.000000001"}, {12_500_000_000, "12.50", "12.50"}, {-12_345_678_901, "-12.345678901", "-12.35"}, {12_345_678, "0.012345678", "0.0123"},
		{9_999_960_000, "9.99996", "10.00"}, {math.MaxInt64, "9223372036.854775807", "9223372036.85"}, {123_400, "0.0001234", "0.0001"}, {49_000, "0.000049", "0.000049"},
	} {
		if c.m.String() != c.want || c.m != math.MaxInt64 && c.m.Short() != c.short {
			t.Errorf("%d is %s, in short %s; want %s and %s", int64(c.m), c.m, c.m.Short(), c.want, c.short)
		}
	}
	for _, s := range []string{"", "x", "-1", "1e3", ".5", "1.0000000001", "1234567890", "1.2.3", "NaN", "1,5"} {
		if m, err := parseMoney(s); err == nil {
			t.Errorf("%q was taken for %s", s, m)
		}
	}
	if m, err := parseMoney("3.75"); err != nil || m != 3_750_000_000 {
		t.Errorf("3.75 is %d, %v", m, err)
	}
}

// TestPriceOf holds a cost against exact fractions: rounded once, half up.
func TestPriceOf(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		p := Price{Input: Money(r.Int64N(1e11)), CacheRead: Money(r.Int64N(1e11)), CacheWrite: Money(r.Int64N(1e11)), CacheWriteHour: Money(r.Int64N(1e11)), Output: Money(r.Int64N(1e11))}
		u := Usage{Input: r.Int64N(1e7), CacheRead: r.Int64N(1e7), CacheWrite: r.Int64N(1e7), CacheWriteHour: r.Int64N(1e7), Output: r.Int64N(1e7)}
		sum := new(big.Int)
		for _, c := range [][2]int64{{u.Input, int64(p.Input)}, {u.CacheRead, int64(p.CacheRead)}, {u.CacheWrite, int64(p.CacheWrite)}, {u.CacheWriteHour, int64(p.CacheWriteHour)}, {u.Output, int64(p.Output)}} {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(c[0]), big.NewInt(c[1])))
		}
		want := sum.Add(sum, big.NewInt(500_000)).Div(sum, big.NewInt(1_000_000)).Int64()
		if got := p.Of(u); int64(got) != want {
			t.Fatalf("%+v of %+v is %d, want %d", u, p, got, want)
		}
	}
	huge := Price{Input: 999_999_999 * Unit, Output: 999_999_999 * Unit}
	if got := huge.Of(Usage{Input: most, Output: most}); got != math.MaxInt64 {
		t.Errorf("what no sum can hold is %d", got)
	}
	if got := Money(math.MaxInt64).plus(1); got != math.MaxInt64 {
		t.Errorf("one more than all is %d", got)
	}
}

// TestTable holds that each row can be read and is found by its own name, dated too, and that models which are none of the table have no price.
func TestTable(t *testing.T) {
	var none *Prices
	for _, r := range priceTable {
		for _, prices := range append([]string{r.Prices}, strings.Fields(r.Long)...) {
			for _, word := range strings.Fields(prices) {
				if m, err := parseMoney(word); err != nil || m == 0 {
					t.Errorf("%s: %q is %v, %v", r.Model, word, m, err)
				}
			}
		}
		if (r.Over > 0) != (r.Long != "") || r.Source == "" || r.Date == "" {
			t.Errorf("%s lacks something: %+v", r.Model, r)
		}
		at := time.Time{}
		if r.Until != "" {
			at, _ = time.Parse(time.DateOnly, "2025-01-01")
		}
		for _, name := range []string{r.Model, r.Model + "-20260102", "openrouter/x/" + r.Model, strings.ToUpper(r.Model)} {
			if p := none.Of("", name, at); p == nil || *p != *r.price() && p.Long == nil {
				t.Errorf("%s has the price %+v, want %+v", name, p, r.price())
			}
		}
	}
	for _, name := range []string{"", "llama3.3", "gpt-5-mega", "gpt-5.9", "claude-opus-4-9", "claude-opus-9", "gpt-4o-realtime-preview", "gpt-4o-mini-tts", "gemini-9", "gpt", "ft:gpt-4o:me", "gpt-5x", "claude-"} {
		if p := none.Of("", name, time.Time{}); p != nil {
			t.Errorf("%q has a price: %+v", name, p)
		}
	}
	if none.Of("ollama", "gpt-4o", time.Time{}) != nil {
		t.Error("what runs at home has a price")
	}
	for _, c := range []struct {
		name, at string
		input    Money
	}{{"claude-sonnet-5", "2026-08-31", 2 * Unit}, {"claude-sonnet-5", "2026-09-01", 3 * Unit}, {"claude-sonnet-4-20250514", "2026-01-01", 3 * Unit}, {"us.anthropic.claude-opus-4-1-20250805-v1:0", "2026-01-01", 15 * Unit},
		{"gpt-4o-mini-2024-07-18", "2026-01-01", 150_000_000}, {"claude-3.5-sonnet-latest", "2026-01-01", 3 * Unit}, {"gemini-2.5-pro-preview-03-25", "2026-01-01", 1_250_000_000}} {
		at, _ := time.Parse(time.DateOnly, c.at)
		if p := none.Of("", c.name, at); p == nil || p.Input != c.input {
			t.Errorf("%s at %s has the price %+v", c.name, c.at, p)
		}
	}
}

func TestLongRequestsCostMore(t *testing.T) {
	var none *Prices
	p := none.Of("", "claude-sonnet-4-5", time.Time{})
	if got := p.Of(Usage{Input: 100_000, CacheRead: 100_000}); got != 330_000_000 {
		t.Errorf("200,000 tokens cost %s", got)
	}
	if got := p.Of(Usage{Input: 100_000, CacheRead: 100_001}); got != 660_000_600 {
		t.Errorf("200,001 tokens cost %s", got)
	}
}

func TestUsageOf(t *testing.T) {
	m := &pool.Metadata{InputTokens: n(1000), OutputTokens: n(50), CacheRead: n(700), CacheWrite: n(200), ReasoningTokens: n(30), Usage: json.RawMessage(`{"cache_creation":{"ephemeral_1h_input_tokens":150}}`)}
	u, origin := usageOf(m, true)
	if want := (Usage{100, 700, 50, 150, 50, 30}); u != want || origin != Reported || AllInput(u) != 1000 {
		t.Errorf("%+v %s, want %+v", u, origin, want)
	}
	m = &pool.Metadata{InputTokens: n(10), OutputTokens: n(-5), CacheRead: n(math.MaxInt64), CacheWrite: n(math.MaxInt64), ReasoningTokens: n(9), Usage: json.RawMessage(`{"cache_creation":{"ephemeral_1h_input_tokens":-1}}`)}
	if u, _ := usageOf(m, false); u.Input != 0 || u.Output != 0 || u.Reasoning != 0 || u.CacheWriteHour != 0 || u.CacheRead != most {
		t.Errorf("figures that cannot be are %+v", u)
	}
	m = &pool.Metadata{InputTokens: n(23), OutputTokens: n(4), Usage: json.RawMessage(`{"iterations":[{"type":"compaction","input_tokens":180,"output_tokens":35,"cache_read_input_tokens":7,"cache_creation_input_tokens":5,"cache_creation":{"ephemeral_1h_input_tokens":2}},
		{"type":"message","input_tokens":23,"output_tokens":4},{"type":"compaction","input_tokens":-9}]}`)}
	if u, _ := usageOf(m, false); u != (Usage{Input: 203, CacheRead: 7, CacheWrite: 3, CacheWriteHour: 2, Output: 39}) {
		t.Errorf("with a compaction %+v", u)
	}
	if _, origin := usageOf(&pool.Metadata{InputTokens: n(1), OutputTokens: n(1)}, true); origin != Estimated {
		t.Errorf("figures of a file alone are %s", origin)
	}
	if _, origin := usageOf(&pool.Metadata{OutputTokens: n(1)}, false); origin != Missing {
		t.Errorf("half of the figures are %s", origin)
	}
}

func TestReply(t *testing.T) {
	var none *Prices
	if r := none.Reply(answer("gpt-4o", 1_000_000, 100_000)); !r.Known() || r.Cost != 3_500_000_000 || r.Price.Currency != "USD" || r.Price.Source == "" || r.Kind != AnswerKind {
		t.Errorf("%+v", r)
	}
	if r := none.Reply(answer("llama3", 1_000_000, 100_000)); r == nil || r.Known() || r.Cost != 0 {
		t.Errorf("%+v", r)
	}
	if none.Reply(pool.NewText(pool.User, "Hi")) != nil || none.Reply(pool.NewText(pool.Assistant, "Hi")) != nil {
		t.Error("what no model said has a price")
	}
	m := answer("gpt-4o", 10, 1)
	m.Role, m.Kind = pool.User, "summary"
	if r := none.Reply(m); r == nil || r.Kind != "summary" {
		t.Errorf("%+v", r)
	}
}

func TestParse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(file, []byte(`{"big": {"input": 1, "output": 2}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	quotedFile, _ := json.Marshal(file)
	for _, c := range []struct {
		setting, model string
		want           *Price
	}{
		{`{"input":3,"output":15,"cache_read":0.3,"cache_write":3.75}`, "anything", &Price{Input: 3e9, Output: 15e9, CacheRead: 3e8, CacheWrite: 3.75e9, CacheWriteHour: 3.75e9, Currency: "USD"}},
		{`{"gpt-4o":{"input":7,"output":1}}`, "openai/gpt-4o-2024-08-06", &Price{Input: 7e9, Output: 1e9, CacheRead: 7e9, CacheWrite: 7e9, CacheWriteHour: 7e9, Currency: "USD"}},
		{`{"llama*":{"input":0,"output":0,"currency":"EUR"}}`, "llama3.3:70b", &Price{Currency: "EUR"}},
		{`{"llama*":{"input":1,"output":1},"llama3":{"input":0,"output":0}}`, "llama3", &Price{Currency: "USD"}},
		{string(quotedFile), "big", &Price{Input: 1e9, Output: 2e9, CacheRead: 1e9, CacheWrite: 1e9, CacheWriteHour: 1e9, Currency: "USD"}},
		{`{"x":{"input":1,"output":1}}`, "y", nil},
		{`null`, "y", nil},
	} {
		p, err := Parse(json.RawMessage(c.setting))
		if err != nil {
			t.Errorf("%s: %v", c.setting, err)
			continue
		}
		got := p.Of("", c.model, time.Time{})
		if got != nil {
			own := *got
			own.Source = ""
			got = &own
		}
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %s has the price %+v, want %+v", c.setting, c.model, got, c.want)
		}
	}
	for _, bad := range []string{`[]`, `3`, `"prices.json"`, `"/nowhere/at/all"`, `{"x":3}`, `{"x":{"input":1}}`, `{"x":{"input":1,"output":-2}}`, `{"x":{"input":"1","output":2e1}}`, `{"x":{"input":1,"output":1,"in":1}}`,
		`{"x":{"input":1,"output":1,"over":5}}`, `{"x":{"input":1,"output":1,"over":5,"long":{"input":1,"output":1,"over":1,"long":{"input":1,"output":1}}}}`, `{"":{"input":1,"output":1}}`} {
		if _, err := Parse(json.RawMessage(bad)); err == nil {
			t.Errorf("%s was taken for prices", bad)
		}
	}
}
