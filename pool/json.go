package pool

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/stored"
)

// The JSON of a message is lossless. Two keys at its end keep what the rest cannot, each an object from a JSON Pointer into the message to a text. "exact"
// has the text of a JSON value that was stored with white space, with a name twice in an object, or that would be read as something else. "extra" has, in
// base64, the CBOR map of what else is stored at that place: unknown keys, and the fields of a part of an unknown type.
//
// AppendJSON appends m's JSON to b: one line, keys always in the same order, no needless escapes, raw JSON without its white space. It returns ErrInvalid
// for text, JSON or times that Validate refuses.

// AppendJSON appends m's JSON to b: one line, keys always in the same order, nothing escaped that need not be. Raw JSON
// appears without its white space. It fails, with ErrInvalid, for what Validate refuses as text, JSON or time.
func (m *Message) AppendJSON(b []byte) ([]byte, error) {
	return appendJSON(b, &Entry{Message: m}, false)
}

// AppendJSON is Message.AppendJSON plus the fields of the place.
func (e *Entry) AppendJSON(b []byte) ([]byte, error) {
	if e.Message == nil {
		e = &Entry{Message: &Message{}, Position: e.Position, Parent: e.Parent, Turn: e.Turn, Session: e.Session}
	}
	return appendJSON(b, e, true)
}

// MarshalJSON is AppendJSON. json.Marshal escapes <, > and & in the result; an Encoder with SetEscapeHTML(false) does not.
func (m Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil) }

// MarshalJSON is AppendJSON.
func (e Entry) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil) }

func appendJSON(b []byte, e *Entry, place bool) ([]byte, error) {
	if err := checkRead(e.Message); err != nil {
		return nil, err
	}
	w := writer{buf: bytes.NewBuffer(b), place: place}
	if len(e.Extra) > 0 {
		w.addExtra(e.Extra)
	}
	w.buf.WriteByte('{')
	writeFields(&w, e, entryFields)
	w.asides("exact", w.exact)
	w.asides("extra", w.extra)
	w.buf.WriteByte('}')
	if w.err != nil {
		return nil, w.err
	}
	return w.buf.Bytes(), nil
}

// writer writes a message's JSON. It keeps the first error.
type writer struct {
	stored.Cursor
	buf          *bytes.Buffer
	place        bool // write the fields of the place
	exact, extra []aside
	err          error
}

// aside is a text that belongs to a place in the message.
type aside struct{ path, text string }

func (w *writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = w.Invalid(format, args...)
	}
}

// asides writes an object of the texts put aside, if there are any.
func (w *writer) asides(name string, list []aside) {
	for i, a := range list {
		if i == 0 {
			w.key(name)
			w.buf.WriteByte('{')
		}
		w.key(a.path)
		w.text(a.text)
	}
	if len(list) > 0 {
		w.buf.WriteByte('}')
	}
}

// key begins a member of an object.
func (w *writer) key(name string) {
	if b := w.buf.Bytes(); b[len(b)-1] != '{' {
		w.buf.WriteByte(',')
	}
	w.text(name)
	w.buf.WriteByte(':')
}

func writeObject[T any, P extensible[T]](w *writer, v P, fields []field[T]) {
	if len(*v.extras()) > 0 {
		w.addExtra(*v.extras())
	}
	w.buf.WriteByte('{')
	writeFields(w, (*T)(v), fields)
	w.buf.WriteByte('}')
}

func writeFields[T any](w *writer, holder *T, fields []field[T]) {
	for i := range fields {
		f := &fields[i]
		value := f.at(holder)
		empty := isEmpty(value)
		if empty && f.empty == absent || f.place && !w.place {
			continue
		}
		back := w.Enter(f.name)
		w.key(f.name)
		if empty && f.empty == null {
			w.buf.WriteString("null")
		} else {
			w.value(value)
		}
		w.Leave(back)
	}
}

func writeList[T any](w *writer, list []T, write func(*T)) {
	w.buf.WriteByte('[')
	for i := range list {
		if i > 0 {
			w.buf.WriteByte(',')
		}
		back := w.EnterIndex(i)
		write(&list[i])
		w.Leave(back)
	}
	w.buf.WriteByte(']')
}

func isEmpty(value any) bool {
	switch x := value.(type) {
	case *string:
		return *x == ""
	case *bool:
		return !*x
	case *int:
		return *x == 0
	case *int64:
		return *x == 0
	case **int64:
		return *x == nil
	case *ID:
		return *x == ID{}
	case **ID:
		return *x == nil
	case *Hash:
		return *x == Hash{}
	case *Time:
		return *x == 0
	case *[]byte:
		return *x == nil
	case *[]string:
		return len(*x) == 0
	case *json.RawMessage:
		return *x == nil
	case *map[string]json.RawMessage:
		return len(*x) == 0
	case *[]Part:
		return len(*x) == 0
	case *[]Call:
		return len(*x) == 0
	case **Result:
		return *x == nil
	case **Source:
		return *x == nil
	case **Decider:
		return *x == nil
	case *outcome:
		return x.JSON == nil && x.Text == "" && (len(x.Parts) > 0 || x.SHA256 != Hash{})
	case *asideText:
		return x.JSON == nil || x.Text == ""
	}
	return false
}

func (w *writer) value(value any) {
	switch x := value.(type) {
	case *string:
		w.text(*x)
	case *bool:
		w.buf.Write(strconv.AppendBool(w.buf.AvailableBuffer(), *x))
	case *int:
		w.number(int64(*x))
	case *int64:
		w.number(*x)
	case **int64:
		w.number(**x)
	case *ID:
		w.text(x.String())
	case **ID:
		w.text((*x).String())
	case *Hash:
		w.text(x.String())
	case *Time:
		w.time(*x)
	case *[]byte:
		w.text(base64.StdEncoding.EncodeToString(*x))
	case *json.RawMessage:
		w.raw(*x, string(*x) == "null")
	case *map[string]json.RawMessage:
		w.rawMap(*x)
	case *outcome:
		if x.JSON != nil {
			w.raw(x.JSON, bytes.HasPrefix(x.JSON, []byte{'"'}))
		} else {
			w.text(x.Text)
		}
	case *asideText:
		w.text(x.Text)
	default:
		w.nested(value)
	}
}

func (w *writer) nested(value any) {
	switch x := value.(type) {
	case *[]string:
		writeList(w, *x, func(s *string) { w.text(*s) })
	case *[]Part:
		writeList(w, *x, w.part)
	case *[]Call:
		writeList(w, *x, func(c *Call) { writeObject(w, c, callFields) })
	case **Result:
		writeObject(w, *x, resultFields)
	case *Metadata:
		writeObject(w, x, metaFields)
	case **Source:
		writeObject(w, *x, sourceFields)
	case **Decider:
		w.buf.WriteByte('{')
		writeFields(w, *x, deciderFields)
		w.buf.WriteByte('}')
	}
}

func (w *writer) part(p *Part) {
	fields, known := partFields[p.Type]
	if known {
		writeObject(w, p, fields)
		return
	}
	if !isPlainForeign(p) {
		w.addExtra(foreignRecord(p))
	}
	if p.Raw != nil {
		w.raw(p.Raw, false)
		return
	}
	w.buf.WriteString(`{"type":`)
	w.text(p.Type)
	w.buf.WriteByte('}')
}

// isPlainForeign reports whether a part of an unknown type has nothing but its JSON.
func isPlainForeign(p *Part) bool {
	typ, err := "", error(nil)
	if json.Valid(p.Raw) {
		unique, _ := jsontree.Unique(bytes.TrimSpace(p.Raw))
		typ, err = (&reader{}).typeOf(unique)
	}
	rest := *p
	rest.Type, rest.Raw, rest.Extra = "", nil, nil
	return err == nil && typ == p.Type && len(p.Extra) == 0 && reflect.ValueOf(rest).IsZero()
}

// foreignRecord returns everything of such a part but its JSON. If it has no JSON, the JSON's key is there with null.
func foreignRecord(p *Part) record {
	rest := *p
	rest.Raw = nil
	rec, err := stored.Record(&rest)
	if err != nil {
		return nil
	}
	if p.Raw == nil {
		rec[partRawKey] = cbor.RawMessage{0xf6} // null
	}
	return rec
}

func (w *writer) addExtra(rec record) {
	b, err := stored.MarshalMap(rec)
	if err != nil {
		w.fail("an unknown key: %v", err)
	}
	w.extra = append(w.extra, aside{string(w.Path), base64.StdEncoding.EncodeToString(b)})
}

// raw writes JSON without white space and without members that a later one of the same name replaces, which strict readers refuse. It puts the exact text aside
// if that differs, or if keep is set.
func (w *writer) raw(raw json.RawMessage, keep bool) {
	start := w.buf.Len()
	err := json.Compact(w.buf, raw)
	if err != nil {
		w.fail("it is not valid JSON: %v", err)
		return
	}
	if unique, same := jsontree.Unique(w.buf.Bytes()[start:]); !same {
		w.buf.Truncate(start)
		w.buf.Write(unique)
	}
	if keep || !bytes.Equal(w.buf.Bytes()[start:], raw) {
		w.exact = append(w.exact, aside{string(w.Path), string(raw)})
	}
}

func (w *writer) rawMap(m map[string]json.RawMessage) {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	w.buf.WriteByte('{')
	for _, name := range names {
		back := w.EnterName(name)
		w.key(name)
		w.raw(m[name], false)
		w.Leave(back)
	}
	w.buf.WriteByte('}')
}

func (w *writer) time(t Time) {
	if t < stored.MinTime || t > stored.MaxTime {
		w.fail("the time lies outside the years 1 to 9999")
		return
	}
	w.text(t.String())
}

func (w *writer) number(n int64) {
	w.buf.Write(strconv.AppendInt(w.buf.AvailableBuffer(), n, 10))
}

// text writes a JSON string.
func (w *writer) text(s string) {
	w.buf.Grow(len(s) + 2)
	w.buf.Write(jsontree.AppendString(w.buf.AvailableBuffer(), s))
}

// timeLayout is RFC 3339 with as many fractional digits as needed.
const timeLayout = "2006-01-02T15:04:05.999999Z07:00"

// String returns the time as RFC 3339 in UTC, or "" if it is unknown.
func (t Time) String() string {
	if t == 0 {
		return ""
	}
	return t.Time().Format(timeLayout)
}

// MarshalJSON returns RFC 3339 in UTC, or null.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	if t < stored.MinTime || t > stored.MaxTime {
		return nil, (&stored.Cursor{}).Invalid("the time lies outside the years 1 to 9999")
	}
	return []byte(`"` + t.String() + `"`), nil
}

// UnmarshalJSON takes RFC 3339 in any zone, or null.
func (t *Time) UnmarshalJSON(b []byte) error {
	text, is := jsontree.Text(b)
	if !is {
		return (&stored.Cursor{}).Invalid("a time is a string")
	}
	if string(b) == "null" {
		*t = 0
		return nil
	}
	var err error
	*t, err = parseTime(text)
	return err
}

func parseTime(s string) (Time, error) {
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, fmt.Errorf("%w: %q is not a time like 2006-01-02T15:04:05Z", ErrInvalid, s)
	}
	return TimeOf(at), nil
}

// MarshalText returns 64 hex digits.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText takes 64 hex digits.
func (h *Hash) UnmarshalText(b []byte) error {
	var err error
	*h, err = ParseHash(string(b))
	return err
}
