package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// StateWords returns what is unusual about a message. mark is its mark in the context.
func StateWords(e *chatctx.Entry, mark string) []string {
	var words []string
	add := func(on bool, word string) {
		if on {
			words = append(words, Clean(word))
		}
	}
	add(e.Kind != "", e.Kind)
	add(e.Hidden, "hidden")
	add(e.Unsent, "not sent")
	add(e.Unfinished, "unfinished")
	if o := pool.OutcomeOf(e.Message); e.Role == pool.Assistant && o != pool.Empty && (!e.Unfinished || o.Refused()) {
		add(o != pool.Answered, o.Words())
	}
	add(e.CopiedFrom != nil, "copy")
	add(e.Meta.Error != "", "error: "+e.Meta.Error)
	add(mark != "", mark)
	return words
}

// Body returns a message's content as text: words unchanged except for control characters, everything else as a line that names it. With full, thinking is
// included.
func Body(m *chatctx.Message, full bool) string {
	var parts []string
	placed := map[string]bool{}
	for i := range m.Content {
		p := &m.Content[i]
		if p.Type == pool.CallPart {
			placed[p.CallID] = true
			for j := range m.Calls {
				if m.Calls[j].ID == p.CallID {
					parts = append(parts, CallLine(m, j))
				}
			}
			continue
		}
		parts = append(parts, PartText(p, full))
	}
	for j := range m.Calls {
		if !placed[m.Calls[j].ID] {
			parts = append(parts, CallLine(m, j))
		}
	}
	if m.Result != nil {
		parts = append(parts, ResultText(m.Result, full))
	}
	return strings.TrimRight(strings.Join(parts, "\n"), "\n")
}

// PartText returns one part as text.
func PartText(p *pool.Part, full bool) string {
	switch p.Type {
	case pool.TextPart:
		return Clean(p.Text)
	case pool.ThinkingPart:
		switch {
		case p.Text == "":
			return "[thinking, not readable]"
		case full:
			return "[thinking]\n" + Clean(p.Text) + "\n[/thinking]"
		}
		return fmt.Sprintf("[thinking, %s: %s]", Count(len([]rune(p.Text)), "character"), Cut(OneLine(p.Text), 60))
	case pool.ImagePart, pool.DocumentPart:
		words := []string{p.Type}
		for _, w := range []string{p.Name, p.MediaType, p.URL} {
			if w != "" {
				words = append(words, Cut(OneLine(w), 80))
			}
		}
		if p.Size > 0 {
			words = append(words, Size(p.Size))
		}
		return "[" + strings.Join(words, " ") + "]"
	}
	return fmt.Sprintf("[%s %s]", Clean(p.Type), Cut(OneLine(string(p.Raw)), 80))
}

// CallLine returns a call on one line. The line names it MESSAGE:INDEX, with an index from 1; the parameter counts from 0.
func CallLine(m *chatctx.Message, index int) string {
	c := &m.Calls[index]
	state := callState(c)
	if c.Reason != "" {
		state += ": " + OneLine(c.Reason)
	}
	arguments := Cut(OneLine(string(Compact(c.Arguments))), 200)
	if c.Effective != nil {
		arguments = Cut(OneLine(string(Compact(c.Effective))), 200)
		state += fmt.Sprintf("; %s, asked for: %s", ChangedBy(c), Cut(OneLine(string(Compact(c.Arguments))), 200))
	}
	return fmt.Sprintf("→ %s(%s)  call %s:%d, %s", Clean(c.Tool), arguments, record.Short(m.ID), index+1, state)
}

// ChangedBy says who put other arguments in place of the model's.
func ChangedBy(c *pool.Call) string { return "changed by " + OneLine(c.ChangedBy.String()) }

// callState returns what was decided about a call and, once it runs, how that went.
func callState(c *pool.Call) string {
	if c.Execution == "" || c.Execution == pool.NotRun {
		return string(c.Status)
	}
	return string(c.Status) + ", " + string(c.Execution)
}

// ResultText returns a tool's result as text.
func ResultText(res *pool.Result, full bool) string {
	head := "← "
	if res.IsError {
		head = "← error: "
	}
	switch {
	case len(res.Parts) > 0:
		var parts []string
		for i := range res.Parts {
			parts = append(parts, PartText(&res.Parts[i], full))
		}
		return head + strings.Join(parts, "\n")
	case len(res.JSON) > 0:
		return head + Clean(string(Compact(res.JSON)))
	}
	return head + Clean(res.Text)
}

// Saying returns who says what on one line: the role, that an answer was refused, and the message's beginning.
func Saying(m *chatctx.Message) []Span {
	line := []Span{{string(m.Role), RoleStyle(m.Role)}}
	if m.Refusal() != "" {
		line = append(line, Span{" (refused)", Red})
	}
	return append(line, Span{": " + Preview(m), 0})
}

// Preview returns the beginning of a message on one line.
func Preview(m *chatctx.Message) string {
	for i := range m.Content {
		if p := &m.Content[i]; p.Type == pool.TextPart && strings.TrimSpace(p.Text) != "" {
			return OneLine(p.Text)
		}
	}
	return OneLine(Body(m, false))
}

// Compact returns JSON without white space; it returns anything else unchanged.
func Compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// Pretty returns indented JSON, with everything visible for a decision about it.
func Pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return Plainly(string(raw))
	}
	return Plainly(b.String())
}

// Scope names a rule's scope in words.
func Scope(rule *record.Rule) string {
	if scope := rule.ScopeWord(); scope != "context" {
		return scope
	}
	return "conversation"
}

// RulingLine returns the rules' decision about a call, and the reason.
func RulingLine(j *record.Ruling) string {
	switch {
	case j.Rule == nil:
		return "ask: no rule decides"
	case j.Untold:
		return fmt.Sprintf("%s: rule %s of the %s denies, but is undecided: %s (%s)", j.Effect, record.Short(j.Rule.ID), Scope(j.Rule), Clean(j.Rule.String()), Clean(j.Why))
	}
	return fmt.Sprintf("%s: by rule %s of the %s: %s (%s)", j.Effect, record.Short(j.Rule.ID), Scope(j.Rule), Clean(j.Rule.String()), Clean(j.Why))
}

// About says what an operation was about: its first words, and the values that it replaced.
func About(o *record.Operation) string {
	var words []string
	if o.About != "" {
		words = append(words, "“"+Clean(o.About)+"”")
	}
	for _, c := range o.Changed {
		switch {
		case c.Of == "tag" && (c.From == "" || c.To == ""): // About says it
		case c.From == "" && c.To == "":
			words = append(words, Clean(c.Of))
		case c.From == "":
			words = append(words, Clean(c.Of+" "+c.To))
		case c.To == "":
			words = append(words, Clean(c.Of+" "+c.From+" removed"))
		default:
			words = append(words, Clean(c.Of+" "+c.From+" → "+c.To))
		}
	}
	return strings.Join(words, "; ")
}
