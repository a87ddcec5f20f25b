// Package compare shows how answers differ: which words changed, and what each answer took. It reads through the front door and never changes a store. The
// command line, the terminal program and the page draw its results.
package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/pool"
)

// Table is a comparison with its texts and figures.
type Table struct {
	Context  chatctx.ID      `json:"context"`
	Ancestor *chatctx.Entry  `json:"ancestor"` // the last message that all share; nil: none
	Columns  []Column        `json:"columns"`
	Turns    []*ComparedTurn `json:"turns"`
}

// Column is one of the compared histories.
type Column struct {
	Ref      record.Ref `json:"ref"`
	Branch   string     `json:"branch"`
	Messages int        `json:"messages"` // of the branch, up to the compared place
}

// ComparedTurn is one turn of each history, with a cell for each column.
type ComparedTurn struct {
	Turn  int    `json:"turn"`
	Cells []Cell `json:"cells"`
}

// Cell is what one history has in a turn. It is empty if the history ended before.
type Cell struct {
	Messages []*chatctx.Entry `json:"messages"`
	Text     string           `json:"text"`
	// Edits lead from the first column's text to this one. There are none in the first column, or if the two texts have little in common.
	Edits   []Edit   `json:"edits,omitempty"`
	Figures *Figures `json:"figures"` // nil if the cell has no assistant's message
}

// alikeEnough is the share of common text from which on changed words are marked.
const alikeEnough = 0.4

// Of compares histories of a context. branchName and refs are as in ChatContext.Compare.
func Of(ctx context.Context, c *chatctx.ChatContext, branchName string, refs ...record.Ref) (*Table, error) {
	found, err := c.Compare(ctx, branchName, refs...)
	if err != nil {
		return nil, err
	}
	set, err := c.Effective(ctx, branchName)
	if err != nil {
		return nil, err
	}
	prices, err := cost.Parse(settings.WithEnv(set, os.Getenv)["prices"])
	if err != nil {
		return nil, err
	}
	t := &Table{Context: c.ID, Ancestor: found.Ancestor, Turns: []*ComparedTurn{}}
	for _, h := range found.Columns {
		t.Columns = append(t.Columns, Column{h.Ref, h.Branch, h.Len})
	}
	for _, turn := range found.Turns {
		row := &ComparedTurn{Turn: turn.Turn}
		for i, entries := range turn.Cells {
			cell := Cell{Messages: append([]*chatctx.Entry{}, entries...), Text: Text(entries), Figures: figuresOf(entries, prices)}
			if i > 0 && len(entries) > 0 && len(turn.Cells[0]) > 0 {
				if edits := Words(row.Cells[0].Text, cell.Text); Alike(edits) >= alikeEnough {
					cell.Edits = edits
				}
			}
			row.Cells = append(row.Cells, cell)
		}
		t.Turns = append(t.Turns, row)
	}
	return t, nil
}

// Marked returns the text of a cell in stretches; those of the kind New are not in the first column's text. With two columns, the first one is marked too:
// its stretches that the second lacks are Gone.
func (t *ComparedTurn) Marked(column int) []Edit {
	cell, edits, leave := t.Cells[column], t.Cells[column].Edits, Gone
	if column == 0 && len(t.Cells) == 2 {
		edits, leave = t.Cells[1].Edits, New
	}
	if edits == nil {
		if cell.Text == "" {
			return nil
		}
		return []Edit{{Same, cell.Text}}
	}
	var out []Edit
	for _, e := range edits {
		if e.Kind != leave {
			out = append(out, e)
		}
	}
	return out
}

// Text returns what messages say as plain text: words as they are, and a line for each call and each result. It leaves out thinking. If several roles
// speak, each message begins with its role.
func Text(entries []*chatctx.Entry) string {
	mixed := false
	for _, e := range entries {
		mixed = mixed || e.Role != entries[0].Role
	}
	var all []string
	for _, e := range entries {
		text := messageText(e.Message)
		if mixed {
			text = string(e.Role) + ": " + text
		}
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "\n\n")
}

func messageText(m *chatctx.Message) string {
	var parts []string
	for i := range m.Content {
		switch p := &m.Content[i]; p.Type {
		case pool.ThinkingPart, pool.CallPart:
		case pool.ImagePart, pool.DocumentPart:
			parts = append(parts, "["+strings.TrimSpace(p.Type+" "+p.Name)+"]")
		default:
			if p.Text != "" {
				parts = append(parts, p.Text)
			}
		}
	}
	for i := range m.Calls {
		c := &m.Calls[i]
		parts = append(parts, fmt.Sprintf("→ %s(%s)", c.Tool, compact(c.Arguments)))
	}
	if r := m.Result; r != nil {
		parts = append(parts, "← "+resultText(r))
	}
	return strings.Join(parts, "\n")
}

func resultText(r *pool.Result) string {
	text := r.Text
	if len(r.JSON) > 0 {
		text = string(compact(r.JSON))
	}
	for i := range r.Parts {
		text = strings.TrimPrefix(text+"\n"+r.Parts[i].Text, "\n")
	}
	if r.IsError {
		return "error: " + text
	}
	return text
}

func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}
