package window

import (
	"fmt"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/plural"
	"strconv"
	"strings"
)

// Short formats a number of tokens for people: 950, 12.4k, 157k, 1.2M.
func Short(n int) string {
	switch {
	case n < 1000:
		return strconv.Itoa(n)
	case n < 99_950:
		return strings.TrimSuffix(strconv.FormatFloat(float64(n)/1000, 'f', 1, 64), ".0") + "k"
	case n < 999_500:
		return strconv.Itoa((n+500)/1000) + "k"
	}
	return strings.TrimSuffix(strconv.FormatFloat(float64(n)/1e6, 'f', 1, 64), ".0") + "M"
}

// fromTo says from how many tokens to how many, and the change in percent.
func fromTo(before, after int) string {
	text := Short(before) + " → " + Short(after) + " tokens"
	switch {
	case before > 0 && after <= before:
		text += fmt.Sprintf(" (−%d %%)", (200*(before-after)+before)/(2*before))
	case before > 0:
		text += fmt.Sprintf(" (+%d %%)", (200*(after-before)+before)/(2*before))
	}
	return text
}

// ofBudget formats a size, with its share of the budget if there is one.
func ofBudget(n, budget int) string {
	if budget == 0 {
		return Short(n) + " tokens"
	}
	return fmt.Sprintf("%s of %s tokens (%d %%)", Short(n), Short(budget), (200*n+budget)/(2*budget))
}

// Notice returns what pruning did, in two lines.
func (p *Pruning) Notice(budget int) string {
	return fmt.Sprintf("tool outputs pruned: %s, %d of them\n  the request: %s", fromTo(p.Before, p.After), p.Results, ofBudget(p.RequestAfter, budget))
}

// Notice returns what a compaction did and how the budget is used now.
func (c *Compacted) Notice() string {
	text := fmt.Sprintf("compacted: %s, %s in %s", fromTo(c.Before, c.After), plural.Count(c.Messages, "message"), c.Origin())
	if c.Note != "" {
		text += "\n  " + c.Note
	}
	for i, p := range c.Parts {
		if i < len(c.Parts)-1 || p.Merged > 0 {
			text += "\n  " + p.String()
		}
	}
	return text + "\n  " + c.sizes()
}

// Origin says in words who made the summary.
func (c *Compacted) Origin() string {
	if c.By == "provider" {
		return "the provider's own compaction"
	}
	return "a summary by " + c.By
}

// sizes names the parts of the request that there are, with their tokens.
func (c *Compacted) sizes() string {
	var parts []string
	add := func(name string, size int) {
		if size > 0 {
			parts = append(parts, name+" "+Short(size))
		}
	}
	add("system", c.System)
	add("summary", c.SummarySize)
	add("kept", c.Kept)
	if c.Calls > 0 && c.Kept > 0 {
		parts[len(parts)-1] += " (calls " + Short(c.Calls) + ")"
	}
	add("tools", c.Tools)
	return strings.Join(parts, ", ")
}

// Notices returns what a pipeline's steps did to make a draft fit, one line for each. It is empty if the steps only repeated what earlier requests did.
func Notices(r *enhancer.Report) []string {
	var out []string
	for _, s := range r.Steps {
		if s.After < s.Before && s.Name != "recall" && s.Name != "exclude" {
			out = append(out, fmt.Sprintf("%s: %s, %s", s.Name, fromTo(s.Before, s.After), plural.Count(len(s.Notes), "message")))
		}
	}
	return out
}
