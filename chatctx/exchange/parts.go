package exchange

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unique"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/pool"
)

// What readers of several formats make of values: parts, calls, raw records.

// firstOf is the first of them that is not "".
func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// source is the message's source, made where there is none.
func source(m *chatctx.Message) *pool.Source {
	if m.Source == nil {
		m.Source = new(pool.Source)
	}
	return m.Source
}

// oneOfFew is a text that many records have, once in memory.
func oneOfFew(s string) string { return unique.Make(s).Value() }

// unknownPart keeps a part of a kind that has no meaning here: its type, and all of it.
func unknownPart(v value) pool.Part {
	kind := firstOf(v.get("type").str(), v.get("content_type").str(), "unknown")
	switch kind {
	case pool.TextPart, pool.ImagePart, pool.DocumentPart, pool.ThinkingPart, pool.CallPart:
		kind = "unknown_" + kind
	}
	return pool.Part{Type: kind, Raw: v.keep()}
}

// textOf joins the text parts.
func textOf(parts []pool.Part) string {
	var b strings.Builder
	for i := range parts {
		if parts[i].Type == pool.TextPart {
			b.WriteString(parts[i].Text)
		}
	}
	return b.String()
}

// allTexts are the texts of parts.
func allTexts(parts []pool.Part) []string {
	var out []string
	for i := range parts {
		out = append(out, parts[i].Text)
	}
	return out
}

func withoutText(parts []pool.Part) []pool.Part {
	return slices.DeleteFunc(slices.Clone(parts), func(p pool.Part) bool { return p.Type == pool.TextPart })
}

// closeCalls settles a message's calls as an import does: those with a result were run, the others are denied. Nothing that
// is imported waits for anybody.
func closeCalls(m *chatctx.Message, answered func(callID string) bool) {
	for i := range m.Calls {
		c := &m.Calls[i]
		if answered(c.ID) {
			c.Status, c.Execution = pool.Approved, pool.Done
		} else {
			c.Status, c.Execution, c.Reason = pool.Denied, pool.NotRun, "no result"
		}
	}
}

// plainTitle is a title as a context may have it: on one line, without controls, of at most 1000 bytes.
func plainTitle(s string) string {
	s = show.OneLine(s)
	if len(s) > 1000 {
		s = s[:runeEnd([]byte(s), 1000)]
	}
	return s
}

// setTitle derives a title from the first prompt where the conversation has none.
func (r *reading) setTitle(in *chatctx.Incoming) {
	if strings.TrimSpace(in.Title) != "" {
		return
	}
	in.Derived, in.Title = true, "Untitled"
	for _, n := range in.Nodes {
		if typed(n.Message) {
			if t := chatctx.TitleFrom(unwrapped(r.shelf.text(n.Message))); t != "" {
				in.Title = t
				return
			}
		}
	}
}

// unwrapped is what stands in a mark that a program puts around all of a prompt, <task> and the like.
func unwrapped(s string) string {
	s = strings.TrimSpace(s)
	tag, rest, ok := strings.Cut(s, ">")
	if name, marked := strings.CutPrefix(tag, "<"); ok && marked && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") == "" {
		if body, _, closed := strings.Cut(rest, "</"+name+">"); closed {
			return body
		}
	}
	return s
}

// jsonText writes s as a JSON string, without escapes for HTML.
func jsonText(s string) []byte {
	if plainASCII(s) {
		return append(append(append(make([]byte, 0, len(s)+2), '"'), s...), '"')
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return []byte(`""`) // no string fails to encode
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// plainASCII tells whether a string is JSON between quotes as it is.
func plainASCII(s string) bool {
	for i := range len(s) {
		if special[s[i]] || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// object is a JSON object of one string.
func object(key, text string) json.RawMessage {
	return slices.Concat([]byte("{"), jsonText(key), []byte(":"), jsonText(text), []byte("}"))
}

// objectWriter builds a JSON object of values as they came.
type objectWriter struct{ b []byte }

// addIf adds a member if cond holds and the value says something: null, {} and [] do not.
func (w *objectWriter) addIf(cond bool, key string, v value) {
	if cond && v.kind() > nullKind && !(v.kind() >= arrayKind && v.tok().next == v.i+1) {
		w.addRaw(key, v.keep())
	}
}

func (w *objectWriter) addRaw(key string, raw json.RawMessage) {
	if raw == nil {
		return
	}
	if w.b = append(w.b, ','); len(w.b) == 1 {
		w.b[0] = '{'
	}
	w.b = append(append(append(w.b, jsonText(key)...), ':'), raw...)
}

// done is the object, nil for one without members.
func (w *objectWriter) done() json.RawMessage {
	if w.b == nil {
		return nil
	}
	return append(w.b, '}')
}

// leftover are the members of an object that are not known and say something, as an object; nil for none. Of keys that stand
// twice the last counts.
func leftover(v value, known map[string]bool) json.RawMessage {
	var last map[string]uint32
	if v.repeated() != nil {
		last = map[string]uint32{}
		for k, x := range v.members() {
			last[k] = x.i
		}
	}
	w := objectWriter{}
	for k, x := range v.members() {
		if !known[k] {
			w.addIf(last == nil || last[k] == x.i, k, x)
		}
	}
	return w.done()
}
