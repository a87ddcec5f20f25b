package window

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/tokens"
	"github.com/chatctx/chatctx/pool"
)

// Stands says what a part of a summary stands for.
type Stands struct {
	From   int    `json:"from,omitempty"` // positions; 0 if the summary came from elsewhere
	To     int    `json:"to,omitempty"`
	By     string `json:"by,omitempty"`     // text, model or digest
	Merged int    `json:"merged,omitempty"` // the number of earlier summaries that it includes
	Cut    bool   `json:"cut,omitempty"`    // it was shortened for lack of room
}

// String returns it in words.
func (s Stands) String() string {
	text := "an earlier summary"
	if s.To > 0 {
		text = fmt.Sprintf("the summary of the messages %d to %d", s.From, s.To)
	}
	if s.Merged > 0 {
		text += fmt.Sprintf(", with %d earlier summaries in it", s.Merged)
	}
	if s.Cut {
		text += ", shortened for want of room"
	}
	return text
}

// part is a part of a summary.
type part struct {
	Stands
	text string // with its head line
}

// summaryOf is the key under which a summary message says what its parts stand for.
const summaryOf = "summary_of"

// SummaryParts returns what each part of a summary message stands for; none if m is nil.
func SummaryParts(m *pool.Message) []Stands {
	if m == nil {
		return nil
	}
	var list []Stands
	_ = json.Unmarshal(m.AppData[summaryOf], &list) // a summary from elsewhere does not say
	out := make([]Stands, len(m.Content))
	copy(out, list)
	return out
}

// partsOf returns the parts of the summary with which a draft begins.
func partsOf(m *chatctx.DraftMessage) []part {
	if m == nil {
		return nil
	}
	stands := SummaryParts(m.Message)
	var out []part
	for i := range m.Content {
		if text := m.Content[i].Text; strings.TrimSpace(text) != "" {
			out = append(out, part{stands[i], text})
		}
	}
	return out
}

// size returns the tokens of parts.
func size(c *tokens.Counter, parts []part) int {
	n := 0
	for i := range parts {
		n += c.Text(parts[i].text)
	}
	return n
}

// summary is one in the making: earlier parts, and the new one last.
type summary struct {
	parts  []part
	note   string
	answer *Answer // the model's, nil for none
}

func (s *summary) last() *part { return &s.parts[len(s.parts)-1] }

func (s *summary) text() string {
	if s.compaction() {
		return ""
	}
	return withoutHead(s.last().text)
}

func (s *summary) by() string {
	if s.compaction() {
		return "provider"
	}
	return s.last().By
}

// compaction reports whether a provider made it.
func (s *summary) compaction() bool { return s.answer != nil && s.answer.parts != nil }

func (s *summary) stands() []Stands {
	out := make([]Stands, len(s.parts))
	for i := range s.parts {
		out[i] = s.parts[i].Stands
	}
	return out
}

// message returns the message of the summary, with a text part for each part. It has the id of what records the model's answer, so that storing it ends the question.
func (s *summary) message() *pool.Message {
	m := &pool.Message{ID: pool.NewID(), Role: pool.User, Kind: "summary"}
	if s.answer != nil {
		m.ID, m.Meta = s.answer.Paid.ID, s.answer.Paid.Meta
	}
	if s.compaction() {
		m.Role, m.Content = pool.Assistant, s.answer.parts
		return m
	}
	for i := range s.parts {
		m.Content = append(m.Content, pool.Part{Type: pool.TextPart, Text: s.parts[i].text})
	}
	stands, _ := json.Marshal(s.stands()) // numbers and words always encode
	m.AppData = map[string]json.RawMessage{summaryOf: stands}
	return m
}

// newPart returns the part with a text for the messages at the positions from to to.
func newPart(from, to int, by, text string) part {
	return part{Stands{From: from, To: to, By: by}, fmt.Sprintf("[SUMMARY of the messages %d to %d of this conversation]\n", from, to) + text}
}

// SummaryText returns the newest part of a summary message, without the earlier summaries before it.
func SummaryText(m *pool.Message) string {
	if m == nil || len(m.Content) == 0 {
		return ""
	}
	return withoutHead(m.Content[len(m.Content)-1].Text)
}

func withoutHead(text string) string {
	if strings.HasPrefix(text, "[SUMMARY of ") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text
}

// shortened makes parts fit room tokens together if no model can merge them: each keeps its beginning. Short parts leave their rest to the long ones, which
// share it equally. What somebody wrote stays whole if it takes no more than half of the room.
func shortened(c *tokens.Counter, parts []part, room int) []part {
	if size(c, parts) <= room {
		return parts
	}
	written := 0
	for i := range parts {
		if parts[i].By == "text" {
			written += c.Text(parts[i].text)
		}
	}
	whole := func(p *part) bool { return p.By == "text" && written <= room/2 }
	n := 0 // parts that may be cut
	for i := range parts {
		if whole(&parts[i]) {
			room -= c.Text(parts[i].text)
		} else {
			n++
		}
	}
	share, over, left := max(room/max(n, 1), 1), 0, room
	for i := range parts {
		if size := c.Text(parts[i].text); whole(&parts[i]) {
			continue
		} else if size <= share {
			left -= size
		} else {
			over++
		}
	}
	if over > 0 {
		share = max(left/over, 1)
	}
	out := make([]part, len(parts))
	for i, p := range parts {
		if !whole(&p) && c.Text(p.text) > share {
			p.text, p.Cut = beginning(c, p.text, share), true
		}
		out[i] = p
	}
	return out
}

// beginning returns as much of a text as fits room tokens, cut at a blank, with an ellipsis.
func beginning(c *tokens.Counter, text string, room int) string {
	low, high := 0, len(text)
	for low < high {
		mid := (low + high + 1) / 2
		if c.Text(text[:runeStart(text, mid)]) < room {
			low = mid
		} else {
			high = mid - 1
		}
	}
	text = text[:runeStart(text, low)]
	if at := strings.LastIndexByte(text, ' '); at > len(text)/2 {
		text = text[:at]
	}
	return text + "…"
}

// setData keeps a value in a session under a name.
func setData(s *branch.Session, name string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		return // numbers and texts always encode
	}
	data := map[string]json.RawMessage{name: raw}
	for k, v := range s.Data {
		if k != name {
			data[k] = v
		}
	}
	s.Data = data
}
