package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/window"
)

func init() { lookGroups = append(lookGroups, costLooks) }

func costLooks() map[string]look {
	return map[string]look{
		"cost": as(func(r *run, in *operation.CostQuery, v contract.Cost) { r.printCost(cost.By(in.By), v.Report) }),
	}
}

func (r *run) printCost(by cost.By, report *cost.Report) {
	for _, g := range report.Groups {
		r.row(4, "%s  %s", pad(amounts(&g.Sums), 14), costLine(by, g))
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
