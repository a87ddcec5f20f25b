package adapter

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// builder makes turns from messages, in one pass.
type builder struct {
	*Conversation
	ids   *mapping
	calls map[string][]*Call // by their id in the draft
	told  map[string]bool    // system texts that the request has already
	open  *Turn              // the assistant's turn that still accepts results
	start int                // the index of the first message that is not a leading system text
}

// system collects the system texts: the branch's, or else those of the messages that begin it, and those of system messages from before the session. A repeated
// text is sent once.
func (b *builder) system() {
	d := b.draft
	leading, early := d.System, ""
	b.told[d.System] = true
	lead := func(m *chatctx.DraftMessage) {
		if blank(d.System) {
			leading = join(leading, b.once(m.Message))
		}
	}
	if d.Summary == nil && d.Session.Start <= 1 {
		for ; b.start < len(d.Messages); b.start++ {
			m := d.Messages[b.start]
			if !sent(m) {
				continue
			}
			if m.Role != pool.System {
				break
			}
			lead(m)
		}
	}
	for _, m := range d.Messages {
		switch {
		case !b.early(m) || !sent(m):
		case m.Leads:
			lead(m)
		default:
			early = join(early, b.once(m.Message))
		}
	}
	b.addSystem(leading)
	b.addSystem(early)
	b.addSystem(d.Prompt)
}

// early reports whether a message is a system text from before the session, which comes before the summary.
func (b *builder) early(m *chatctx.DraftMessage) bool {
	return m.Message != nil && m.Role == pool.System && m.Position > 0 && m.Position < b.draft.Session.Start
}

// once returns the text of a system message, "" if that text was sent before.
func (b *builder) once(m *pool.Message) string {
	text := b.texts(m)
	if b.told[text] {
		return ""
	}
	b.told[text] = true
	return text
}

func (b *builder) addSystem(text string) {
	if !blank(text) {
		b.System = append(b.System, text)
	}
}

func join(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return a + "\n\n" + b
}

// texts returns a message's texts that are not blank, for a place that accepts only text.
func (b *builder) texts(m *pool.Message) string {
	text := ""
	for i := range m.Content {
		switch p := &m.Content[i]; {
		case p.Type != pool.TextPart:
			b.Note(m.ID, "%s left out: a system message takes only text", p.Type)
		case !blank(p.Text):
			text = join(text, p.Text)
		}
	}
	return text
}

// summary puts the summary of the previous session at the beginning.
func (b *builder) summary(m *chatctx.DraftMessage) {
	if b.draft.Session.Provider != "" { // the provider made it
		t := &Turn{Role: pool.Assistant, Message: m.ID, Summary: true, From: m.Message}
		for _, p := range b.compaction(m.Message) {
			t.Items = append(t.Items, Item{Raw: &p})
		}
		b.add(t)
		return
	}
	if items := b.items(m.Message); len(items) > 0 {
		b.Turns = append(b.Turns, &Turn{Role: pool.User, Message: m.ID, Items: items, Summary: true, From: m.Message})
	}
}

// compaction returns the parts of a summary that the provider made and can read.
func (b *builder) compaction(m *pool.Message) (parts []pool.Part) {
	for _, p := range m.Content {
		if p.Type == pool.CompactionPart && p.Provider == b.rules.Provider && len(p.Raw) > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

// sent reports whether a message may go to a provider.
func sent(m *chatctx.DraftMessage) bool {
	return m.Message != nil && !m.Unsent && !m.Queued && m.State != "excluded" && m.State != "trimmed"
}

func (b *builder) message(m *chatctx.DraftMessage) {
	if !sent(m) {
		return
	}
	switch m.Role {
	case pool.ToolRole:
		b.result(m.Message)
	case pool.Assistant:
		b.assistant(m.Message)
	case pool.System, "developer":
		if !b.early(m) {
			b.middle(m.Message)
		}
	default:
		b.add(&Turn{Role: pool.User, Message: m.ID, Items: b.items(m.Message), From: m.Message})
	}
}

// add adds a turn, unless it is empty.
func (b *builder) add(t *Turn) {
	if len(t.Items) == 0 {
		b.Note(t.Message, "an empty %s message was left out", t.Role)
		return
	}
	b.open = nil
	if n := len(b.Turns); b.rules.UserBetween && t.Role == pool.Assistant && n > 0 && b.Turns[n-1].Role == pool.Assistant && !b.Turns[n-1].calls() {
		b.Turns = append(b.Turns, textTurn(pool.User, chatctx.ID{}, Continue))
		b.Note(t.Message, "an assistant message follows another; a user message was put in between: %s", Continue)
	}
	b.Turns = append(b.Turns, t)
}

// middle adds a system message that does not begin the branch.
func (b *builder) middle(m *pool.Message) {
	text := b.texts(m)
	switch {
	case text == "":
		b.Note(m.ID, "an empty system message was left out")
	case b.told[text]:
		b.Note(m.ID, "a system message that says what an earlier one says was left out")
	case b.rules.System:
		b.add(textTurn(pool.System, m.ID, text))
	default:
		b.add(textTurn(pool.User, m.ID, systemText(text)))
		b.Note(m.ID, "a system message in the middle is sent as a user message")
	}
	b.told[text] = true
}

// items returns the parts of a user message, or of another one that is sent as one.
func (b *builder) items(m *pool.Message) []Item {
	items := make([]Item, 0, len(m.Content))
	for i := range m.Content {
		switch p := &m.Content[i]; p.Type {
		case pool.TextPart:
			if !blank(p.Text) {
				items = append(items, Item{Text: p.Text})
			}
		case pool.ImagePart, pool.DocumentPart:
			items = append(items, b.mediaItem(m.ID, p))
		case pool.ThinkingPart, pool.CallPart:
			b.Note(m.ID, "%s left out: only an assistant message has one", p.Type)
		default:
			items = append(items, b.unknown(m.ID, p))
		}
	}
	if len(m.Calls) > 0 {
		b.Note(m.ID, "calls left out: only an assistant message has them")
	}
	return items
}

// unknown returns a part of an unknown type: its text if it has one.
func (b *builder) unknown(id chatctx.ID, p *pool.Part) Item {
	if !blank(p.Text) {
		return Item{Text: p.Text}
	}
	text := leftOut(cleanName(p.Type), cleanName(p.Name), "not known here")
	b.Note(id, "%s", text)
	return Item{Text: text}
}

func (b *builder) mediaItem(id chatctx.ID, p *pool.Part) Item {
	m, text := newMedia(b.draft, p, &b.rules.Media)
	switch {
	case m.left != "":
		text = leftOut(m.Kind, m.Name, m.left)
		b.Note(id, "%s", text)
		return Item{Text: text}
	case text != "":
		return Item{Text: text}
	}
	if m.scaled != "" {
		b.Note(chatctx.ID{}, "%s", m.scaled) // the message loses nothing
	}
	return Item{Media: m}
}

// assistant makes a turn from an assistant's message: its parts in order, and the calls at their places among them or after them.
func (b *builder) assistant(m *pool.Message) {
	t := &Turn{Role: pool.Assistant, Message: m.ID, Items: make([]Item, 0, len(m.Content)+len(m.Calls)), From: m}
	placed := make([]bool, len(m.Calls))
	for i := range m.Content {
		switch p := &m.Content[i]; p.Type {
		case pool.CallPart:
			for k := range m.Calls {
				if !placed[k] && m.Calls[k].ID == p.CallID {
					placed[k] = true
					b.call(t, &m.Calls[k])
					break
				}
			}
		default:
			b.said(t, p)
		}
	}
	for k := range m.Calls {
		if !placed[k] {
			b.call(t, &m.Calls[k])
		}
	}
	if len(t.Items) > 0 && !t.speaks() {
		b.Note(m.ID, "an assistant message with nothing but thinking was left out")
		return
	}
	b.add(t)
	if t.calls() {
		b.open = t
	}
}

func (t *Turn) calls() bool {
	return slices.ContainsFunc(t.Items, func(i Item) bool { return i.Call != nil })
}

// speaks reports whether a turn has more than thinking.
func (t *Turn) speaks() bool {
	return slices.ContainsFunc(t.Items, func(i Item) bool { return i.Thinking == nil })
}

// said adds a part of an assistant's message that is not a call.
func (b *builder) said(t *Turn, p *pool.Part) {
	switch p.Type {
	case pool.CompactionPart: // the session that it began sends it
	case pool.TextPart:
		if !blank(p.Text) {
			t.Items = append(t.Items, Item{Text: p.Text, From: p})
		}
	case pool.ThinkingPart:
		why := "the provider takes none back"
		if b.rules.Thinking != nil {
			why = b.rules.Thinking(p, t.From)
		}
		if why != "" {
			b.Note(t.Message, "thinking left out: %s", why)
			return
		}
		t.Items = append(t.Items, Item{Thinking: p})
	case pool.ImagePart, pool.DocumentPart:
		text := leftOut(p.Type, cleanName(p.Name), "an assistant message takes none")
		b.Note(t.Message, "%s", text)
		t.Items = append(t.Items, Item{Text: text})
	default:
		switch {
		case b.rules.Raw != nil && b.rules.Raw(p, t.From):
			t.Items = append(t.Items, Item{Raw: p})
		case !blank(p.Text):
			t.Items = append(t.Items, Item{Text: p.Text})
		default:
			b.Note(t.Message, "%s left out: only the provider that it is from knows it", p.Type)
		}
	}
}

func (b *builder) call(t *Turn, c *pool.Call) {
	args, what := arguments(c.Arguments)
	if what != "" {
		b.Note(t.Message, "call %s: %s", c.ID, what)
	}
	call := &Call{ID: b.ids.next(c.ID), Name: b.names.of(c.Tool), Arguments: args, Call: c, turn: t}
	b.calls[c.ID] = append(b.calls[c.ID], call)
	t.Items = append(t.Items, Item{Call: call})
}

// result puts a result where its call waits for it. A result that comes later, or from another program than the one that ran the call, becomes a text at its
// own place; a result without a call is left out.
func (b *builder) result(m *pool.Message) {
	if m.Result == nil {
		b.Note(m.ID, "a tool message without a result was left out")
		return
	}
	calls := b.calls[m.Result.RequestID]
	if m.Kind == pool.Late && len(calls) > 0 {
		b.late(calls[len(calls)-1], m)
		return
	}
	for _, c := range calls {
		if c.turn == b.open && c.result == nil {
			c.result = b.answerOf(c, m)
			c.turn.Results = append(c.turn.Results, c.result)
			return
		}
	}
	for i := len(calls) - 1; i >= 0; i-- {
		if c := calls[i]; c.result == nil && !c.late {
			c.late = true
			b.late(c, m)
			return
		}
	}
	if len(calls) > 0 {
		b.Note(m.ID, "a second result of call %s was left out", m.Result.RequestID)
		return
	}
	b.Note(m.ID, "a result was left out: its call %q is not on the branch", m.Result.RequestID)
}

// late makes a text from a result whose place was taken by NoResult, or is kept for another result. The open turn stays open: a text between its results is
// sent after them.
func (b *builder) late(c *Call, m *pool.Message) {
	r := b.answerOf(c, m)
	t := &Turn{Role: pool.User, Message: m.ID, Items: append([]Item{{Text: lateText(c, r.Error)}}, r.Items...)}
	if r.Items[0].Text != "" {
		t.Items[1].Text = t.Items[0].Text + "\n" + t.Items[1].Text
		t.Items = t.Items[1:]
	}
	b.Turns = append(b.Turns, t)
	b.Note(m.ID, "the result of call %s came late: it is sent as a text", c.Call.ID)
}

// answerOf returns a tool message as the answer to a call.
func (b *builder) answerOf(c *Call, m *pool.Message) *Result {
	from := m.Result
	r := &Result{Call: c, Error: from.IsError, Message: m.ID}
	switch {
	case len(from.Parts) > 0:
		r.Items = b.items(&pool.Message{ID: m.ID, Content: from.Parts})
	case len(from.JSON) > 0:
		r.json(from.JSON)
	case !blank(from.Text):
		r.Items = []Item{{Text: from.Text}}
	default:
		r.Items = b.items(m)
	}
	if len(r.Items) == 0 {
		r.Items = []Item{{Text: silent(c, m)}}
	}
	return r
}

// json sets a result that is JSON: the words of a string, anything else unchanged.
func (r *Result) json(raw json.RawMessage) {
	clean, ok := cleanJSON(raw)
	if !ok {
		clean = raw
	}
	text := string(clean)
	if ok && clean[0] == '"' {
		_ = json.Unmarshal(clean, &text)
	} else if ok && clean[0] == '{' {
		r.JSON = clean
	}
	if !blank(text) {
		r.Items = []Item{{Text: text}}
	}
}

// silent returns the text for a blank result.
func silent(c *Call, m *pool.Message) string {
	switch reason := strings.TrimSpace(c.Reason); {
	case c.Status == pool.Denied && reason != "":
		return Denied + ": " + reason
	case c.Status == pool.Denied:
		return Denied
	case m.Kind == Interrupted || m.Unfinished:
		return Interrupted
	}
	return NoOutput
}
