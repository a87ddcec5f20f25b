package gate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// node is a value of a JSON text that may have comments, as agents keep their settings, and where it stands.
type node struct {
	from, to int
	kind     byte // {, [, or " for all else
	items    []item
}

// item is a member of an object or an item of an array.
type item struct {
	key   string
	from  int // of the key, or of the value in an array
	value *node
	comma int // where the comma behind it stands, -1 for none
}

// jsonText reads a text and notes where its values stand.
type jsonText struct {
	text string
	at   int
}

var errCut = errors.New("it ends too early")

// readText reads a whole text, nil if it has nothing but space and comments.
func readText(text string) (*node, error) {
	p := &jsonText{text: text}
	var n *node
	err := p.skip()
	if err == nil && p.at < len(text) {
		if n, err = p.value(0); err == nil {
			err = p.skip()
		}
		if err == nil && p.at < len(text) {
			err = errors.New("something stands behind its end")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", 1+strings.Count(text[:min(p.at, len(text))], "\n"), err)
	}
	return n, nil
}

// skip goes over space and comments.
func (p *jsonText) skip() error {
	for {
		p.at += len(p.text[p.at:]) - len(strings.TrimLeft(p.text[p.at:], " \t\r\n"))
		rest := p.text[p.at:]
		switch {
		case strings.HasPrefix(rest, "//"):
			line, _, _ := strings.Cut(rest, "\n")
			p.at += len(line)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return errCut
			}
			p.at += end + 4
		default:
			return nil
		}
	}
}

const deepest = 200

func (p *jsonText) value(depth int) (*node, error) {
	switch {
	case p.at >= len(p.text):
		return nil, errCut
	case depth > deepest:
		return nil, errors.New("it is too deep")
	}
	switch c := p.text[p.at]; c {
	case '{', '[':
		return p.items(c, depth)
	}
	n := &node{from: p.at, kind: '"'}
	d := json.NewDecoder(strings.NewReader(p.text[p.at:]))
	var raw json.RawMessage
	if p.text[p.at] != '"' {
		end := strings.IndexAny(p.text[p.at:]+" ", " \t\r\n,]}/")
		d = json.NewDecoder(strings.NewReader(p.text[p.at : p.at+end]))
	}
	if err := d.Decode(&raw); err != nil {
		return nil, err
	}
	p.at += int(d.InputOffset())
	n.to = p.at
	return n, nil
}

// items reads an object or an array from its bracket on.
func (p *jsonText) items(kind byte, depth int) (*node, error) {
	n, end := &node{from: p.at, kind: kind}, kind+2
	for p.at++; ; {
		if err := p.skip(); err != nil {
			return nil, err
		}
		switch last := len(n.items) - 1; {
		case p.at >= len(p.text):
			return nil, errCut
		case p.text[p.at] == end:
			p.at++
			n.to = p.at
			return n, nil
		case last >= 0 && n.items[last].comma < 0 && p.text[p.at] == ',':
			n.items[last].comma = p.at
			p.at++
			continue
		case last >= 0 && n.items[last].comma < 0:
			return nil, errors.New("a comma is missing")
		}
		one, err := p.item(kind, depth)
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, *one)
	}
}

func (p *jsonText) item(kind byte, depth int) (*item, error) {
	one := &item{from: p.at, comma: -1}
	if kind == '{' {
		key, err := p.value(depth + 1)
		if err == nil {
			err = json.Unmarshal([]byte(p.text[key.from:key.to]), &one.key)
		}
		if err == nil {
			err = p.skip()
		}
		if err == nil && (p.at >= len(p.text) || p.text[p.at] != ':') {
			err = errors.New("a colon is missing")
		}
		if err != nil {
			return nil, err
		}
		p.at++
		if err := p.skip(); err != nil {
			return nil, err
		}
	}
	var err error
	one.value, err = p.value(depth + 1)
	return one, err
}

// get returns the value of a member, nil if there is none or n is no object. Of several with the name, the last counts.
func (n *node) get(key string) *node {
	if n == nil || n.kind != '{' {
		return nil
	}
	for _, one := range slices.Backward(n.items) {
		if one.key == key {
			return one.value
		}
	}
	return nil
}

// plain returns a value as JSON without comments, and without commas that nothing follows.
func (n *node) plain(text string) string {
	if n.kind == '"' {
		return text[n.from:n.to]
	}
	var b strings.Builder
	b.WriteByte(n.kind)
	for i, one := range n.items {
		if i > 0 {
			b.WriteByte(',')
		}
		if n.kind == '{' {
			key, _ := json.Marshal(one.key)
			b.Write(key)
			b.WriteByte(':')
		}
		b.WriteString(one.value.plain(text))
	}
	b.WriteByte(n.kind + 2)
	return b.String()
}

// with returns the text with an item at the end of an object or an array, indented like its neighbours.
func (n *node) with(text, key string, value any) (string, error) {
	inner, outer := "", indentAt(text, n.from)
	if len(n.items) > 0 {
		inner = indentAt(text, n.items[0].from)
	}
	if inner == "" || inner == outer {
		inner = outer + unitOf(text)
	}
	raw, err := json.MarshalIndent(value, inner, unitOf(text))
	if err != nil {
		return "", err
	}
	if key != "" {
		name, _ := json.Marshal(key)
		raw = slices.Concat(name, []byte(": "), raw)
	}
	if len(n.items) == 0 {
		kept := strings.TrimRight(text[:n.to-1], " \t\r\n")
		return kept + "\n" + inner + string(raw) + "\n" + outer + text[n.to-1:], nil
	}
	last := n.items[len(n.items)-1]
	if last.comma >= 0 {
		return text[:last.comma+1] + "\n" + inner + string(raw) + text[last.comma+1:], nil
	}
	return text[:last.value.to] + ",\n" + inner + string(raw) + text[last.value.to:], nil
}

// without returns the text without the items of n at these places, each with its comma and the space before it.
func (n *node) without(text string, places []int) string {
	kept := len(n.items) - len(places)
	for _, i := range slices.Backward(places) {
		one := n.items[i]
		end := one.value.to
		if one.comma >= 0 {
			text = text[:one.comma] + text[one.comma+1:]
		}
		from := len(strings.TrimRight(text[:one.from], " \t\r\n"))
		if line := text[strings.LastIndexByte(text[:from], '\n')+1 : from]; strings.Contains(line, "//") {
			from += strings.IndexByte(text[from:], '\n') // perhaps a comment, which the end of its line ends
		}
		text = text[:from] + text[end:]
		if before := i - 1; one.comma < 0 && kept > 0 && before >= 0 && !slices.Contains(places, before) && n.items[before].comma >= 0 {
			at := n.items[before].comma
			text = text[:at] + text[at+1:]
		}
	}
	return text
}

// indentAt returns the space at the beginning of a place's line.
func indentAt(text string, at int) string {
	line := text[strings.LastIndexByte(text[:at], '\n')+1 : at]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// unitOf returns a level's indentation: that of the first indented line.
func unitOf(text string) string {
	for line := range strings.Lines(text) {
		if unit := line[:len(line)-len(strings.TrimLeft(line, " \t"))]; unit != "" {
			return unit
		}
	}
	return "  "
}
