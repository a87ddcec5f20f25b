package contract

import (
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/pool"
)

// Sums are sums with the amounts as decimal texts too, and with the whole input as messages have it. The integers stay in the JSON, because a reader may take
// the texts for floats.
type Sums struct {
	cost.Sums
	Whole   int64             `json:"input_tokens"` // cached or not
	Amounts map[string]string `json:"cost"`
}

func sumsOf(s cost.Sums) Sums {
	out := Sums{s, cost.AllInput(s.Usage), map[string]string{}}
	if out.Cost == nil {
		out.Cost = map[string]cost.Money{}
	}
	for currency, m := range s.Cost {
		out.Amounts[currency] = m.String()
	}
	return out
}

// CostGroup is the cost of a group of replies.
type CostGroup struct {
	Context  *chatctx.ID `json:"context,omitempty"`
	Title    string      `json:"title,omitempty"`
	Trashed  bool        `json:"trashed,omitempty"`
	Branch   *string     `json:"branch,omitempty"`
	Removed  bool        `json:"removed,omitempty"`
	Provider *string     `json:"provider,omitempty"`
	Model    string      `json:"model,omitempty"`
	Day      *string     `json:"day,omitempty"` // "" if the time is unknown
	Kind     string      `json:"kind,omitempty"`
	Sums
}

// Cost is the cost of replies.
type Cost struct {
	By    string     `json:"by,omitempty"`
	Since *time.Time `json:"since,omitempty"`
	Sums
	Kinds    []CostGroup `json:"kinds"`
	Groups   []CostGroup `json:"groups,omitempty"`
	Unpriced []CostGroup `json:"unpriced_models"`
	Damaged  int         `json:"damaged,omitempty"`

	Report *cost.Report `json:"-"`
}

func costGroups(by cost.By, list []*cost.Group) []CostGroup {
	out := []CostGroup{}
	for _, g := range list {
		j := CostGroup{Context: ID(g.Context), Title: g.Title, Trashed: g.Trashed, Removed: g.Removed, Model: g.Model, Kind: g.Kind, Sums: sumsOf(g.Sums)}
		switch by {
		case cost.ByBranch:
			j.Branch = &g.Branch
		case cost.ByModel:
			j.Provider = &g.Provider
		case cost.ByDay:
			j.Day = &g.Day
		}
		out = append(out, j)
	}
	return out
}

// CostOf returns the JSON of a report.
func CostOf(q *cost.Query, report *cost.Report) Cost {
	v := Cost{By: string(q.By), Sums: sumsOf(report.Sums), Kinds: costGroups(cost.ByKind, report.Kinds),
		Groups: costGroups(q.By, report.Groups), Unpriced: costGroups(cost.ByModel, report.Unpriced), Damaged: report.Damaged, Report: report}
	if !q.Since.IsZero() {
		v.Since = Time(pool.TimeOf(q.Since))
	}
	return v
}
