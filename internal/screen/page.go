package screen

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// mostShown bounds how much of one text is laid out, in bytes.
const mostShown = 256 << 10

// Page returns a message as lines of a width: a header, its words as Markdown, and everything else in it, up to a limit. mark is its mark in the context.
func Page(e *chatctx.Entry, mark string, columns int, width Width) []Line {
	return (&page{columns: columns, width: width, full: true, calls: callLines, most: mostShown}).lines(e, mark)
}

// Brief returns a message as a list shows it: the header, its words as Markdown, a line for each call, and the whole result. With full, thinking is included.
func Brief(e *chatctx.Entry, mark string, full bool, columns int, width Width) []Line {
	return (&page{columns: columns, width: width, full: full, calls: callBrief}).lines(e, mark)
}

// page lays out a message.
type page struct {
	columns int
	width   Width
	full    bool
	most    int // bytes of one text, 0 for no limit
	calls   func(m *chatctx.Message, index, columns int, width Width) []Line
}

func (p *page) lines(e *chatctx.Entry, mark string) []Line {
	lines := Wrap(header(e, mark), p.columns, p.width, nil, Line{{"  ", 0}})
	placed := map[string]bool{}
	add := func(more []Line) { lines = append(lines, more...) }
	for i := range e.Content {
		part := &e.Content[i]
		switch part.Type {
		case pool.TextPart:
			add(p.words(e.Role, part.Text))
		case pool.CallPart:
			placed[part.CallID] = true
			for j := range e.Calls {
				if e.Calls[j].ID == part.CallID {
					add(p.calls(e.Message, j, p.columns, p.width))
				}
			}
		default:
			add(Wrap([]Span{{PartText(part, p.full), Dim}}, p.columns, p.width, nil, nil))
		}
	}
	for j := range e.Calls {
		if !placed[e.Calls[j].ID] {
			add(p.calls(e.Message, j, p.columns, p.width))
		}
	}
	if e.Result != nil {
		add(p.result(e.Result))
	}
	return lines
}

// words returns a text's lines as Markdown; a user's text keeps its breaks.
func (p *page) words(role pool.Role, text string) []Line {
	render := Markdown
	if role == pool.User {
		render = Typed
	}
	if p.most == 0 || len(text) <= p.most {
		return render(text, p.columns, p.width)
	}
	lines := render(strings.ToValidUTF8(text[:p.most], ""), p.columns, p.width)
	return append(lines, Line{{fmt.Sprintf("… %s more", Size(int64(len(text)-p.most))), Dim}})
}

// RoleStyle returns the style of a role.
func RoleStyle(role pool.Role) Style {
	switch role {
	case pool.User:
		return Blue
	case pool.Assistant:
		return Green
	}
	return Cyan
}

// header returns the place, role, time and model of a message.
func header(e *chatctx.Entry, mark string) []Span {
	var spans []Span
	if e.Queued {
		spans = append(spans, Span{"queued ", 0})
	} else if e.Position > 0 {
		spans = append(spans, Span{fmt.Sprintf("#%d %s ", e.Position, e.Turn), 0})
	}
	spans = append(spans, Span{string(e.Role), RoleStyle(e.Role) | Bold}, Span{" " + record.Short(e.ID), Yellow})
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

// callLines returns a call with everything that it would run.
func callLines(m *chatctx.Message, index, columns int, width Width) []Line {
	c := &m.Calls[index]
	lines := Wrap([]Span{{"→ " + OneLine(c.Tool), Bold}, {fmt.Sprintf("  call %s:%d, %s", record.Short(m.ID), index+1, callState(c)), Dim}}, columns, width, nil, Line{{"  ", 0}})
	if c.Reason != "" {
		lines = append(lines, Wrap([]Span{{Clean(c.Reason), Dim}}, columns, width, Line{{"  ", 0}}, Line{{"  ", 0}})...)
	}
	add := func(raw json.RawMessage) {
		lines = append(lines, Hard(limited(Pretty(raw)), Cyan, columns, width, Line{{"  ", 0}})...)
	}
	if c.Effective != nil {
		add(c.Effective)
		lines = append(lines, Wrap([]Span{{ChangedBy(c) + "; the model asked for:", Dim}}, columns, width, Line{{"  ", 0}}, Line{{"  ", 0}})...)
	}
	if len(c.Arguments) > 0 {
		add(c.Arguments)
	}
	return lines
}

// callBrief returns a call on one line.
func callBrief(m *chatctx.Message, index, columns int, width Width) []Line {
	return Wrap([]Span{{CallLine(m, index), 0}}, columns, width, nil, Line{{"  ", 0}})
}

// result returns a tool's result, unchanged.
func (p *page) result(res *pool.Result) []Line {
	style := Style(0)
	if res.IsError {
		style = Red
	}
	text := strings.TrimPrefix(ResultText(res, true), "← ")
	if len(res.Parts) == 0 && len(res.JSON) > 0 {
		text = Pretty(res.JSON)
	}
	if p.most > 0 {
		text = limited(text)
	}
	return Hard(text, style, p.columns, p.width, Line{{"← ", Dim}})
}

func limited(s string) string {
	if len(s) <= mostShown {
		return s
	}
	return strings.ToValidUTF8(s[:mostShown], "") + fmt.Sprintf("\n… %s more", Size(int64(len(s)-mostShown)))
}
