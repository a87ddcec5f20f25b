package approval

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a command. If it is not literal, the shell fills it in when the command runs, and text is its source.
type word struct {
	text    string
	literal bool
	single  bool // the shell makes one word of it, whatever it fills in
	quoted  bool // it begins in quotes
	globs   bool // only file patterns and ~ are filled in
	fixed   string
}

func (w word) is(text string) bool { return w.literal && w.text == text }

// isNumber reports whether a word is a plain number, or a parameter that always has one.
func (w word) isNumber() bool {
	if w.literal {
		return plainNumber(strings.TrimPrefix(w.text, "-"))
	}
	return w.single && slices.Contains([]string{"$#", "$?", "$$", "$!"}, w.text)
}

func plainNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// noFlag reports whether a word that the shell fills in cannot become a flag of letters, however it is filled in.
func (w word) noFlag() bool {
	return (w.single || w.globs) && strings.ContainsAny(w.fixed, "./_~")
}

// isName reports whether a text is a plain name of a variable.
func isName(s string) bool { return nameForm().MatchString(s) }

var nameForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

// literalWord returns a word's literal value, or its source if the shell fills something in.
func literalWord(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	if lone := w.Lit(); lone == "[" || lone == "]" || lone == "{}" {
		return word{text: lone, literal: true, single: true, fixed: lone} // neither a pattern nor a brace expansion
	}
	out := word{literal: true, single: true, globs: true}
	var text, fixed strings.Builder
	for i, part := range w.Parts {
		p := literalPart(part, false)
		text.WriteString(p.text)
		fixed.WriteString(p.fixed)
		out.literal, out.single, out.globs = out.literal && p.literal, out.single && p.single, out.globs && p.globs
		_, plain := part.(*syntax.Lit)
		out.quoted = out.quoted || i == 0 && !plain
	}
	out.text, out.fixed = text.String(), fixed.String()
	if !out.literal && out.text == "" {
		out.text = "$"
	}
	return out
}

func literalPart(part syntax.WordPart, quoted bool) word {
	switch p := part.(type) {
	case *syntax.Lit:
		return unescape(p.Value, quoted)
	case *syntax.SglQuoted:
		return word{text: p.Value, fixed: p.Value, literal: !p.Dollar, single: true, globs: !p.Dollar}
	case *syntax.DblQuoted:
		out := word{literal: !p.Dollar, single: true, globs: !p.Dollar}
		for _, inner := range p.Parts {
			one := literalPart(inner, true)
			out.text += one.text
			out.fixed += one.fixed
			out.literal, out.single, out.globs = out.literal && one.literal, out.single && one.single, out.globs && one.globs
		}
		return out
	case *syntax.ParamExp:
		if p.Param != nil {
			name := p.Param.Value
			number := strings.Contains("#?$!", name) && p.Exp == nil && !p.Length && !p.Excl
			return word{text: "$" + name, single: number || quoted && name != "@" && name != "*" && p.Index == nil && p.Exp == nil}
		}
	case *syntax.CmdSubst:
		return word{text: "$(…)", single: quoted}
	case *syntax.ArithmExp:
		return word{text: "$((…))", single: true}
	}
	return word{text: "$"}
}

// unescape removes the backslashes from a piece of a word. Outside of quotes, the shell expands braces, file patterns and ~.
func unescape(s string, quoted bool) word {
	var b, fixed strings.Builder
	out := word{literal: true, single: true, globs: true}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0):
			i++
			b.WriteByte(s[i])
			fixed.WriteByte(s[i])
			continue
		case !quoted && strings.IndexByte("*?[]", c) >= 0:
			out.literal, out.single = false, false
			b.WriteByte(c)
			continue
		case !quoted && c == '~':
			out.literal = false
		case !quoted && strings.IndexByte("{}", c) >= 0:
			out.literal, out.single, out.globs = false, false, false
		}
		b.WriteByte(c)
		fixed.WriteByte(c)
	}
	out.text, out.fixed = b.String(), fixed.String()
	return out
}
