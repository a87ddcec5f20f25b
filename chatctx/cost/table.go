package cost

import (
	"slices"
	"strings"
)

// row is a line of the table: a model and its prices for a million tokens in dollars.
type row struct {
	Model  string
	Until  string // the first day on which another line applies; "": none
	Prices string // input, output, cache read, cache write, cache write for an hour; missing ones default as in Parse
	Over   int64  // the input above which Long applies
	Long   string
	Source string
	Date   string // when the source was read
}

func (r *row) price() *Price {
	p := dollars(r.Prices)
	p.Source, p.Date = r.Source, r.Date
	if r.Long != "" {
		p.Over, p.Long = r.Over, dollars(r.Long)
	}
	return p
}

// dollars parses the prices of a row.
func dollars(s string) *Price {
	var n []Money
	for _, word := range strings.Fields(s) {
		m, _ := parseMoney(word) // a test reads every row
		n = append(n, m)
	}
	p := &Price{Input: n[0], Output: n[1], CacheRead: n[0], CacheWrite: n[0], Currency: "USD"}
	if len(n) > 2 {
		p.CacheRead = n[2]
	}
	if len(n) > 3 {
		p.CacheWrite = n[3]
	}
	p.CacheWriteHour = p.CacheWrite
	if len(n) > 4 {
		p.CacheWriteHour = n[4]
	}
	return p
}

// collected is a list of the makers' prices that others maintain; the other sources are the makers' own pages. Anthropic's cache prices are 0.1, 1.25 and 2
// times the input's.
const (
	collected       = "github.com/simonw/llm-prices"
	openaiPrices    = "developers.openai.com/api/docs/pricing"
	anthropicPrices = "platform.claude.com/docs/en/about-claude/pricing"
	geminiPrices    = "ai.google.dev/gemini-api/docs/pricing"
)

// priceTable has the makers' prices for single requests. The longest name that matches a model wins.
var priceTable = []row{
	{"claude-3-haiku", "", "0.25 1.25 0.025 0.3125 0.5", 0, "", anthropicPrices, "2025-04"},
	{"claude-3-opus", "", "15 75 1.5 18.75 30", 0, "", anthropicPrices, "2025-04"},
	{"claude-3-sonnet", "", "3 15 0.3 3.75 6", 0, "", anthropicPrices, "2025-04"},
	{"claude-3-5-haiku", "", "0.8 4 0.08 1 1.6", 0, "", anthropicPrices, "2025-04"},
	{"claude-3-5-sonnet", "", "3 15 0.3 3.75 6", 0, "", anthropicPrices, "2025-04"},
	{"claude-3-7-sonnet", "", "3 15 0.3 3.75 6", 0, "", anthropicPrices, "2025-04"},
	{"claude-opus-4", "", "15 75 1.5 18.75 30", 0, "", anthropicPrices, "2025-08"},
	{"claude-opus-4-1", "", "15 75 1.5 18.75 30", 0, "", anthropicPrices, "2025-08"},
	{"claude-sonnet-4", "", "3 15 0.3 3.75 6", 200_000, "6 22.5 0.6 7.5 12", anthropicPrices, "2025-10"},
	{"claude-sonnet-4-5", "", "3 15 0.3 3.75 6", 200_000, "6 22.5 0.6 7.5 12", anthropicPrices, "2025-10"},
	{"claude-haiku-4-5", "", "1 5 0.1 1.25 2", 0, "", anthropicPrices, "2025-10"},
	{"claude-opus-4-5", "", "5 25 0.5 6.25 10", 0, "", collected, "2026-08"},
	{"claude-opus-4-6", "", "5 25 0.5 6.25 10", 0, "", collected, "2026-08"},
	{"claude-opus-4-7", "", "5 25 0.5 6.25 10", 0, "", collected, "2026-08"},
	{"claude-opus-4-8", "", "5 25 0.5 6.25 10", 0, "", collected, "2026-08"},
	{"claude-sonnet-5", "2026-09-01", "2 10 0.2 2.5 4", 0, "", collected, "2026-08"},
	{"claude-sonnet-5", "", "3 15 0.3 3.75 6", 0, "", collected, "2026-08"},
	{"claude-fable-5", "", "10 50 1 12.5 20", 0, "", collected, "2026-08"},
	{"claude-mythos-5", "", "10 50 1 12.5 20", 0, "", collected, "2026-08"},
	{"gpt-3.5-turbo", "", "0.5 1.5", 0, "", openaiPrices, "2025-04"},
	{"gpt-4", "", "30 60", 0, "", openaiPrices, "2025-04"},
	{"gpt-4-32k", "", "60 120", 0, "", openaiPrices, "2025-04"},
	{"gpt-4-turbo", "", "10 30", 0, "", openaiPrices, "2025-04"},
	{"gpt-4o", "", "2.5 10 1.25", 0, "", openaiPrices, "2025-04"},
	{"gpt-4o-mini", "", "0.15 0.6 0.075", 0, "", openaiPrices, "2025-04"},
	{"chatgpt-4o-latest", "", "5 15", 0, "", openaiPrices, "2025-04"},
	{"gpt-4.1", "", "2 8 0.5", 0, "", openaiPrices, "2025-04"},
	{"gpt-4.1-mini", "", "0.4 1.6 0.1", 0, "", openaiPrices, "2025-04"},
	{"gpt-4.1-nano", "", "0.1 0.4 0.025", 0, "", openaiPrices, "2025-04"},
	{"gpt-4.5", "", "75 150 37.5", 0, "", openaiPrices, "2025-04"},
	{"o1", "", "15 60 7.5", 0, "", openaiPrices, "2025-04"},
	{"o1-preview", "", "15 60 7.5", 0, "", openaiPrices, "2025-04"},
	{"o1-mini", "", "1.1 4.4 0.55", 0, "", openaiPrices, "2025-04"},
	{"o1-pro", "", "150 600", 0, "", openaiPrices, "2025-04"},
	{"o3", "", "2 8 0.5", 0, "", openaiPrices, "2025-08"},
	{"o3-mini", "", "1.1 4.4 0.55", 0, "", openaiPrices, "2025-04"},
	{"o3-pro", "", "20 80", 0, "", openaiPrices, "2025-08"},
	{"o4-mini", "", "1.1 4.4 0.275", 0, "", openaiPrices, "2025-04"},
	{"gpt-5", "", "1.25 10 0.125", 0, "", openaiPrices, "2025-08"},
	{"gpt-5-mini", "", "0.25 2 0.025", 0, "", openaiPrices, "2025-08"},
	{"gpt-5-nano", "", "0.05 0.4 0.005", 0, "", openaiPrices, "2025-08"},
	{"gpt-5-pro", "", "15 120", 0, "", openaiPrices, "2025-10"},
	{"gpt-5.1", "", "1.25 10 0.125", 0, "", collected, "2026-08"},
	{"gpt-5.1-codex", "", "1.25 10 0.125", 0, "", collected, "2026-08"},
	{"gpt-5.1-codex-mini", "", "0.25 2 0.025", 0, "", collected, "2026-08"},
	{"gpt-5.2", "", "1.75 14 0.175", 0, "", collected, "2026-08"},
	{"gpt-5.2-pro", "", "21 168", 0, "", collected, "2026-08"},
	{"gpt-5.4", "", "2.5 15 0.25", 272_000, "5 22.5 0.5", collected, "2026-08"},
	{"gpt-5.4-pro", "", "30 180", 272_000, "60 270", collected, "2026-08"},
	{"gpt-5.4-mini", "", "0.75 4.5 0.075", 0, "", collected, "2026-08"},
	{"gpt-5.4-nano", "", "0.2 1.25 0.02", 0, "", collected, "2026-08"},
	{"gpt-5.5", "", "5 30 0.5", 272_000, "10 45 1", collected, "2026-08"},
	{"gpt-5.5-pro", "", "30 180", 272_000, "60 270", collected, "2026-08"},
	{"gpt-5.6-sol", "", "5 30 0.5", 272_000, "10 45 1", collected, "2026-08"},
	{"gpt-5.6-terra", "2026-07-30", "2.5 15 0.25", 272_000, "5 22.5 0.5", collected, "2026-08"},
	{"gpt-5.6-terra", "", "2 12 0.2", 272_000, "4 18 0.4", collected, "2026-08"},
	{"gpt-5.6-luna", "2026-07-30", "1 6 0.1", 272_000, "2 9 0.2", collected, "2026-08"},
	{"gpt-5.6-luna", "", "0.2 1.2 0.02", 272_000, "0.4 1.8 0.04", collected, "2026-08"},
	{"gemini-1.5-pro", "", "1.25 5", 128_000, "2.5 10", geminiPrices, "2025-04"},
	{"gemini-1.5-flash", "", "0.075 0.3", 128_000, "0.15 0.6", geminiPrices, "2025-04"},
	{"gemini-1.5-flash-8b", "", "0.0375 0.15", 128_000, "0.075 0.3", geminiPrices, "2025-04"},
	{"gemini-2.0-flash", "", "0.1 0.4 0.025", 0, "", geminiPrices, "2025-04"},
	{"gemini-2.0-flash-lite", "", "0.075 0.3", 0, "", geminiPrices, "2025-04"},
	{"gemini-2.5-pro", "", "1.25 10 0.125", 200_000, "2.5 15 0.25", collected, "2026-08"},
	{"gemini-2.5-flash", "", "0.3 2.5 0.03", 0, "", collected, "2026-08"},
	{"gemini-2.5-flash-lite", "", "0.1 0.4 0.01", 0, "", collected, "2026-08"},
	{"gemini-3-pro", "", "2 12 0.2", 200_000, "4 18 0.4", geminiPrices, "2025-12"},
	{"gemini-3.1-pro", "", "2 12 0.2", 200_000, "4 18 0.4", geminiPrices, "2025-12"},
	{"gemini-3-flash", "", "0.5 3 0.05", 0, "", geminiPrices, "2025-12"},
	{"gemini-3.1-flash-lite", "", "0.25 1.5 0.025", 0, "", collected, "2026-08"},
	{"gemini-3.5-flash", "", "1.5 9 0.15", 0, "", collected, "2026-08"},
	{"gemini-3.5-flash-lite", "", "0.3 2.5 0.03", 0, "", collected, "2026-08"},
	{"gemini-3.6-flash", "", "1.5 7.5 0.15", 0, "", collected, "2026-08"},
	{"deepseek-v4-flash", "", "0.14 0.28 0.028", 0, "", collected, "2026-08"},
	{"deepseek-v4-pro", "", "1.74 3.48 0.145", 0, "", collected, "2026-08"},
}

// Models lists the models of the table, each once.
func Models() []string {
	var names []string
	for i := range priceTable {
		if !slices.Contains(names, priceTable[i].Model) {
			names = append(names, priceTable[i].Model)
		}
	}
	return names
}
