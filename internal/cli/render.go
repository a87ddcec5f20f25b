package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// header is the line above a message: where it stands, who said it, when, with which model.
func (r *run) header(e *chatctx.Entry, mark string) string {
	var b strings.Builder
	switch {
	case e.Queued:
		b.WriteString("queued ")
	case e.Position > 0:
		fmt.Fprintf(&b, "#%d %s ", e.Position, e.Turn)
	}
	b.WriteString(r.paint(roleStyle(e.Role), string(e.Role)))
	b.WriteString(" " + r.paint(yellow, short(e.ID)))
	for _, word := range []string{moment(e.Created), e.Meta.Model} {
		if word != "" {
			b.WriteString("  " + r.paint(dim, clean(word)))
		}
	}
	if words := stateWords(e, mark); len(words) > 0 {
		b.WriteString("  " + r.paint(cyan, "("+strings.Join(words, ", ")+")"))
	}
	for _, t := range e.Tags {
		b.WriteString("  " + r.paint(green, "["+clean(t)+"]"))
	}
	return b.String()
}

// stateWords say what is out of the ordinary about a message.
func stateWords(e *chatctx.Entry, mark string) []string {
	var words []string
	add := func(on bool, word string) {
		if on {
			words = append(words, clean(word))
		}
	}
	add(e.Kind != "", e.Kind)
	add(e.Hidden, "hidden")
	add(e.Unsent, "not sent")
	add(e.Unfinished, "unfinished")
	add(e.CopiedFrom != nil, "copy")
	add(e.Meta.Error != "", "error: "+e.Meta.Error)
	add(mark != "", mark)
	return words
}

func roleStyle(role pool.Role) string {
	switch role {
	case pool.User:
		return blue
	case pool.Assistant:
		return green
	}
	return cyan
}

// body is a message's content as text: words as they are but for control characters, everything else as a line that names
// it. Thinking is shown in full where full is set.
func body(m *chatctx.Message, full bool) string {
	var parts []string
	placed := map[string]bool{}
	for i := range m.Content {
		p := &m.Content[i]
		if p.Type == pool.CallPart {
			placed[p.CallID] = true
			for j := range m.Calls {
				if m.Calls[j].ID == p.CallID {
					parts = append(parts, callLine(m, j))
				}
			}
			continue
		}
		parts = append(parts, partText(p, full))
	}
	for j := range m.Calls {
		if !placed[m.Calls[j].ID] {
			parts = append(parts, callLine(m, j))
		}
	}
	if m.Result != nil {
		parts = append(parts, resultText(m.Result, full))
	}
	return strings.TrimRight(strings.Join(parts, "\n"), "\n")
}

// partText is one part as text.
func partText(p *pool.Part, full bool) string {
	switch p.Type {
	case pool.TextPart:
		return clean(p.Text)
	case pool.ThinkingPart:
		switch {
		case p.Text == "":
			return "[thinking, not readable]"
		case full:
			return "[thinking]\n" + clean(p.Text) + "\n[/thinking]"
		}
		return fmt.Sprintf("[thinking, %s: %s]", count(len([]rune(p.Text)), "character"), cut(oneLine(p.Text), 60))
	case pool.ImagePart, pool.DocumentPart:
		words := []string{p.Type}
		for _, w := range []string{p.Name, p.MediaType, p.URL} {
			if w != "" {
				words = append(words, cut(oneLine(w), 80))
			}
		}
		if p.Size > 0 {
			words = append(words, size(p.Size))
		}
		return "[" + strings.Join(words, " ") + "]"
	}
	return fmt.Sprintf("[%s %s]", clean(p.Type), cut(oneLine(string(p.Raw)), 80))
}

// callLine is a call on one line. It is named MESSAGE:INDEX, counted from 1.
func callLine(m *chatctx.Message, index int) string {
	c := &m.Calls[index]
	state := string(c.Status)
	if c.Execution != "" && c.Execution != pool.NotRun {
		state += ", " + string(c.Execution)
	}
	if c.Reason != "" {
		state += ": " + oneLine(c.Reason)
	}
	return fmt.Sprintf("→ %s(%s)  call %s:%d, %s", clean(c.Tool), cut(oneLine(string(compact(c.Arguments))), 200), short(m.ID), index+1, state)
}

// resultText is a tool's answer.
func resultText(res *pool.Result, full bool) string {
	head := "← "
	if res.IsError {
		head = "← error: "
	}
	switch {
	case len(res.Parts) > 0:
		var parts []string
		for i := range res.Parts {
			parts = append(parts, partText(&res.Parts[i], full))
		}
		return head + strings.Join(parts, "\n")
	case len(res.JSON) > 0:
		return head + clean(string(compact(res.JSON)))
	}
	return head + clean(res.Text)
}

func compact(raw json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return raw
	}
	return b.Bytes()
}

// preview is the beginning of a message on one line.
func preview(m *chatctx.Message) string {
	for i := range m.Content {
		if p := &m.Content[i]; p.Type == pool.TextPart && strings.TrimSpace(p.Text) != "" {
			return oneLine(p.Text)
		}
	}
	return oneLine(body(m, false))
}

// printMessage prints a message as log shows it.
func (r *run) printMessage(e *chatctx.Entry, mark string, full bool) {
	r.printf("%s\n", r.header(e, mark))
	if text := body(e.Message, full); text != "" {
		r.printf("%s\n", text)
	}
	r.printf("\n")
}
