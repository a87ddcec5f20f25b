package serve

import (
	"encoding/json"
	"strings"
)

// idScanner finds the id of a request whose line is too long to be kept, while the line passes.
type idScanner struct {
	id json.RawMessage // nil if it has not come

	depth   int // of objects and lists
	inText  bool
	escaped bool   // the next byte of the text belongs to an escape
	token   []byte // of the name, the text or the number of the line's own object that passes
	name    string // the name of the value that passes
}

// maxToken is the longest name or id that is looked at, in bytes.
const maxToken = 1 << 10

// scan looks at the next bytes of the line.
func (s *idScanner) scan(line []byte) {
	for _, c := range line {
		switch {
		case s.inText:
			s.keep(c)
			s.inText = s.escaped || c != '"'
			s.escaped = c == '\\' && !s.escaped
		case c == '"':
			s.inText = true
			s.keep(c)
		case c == '{', c == '[':
			s.depth++
		case c == ':' && s.depth == 1:
			s.name = ""
			_ = json.Unmarshal(s.token, &s.name) // another token is no name
			s.token = nil
		case c == ',' && s.depth == 1:
			s.take()
		case c == '}', c == ']':
			if s.depth == 1 {
				s.take()
			}
			s.depth--
		case c > ' ':
			s.keep(c)
		}
	}
}

// keep notes a byte of the line's own object.
func (s *idScanner) keep(c byte) {
	if s.depth == 1 && len(s.token) <= maxToken {
		s.token = append(s.token, c)
	}
}

// take ends a value. The first id counts.
func (s *idScanner) take() {
	if s.name == "id" && s.id == nil && isID(s.token) && json.Valid(s.token) {
		s.id = s.token
	}
	s.name, s.token = "", nil
}

// isID reports whether JSON can be the id of a request: a number or a text.
func isID(raw []byte) bool { return len(raw) > 0 && strings.IndexByte(`"-0123456789`, raw[0]) >= 0 }
