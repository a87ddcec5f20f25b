package ui

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/internal/screen"
)

// title is the first line: which conversation this is.
func (m *model) title() string {
	line := screen.Line{{Text: " chatctx ", Style: screen.Bold}}
	if v := m.conv; v != nil {
		line = append(line, screen.Span{Text: " " + screen.Titled(v.info.Title, v.info.ID) + " ", Style: screen.Bold},
			screen.Span{Text: " " + screen.Count(len(v.tree.Branches), "branch") + ", " + screen.Count(v.tree.Messages(), "message")})
	}
	return m.draw(line, m.w, screen.Reverse)
}

// status is where the person is: the active branch, its model, how much of its window is used, what was spent, what waits.
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
		add(screen.Yellow|screen.Bold, "%s for a word of yours, a", waits(v.calls))
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

// reported is what the provider counted for the last request and its answer. What the next one takes is not reckoned at each change: it wants the whole branch.
func (f *facts) reported() string {
	used := f.tokens.Input + f.tokens.Output
	if f.budget == 0 {
		return fmt.Sprintf("reported %d", used)
	}
	return fmt.Sprintf("reported %d%% of %d", used*100/int64(f.budget), f.budget)
}

func waits(n int) string {
	if n == 1 {
		return "1 call waits"
	}
	return fmt.Sprintf("%d calls wait", n)
}

// summary is the status of the list.
func (l *list) summary() string {
	more := ""
	if !l.whole {
		more = "+"
	}
	return fmt.Sprintf("%d%s conversations", len(l.infos), more)
}

// word is a setting that is a word.
func word(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return screen.OneLine(s)
}

// hint is the last line: what was done or went wrong, else the keys that matter here.
func (m *model) hint() string {
	switch {
	case m.note != "" && m.bad:
		return m.cell(screen.Red, m.note, m.w)
	case m.note != "":
		return m.cell(screen.Green, m.note, m.w)
	case m.question != nil:
		return m.cell(screen.Dim, "enter: done  esc: not", m.w)
	case m.over != nil:
		return m.cell(screen.Dim, m.over.hint(), m.w)
	}
	var b strings.Builder
	b.WriteString("? keys  ")
	for _, k := range m.keys {
		if k.in&m.where() != 0 && k.short != "" {
			b.WriteString(k.names[0] + " " + k.short + "  ")
		}
	}
	return m.cell(screen.Dim, b.String(), m.w)
}
