package pool

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/stored"
)

// ErrInvalid means that a message can never be stored or sent, or that a text is not valid JSON. The error says where and why.
var ErrInvalid = stored.ErrInvalid

// Validate returns an ErrInvalid with the first reason why m cannot be a message: an unknown role, calls in another than an assistant's message, a result
// in another than a tool's, a part without what its type needs, invalid JSON, text that is not UTF-8. Several calls with one id are allowed, as are results
// without a call.
func (m *Message) Validate() error {
	if err := checkRead(m); err != nil {
		return err
	}
	if err := checkCounts(m); err != nil {
		return err
	}
	if err := visit(m, validValue); err != nil {
		return err
	}
	var c stored.Cursor
	if err := m.validRole(&c); err != nil {
		return err
	}
	if err := m.validCalls(&c); err != nil {
		return err
	}
	if err := validParts(&c, "content", m.Content, m.Calls); err != nil {
		return err
	}
	if m.Result == nil {
		return nil
	}
	c.Enter("tool_result")
	return validParts(&c, "parts", m.Result.Parts, nil)
}

func (m *Message) validRole(c *stored.Cursor) error {
	switch m.Role {
	case System, User, Assistant, ToolRole:
	case "":
		return c.Invalid("it has no role")
	default:
		return c.Invalid("role %q is none of system, user, assistant, tool", m.Role)
	}
	if len(m.Calls) > 0 && m.Role != Assistant {
		return c.Invalid("only an assistant message has tool calls")
	}
	if m.Result != nil && m.Role != ToolRole {
		return c.Invalid("only a tool message has a result")
	}
	if m.Result == nil && m.Role == ToolRole {
		return c.Invalid("a tool message needs a result")
	}
	return nil
}

func (m *Message) validCalls(c *stored.Cursor) error {
	defer c.Leave(c.Enter("tool_calls"))
	for i := range m.Calls {
		back := c.EnterIndex(i)
		call := &m.Calls[i]
		if call.Tool == "" {
			return c.Invalid("a call needs a tool's name")
		}
		if !slices.Contains([]Status{"", Pending, Approved, Denied}, call.Status) {
			return c.Invalid("approval status %q is none of pending, approved, denied", call.Status)
		}
		if !slices.Contains([]Execution{"", NotRun, Running, Done, Failed, Uncertain}, call.Execution) {
			return c.Invalid("execution %q is none of none, running, done, failed, uncertain", call.Execution)
		}
		c.Leave(back)
	}
	return nil
}

func validParts(c *stored.Cursor, name string, parts []Part, calls []Call) error {
	defer c.Leave(c.Enter(name))
	for i := range parts {
		back := c.EnterIndex(i)
		if err := parts[i].valid(c, calls); err != nil {
			return err
		}
		c.Leave(back)
	}
	return nil
}

func (p *Part) valid(c *stored.Cursor, calls []Call) error {
	holdsData := p.Type == ImagePart || p.Type == DocumentPart
	if p.Data != nil && !holdsData {
		return c.Invalid("a part of type %q holds no data; use %q or %q", p.Type, ImagePart, DocumentPart)
	}
	switch {
	case p.Type == "":
		return c.Invalid("it has no type")
	case holdsData && len(p.Data) == 0 && p.SHA256 == Hash{} && p.URL == "":
		return c.Invalid("type %q needs data, sha256 or url", p.Type)
	case p.Type == CallPart && !slices.ContainsFunc(calls, func(call Call) bool { return call.ID == p.CallID }):
		return c.Invalid("no tool call has the id %q", p.CallID)
	case partFields[p.Type] == nil && p.Raw == nil:
		return c.Invalid("type %q is not known here and the part has no JSON of its own", p.Type)
	}
	return nil
}

// checkRead refuses what neither JSON nor a record could hold: text that is not UTF-8, and times that cannot be written.
func checkRead(m *Message) error {
	if stored.Flaw(m) == nil { // visit takes longer, and says where
		return nil
	}
	return visit(m, func(c *stored.Cursor, value any) error {
		ok := true
		switch x := value.(type) {
		case *string:
			ok = utf8.ValidString(*x)
		case *json.RawMessage:
			ok = utf8.Valid(*x)
		case *outcome:
			ok = utf8.ValidString(x.Text) && utf8.Valid(x.JSON)
		case *map[string]json.RawMessage:
			for name, raw := range *x {
				ok = ok && utf8.ValidString(name) && utf8.Valid(raw)
			}
		case *Time:
			if *x < stored.MinTime || *x > stored.MaxTime {
				return c.Invalid("the time lies outside the years 1 to 9999")
			}
		}
		if !ok {
			return c.Invalid("the text is not UTF-8")
		}
		return nil
	})
}

// checkCounts refuses more parts, calls or names than a record may have.
func checkCounts(m *Message) error {
	n := max(len(m.Content), len(m.Calls), len(m.AppData), len(m.Meta.ProviderData), len(m.Extra))
	if m.Result != nil {
		n = max(n, len(m.Result.Parts))
	}
	if n > stored.MaxItems {
		return stored.NewTooLarge((&stored.Cursor{}).Invalid("it has more than %d parts, calls or names", stored.MaxItems))
	}
	return nil
}

// validValue checks the raw JSON of a message.
func validValue(c *stored.Cursor, value any) error {
	switch x := value.(type) {
	case *json.RawMessage:
		return validJSON(c, *x)
	case *outcome:
		return validJSON(c, x.JSON)
	case *map[string]json.RawMessage:
		for name, raw := range *x {
			back := c.EnterName(name)
			if raw == nil {
				return c.Invalid("it has no JSON")
			}
			if err := validJSON(c, raw); err != nil {
				return err
			}
			c.Leave(back)
		}
	}
	return nil
}

// maxDepth is how deep raw JSON may nest, so that every reader can read the message's JSON, which contains it.
const maxDepth = 1000

func validJSON(c *stored.Cursor, raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	if !json.Valid(raw) {
		return c.Invalid("it is not valid JSON")
	}
	if depthOf(raw) > maxDepth {
		return c.Invalid("its JSON nests deeper than %d", maxDepth)
	}
	return nil
}

// depthOf returns how deep valid JSON nests.
func depthOf(raw []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = jsontree.StringEnd(raw, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}
