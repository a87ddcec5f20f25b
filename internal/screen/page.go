package screen

import (
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// mostShown bounds how much of one text is laid out as lines, in bytes.
const mostShown = 256 << 10

// Page is a message as lines of a width: a header, its words as Markdown, and all else that it holds. mark is the one that its context has for it.
func Page(e *chatctx.Entry, mark string, columns int, width Width) []Line {
	lines := Wrap(header(e, mark), columns, width, nil, Line{{"  ", 0}})
	placed := map[string]bool{}
	add := func(more []Line) { lines = append(lines, more...) }
	for i := range e.Content {
		p := &e.Content[i]
		switch p.Type {
		case pool.TextPart:
			add(words(p.Text, columns, width))
		case pool.ThinkingPart:
			add(Wrap([]Span{{PartText(p, true), Dim}}, columns, width, nil, nil))
		case pool.CallPart:
			placed[p.CallID] = true
			for j := range e.Calls {
				if e.Calls[j].ID == p.CallID {
					add(callLines(e.Message, j, columns, width))
				}
			}
		default:
			add(Wrap([]Span{{PartText(p, true), Dim}}, columns, width, nil, nil))
		}
	}
	for j := range e.Calls {
		if !placed[e.Calls[j].ID] {
			add(callLines(e.Message, j, columns, width))
		}
	}
	if e.Result != nil {
		add(resultLines(e.Result, columns, width))
	}
	return lines
}

// words are a text's lines as Markdown, up to a limit.
func words(text string, columns int, width Width) []Line {
	if len(text) <= mostShown {
		return Markdown(text, columns, width)
	}
	lines := Markdown(strings.ToValidUTF8(text[:mostShown], ""), columns, width)
	return append(lines, Line{{fmt.Sprintf("… %s more", Size(int64(len(text)-mostShown))), Dim}})
}

// RoleStyle is how a role is written.
func RoleStyle(role pool.Role) Style {
	switch role {
	case pool.User:
		return Blue
	case pool.Assistant:
		return Green
	}
	return Cyan
}

// header says where a message stands, who said it, when, with which model.
func header(e *chatctx.Entry, mark string) []Span {
	var spans []Span
	if e.Position > 0 {
		spans = append(spans, Span{fmt.Sprintf("#%d %s ", e.Position, e.Turn), 0})
	}
	spans = append(spans, Span{string(e.Role), RoleStyle(e.Role) | Bold}, Span{" " + chatctx.Short(e.ID), Yellow})
	for _, word := range []string{Moment(e.Created), OneLine(e.Meta.Model)} {
		if word != "" {
			spans = append(spans, Span{"  " + word, Dim})
		}
	}
	if e.Meta.InputTokens != nil && e.Meta.OutputTokens != nil {
		spans = append(spans, Span{fmt.Sprintf("  %d in, %d out", *e.Meta.InputTokens, *e.Meta.OutputTokens), Dim})
	}
	if words := StateWords(e, mark); len(words) > 0 {
		spans = append(spans, Span{"  (" + OneLine(strings.Join(words, ", ")) + ")", Cyan})
	}
	for _, t := range e.Tags {
		spans = append(spans, Span{"  [" + OneLine(t) + "]", Green})
	}
	return spans
}

// callLines are a call with all that it would run.
func callLines(m *chatctx.Message, index, columns int, width Width) []Line {
	c := &m.Calls[index]
	lines := Wrap([]Span{{"→ " + OneLine(c.Tool), Bold}, {fmt.Sprintf("  call %s:%d, %s", chatctx.Short(m.ID), index+1, chatctx.CallState(c.Status, c.Execution)), Dim}}, columns, width, nil, Line{{"  ", 0}})
	if c.Reason != "" {
		lines = append(lines, Wrap([]Span{{Clean(c.Reason), Dim}}, columns, width, Line{{"  ", 0}}, Line{{"  ", 0}})...)
	}
	if len(c.Arguments) == 0 {
		return lines
	}
	return append(lines, Hard(limited(Pretty(c.Arguments)), Cyan, columns, width, Line{{"  ", 0}})...)
}

// resultLines are a tool's answer, as it is.
func resultLines(res *pool.Result, columns int, width Width) []Line {
	style := Style(0)
	if res.IsError {
		style = Red
	}
	text := strings.TrimPrefix(ResultText(res, true), "← ")
	if len(res.Parts) == 0 && len(res.JSON) > 0 {
		text = Pretty(res.JSON)
	}
	return Hard(limited(text), style, columns, width, Line{{"← ", Dim}})
}

func limited(s string) string {
	if len(s) <= mostShown {
		return s
	}
	return strings.ToValidUTF8(s[:mostShown], "") + fmt.Sprintf("\n… %s more", Size(int64(len(s)-mostShown)))
}
