package tokens

import (
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// leaveOut marks the messages as Left that no provider gets at their place: a result whose call is missing or has a result already, a system message that
// repeats an earlier one, and one that begins the branch if a system prompt is set.
func (c *Counter) leaveOut(d *chatctx.Draft) {
	waiting := map[string]int{} // calls without a result, by id
	told := map[string]bool{d.System: true}
	begins := d.Summary == nil && d.Session.Start <= 1
	for _, m := range d.Messages {
		if m.Unsent || m.Queued || m.State == "excluded" {
			continue
		}
		system := m.Role == pool.System || m.Role == "developer"
		begins = begins && m.Role == pool.System
		m.Left = false
		switch {
		case system && (begins || m.Leads) && strings.TrimSpace(d.System) != "":
			m.Left = true
		case system:
			text := systemText(m.Message)
			m.Left, told[text] = told[text], true
		case m.Role == pool.ToolRole && m.Result != nil:
			id := m.Result.RequestID
			open, called := waiting[id]
			late := m.Kind == pool.Late && called // a late result answers no open call
			if m.Left = open == 0 && !late; !m.Left && !late {
				waiting[id]--
			}
		}
		for i := 0; m.Role == pool.Assistant && i < len(m.Calls); i++ {
			waiting[m.Calls[i].ID]++
		}
	}
}

// systemText returns the words of a system message.
func systemText(m *pool.Message) string {
	var texts []string
	for i := range m.Content {
		if p := &m.Content[i]; p.Type == pool.TextPart && strings.TrimSpace(p.Text) != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}
