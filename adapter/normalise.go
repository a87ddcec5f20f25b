package adapter

import (
	"encoding/json"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// Rules say what a provider accepts, as far as Normalise ensures it.
type Rules struct {
	Provider   string
	Parameters []string // the settings' keys that the provider knows
	IDs        Form     // of calls
	Tools      Form     // names of tools
	Media      MediaRules
	System     bool // system messages are allowed in the middle
	UserFirst  bool // a user message must come first
	CallOrder  bool // results must be in the order of the calls, not in that of their arrival
	// UserBetween means that two assistant turns must not follow each other.
	UserBetween bool
	// Thinking returns "" if a part may be sent back to the model, else why not. Nil means that none may.
	Thinking func(p *pool.Part, m *pool.Message) (why string)
	// Raw reports whether a part of an unknown type may be sent back unchanged. Nil means that none may.
	Raw func(p *pool.Part, m *pool.Message) bool
	// RawLost means that such a part is not sent, and neither is thinking before it.
	RawLost bool
	// Prefill reports whether the last of the turns, which is an assistant's, may stay the last. Nil means never.
	Prefill func(turns []*Turn) bool
}

// Conversation is a draft in normal form: no text is blank; each call has one result, right after its turn; ids of calls are unique; names of tools are ones
// that the provider allows.
type Conversation struct {
	System []string // the system texts, in order, none of them blank
	Turns  []*Turn
	Tools  []Tool

	draft *chatctx.Draft
	rules *Rules
	names *names
	media []*Item
}

// Turn is what one side says. Role is user, assistant or (if Rules.System is set) system.
type Turn struct {
	Role    pool.Role
	Message chatctx.ID // zero if the adapter added it
	Items   []Item     // never empty
	// Results answer the calls among the items, one each, between this turn and the next.
	Results []*Result
	Summary bool          // it is the summary of the previous session
	Cache   bool          // a cache breakpoint follows it
	From    *pool.Message // its message; nil if the adapter added it
}

// Item is a piece of a turn: exactly one field is set, except that From may be set together with Text.
type Item struct {
	Text     string
	From     *pool.Part // the part of an assistant's text
	Media    *Media
	Thinking *pool.Part
	Raw      *pool.Part // of a type that only its provider knows
	Call     *Call
}

// Call is a call of an assistant's turn.
type Call struct {
	ID        string          // as it is sent
	Name      string          // as it is sent
	Arguments json.RawMessage // an object
	*pool.Call

	turn   *Turn
	result *Result
	late   bool // a result came when its place was taken
}

// Result is the answer to a call.
type Result struct {
	Call    *Call
	Items   []Item          // texts and media; never empty
	JSON    json.RawMessage // the result, if it is a JSON object
	Error   bool
	Missing bool // there is none: the text says so
	Message chatctx.ID
}

// Tool is a tool that may be called. Schema is a JSON object whose type is object.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// normalise returns a draft in normal form and adds a note to the draft for each repair. It is a chatctx.ErrEmpty if the draft has no messages.
func normalise(d *chatctx.Draft, rules *Rules) (*Conversation, error) {
	if len(d.Messages) == 0 && d.Summary == nil {
		return nil, chatctx.ErrEmpty
	}
	c := &Conversation{draft: d, rules: rules, names: newNames(rules.Tools)}
	c.tools()
	b := &builder{Conversation: c, ids: newMapping(rules.IDs), told: map[string]bool{}, calls: make(map[string][]*Call, len(d.Messages)/2)}
	b.system()
	if d.Summary != nil && d.Summary.Message != nil {
		b.summary(d.Summary)
	}
	rest := d.Messages[b.start:]
	for i, m := range rest {
		b.message(m)
		if m.Cache && i < len(rest)-1 && len(b.Turns) > 0 { // the end gets its own
			b.Turns[len(b.Turns)-1].Cache = true
		}
	}
	b.answer()
	c.limitMedia()
	c.ends()
	return c, nil
}

// Note adds a note to the draft about a repair; a zero id means the draft as a whole.
func (c *Conversation) Note(id chatctx.ID, format string, args ...any) {
	note(c.draft, id, format, args...)
}

// NoteAll is Note about the draft as a whole.
func (c *Conversation) NoteAll(format string, args ...any) { c.Note(chatctx.ID{}, format, args...) }

func note(d *chatctx.Draft, id chatctx.ID, format string, args ...any) {
	d.Notes = append(d.Notes, chatctx.Note{Step: "adapter", Message: id, What: fmt.Sprintf(format, args...)})
}

// ToolName returns the name under which a tool is sent.
func (c *Conversation) ToolName(name string) string { return c.names.of(name) }

// ToolNames maps sent names to the draft's names where these differ; nil if none does.
func (c *Conversation) ToolNames() map[string]string { return c.names.back() }

// HasTool reports whether a tool with that sent name is defined.
func (c *Conversation) HasTool(sent string) bool {
	for i := range c.Tools {
		if c.Tools[i].Name == sent {
			return true
		}
	}
	return false
}

// tools sets the draft's tools, the first of each name.
func (c *Conversation) tools() {
	seen := map[string]bool{}
	for i := range c.draft.Tools {
		t := &c.draft.Tools[i]
		if seen[t.Name] {
			c.Note(chatctx.ID{}, "a second tool %q was left out", t.Name)
			continue
		}
		seen[t.Name] = true
		schema, what := toolSchema(t.Schema)
		if what != "" {
			c.Note(chatctx.ID{}, "tool %q: %s", t.Name, what)
		}
		c.Tools = append(c.Tools, Tool{Name: c.names.of(t.Name), Description: t.Description, Schema: schema})
		if sent := c.names.of(t.Name); sent != t.Name {
			c.Note(chatctx.ID{}, "tool %q is sent as %s", t.Name, sent)
		}
	}
}

// limitMedia leaves out media that a request as a whole cannot hold: large images among many, and the oldest ones beyond the limit of bytes.
func (c *Conversation) limitMedia() {
	rules, images := &c.rules.Media, 0
	for _, i := range c.media {
		if i.Media.Kind == pool.ImagePart {
			images++
		}
	}
	total := 0
	for n := len(c.media) - 1; n >= 0; n-- {
		i := c.media[n]
		m := i.Media
		switch side := max(m.width, m.height); {
		case m.Kind == pool.ImagePart && rules.Many > 0 && images > rules.Many && side > rules.ManySide:
			m.left = fmt.Sprintf("%d x %d pixels, the limit among more than %d images is %d", m.width, m.height, rules.Many, rules.ManySide)
		case rules.Bytes > 0 && total+len(m.Data) > rules.Bytes:
			m.left = fmt.Sprintf("all images and documents together may have %d bytes", rules.Bytes)
		default:
			total += len(m.Data)
			continue
		}
		*i = Item{Text: leftOut(m.Kind, m.Name, m.left)}
		c.Note(chatctx.ID{}, "%s; this changes what was sent before", i.Text)
	}
}

// ends makes the first and the last turn ones that the provider accepts.
func (c *Conversation) ends() {
	if len(c.Turns) == 0 || c.rules.UserFirst && c.Turns[0].Role != pool.User {
		c.Turns = append([]*Turn{textTurn(pool.User, chatctx.ID{}, Begin)}, c.Turns...)
		c.Note(chatctx.ID{}, "a first user message was put in: %s", Begin)
	}
	last := c.Turns[len(c.Turns)-1]
	if last.Role != pool.Assistant || len(last.Results) > 0 || c.rules.Prefill != nil && c.rules.Prefill(c.Turns) {
		return
	}
	c.Turns = append(c.Turns, textTurn(pool.User, chatctx.ID{}, Continue))
	c.Note(last.Message, "the branch ends with an assistant; a last user message was put in: %s", Continue)
}

func textTurn(role pool.Role, id chatctx.ID, text string) *Turn {
	return &Turn{Role: role, Message: id, Items: []Item{{Text: text}}}
}
