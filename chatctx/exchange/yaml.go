package exchange

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// YAML as programs write it is converted to JSON: block mappings and sequences, plain and quoted scalars on one line, block scalars, which stay exact, and flow
// values that are JSON. Anchors, tags, several documents and plain scalars that span lines are refused, since no program that is read here writes them.
// docs/design.md says why no library does it.

type yamlReader struct {
	lines []string
	n     int // the index of the next line
	out   bytes.Buffer
}

// yamlJSON returns YAML as JSON.
func yamlJSON(text string) ([]byte, error) {
	y := &yamlReader{lines: strings.Split(text, "\n")}
	if y.skipBlank(); strings.TrimRight(y.line(), " \r") == "---" {
		y.n++
	}
	y.skipBlank()
	if err := y.block(0, 0); err != nil {
		return nil, err
	}
	if y.skipBlank(); y.n < len(y.lines) {
		return nil, y.wrong("something that is no part of what stands before it")
	}
	return y.out.Bytes(), nil
}

func (y *yamlReader) wrong(what string) error { return fmt.Errorf("YAML, line %d: %s", y.n+1, what) }

// line returns the current line, "" at the end.
func (y *yamlReader) line() string {
	if y.n >= len(y.lines) {
		return ""
	}
	return strings.TrimSuffix(y.lines[y.n], "\r")
}

func (y *yamlReader) skipBlank() {
	for y.n < len(y.lines) {
		if l := strings.TrimLeft(y.line(), " \t"); l != "" && l[0] != '#' {
			return
		}
		y.n++
	}
}

func indentOf(l string) int { return len(l) - len(strings.TrimLeft(l, " ")) }

// block reads a mapping, a sequence or a scalar with at least the given indentation.
func (y *yamlReader) block(least, depth int) error {
	if depth > maxDepth {
		return y.wrong("nested too deep")
	}
	y.skipBlank()
	at := indentOf(y.line())
	text := strings.TrimLeft(y.line(), " ")
	switch _, _, isKey := yamlKey(text); {
	case y.n >= len(y.lines) || at < least:
		y.out.WriteString("null")
		return nil
	case text == "-" || strings.HasPrefix(text, "- "):
		return y.items(at, depth)
	case isKey:
		return y.members(at, depth)
	}
	y.n++
	return y.scalar(text, at)
}

// items reads a sequence whose dashes are at a column.
func (y *yamlReader) items(at, depth int) error {
	y.out.WriteByte('[')
	for i := 0; ; i++ {
		y.skipBlank()
		text := strings.TrimLeft(y.line(), " ")
		if indentOf(y.line()) != at || y.n >= len(y.lines) || text != "-" && !strings.HasPrefix(text, "- ") {
			break
		}
		if i > 0 {
			y.out.WriteByte(',')
		}
		// The text after the dash counts as if the dash were a blank.
		y.lines[y.n] = y.lines[y.n][:at] + " " + y.lines[y.n][at+1:]
		if strings.TrimSpace(y.line()) == "" {
			y.n++
		}
		if err := y.block(at+1, depth+1); err != nil {
			return err
		}
	}
	y.out.WriteByte(']')
	return nil
}

// members reads a mapping whose keys are at a column.
func (y *yamlReader) members(at, depth int) error {
	y.out.WriteByte('{')
	for i := 0; ; i++ {
		y.skipBlank()
		if y.n >= len(y.lines) || indentOf(y.line()) != at {
			break
		}
		key, rest, ok := yamlKey(strings.TrimLeft(y.line(), " "))
		if !ok {
			break
		}
		if i > 0 {
			y.out.WriteByte(',')
		}
		y.out.Write(jsonText(key))
		y.out.WriteByte(':')
		y.n++
		var err error
		if rest != "" && rest[0] != '#' {
			err = y.scalar(rest, at)
		} else {
			least := at + 1
			if y.skipBlank(); indentOf(y.line()) == at && (strings.HasPrefix(y.line()[at:], "- ") || y.line()[at:] == "-") {
				least = at // a sequence may be right below its key
			}
			err = y.block(least, depth+1)
		}
		if err != nil {
			return err
		}
	}
	y.out.WriteByte('}')
	return nil
}

// yamlKey splits a line that begins with a key and a colon.
func yamlKey(text string) (key, rest string, ok bool) {
	if text == "" || strings.ContainsRune("[{|>&*!%@`", rune(text[0])) {
		return "", "", false
	}
	if q := text[0]; q == '"' || q == '\'' {
		body, after, ok := yamlQuoted(text)
		after, colon := strings.CutPrefix(after, ":")
		return body, strings.TrimLeft(after, " "), ok && colon && (after == "" || after[0] == ' ')
	}
	if i := strings.Index(text, ": "); i > 0 {
		return text[:i], strings.TrimLeft(text[i+2:], " "), true
	}
	key, ok = strings.CutSuffix(strings.TrimRight(text, " "), ":")
	return key, "", ok
}

// yamlQuoted reads a quoted scalar; after is the text after it.
func yamlQuoted(text string) (s, after string, ok bool) {
	if text[0] == '\'' {
		var b strings.Builder
		for i := 1; i < len(text); i++ {
			if text[i] != '\'' {
				b.WriteByte(text[i])
			} else if i+1 < len(text) && text[i+1] == '\'' {
				b.WriteByte('\'')
				i++
			} else {
				return b.String(), text[i+1:], true
			}
		}
		return "", "", false
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			s, err := strconv.Unquote(strings.NewReplacer(`\/`, "/", `\e`, `\x1b`, `\0`, `\x00`, `\_`, "\u00a0", `\N`, "\u0085").Replace(text[:i+1]))
			return s, text[i+1:], err == nil
		}
	}
	return "", "", false
}

// scalar reads a value after a key or dash at a column, or below it.
func (y *yamlReader) scalar(text string, at int) error {
	switch c := text[0]; {
	case c == '|' || c == '>':
		return y.blockScalar(text, at)
	case c == '"' || c == '\'':
		s, after, ok := yamlQuoted(text)
		if after = strings.TrimSpace(after); !ok || after != "" && after[0] != '#' {
			y.n--
			return y.wrong("a quoted text over several lines, or something after it")
		}
		y.out.Write(jsonText(s))
	case c == '[' || c == '{':
		d := new(document)
		if _, rest, err := d.parse([]byte(text), false); err != nil || len(bytes.TrimSpace(rest)) > 0 {
			y.n--
			return y.wrong("a list or mapping in brackets that is not JSON")
		}
		y.out.WriteString(text)
	case c == '&' || c == '*' || c == '!':
		y.n--
		return y.wrong("an anchor or a tag")
	default:
		text, _, _ = strings.Cut(text, " #")
		text = strings.TrimRight(text, " ")
		switch {
		case text == "null" || text == "~":
			y.out.WriteString("null")
		case text == "true" || text == "false" || validNumber([]byte(text)):
			y.out.WriteString(text)
		default:
			y.out.Write(jsonText(text))
		}
	}
	return nil
}

// blockScalar reads lines with more indentation than at.
func (y *yamlReader) blockScalar(head string, at int) error {
	indent, keep := 0, byte(0)
	for _, c := range []byte(strings.TrimRight(head[1:], " ")) {
		switch {
		case c == '-' || c == '+':
			keep = c
		case c >= '1' && c <= '9':
			indent = at + int(c-'0')
		default:
			y.n--
			return y.wrong("an unknown mark of a block of text")
		}
	}
	var lines []string
	for ; y.n < len(y.lines); y.n++ {
		l := y.line()
		blank := strings.TrimLeft(l, " ") == ""
		if !blank && indent == 0 {
			if indent = indentOf(l); indent <= at {
				break
			}
		}
		if !blank && indentOf(l) < indent {
			break
		}
		if blank && len(l) <= indent {
			l = ""
		} else if indent > 0 {
			l = yamlBreaks(l[indent:], indent)
		}
		lines = append(lines, l)
	}
	y.out.Write(jsonText(foldedLines(lines, head[0] == '>', keep)))
	return nil
}

// yamlBreaks takes away the indentation that programs write behind the line breaks of Unicode, too, as libyaml does.
func yamlBreaks(l string, indent int) string {
	blanks := strings.Repeat(" ", indent)
	return strings.NewReplacer("\u2028"+blanks, "\u2028", "\u2029"+blanks, "\u2029").Replace(l)
}

// foldedLines joins the lines of a block according to its indicators.
func foldedLines(lines []string, fold bool, keep byte) string {
	end := len(lines)
	for end > 0 && strings.TrimLeft(lines[end-1], " ") == "" {
		end--
	}
	trailing := len(lines) - end
	var b strings.Builder
	last := "" // the last line that is not empty
	for i, l := range lines[:end] {
		folds := fold && l != "" && last != "" && l[0] != ' ' && last[0] != ' '
		switch {
		case i > 0 && !folds:
			b.WriteByte('\n')
		case folds && lines[i-1] != "":
			b.WriteByte(' ')
		}
		if l != "" {
			last = l
		}
		b.WriteString(l)
	}
	if keep != '-' && end > 0 {
		b.WriteByte('\n')
	}
	if keep == '+' {
		b.WriteString(strings.Repeat("\n", trailing))
	}
	return b.String()
}
