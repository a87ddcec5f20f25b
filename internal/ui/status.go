package ui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/screen"
)

// title returns the first line, which names the conversation.
func (m *model) title() string {
	line := screen.Line{{Text: " chatctx ", Style: screen.Bold}}
	if v := m.conv; v != nil {
		if v.info.Trashed != 0 {
			line = append(line, screen.Span{Text: " in the trash: ", Style: screen.Bold})
		}
		line = append(line, screen.Span{Text: " " + screen.Titled(v.info.Title, v.info.ID) + " ", Style: screen.Bold},
			screen.Span{Text: " " + screen.Count(len(v.tree.Branches), "branch") + ", " + screen.Count(v.tree.Messages(), "message")})
	}
	return m.draw(line, m.w, screen.Reverse)
}

// status returns the status: the active branch, its model, how much of its window is used, the cost, what waits.
func (m *model) status() string {
	v := m.conv
	if v == nil {
		return m.cell(screen.Dim, m.list.summary(), m.w)
	}
	line := screen.Line{{Text: "‹" + screen.OneLine(v.info.Active) + "›", Style: screen.Green | screen.Bold}}
	add := func(style screen.Style, format string, args ...any) {
		line = append(line, screen.Span{Text: "  "}, screen.Span{Text: fmt.Sprintf(format, args...), Style: style})
	}
	for _, s := range m.streams {
		if s.running() {
			add(screen.Cyan|screen.Bold, "%s, x stops", s.doing())
		}
	}
	if v.calls > 0 {
		add(screen.Yellow|screen.Bold, "%s for your decision, a", plural.CallsWait(v.calls))
	}
	if v.answering() && m.streaming(v.info.Active) == nil {
		add(screen.Cyan, "%s answers", screen.OneLine(v.claim.Program))
	}
	if v.queued > 0 {
		add(screen.Yellow, "%d queued", v.queued)
	}
	if model := word(v.settings["model"]); model != "" {
		add(0, "%s", model)
	}
	if v.tokens.Input+v.tokens.Output > 0 {
		add(screen.Dim, "%s", v.reported())
	}
	if v.spent != "" {
		add(screen.Dim, "%s", v.spent)
	}
	return m.draw(line, m.w, 0)
}

// reported returns what the provider counted for the last request and its answer. The next request is not counted at each change, since that needs the whole
// branch.
func (f *facts) reported() string {
	used := f.tokens.Input + f.tokens.Output
	if f.budget == 0 {
		return fmt.Sprintf("reported %d", used)
	}
	return fmt.Sprintf("reported %d%% of %d", used*100/int64(f.budget), f.budget)
}

// summary returns the status of the list.
func (l *list) summary() string {
	more := ""
	if !l.whole {
		more = "+"
	}
	return fmt.Sprintf("%d%s conversations", len(l.infos), more)
}

// word returns a setting that is a text.
func word(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return screen.OneLine(s)
}

// bottom returns the last lines: a note or an error, or else the keys that matter here.
func (m *model) bottom() []string {
	switch {
	case m.note != "" && m.bad:
		return m.wrapped(screen.Red, m.note)
	case m.note != "":
		return m.wrapped(screen.Green, m.note)
	case m.question != nil:
		return []string{m.hints(m.question.hint())}
	case m.over != nil:
		return []string{m.hints(m.over.hint())}
	}
	items := []string{"? keys"}
	for _, k := range m.keys {
		if k.in&m.where() != 0 && k.short != "" {
			items = append(items, k.names[0]+" "+k.short)
		}
	}
	return []string{m.hints(strings.Join(items, "  "))}
}

// hints returns as many whole hints as fit on a line. The last one, which says how to get out, always stays.
func (m *model) hints(text string) string {
	items := strings.Split(text, "  ")
	for len(items) > 1 && m.width()(strings.Join(items, "  ")) > m.w {
		items = slices.Delete(items, max(len(items)-2, 1), max(len(items)-1, 2))
	}
	return m.cell(screen.Dim, strings.Join(items, "  "), m.w)
}

// wrapped returns words as lines of the screen, at most a third of it.
func (m *model) wrapped(style screen.Style, text string) []string {
	if text == "" {
		return nil
	}
	lines := screen.Wrap([]screen.Span{{Text: text}}, max(m.w, 1), m.width(), nil, nil)
	most := max(m.h/3, 1)
	out := make([]string, 0, most)
	for i, l := range lines[:min(len(lines), most)] {
		words := l.Text()
		if i == most-1 && len(lines) > most { // the rest, to be cut
			words = restOf(lines[i:])
		}
		out = append(out, m.cell(style, words, m.w))
	}
	return out
}

func restOf(lines []screen.Line) string {
	words := make([]string, len(lines))
	for i, l := range lines {
		words[i] = l.Text()
	}
	return strings.Join(words, " ")
}
