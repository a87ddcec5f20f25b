// Package jsontree reads JSON and keeps everything that distinguishes two values: the order of members, the spelling of numbers, and unpaired halves of
// surrogate pairs in strings. A member that appears twice is an error, because programs differ about which of the two counts.
package jsontree

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is the kind of a value.
type Kind byte

// The kinds.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Object
)

// Value is a JSON value. Text is the content of a string, the spelling of a number, or the word of a bool or null.
type Value struct {
	Kind    Kind
	Text    string
	List    []*Value
	Members []Member
}

// Member is a named value of an object.
type Member struct {
	Name  string
	Value *Value
}

// maxDepth is how deep values may be nested.
const maxDepth = 500

// Errors of Parse.
var (
	ErrSyntax = errors.New("it is not JSON")
	ErrDepth  = fmt.Errorf("it is nested more than %d deep", maxDepth)
)

// DuplicateError names a member that appears twice in an object.
type DuplicateError struct{ Name string }

func (e *DuplicateError) Error() string { return fmt.Sprintf("the key %q stands there twice", e.Name) }

// Parse parses one value. It returns ErrSyntax, ErrDepth or a *DuplicateError. An unpaired half of a surrogate pair becomes the three bytes that UTF-8's scheme
// would give it, which are not valid UTF-8.
func Parse(raw []byte) (*Value, error) {
	if !json.Valid(raw) || !utf8.Valid(raw) {
		return nil, ErrSyntax
	}
	p := parser{raw: raw}
	return p.value(0)
}

// Text returns the content of a JSON string, "" for null, as encoding/json does: U+FFFD stands for what UTF-8 cannot represent. ok is false for anything else.
// A program that links json.Unmarshal or Marshal has 200 KB of code for any type, so the core of the library links neither.
func Text(raw []byte) (text string, ok bool) {
	if !json.Valid(raw) {
		return "", false
	}
	p := parser{}
	p.raw, _ = Whole(raw)
	switch p.next() {
	case '"':
		return p.text(), true
	case 'n':
		return "", true
	}
	return "", false
}

// parser parses JSON that is known to be valid.
type parser struct {
	raw  []byte
	at   int
	last bool // of members with one name the last counts, and values may be as deep as valid JSON
}

// next skips white space, commas and colons, and returns the byte after them without taking it.
func (p *parser) next() byte {
	for {
		switch c := p.raw[p.at]; c {
		case ' ', '\t', '\n', '\r', ',', ':':
			p.at++
		default:
			return c
		}
	}
}

func (p *parser) value(depth int) (*Value, error) {
	if depth > maxDepth && !p.last {
		return nil, ErrDepth
	}
	switch p.next() {
	case '{':
		return p.object(depth)
	case '[':
		return p.list(depth)
	case '"':
		return &Value{Kind: String, Text: p.text()}, nil
	}
	from := p.at
	for p.at < len(p.raw) && !isEnd(p.raw[p.at]) {
		p.at++
	}
	word := string(p.raw[from:p.at])
	switch word {
	case "null":
		return &Value{Kind: Null, Text: word}, nil
	case "true", "false":
		return &Value{Kind: Bool, Text: word}, nil
	}
	return &Value{Kind: Number, Text: word}, nil
}

func isEnd(c byte) bool {
	return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\t' || c == '\n' || c == '\r'
}

func (p *parser) object(depth int) (*Value, error) {
	v := &Value{Kind: Object}
	seen := map[string]int{}
	for p.at++; p.next() != '}'; {
		name := p.text()
		place, twice := seen[name]
		if twice && !p.last {
			return nil, &DuplicateError{name}
		}
		member, err := p.value(depth + 1)
		switch {
		case err != nil:
			return nil, err
		case twice:
			v.Members[place].Value = member
			continue
		}
		seen[name] = len(v.Members)
		v.Members = append(v.Members, Member{name, member})
	}
	p.at++
	return v, nil
}

func (p *parser) list(depth int) (*Value, error) {
	v := &Value{Kind: List}
	for p.at++; p.next() != ']'; {
		one, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.List = append(v.List, one)
	}
	p.at++
	return v, nil
}

// text parses a string.
func (p *parser) text() string {
	p.next()
	p.at++
	out := make([]byte, 0, StringEnd(p.raw, p.at-1)-p.at)
	for {
		from := p.at
		for p.raw[p.at] != '"' && p.raw[p.at] != '\\' {
			p.at++
		}
		out = append(out, p.raw[from:p.at]...)
		p.at++
		if p.raw[p.at-1] == '"' {
			return string(out)
		}
		out = p.escape(out)
	}
}

var escapes = map[byte]byte{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', '"': '"', '\\': '\\', '/': '/'}

func (p *parser) escape(out []byte) []byte {
	c := p.raw[p.at]
	p.at++
	if c != 'u' {
		return append(out, escapes[c])
	}
	r := p.hex()
	if utf16.IsSurrogate(r) && p.at+6 <= len(p.raw) && p.raw[p.at] == '\\' && p.raw[p.at+1] == 'u' {
		back := p.at
		p.at += 2
		if pair := utf16.DecodeRune(r, p.hex()); pair != utf8.RuneError {
			return utf8.AppendRune(out, pair)
		}
		p.at = back
	}
	if utf16.IsSurrogate(r) {
		return append(out, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(out, r)
}

func (p *parser) hex() rune {
	n, _ := strconv.ParseUint(string(p.raw[p.at:p.at+4]), 16, 16) // raw is valid JSON
	p.at += 4
	return rune(n)
}

// Append appends the canonical form to out: no white space, members in their order, numbers as spelled, the shortest escapes.
func (v *Value) Append(out []byte) []byte {
	switch v.Kind {
	case String:
		return appendText(out, v.Text)
	case List:
		out = append(out, '[')
		for i, one := range v.List {
			if i > 0 {
				out = append(out, ',')
			}
			out = one.Append(out)
		}
		return append(out, ']')
	case Object:
		out = append(out, '{')
		for i, m := range v.Members {
			if i > 0 {
				out = append(out, ',')
			}
			out = m.Value.Append(append(appendText(out, m.Name), ':'))
		}
		return append(out, '}')
	}
	return append(out, v.Text...)
}

var short = map[byte]byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '"': '"', '\\': '\\'}

func appendText(out []byte, s string) []byte {
	out = append(out, '"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		letter, has := short[c]
		switch {
		case has:
			out = append(out, '\\', letter)
		case c < 0x20:
			out = fmt.Appendf(out, `\u%04x`, c)
		case c == 0xED && i+2 < len(s) && s[i+1] >= 0xA0: // an unpaired half of a surrogate pair
			out = fmt.Appendf(out, `\u%04x`, rune(c&0xF)<<12|rune(s[i+1]&0x3F)<<6|rune(s[i+2]&0x3F))
			i += 2
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}

// Get returns the member of an object with exactly this name, nil for none.
func (v *Value) Get(name string) *Value {
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Arguments parses a call's arguments: nothing and null are an object without members.
func Arguments(raw []byte) (*Value, error) {
	if len(raw) == 0 {
		return &Value{Kind: Object}, nil
	}
	v, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	switch v.Kind {
	case Null:
		return &Value{Kind: Object}, nil
	case Object:
		return v, nil
	}
	return nil, errors.New("they are not a JSON object")
}

// Canonical returns the canonical form of a call's arguments: {} for none. It returns arguments that cannot be parsed as they are.
func Canonical(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	v, err := Parse(raw)
	switch {
	case err != nil:
		return raw
	case v.Kind == Null:
		return json.RawMessage("{}")
	}
	return v.Append(make([]byte, 0, len(raw)))
}

// Unwrapped returns the object in a string that holds exactly one, byte for byte: some providers give a call's arguments that way. It returns anything else as
// it is.
func Unwrapped(raw json.RawMessage) json.RawMessage {
	if v, err := Parse(raw); err == nil && v.Kind == String {
		inner := trim(v.Text)
		if len(inner) > 0 && inner[0] == '{' && json.Valid([]byte(inner)) && utf8.ValidString(inner) {
			return json.RawMessage(inner)
		}
	}
	return raw
}

// trim removes JSON's white space from both ends.
func trim(s string) string {
	from, to := 0, len(s)
	for from < to && isSpace(s[from]) {
		from++
	}
	for to > from && isSpace(s[to-1]) {
		to--
	}
	return s[from:to]
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
