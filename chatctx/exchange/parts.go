package exchange

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"unique"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Readers of several formats make these from values: parts, calls, raw records.

// firstOf returns the first text that is not "".
func firstOf(list ...string) string { return cmp.Or(list...) }

// source returns the message's source, and makes it if there is none.
func source(m *chatctx.Message) *pool.Source {
	if m.Source == nil {
		m.Source = new(pool.Source)
	}
	return m.Source
}

// oneOfFew returns a text that many records share, so that it is in memory once.
func oneOfFew(s string) string { return unique.Make(s).Value() }

// unknownPart returns a part of an unknown kind, with its type and all its content.
func unknownPart(v value) pool.Part {
	kind := firstOf(v.get("type").str(), v.get("content_type").str(), "unknown")
	switch kind {
	case pool.TextPart, pool.ImagePart, pool.DocumentPart, pool.ThinkingPart, pool.CallPart:
		kind = "unknown_" + kind
	}
	return pool.Part{Type: kind, Raw: v.keep()}
}

// textOf returns the text parts, joined.
func textOf(parts []pool.Part) string {
	var b strings.Builder
	for i := range parts {
		if parts[i].Type == pool.TextPart {
			b.WriteString(parts[i].Text)
		}
	}
	return b.String()
}

// allTexts returns the texts of parts.
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

// closeCalls settles a message's calls as an import does: those with a result were run, the others are denied. An imported call never waits.
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

// plainTitle returns a valid title for a context: on one line, without control characters, of at most 1000 bytes.
func plainTitle(s string) string {
	s = show.OneLine(s)
	if len(s) > 1000 {
		s = s[:runeEnd([]byte(s), 1000)]
	}
	return s
}

// setTitle derives a title from the first prompt if the conversation has none.
func (r *reading) setTitle(in *record.Incoming) {
	if strings.TrimSpace(in.Title) != "" {
		return
	}
	in.Derived, in.Title = true, "Untitled"
	for _, n := range in.Nodes {
		if typed(n.Message) {
			if t := view.TitleFrom(unwrapped(r.shelf.text(n.Message))); t != "" {
				in.Title = t
				return
			}
		}
	}
}

// unwrapped returns the content of the tag that a program puts around a whole prompt, <task> and the like.
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

// jsonText returns s as a JSON string, without escapes for HTML.
func jsonText(s string) []byte {
	if plainASCII(s) {
		return append(append(append(make([]byte, 0, len(s)+2), '"'), s...), '"')
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return []byte(`""`) // every string encodes
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// plainASCII reports whether a string needs no escapes in JSON.
func plainASCII(s string) bool {
	for i := range len(s) {
		if special[s[i]] || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// object returns a JSON object with one string.
func object(key, text string) json.RawMessage {
	return slices.Concat([]byte("{"), jsonText(key), []byte(":"), jsonText(text), []byte("}"))
}

// objectWriter builds a JSON object from unchanged values.
type objectWriter struct{ b []byte }

// addIf adds a member if cond is true and the value is not null, {} or [].
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

// done returns the object, nil if it has no members.
func (w *objectWriter) done() json.RawMessage {
	if w.b == nil {
		return nil
	}
	return append(w.b, '}')
}

// unknownFields returns the unknown members of an object that are not empty, as an object; nil if there are none. Of a repeated key the last one counts.
func unknownFields(v value, known map[string]bool) json.RawMessage {
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
