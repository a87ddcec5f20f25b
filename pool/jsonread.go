package pool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/stored"
)

// UnmarshalJSON reads what AppendJSON wrote, or JSON written by hand. It needs role and one of content, tool_calls and tool_result; content may be a plain
// string, and null means unknown. It is strict and returns ErrInvalid for unknown or duplicate keys, for keys in upper case, and for text that is not UTF-8
// or has half of a surrogate pair. It ignores the fields of a place (turn, position …). Raw JSON is kept byte for byte. It does not call Validate.
func (m *Message) UnmarshalJSON(data []byte) error {
	e := Entry{Message: &Message{}}
	if err := new(reader).entry(data, &e); err != nil {
		return err
	}
	*m = *e.Message
	return nil
}

// ReadJSON is UnmarshalJSON for what a later version may have written, or somebody else: what stands under keys that are not known here is no error.
// It is returned, by JSON Pointers, and is not in m.
func (m *Message) ReadJSON(data []byte) (unknown map[string]json.RawMessage, err error) {
	e := Entry{Message: &Message{}}
	r := reader{unknown: map[string]json.RawMessage{}, again: map[string]int{}}
	if err := r.entry(data, &e); err != nil {
		return nil, err
	}
	*m = *e.Message
	return r.unknown, nil
}

// UnmarshalJSON is Message.UnmarshalJSON plus the fields of the place.
func (e *Entry) UnmarshalJSON(data []byte) error {
	got := Entry{Message: &Message{}}
	if err := new(reader).entry(data, &got); err != nil {
		return err
	}
	*e = got
	return nil
}

func (r *reader) entry(data []byte, e *Entry) error {
	data = bytes.TrimSpace(data)
	if !json.Valid(data) {
		return r.Invalid("it is not valid JSON")
	}
	if !utf8.Valid(data) {
		return r.Invalid("the text is not UTF-8")
	}
	needed := false
	err := r.items(data, '{', func(name string, value []byte) error {
		switch name {
		case "exact":
			r.exact = map[string]string{}
			return r.asides(value, func(place, text string) error {
				r.exact[place] = text
				return nil
			})
		case "extra":
			r.extra = map[string][]byte{}
			return r.asides(value, func(place, text string) (err error) {
				r.extra[place], err = base64.StdEncoding.DecodeString(text)
				return err
			})
		case "content", "tool_calls", "tool_result":
			needed = needed || string(value) != "null"
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := readObject(r, data, e, entryFields, "exact", "extra"); err != nil {
		return err
	}
	if e.Role == "" {
		return r.Invalid("it has no role")
	}
	if !needed {
		return r.Invalid("it needs content, tool_calls or tool_result")
	}
	return r.unused()
}

// unused refuses what was put aside for a place that does not exist.
func (r *reader) unused() error {
	for _, path := range slices.Sorted(maps.Keys(r.exact)) {
		return r.Invalid("exact: there is no JSON at %q", path)
	}
	for _, path := range slices.Sorted(maps.Keys(r.extra)) {
		return r.Invalid("extra: nothing at %q can have it", path)
	}
	return nil
}

// reader reads a message from valid JSON. exact and extra have what is put aside for a place, until it is used.
type reader struct {
	stored.Cursor
	exact map[string]string
	extra map[string][]byte
	// unknown takes what stands under unknown keys; nil: they are refused.
	unknown map[string]json.RawMessage
	again   map[string]int // how often each stood so far
}

// asides calls put for the texts that are put aside, with their places.
func (r *reader) asides(value []byte, put func(place, text string) error) error {
	if string(value) == "null" {
		return nil
	}
	bad := r.Invalid("exact and extra are objects of texts")
	if value[0] != '{' {
		return bad
	}
	return jsontree.Each(value, func(quoted, value []byte) error {
		place, _ := jsontree.Text(quoted)
		if text, is := jsontree.Text(value); !is || put(place, text) != nil {
			return bad
		}
		return nil
	})
}

// namesOf lists the keys that an object may have.
func namesOf[T any](fields []field[T]) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}

func readObject[T any, P extensible[T]](r *reader, data []byte, v P, fields []field[T], skip ...string) error {
	if err := readFields(r, data, (*T)(v), fields, skip...); err != nil {
		return err
	}
	rec, err := r.takeExtra()
	if err != nil {
		return err
	}
	return setExtra(r, v, rec)
}

func readFields[T any](r *reader, data []byte, v *T, fields []field[T], skip ...string) error {
	var seen uint32
	return r.items(data, '{', func(name string, value []byte) error {
		i := slices.IndexFunc(fields, func(f field[T]) bool { return f.name == name })
		if i < 0 && slices.Contains(skip, name) {
			return nil
		}
		if i < 0 && r.unknown != nil {
			return r.putAside(name, value)
		}
		if i < 0 {
			return r.Invalid("it has the unknown key %q; known are %s", name, namesOf(fields))
		}
		if seen&(1<<i) != 0 {
			return r.Invalid("it has the key %q twice", name)
		}
		seen |= 1 << i
		back := r.Enter(name)
		err := r.value(value, fields[i].at(v))
		r.Leave(back)
		return err
	})
}

// putAside keeps what stands under an unknown key.
func (r *reader) putAside(name string, value []byte) error {
	back := r.EnterName(name)
	at := string(r.Path)
	r.Leave(back)
	for r.again[at]++; r.again[at] > 1; r.again[at]++ { // the key stands twice
		mark := "+"
		if n := r.again[at] - 1; n > 1 {
			mark += strconv.Itoa(n)
		}
		at += mark
	}
	r.unknown[at] = bytes.Clone(value)
	return nil
}

// takeExtra returns the CBOR map put aside for this place, or nil.
func (r *reader) takeExtra() (record, error) {
	b, ok := r.extra[string(r.Path)]
	if !ok {
		return nil, nil
	}
	delete(r.extra, string(r.Path))
	rec, err := stored.UnmarshalMap(b)
	if err != nil {
		return nil, r.Invalid("extra is no CBOR map with whole numbers as keys: %v", err)
	}
	return rec, nil
}

// setExtra sets v's unknown keys.
func setExtra[T any, P extensible[T]](r *reader, v P, rec record) error {
	for k := range rec {
		if stored.Knows(v, k) {
			return r.Invalid("extra: key %d has a field of its own", k)
		}
	}
	if len(rec) > 0 {
		*v.extras() = rec
	}
	return nil
}

func (r *reader) value(data []byte, value any) error {
	if string(data) == "null" && !isOutcome(value) {
		return r.null(value)
	}
	switch x := value.(type) {
	case *string:
		return r.text(data, x)
	case *asideText:
		return r.text(data, &x.Text)
	case *outcome:
		return r.outcome(data, x)
	case *json.RawMessage:
		return r.raw(data, x)
	case *map[string]json.RawMessage:
		return r.rawMap(data, x)
	case *[]string:
		return readList(r, data, x, r.text)
	case *[]Part:
		return r.parts(data, x)
	case *[]Call:
		return readList(r, data, x, func(b []byte, c *Call) error { return readObject(r, b, c, callFields) })
	case **Result:
		*x = &Result{}
		return readObject(r, data, *x, resultFields)
	case **Source:
		*x = &Source{}
		return readObject(r, data, *x, sourceFields)
	case **Decider:
		*x = &Decider{}
		return readFields(r, data, *x, deciderFields)
	case *Metadata:
		return readObject(r, data, x, metaFields)
	}
	return r.scalar(data, value)
}

func isOutcome(value any) bool {
	_, ok := value.(*outcome)
	return ok
}

// null leaves a value empty, unless its exact text says that it is the JSON null.
func (r *reader) null(value any) error {
	if raw, ok := value.(*json.RawMessage); ok && r.exact[string(r.Path)] != "" {
		return r.raw([]byte("null"), raw)
	}
	return nil
}

func (r *reader) scalar(data []byte, value any) error {
	switch x := value.(type) {
	case *bool:
		if s := string(data); s != "true" && s != "false" {
			return r.Invalid("it must be true or false")
		}
		*x = data[0] == 't'
		return nil
	case *int:
		n, err := r.number(data)
		*x = int(n)
		return err
	case *int64:
		var err error
		*x, err = r.number(data)
		return err
	case **int64:
		n, err := r.number(data)
		*x = &n
		return err
	}
	var s string
	if err := r.text(data, &s); err != nil {
		return err
	}
	return r.named(s, value)
}

// named reads values that are written as a text of a fixed form.
func (r *reader) named(s string, value any) (err error) {
	switch x := value.(type) {
	case *ID:
		*x, err = r.id(s)
	case **ID:
		var id ID
		id, err = r.id(s)
		*x = &id
	case *Hash:
		if *x, err = ParseHash(s); err != nil {
			err = r.Invalid("%q is not a SHA-256 in 64 hex digits", s)
		}
	case *Time:
		if *x, err = parseTime(s); err != nil {
			err = r.Invalid("%q is not a time like 2006-01-02T15:04:05Z", s)
		}
	case *[]byte:
		if *x, err = base64.StdEncoding.DecodeString(s); err != nil {
			err = r.Invalid("it is not base64: %v", err)
		}
	}
	return err
}

func (r *reader) id(s string) (ID, error) {
	id, err := uuid.Parse(s)
	if err != nil || len(s) != len(id.String()) {
		return ID{}, r.Invalid("%q is not an id like %s", s, ID{})
	}
	return id, nil
}

func (r *reader) number(data []byte) (int64, error) {
	n, err := strconv.ParseInt(string(data), 10, 64)
	if err != nil {
		return 0, r.Invalid("it must be a whole number")
	}
	return n, nil
}

// outcome reads "result": a string is the text, unless its exact text says that it is JSON.
func (r *reader) outcome(data []byte, x *outcome) error {
	if _, isJSON := r.exact[string(r.Path)]; data[0] == '"' && !isJSON {
		return r.text(data, &x.Text)
	}
	return r.raw(data, &x.JSON)
}

// raw copies JSON as it is, or takes the exact text put aside for it.
func (r *reader) raw(data []byte, raw *json.RawMessage) error {
	*raw = bytes.Clone(data)
	exact, ok := r.exact[string(r.Path)]
	if !ok {
		return nil
	}
	delete(r.exact, string(r.Path))
	*raw = json.RawMessage(exact)
	if !bytes.Equal(bare(data), bare(*raw)) {
		return r.Invalid("its exact text is another value; remove one of the two")
	}
	return nil
}

// bare returns JSON without white space, with each name of an object once, and with the escapes that json.Marshal may make.
func bare(b []byte) []byte {
	var compact, escaped bytes.Buffer
	if json.Compact(&compact, b) != nil {
		return nil
	}
	unique, _ := jsontree.Unique(compact.Bytes())
	json.HTMLEscape(&escaped, unique)
	return escaped.Bytes()
}

func (r *reader) rawMap(data []byte, m *map[string]json.RawMessage) error {
	*m = map[string]json.RawMessage{}
	return r.items(data, '{', func(name string, value []byte) error {
		if _, twice := (*m)[name]; twice {
			return r.Invalid("it has the key %q twice", name)
		}
		back := r.EnterName(name)
		var raw json.RawMessage
		err := r.raw(value, &raw)
		(*m)[name] = raw
		r.Leave(back)
		return err
	})
}

// parts reads a list of parts, or a plain string as one text part.
func (r *reader) parts(data []byte, parts *[]Part) error {
	if data[0] != '"' {
		return readList(r, data, parts, r.part)
	}
	p := Part{Type: TextPart}
	if err := r.text(data, &p.Text); err != nil {
		return err
	}
	*parts = []Part{p}
	return nil
}

func readList[T any](r *reader, data []byte, list *[]T, read func([]byte, *T) error) error {
	return r.items(data, '[', func(_ string, value []byte) error {
		back := r.EnterIndex(len(*list))
		var v T
		err := read(value, &v)
		*list = append(*list, v)
		r.Leave(back)
		return err
	})
}

func (r *reader) part(data []byte, p *Part) error {
	rec, err := r.takeExtra()
	if err != nil {
		return err
	}
	if rec[partTypeKey] != nil {
		return r.foreign(data, rec, p)
	}
	typ, err := r.typeOf(data)
	if err != nil {
		return err
	}
	if fields, known := partFields[typ]; known {
		if err := readObject(r, data, p, fields); err != nil {
			return err
		}
		return setExtra(r, p, rec)
	}
	p.Type = typ
	if len(rec) > 0 {
		return r.Invalid("extra: the type of the part is missing")
	}
	return r.raw(data, &p.Raw)
}

// foreign reads a part of an unknown type that has more than its JSON. If rec has an empty value for the JSON's key, the part has no JSON.
func (r *reader) foreign(data []byte, rec record, p *Part) error {
	_, none := rec[partRawKey]
	delete(rec, partRawKey)
	if err := stored.SetRecord(rec, p); err != nil {
		return r.Invalid("extra: %v", err)
	}
	if partFields[p.Type] != nil {
		return r.Invalid("extra: a part of type %q has fields of its own", p.Type)
	}
	if none {
		return nil
	}
	return r.raw(data, &p.Raw)
}

// typeOf returns the "type" of a part.
func (r *reader) typeOf(data []byte) (string, error) {
	var typ string
	err := r.items(data, '{', func(name string, value []byte) error {
		if name == "type" && typ == "" {
			return r.text(value, &typ)
		}
		return nil
	})
	if err == nil && typ == "" {
		err = r.Invalid("a part needs a type")
	}
	return typ, err
}

// text reads a string. It refuses half of a surrogate pair, which UTF-8 cannot represent.
func (r *reader) text(data []byte, s *string) error {
	if data[0] != '"' {
		return r.Invalid("it must be a string")
	}
	if bytes.IndexByte(data, '\\') < 0 {
		*s = string(data[1 : len(data)-1])
		return nil
	}
	if hasLoneSurrogate(data) {
		return r.Invalid("the text has half of a surrogate pair (\\ud800 to \\udfff)")
	}
	*s, _ = jsontree.Text(data)
	return nil
}

func hasLoneSurrogate(s []byte) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			size, half := jsontree.Escape(s[i:])
			if half {
				return true
			}
			i += size - 1
		}
	}
	return false
}

// items calls fn for each member of an object ('{') or element of a list ('['), with the JSON of its value.
func (r *reader) items(data []byte, open byte, fn func(name string, value []byte) error) error {
	if data[0] != open {
		return r.Invalid("it must be %s", map[byte]string{'{': "an object", '[': "a list"}[open])
	}
	return jsontree.Each(data, func(quoted, value []byte) error {
		var name string
		if open == '{' {
			if err := r.text(quoted, &name); err != nil {
				return err
			}
		}
		return fn(name, value)
	})
}
