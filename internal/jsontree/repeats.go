package jsontree

import "bytes"

// Unique returns JSON in which no object has a name twice: of several members with one name the last counts, as it does for JSON.parse. raw must be valid; if
// it has no such object, json is raw itself.
func Unique(raw []byte) (json []byte, same bool) {
	if !repeats(raw) {
		return raw, true
	}
	p := parser{raw: raw, last: true}
	v, err := p.value(0)
	if err != nil { // no value is too deep or has a name twice for such a parser
		return raw, true
	}
	return v.Append(make([]byte, 0, len(raw))), false
}

// manyNames is the number of names from which an object's names are in a map.
const manyNames = 32

// repeats reports whether an object of valid JSON has a name twice.
func repeats(raw []byte) bool {
	var names [][]byte // of the open objects
	var open []openObject
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '{', '[':
			open = append(open, openObject{first: len(names)})
		case '}', ']':
			names = names[:open[len(open)-1].first]
			open = open[:len(open)-1]
		case '"':
			end := StringEnd(raw, i)
			name := raw[i:end]
			if i = end - 1; !isName(raw[end:]) {
				continue
			}
			if bytes.IndexByte(name, '\\') >= 0 {
				p := parser{raw: name}
				name = append([]byte(nil), p.text()...)
			} else {
				name = name[1 : len(name)-1]
			}
			names = append(names, name)
			if open[len(open)-1].repeats(names) {
				return true
			}
		}
	}
	return false
}

// isName reports whether the string before rest is a member's name.
func isName(rest []byte) bool {
	for _, c := range rest {
		if !isSpace(c) {
			return c == ':'
		}
	}
	return false
}

// openObject is an object, or a list, whose end has not come. first is the index of its first name.
type openObject struct {
	first int
	seen  map[string]bool // of an object with many names
}

// repeats reports whether the object has the last of names already.
func (o *openObject) repeats(names [][]byte) bool {
	own := names[o.first:]
	name := own[len(own)-1]
	own = own[:len(own)-1]
	if len(own) < manyNames {
		for _, n := range own {
			if bytes.Equal(n, name) {
				return true
			}
		}
		return false
	}
	if o.seen == nil {
		o.seen = make(map[string]bool, 2*len(own))
		for _, n := range own {
			o.seen[string(n)] = true
		}
	}
	known := o.seen[string(name)]
	o.seen[string(name)] = true
	return known
}
