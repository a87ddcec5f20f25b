package pool

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/jsontree"
)

// ErrInvalid means that a message can never be stored or sent, or that a text is not valid JSON. The error says where and why.
var ErrInvalid = errors.New("invalid message")

// The first and the last time that RFC 3339 can express: the years 1 to 9999.
const (
	minTime Time = -62_135_596_800_000_000
	maxTime Time = 253_402_300_799_999_999
)

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
	var c cursor
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
	c.enter("tool_result")
	return validParts(&c, "parts", m.Result.Parts, nil)
}

func (m *Message) validRole(c *cursor) error {
	switch m.Role {
	case System, User, Assistant, ToolRole:
	case "":
		return c.invalid("it has no role")
	default:
		return c.invalid("role %q is none of system, user, assistant, tool", m.Role)
	}
	if len(m.Calls) > 0 && m.Role != Assistant {
		return c.invalid("only an assistant message has tool calls")
	}
	if m.Result != nil && m.Role != ToolRole {
		return c.invalid("only a tool message has a result")
	}
	if m.Result == nil && m.Role == ToolRole {
		return c.invalid("a tool message needs a result")
	}
	return nil
}

func (m *Message) validCalls(c *cursor) error {
	defer c.leave(c.enter("tool_calls"))
	for i := range m.Calls {
		back := c.enterIndex(i)
		call := &m.Calls[i]
		if call.Tool == "" {
			return c.invalid("a call needs a tool's name")
		}
		if !slices.Contains([]Status{"", Pending, Approved, Denied}, call.Status) {
			return c.invalid("approval status %q is none of pending, approved, denied", call.Status)
		}
		if !slices.Contains([]Execution{"", NotRun, Running, Done, Failed, Uncertain}, call.Execution) {
			return c.invalid("execution %q is none of none, running, done, failed, uncertain", call.Execution)
		}
		c.leave(back)
	}
	return nil
}

func validParts(c *cursor, name string, parts []Part, calls []Call) error {
	defer c.leave(c.enter(name))
	for i := range parts {
		back := c.enterIndex(i)
		if err := parts[i].valid(c, calls); err != nil {
			return err
		}
		c.leave(back)
	}
	return nil
}

func (p *Part) valid(c *cursor, calls []Call) error {
	holdsData := p.Type == ImagePart || p.Type == DocumentPart
	if p.Data != nil && !holdsData {
		return c.invalid("a part of type %q holds no data; use %q or %q", p.Type, ImagePart, DocumentPart)
	}
	switch {
	case p.Type == "":
		return c.invalid("it has no type")
	case holdsData && len(p.Data) == 0 && p.SHA256 == Hash{} && p.URL == "":
		return c.invalid("type %q needs data, sha256 or url", p.Type)
	case p.Type == CallPart && !slices.ContainsFunc(calls, func(call Call) bool { return call.ID == p.CallID }):
		return c.invalid("no tool call has the id %q", p.CallID)
	case partFields[p.Type] == nil && p.Raw == nil:
		return c.invalid("type %q is not known here and the part has no JSON of its own", p.Type)
	}
	return nil
}

// checkRead refuses what neither JSON nor a record could hold: text that is not UTF-8, and times that cannot be written.
func checkRead(m *Message) error {
	if flaw("", reflect.ValueOf(m)) == nil { // visit takes longer, and says where
		return nil
	}
	return visit(m, func(c *cursor, value any) error {
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
			if *x < minTime || *x > maxTime {
				return c.invalid("the time lies outside the years 1 to 9999")
			}
		}
		if !ok {
			return c.invalid("the text is not UTF-8")
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
	if n > maxItems {
		return tooLarge{(&cursor{}).invalid("it has more than %d parts, calls or names", maxItems)}
	}
	return nil
}

// tooLarge is an error that is a kv.ErrTooLarge besides.
type tooLarge struct{ error }

func (e tooLarge) Unwrap() error { return e.error }

func (tooLarge) Is(target error) bool { return target == kv.ErrTooLarge }

// validValue checks the raw JSON of a message.
func validValue(c *cursor, value any) error {
	switch x := value.(type) {
	case *json.RawMessage:
		return validJSON(c, *x)
	case *outcome:
		return validJSON(c, x.JSON)
	case *map[string]json.RawMessage:
		for name, raw := range *x {
			back := c.enterName(name)
			if raw == nil {
				return c.invalid("it has no JSON")
			}
			if err := validJSON(c, raw); err != nil {
				return err
			}
			c.leave(back)
		}
	}
	return nil
}

// maxDepth is how deep raw JSON may nest, so that every reader can read the message's JSON, which contains it.
const maxDepth = 1000

func validJSON(c *cursor, raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	if !json.Valid(raw) {
		return c.invalid("it is not valid JSON")
	}
	if depthOf(raw) > maxDepth {
		return c.invalid("its JSON nests deeper than %d", maxDepth)
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
