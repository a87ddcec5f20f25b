package sqlite

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// column holds the properties of a declared column that decide how its values are stored in records.
type column struct {
	name     string
	integer  bool // the type is exactly INTEGER
	real     bool // whole numbers are floats
	virtual  bool // computed when it is read, and not stored
	fallback any  // the value in rows that were written before the column was added
}

// token is a word, a number, a sign or a quoted text of a declaration.
type token struct {
	text   string
	quoted byte // the opening quote, 0 for none
}

func (t token) is(words ...string) bool {
	return t.quoted == 0 && slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(t.text, w) })
}

// declared parses a CREATE TABLE statement as SQLite keeps it: a name, the columns and constraints in parentheses, options. It reports false for any other
// statement.
func declared(sql string) (*Table, bool) {
	tokens := tokenize(sql)
	open := slices.IndexFunc(tokens, func(t token) bool { return t.is("(") })
	if open < 0 || len(tokens) < 4 || !tokens[0].is("create") {
		return nil, false
	}
	t := &Table{rowid: -1}
	var key []string
	defs, rest := split(tokens[open+1:])
	for _, def := range defs {
		switch {
		case len(def) == 0:
			return nil, false
		case def[0].is("constraint", "primary", "unique", "check", "foreign"):
			if names := keyColumns(def); names != nil {
				key = names
			}
		default:
			c, primary := declaredColumn(def)
			if primary {
				key = []string{c.name}
				if c.integer && !slices.ContainsFunc(def, func(t token) bool { return t.is("desc") }) {
					t.rowid = len(t.columns)
				}
			}
			t.columns, t.Columns = append(t.columns, c), append(t.Columns, c.name)
		}
	}
	if i := slices.IndexFunc(rest, func(t token) bool { return t.is("without") }); i >= 0 {
		t.keyed, t.rowid = true, -1
	} else if len(key) == 1 && t.rowid < 0 {
		if i := t.Column(key[0]); i >= 0 && t.columns[i].integer && !declaredAlone(defs, i) {
			t.rowid = i
		}
	}
	t.order(key)
	return t, len(t.columns) > 0
}

// declaredAlone reports whether column i's own declaration makes it the primary key. There, and only there, DESC keeps the column from being the row's id.
func declaredAlone(defs [][]token, i int) bool {
	_, primary := declaredColumn(defs[i])
	return primary
}

// order determines which column each value of a record belongs to: in a table without row ids the columns of the key come first.
func (t *Table) order(key []string) {
	put := map[int]bool{}
	add := func(i int) {
		if i >= 0 && !put[i] && !t.columns[i].virtual {
			put[i] = true
			t.stored = append(t.stored, i)
		}
	}
	if t.keyed {
		for _, name := range key {
			add(t.Column(name))
		}
	}
	for i := range t.columns {
		add(i)
	}
}

// split splits the tokens up to the closing parenthesis at their outer commas, and returns what follows it as rest.
func split(tokens []token) (parts [][]token, rest []token) {
	depth, from := 0, 0
	for i, t := range tokens {
		switch {
		case t.is("("):
			depth++
		case t.is(")") && depth == 0:
			return append(parts, tokens[from:i]), tokens[i+1:]
		case t.is(")"):
			depth--
		case t.is(",") && depth == 0:
			parts, from = append(parts, tokens[from:i]), i+1
		}
	}
	return append(parts, tokens[from:]), nil
}

// keyColumns returns the columns of a PRIMARY KEY constraint, nil for any other definition.
func keyColumns(def []token) []string {
	if def[0].is("constraint") && len(def) > 2 {
		def = def[2:]
	}
	if len(def) < 3 || !def[0].is("primary") || !def[2].is("(") {
		return nil
	}
	columns, _ := split(def[3:])
	var names []string
	for _, c := range columns {
		if len(c) > 0 {
			names = append(names, c[0].text)
		}
	}
	return names
}

// declaredColumn parses a column's declaration: its name, its type, its constraints. primary reports whether it is a PRIMARY KEY.
func declaredColumn(def []token) (c column, primary bool) {
	c.name = def[0].text
	i := 1
	var words []string
	for ; i < len(def) && !def[i].is("constraint", "primary", "not", "null", "unique", "check", "default", "collate", "references", "generated", "as"); i++ {
		words = append(words, strings.ToUpper(def[i].text))
	}
	kind := strings.Join(words, " ")
	c.integer = kind == "INTEGER"
	c.real = floating(kind)
	for ; i < len(def); i++ {
		switch {
		case def[i].is("("):
			_, rest := split(def[i+1:])
			i = len(def) - len(rest) - 1
		case def[i].is("primary"):
			primary = true
		case def[i].is("as"):
			c.virtual = !slices.ContainsFunc(def[i:], func(t token) bool { return t.is("stored") })
		case def[i].is("default"):
			c.fallback = literal(def[i+1:])
		}
	}
	if n, ok := c.fallback.(int64); ok && c.real {
		c.fallback = float64(n)
	}
	return c, primary
}

// floating reports whether a column of this type keeps floats, by SQLite's rules: words such as INT and CHAR anywhere in the type win over REAL, FLOA and DOUB.
func floating(kind string) bool {
	for _, other := range []string{"INT", "CHAR", "CLOB", "TEXT", "BLOB"} {
		if strings.Contains(kind, other) {
			return false
		}
	}
	return strings.Contains(kind, "REAL") || strings.Contains(kind, "FLOA") || strings.Contains(kind, "DOUB")
}

// literal returns the value of a DEFAULT that is written as a literal, nil for an expression.
func literal(def []token) any {
	if len(def) == 0 {
		return nil
	}
	sign := ""
	if def[0].is("+", "-") && len(def) > 1 {
		sign, def = def[0].text, def[1:]
	}
	t := def[0]
	switch {
	case t.is("x") && len(def) > 1 && def[1].quoted == '\'':
		b, err := hex.DecodeString(def[1].text)
		if err != nil {
			return nil
		}
		return b
	case t.quoted == '\'' || t.quoted == '"':
		return t.text
	case t.is("true"):
		return int64(1)
	case t.is("false"):
		return int64(0)
	}
	if n, err := strconv.ParseInt(sign+t.text, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(sign+t.text, 64); err == nil && t.text[0] <= '9' {
		return f
	}
	return nil
}

// tokenize splits SQL into tokens, without the comments.
func tokenize(s string) []token {
	var out []token
	for len(s) > 0 {
		switch c := s[0]; {
		case strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
		case strings.HasPrefix(s, "/*"):
			_, s, _ = strings.Cut(s[2:], "*/")
		case c == '\'' || c == '"' || c == '`' || c == '[':
			text, n := quotedText(s)
			out, s = append(out, token{text, c}), s[n:]
		case c <= ' ':
			s = s[1:]
		default:
			n := 1
			for n < len(s) && wordByte(c) && wordByte(s[n]) {
				n++
			}
			out, s = append(out, token{text: s[:n]}), s[n:]
		}
	}
	return out
}

func wordByte(c byte) bool {
	return c >= 0x80 || c == '_' || c == '$' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// quotedText reads a quoted name or text at the start of s; a doubled closing quote stands for one, except in brackets. n is the number of bytes that it takes.
func quotedText(s string) (text string, n int) {
	end := s[0]
	if end == '[' {
		end = ']'
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] == end {
			if end == ']' || i+1 == len(s) || s[i+1] != end {
				return b.String(), i + 1
			}
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), len(s)
}
