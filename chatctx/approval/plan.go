package approval

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// OlderNote says what an Event with Older means.
const OlderNote = "was approved before approvals held what a tool runs: it runs with the tool as it is now"

// Plan is what a call runs: with the tool as it is now or, once the call was begun here, as it was then.
type Plan struct {
	Runs        *record.Runs
	Argv        []string      // of a command, with its arguments
	Timeout     time.Duration // 0: the call was begun
	Description string        // of the tool as it is now
	Why         error         // why it would not run
}

// Plan returns what the Executor runs for a call of its context; nil if the store has no tool for it, or the program itself runs it.
func (e *Executor) Plan(ctx context.Context, c *record.Call) (*Plan, error) {
	tools, err := e.tools(ctx, c.Branch)
	if err != nil {
		return nil, err
	}
	t := tools[c.Tool]
	if e.Functions[c.Tool] != nil {
		t = nil
	}
	var p *Plan
	switch begun := c.Execution != pool.NotRun && c.Execution != ""; {
	case begun:
		if r := ranWith(c); r != nil {
			p = planOf(r, c.RunArguments())
		}
	case t != nil && (t.MCP || len(t.Command) > 0):
		p = planOf(record.RunsOf(t, ""), c.RunArguments())
		p.Timeout = e.timeLimit(c.Tool, t)
	}
	if p != nil && t != nil {
		p.Description = t.Description
	}
	return p, nil
}

// ranWith returns what ran a call when it was last begun here, nil where that is not recorded. What a file says of it does not count.
func ranWith(c *record.Call) *record.Runs {
	for _, d := range slices.Backward(c.Decisions) {
		if d.To != record.CallState(pool.Approved, pool.Running) || d.Said {
			continue
		}
		if d.Runs == nil || d.Runs.Same(&record.Runs{}) {
			return nil
		}
		return d.Runs
	}
	return nil
}

func planOf(r *record.Runs, arguments json.RawMessage) *Plan {
	p := &Plan{Runs: r}
	if !r.MCP {
		p.Argv, p.Why = expand(&record.Tool{Command: r.Command, Dashes: r.Dashes}, arguments)
	}
	return p
}

// String returns it for people: the command's words, in quotes where they need some, and its folder, or why it would not run.
func (p *Plan) String() string {
	switch {
	case p.Why != nil:
		return "it will not run: " + p.Why.Error()
	case p.Runs.MCP:
		return "runs: " + p.Runs.String()
	}
	words := slices.Clone(p.Argv)
	for i, word := range words {
		if word == "" || strings.ContainsFunc(word, func(c rune) bool {
			return !strings.ContainsRune("%+,-./:=@_", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c)
		}) {
			words[i] = strconv.Quote(word)
		}
	}
	text := "runs: " + strings.Join(words, " ")
	if p.Runs.Dir != "" {
		text += "   in " + p.Runs.Dir
	}
	return text
}
