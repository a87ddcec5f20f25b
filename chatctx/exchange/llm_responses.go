package exchange

import (
	"encoding/json"
	"iter"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// The first schema: a row of responses makes messages of up to four kinds.

// llmRows holds the rows that belong to responses, by the response.
type llmRows struct {
	attachments, fragments, systemFragments, calls, results *groups
	resultAttachments                                       *groups // by the tool result
	conversations, fragment                                 *groups
}

func (l *llm) rows() (*llmRows, error) {
	m := &llmRows{}
	for _, t := range []struct {
		to                   **groups
		table, column, order string
	}{
		{&m.attachments, "prompt_attachments", "response_id", "order"}, {&m.fragments, "prompt_fragments", "response_id", "order"},
		{&m.systemFragments, "system_fragments", "response_id", "order"}, {&m.calls, "tool_calls", "response_id", "id"},
		{&m.results, "tool_results", "response_id", "id"}, {&m.resultAttachments, "tool_results_attachments", "tool_result_id", "order"},
		{&m.fragment, "fragments", "id", "id"}, {&m.conversations, "conversations", "id", "id"},
	} {
		var err error
		if *t.to, err = l.r.db.grouped(t.table, t.column, t.order); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// responses reads the rows, one conversation after another; a row without a conversation is one of its own.
func (l *llm) responses() error {
	more, err := l.rows()
	if err != nil {
		return err
	}
	c := &llmChat{l: l, more: more}
	for w, err := range l.r.db.sorted("responses", "conversation_id", "id") {
		if err != nil {
			return l.r.atEnd(err, c.emit)
		}
		if err := c.response(w); err != nil {
			return err
		}
	}
	err = c.emit()
	l.r.unasked(more.attachments, more.fragments, more.systemFragments, more.calls, more.results, more.fragment, more.conversations, l.attachments)
	return err
}

// llmChat is a conversation whose rows come one by one.
type llmChat struct {
	l      *llm
	more   *llmRows
	id     string
	t      *thread
	in     *record.Incoming
	system string // the system text in force
	model  string // the conversation's, until an answer has it
}

func (c *llmChat) response(w row) error {
	rid := firstOf(w.str("id"), "row "+itoa(int(w.ID)))
	id := firstOf(w.str("conversation_id"), rid)
	if c.t == nil || id != c.id {
		if err := c.emit(); err != nil {
			return err
		}
		c.id, c.t, c.system = id, c.l.r.thread(place{what: "conversation " + id}), ""
		c.in = &record.Incoming{Conversation: id, Created: w.time("datetime_utc")}
		c.model = ""
		for about, err := range c.more.conversations.of(id) {
			if err != nil {
				return err
			}
			c.in.Title, c.model = about.str("name"), about.str("model")
		}
	}
	c.in.Updated = w.time("datetime_utc")
	at := place{what: "response " + rid}
	created := w.time("datetime_utc")
	if err := c.prompt(at, rid, w, created); err != nil {
		return err
	}
	return c.answer(at, rid, w, created)
}

func (c *llmChat) emit() error {
	if c.t == nil {
		return nil
	}
	t := c.t
	c.t = nil
	if c.model != "" {
		c.in.AppData = appData(llmName, object("model", c.model))
	}
	return t.emit(c.in, t.last())
}

// prompt adds what went to the model: a new system text, results, and the prompt.
func (c *llmChat) prompt(at place, rid string, w row, created pool.Time) error {
	text, err := c.fragments(c.more.systemFragments.of(rid))
	if err != nil {
		return err
	}
	system := text + w.str("system")
	if system != "" && system != c.system {
		c.t.next(at, rid+"/system", &chatctx.Message{Role: pool.System, Created: created, Content: []pool.Part{textPart(system)}})
		c.system = system
	}
	results := 0
	for res, err := range c.more.results.of(rid) {
		if err != nil {
			return err
		}
		results++
		m := toolResult(res.str("tool_call_id"), res.str("name"), []pool.Part{textPart(res.str("output"))})
		m.Created = created
		if e := res.str("exception"); e != "" {
			m.Result.IsError = true
			m.Meta.Error = e
		}
		if err := c.attach(c.more.resultAttachments.of(res.str("id")), func(p pool.Part) {
			if m.Result.Parts == nil {
				m.Result.Parts, m.Result.Text = []pool.Part{textPart(m.Result.Text)}, ""
			}
			m.Result.Parts = append(m.Result.Parts, p)
		}); err != nil {
			return err
		}
		c.t.next(at, rid+"/result-"+itoa(results), m)
	}
	m := &chatctx.Message{Role: pool.User, Created: created}
	if text, err = c.fragments(c.more.fragments.of(rid)); err != nil {
		return err
	}
	if text != "" {
		m.Content = append(m.Content, textPart(text))
	}
	if text := w.str("prompt"); text != "" {
		m.Content = append(m.Content, textPart(text))
	}
	if err := c.attach(c.more.attachments.of(rid), func(p pool.Part) { m.Content = append(m.Content, p) }); err != nil {
		return err
	}
	if len(m.Content) > 0 || !w.null("prompt") && results == 0 {
		c.t.next(at, rid+"/prompt", m)
	}
	return nil
}

func (c *llmChat) attach(list iter.Seq2[row, error], add func(pool.Part)) error {
	for a, err := range list {
		if err != nil {
			return err
		}
		p, err := c.l.attachment(a.str("attachment_id"))
		if err != nil {
			return err
		}
		add(p)
	}
	return nil
}

func (c *llmChat) fragments(list iter.Seq2[row, error]) (string, error) {
	text := ""
	for f, err := range list {
		if err != nil {
			return "", err
		}
		for content, err := range c.more.fragment.of(f.str("fragment_id")) {
			if err != nil {
				return "", err
			}
			text += content.str("content")
		}
		text += "\n"
	}
	return text, nil
}

func (c *llmChat) answer(at place, rid string, w row, created pool.Time) error {
	m := &chatctx.Message{Role: pool.Assistant, Created: created}
	m.Meta.Model = firstOf(w.str("resolved_model"), w.str("model"))
	if c.model == w.str("model") || c.model == m.Meta.Model {
		c.model = ""
	}
	m.Meta.InputTokens, m.Meta.OutputTokens = w.count("input_tokens"), w.count("output_tokens")
	m.Meta.Usage = w.json("token_details")
	if n := w.count("duration_ms"); n != nil && created != 0 {
		m.Meta.Completed = pool.TimeOf(created.Time().Add(time.Duration(min(*n, 1<<40)) * time.Millisecond))
	}
	if rest := w.object("options_json", "schema_id", "duration_ms"); rest != nil {
		m.Meta.ProviderData = map[string]json.RawMessage{llmName: rest}
	}
	if text := w.str("reasoning"); text != "" {
		m.Content = append(m.Content, pool.Part{Type: pool.ThinkingPart, Text: text})
	}
	if text := w.str("response"); text != "" {
		m.Content = append(m.Content, textPart(text))
	}
	for call, err := range c.more.calls.of(rid) {
		if err != nil {
			return err
		}
		args, _ := argumentText(call.str("arguments"))
		addCall(m, pool.Call{ID: call.str("tool_call_id"), Tool: firstOf(call.str("name"), "unknown"), Arguments: args}, rid)
	}
	if len(m.Content) > 0 || !w.null("response") {
		c.t.next(at, rid+"/answer", m)
	}
	return nil
}
