package approval

import (
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// pattern is a glob in two readings. In a text * matches everything; in a path * stays within a name and ** goes across names. In both, ? is one character,
// [ab] [a-z] [!a] one of several, {a,b} one of several alternatives, and \ quotes the next character.
type pattern struct {
	text, path             *regexp.Regexp
	foldedText, foldedPath *regexp.Regexp
}

func parseGlob(s string) (*pattern, error) {
	s = norm.NFC.String(s)
	p := &pattern{}
	for _, one := range []struct {
		at     **regexp.Regexp
		path   bool
		folded string
	}{{&p.text, false, ""}, {&p.path, true, ""}, {&p.foldedText, false, "i"}, {&p.foldedPath, true, "i"}} {
		expression, err := globExpression(s, one.path)
		if err != nil {
			return nil, err
		}
		if *one.at, err = regexp.Compile(`(?s` + one.folded + `)\A(?:` + expression + `)\z`); err != nil {
			return nil, fmt.Errorf("the pattern %q cannot be read", s)
		}
	}
	return p, nil
}

// possibly reports whether one of the readings matches, ignoring case.
func (p *pattern) possibly(s string) bool {
	return p.foldedText.MatchString(s) || p.foldedPath.MatchString(s)
}

// surely reports whether both readings match, and the text does not go up in folders, not even for a program that decodes it.
func (p *pattern) surely(s string) bool {
	return p.text.MatchString(s) && p.path.MatchString(s) && !strings.Contains(s, "..") && (p.everything() || !encoded().MatchString(s))
}

// globber turns a glob into a regular expression.
type globber struct {
	in     []rune
	at     int
	path   bool
	braces int
	out    strings.Builder
}

func globExpression(s string, path bool) (string, error) {
	g := &globber{in: []rune(s), path: path}
	for g.at < len(g.in) {
		if err := g.one(); err != nil {
			return "", fmt.Errorf("the pattern %q cannot be read: %w", s, err)
		}
	}
	if g.braces > 0 {
		return "", fmt.Errorf("the pattern %q cannot be read: a { is not closed", s)
	}
	return g.out.String(), nil
}

func (g *globber) one() error {
	c := g.in[g.at]
	g.at++
	switch {
	case c == '*':
		g.star()
	case c == '?' && g.path:
		g.out.WriteString(`[^/]`)
	case c == '?':
		g.out.WriteString(`.`)
	case c == '[':
		return g.class()
	case c == '{':
		g.braces++
		g.out.WriteString(`(?:`)
	case c == ',' && g.braces > 0:
		g.out.WriteString(`|`)
	case c == '}' && g.braces > 0:
		g.braces--
		g.out.WriteString(`)`)
	case c == '\\':
		if g.at == len(g.in) {
			return fmt.Errorf("nothing follows the last \\")
		}
		g.out.WriteString(regexp.QuoteMeta(string(g.in[g.at])))
		g.at++
	case c == '/' && g.path && g.folders() && g.atEnd(3):
		g.out.WriteString(`(?:/.*)?`) // the folder itself and everything in it
		g.at += 2
	default:
		g.out.WriteString(regexp.QuoteMeta(string(c)))
	}
	return nil
}

// folders reports whether ** follows.
func (g *globber) folders() bool {
	return g.at+1 < len(g.in) && g.in[g.at] == '*' && g.in[g.at+1] == '*'
}

// atEnd reports whether the name ends n-1 characters on.
func (g *globber) atEnd(n int) bool {
	at := g.at + n - 1
	return at >= len(g.in) || g.braces > 0 && strings.ContainsRune(",}", g.in[at])
}

// star writes * or **.
func (g *globber) star() {
	double := g.at < len(g.in) && g.in[g.at] == '*'
	begins := g.at == 1 || g.in[g.at-2] == '/' || g.braces > 0 && strings.ContainsRune("{,", g.in[g.at-2])
	for g.at < len(g.in) && g.in[g.at] == '*' {
		g.at++
	}
	switch {
	case !g.path:
		g.out.WriteString(`.*`)
	case double && begins && g.at < len(g.in) && g.in[g.at] == '/':
		g.out.WriteString(`(?:[^/]*/)*`)
		g.at++
	case double && begins && g.atEnd(1):
		g.out.WriteString(`.*`)
	default:
		g.out.WriteString(`[^/]*`)
	}
}

// class writes [ab], [a-z] or [!a].
func (g *globber) class() error {
	var inside strings.Builder
	negated := g.at < len(g.in) && (g.in[g.at] == '!' || g.in[g.at] == '^')
	if negated {
		g.at++
	}
	for n := 0; ; n++ {
		if g.at >= len(g.in) {
			return fmt.Errorf("a [ is not closed")
		}
		c := g.in[g.at]
		g.at++
		if c == ']' && n > 0 {
			break
		}
		if c == '\\' && g.at < len(g.in) {
			c = g.in[g.at]
			g.at++
		} else if c == '-' && n > 0 && g.at < len(g.in) && g.in[g.at] != ']' {
			inside.WriteByte('-')
			continue
		}
		inside.WriteString(quoteInClass(c))
	}
	open := "["
	if negated {
		open = "[^"
	}
	if negated && g.path {
		open = "[^/"
	}
	g.out.WriteString(open + inside.String() + "]")
	return nil
}

func quoteInClass(c rune) string {
	if strings.ContainsRune(`\]^-[&~`, c) {
		return `\` + string(c)
	}
	return string(c)
}

// quoteGlob returns a pattern that matches only this text.
func quoteGlob(s string) string {
	var b strings.Builder
	for _, c := range s {
		if strings.ContainsRune(`\*?[]{},`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}
