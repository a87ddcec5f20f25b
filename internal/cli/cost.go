package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

func costCommand() *command {
	sums := "replies, cost{CURRENCY: amount}, cost_nano{CURRENCY: n}, input_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, estimated, without_usage, unpriced"
	return &command{name: "cost", does: "what the replies in the store cost", scope: onStore, run: in(doCost), paged: true,
		more: "Each reply counts once, by the tokens that its provider reported: not again if it was copied, or imported a second time. Replies in the trash, on removed branches or rewound away count; those that gc or purge removed do not. " +
			"Prices are those of a table with source and date; the setting prices of the store (--default), or CHATCTX_PRICES, wins: an object, or a file with one. They are list prices of single requests, without the costs of a plan, a batch or a provider's own tool. Replies of models without a price are listed, with their tokens, and are in no sum. Figures that the program of an imported file gave, not a provider, are called estimated.",
		json: sums + ", by, since, kinds[{kind, …}], groups[{context, title, trashed, branch, removed | provider, model | day | kind, …}], unpriced_models[{provider, model, …}], damaged; … are the sums again, and input_tokens is the whole input, cached or not",
		example: `chatctx cost
chatctx cost --by model --since 30d
chatctx config --default 'prices={"llama3.3": {"input": 0, "output": 0}}'`}
}

type costIn struct {
	By    cost.By `flag:"by" doc:"a line for each {CONTEXT | BRANCH | MODEL | DAY | KIND}; days are those of this machine"`
	Since instant `flag:"since" doc:"only what came since {WHEN}: 2025-01-31, 2025-01-31T10:00:00Z, 12h, 7d"`
}

func doCost(r *run, in *costIn) error {
	q := cost.Query{By: in.By}
	if q.By != cost.ByNothing && !slices.Contains(cost.Grouping(), q.By) {
		return &usageError{fmt.Sprintf("--by %q: there are %s", in.By, strings.Join(groupings(), ", ")), "chatctx cost --by model"}
	}
	if in.Since != 0 {
		q.Since = pool.Time(in.Since).Time()
	}
	st, err := r.reader()
	if err != nil {
		return err
	}
	if q.Prices, err = r.storePrices(st); err != nil {
		return err
	}
	report, err := cost.Spent(r.ctx, st, q)
	if err != nil {
		return err
	}
	return r.emit(contract.CostOf(&q, report), func() { r.printCost(&q, report) })
}

// groupings are the words of --by.
func groupings() []string {
	words := make([]string, len(cost.Grouping()))
	for i, by := range cost.Grouping() {
		words[i] = string(by)
	}
	return words
}

// storePrices returns the prices of the store's settings, or of the environment.
func (r *run) storePrices(st *chatctx.Store) (*cost.Prices, error) {
	own, err := st.Settings(r.ctx)
	if err != nil {
		return nil, err
	}
	p, err := cost.Parse(settings.WithEnv(own, os.Getenv)["prices"])
	if err != nil {
		return nil, fmt.Errorf("%w %w", settings.ErrSetting, err)
	}
	return p, nil
}

func (r *run) printCost(q *cost.Query, report *cost.Report) {
	for _, g := range report.Groups {
		r.row(4, "%s  %s", pad(amounts(&g.Sums), 14), costLine(q.By, g))
	}
	if len(report.Groups) > 0 {
		r.printf("\n")
	}
	total := " for "
	if amounts(&report.Sums) == costUnknown {
		total = ": "
	}
	r.row(4, "%s", amounts(&report.Sums)+total+spentOn(&report.Sums))
	if len(report.Kinds) > 1 {
		for _, g := range report.Kinds {
			r.row(4, "  %s %s, %s", pad(g.Kind, 8), amounts(&g.Sums), count(g.Replies, "time"))
		}
	}
	for _, g := range report.Unpriced {
		r.note("no price for %s: %s", modelName(g), spentOn(&g.Sums))
	}
	if len(report.Unpriced) > 0 {
		example, _ := json.Marshal(map[string]any{report.Unpriced[0].Model: map[string]int{"input": 0, "output": 0}}) // texts and numbers always encode
		r.note("set what a million tokens cost: chatctx config --default prices=%s", quote(string(example)))
	}
	if n := report.WithoutUsage; n > 0 {
		r.note("%s without figures of what they took", count(n, "reply"))
	}
	if n := report.Estimated; n > 0 {
		r.note("%s of imported files: the figures are their program's, not a provider's", count(n, "reply"))
	}
	if n := report.Damaged; n > 0 {
		r.note("%s could not be read: chatctx check", count(n, "message"))
	}
}

// costUnknown stands for the cost of replies none of which has a price.
const costUnknown = "cost unknown"

// amounts returns the sums by currency.
func amounts(s *cost.Sums) string {
	var out []string
	for _, currency := range slices.Sorted(maps.Keys(s.Cost)) {
		out = append(out, s.Cost[currency].Short()+" "+clean(currency))
	}
	if len(out) == 0 {
		if s.Unpriced+s.WithoutUsage > 0 {
			return costUnknown
		}
		return "0.00"
	}
	return strings.Join(out, " + ")
}

// spentOn says what replies took.
func spentOn(s *cost.Sums) string {
	in := cost.AllInput(s.Usage)
	text := fmt.Sprintf("%s, %s tokens in", count(s.Replies, "reply"), window.Short(int(in)))
	if s.CacheRead > 0 {
		text += fmt.Sprintf(" (%d %% from the cache)", (200*s.CacheRead+in)/(2*in))
	}
	text += fmt.Sprintf(", %s out", window.Short(int(s.Output)))
	if s.Reasoning > 0 {
		text += fmt.Sprintf(" (%s of it reasoning)", window.Short(int(s.Reasoning)))
	}
	return text
}

func modelName(g *cost.Group) string {
	if g.Provider == "" {
		return clean(g.Model)
	}
	return clean(g.Model + " (" + g.Provider + ")")
}

// costLine returns a group's line after its amount.
func costLine(by cost.By, g *cost.Group) string {
	name := ""
	switch by {
	case cost.ByContext, cost.ByBranch:
		name = titled(g.Title, g.Context)
		if by == cost.ByBranch {
			name += " " + cmp.Or(clean(g.Branch), "(a branch that is gone)")
		}
		if g.Removed {
			name += " (removed)"
		}
		if g.Trashed {
			name += " (in the trash)"
		}
	case cost.ByModel:
		name = modelName(g)
	case cost.ByDay:
		name = cmp.Or(g.Day, "(of unknown time)")
	default:
		name = g.Kind
	}
	return name + ": " + spentOn(&g.Sums)
}
