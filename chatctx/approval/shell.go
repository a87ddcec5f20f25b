package approval

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/chatctx/chatctx/internal/jsontree"
)

// commandPattern is one pattern of each: globs for the first words of a command.
type commandPattern struct {
	words []*pattern
	texts []string // the words as they were written
	line  *pattern // the whole pattern, for the whole command on a line
}

// each makes the condition on the commands of a shell text. Its patterns are separated by spaces; a pattern of several words is quoted.
func each(c *condition, value string) error {
	fields, err := shellFields(value)
	if err != nil {
		return err
	}
	if len(fields) == 0 {
		return errors.New("each needs patterns of commands")
	}
	var patterns []commandPattern
	for _, f := range fields {
		p, err := parseCommandPattern(f)
		if err != nil {
			return err
		}
		patterns = append(patterns, p)
	}
	c.surely = func(v *jsontree.Value, _ *subject) bool {
		return v.Kind == jsontree.String && !hasHalves(v.Text) && surelyEach(patterns, readScript(v.Text))
	}
	c.possibly = func(v *jsontree.Value, _ *subject) (answer, string) {
		if v.Kind != jsontree.String {
			return unsure, "it is not shell text"
		}
		return possiblyEach(patterns, readScript(v.Text))
	}
	return nil
}

func parseCommandPattern(s string) (p commandPattern, err error) {
	p.texts = strings.Fields(s)
	for _, word := range p.texts {
		glob, err := parseGlob(word)
		if err != nil {
			return p, err
		}
		p.words = append(p.words, glob)
	}
	if len(p.words) == 0 {
		return p, errors.New("a pattern of commands is empty")
	}
	p.line, err = parseGlob(s)
	return p, err
}

// surelyEach reports whether every command matches a pattern and the script does nothing else.
func surelyEach(patterns []commandPattern, s *script) bool {
	if s.untold != "" || len(s.commands) == 0 {
		return false
	}
	for _, cmd := range s.commands {
		if !cmd.through && !slices.ContainsFunc(patterns, func(p commandPattern) bool { return p.surely(cmd) }) {
			return false
		}
	}
	return true
}

func possiblyEach(patterns []commandPattern, s *script) (answer, string) {
	best, why := no, "no command fits"
	if s.untold != "" {
		best, why = unsure, "it is undecided which commands run: "+s.untold
	}
	for _, cmd := range s.commands {
		for _, p := range patterns {
			if a := p.possibly(cmd); a > best {
				best, why = a, "the command "+cmd.line()
			}
		}
	}
	return best, why
}

// surely reports whether the command begins with these words. Only * matches words that the shell fills in. A last * matches any number of words, even
// none.
func (p *commandPattern) surely(cmd *simple) bool {
	for i, g := range p.words {
		star := g.text.String() == everything
		switch {
		case i == len(p.words)-1 && star && i > 0:
			return true
		case i >= len(cmd.words):
			return false
		case !cmd.words[i].literal && !star, cmd.words[i].literal && !g.text.MatchString(norm.NFC.String(cmd.words[i].text)):
			return false
		}
	}
	return true
}

// everything is the expression of *.
const everything = `(?s)\A(?:.*)\z`

// possibly returns whether the command may begin with these words, or its whole line may match. A program counts by its name, in whatever folder it is.
func (p *commandPattern) possibly(cmd *simple) answer {
	best := yes
	for i, g := range p.words {
		star := g.text.String() == everything
		switch {
		case i == len(p.words)-1 && star && i > 0:
		case i >= len(cmd.words):
			if !slices.ContainsFunc(cmd.words, func(w word) bool { return !w.literal }) {
				best = no
			} else {
				best = min(best, unsure)
			}
		case g.looksLike(cmd.words[i].text), i == 0 && g.looksLike(path.Base(cmd.words[0].text)):
		case cmd.words[i].literal:
			best = no
		default:
			best = min(best, unsure)
		}
	}
	if p.line.foldedText.MatchString(norm.NFC.String(cmd.line())) {
		return yes
	}
	if best == no && p.disguised(cmd) {
		return unsure
	}
	return best
}

// looksLike reports whether a text matches, whatever its case.
func (p *pattern) looksLike(text string) bool { return p.foldedText.MatchString(norm.NFC.String(text)) }

// mayBe reports whether a word looks like the pattern or is filled in by the shell.
func (p *pattern) mayBe(w word) bool { return !w.literal || p.looksLike(w.text) }

// disguised reports whether options hide the pattern's words: git -C x push for git push; rm -fr, rm -r -f and rm x -rf for rm -rf.
func (p *commandPattern) disguised(cmd *simple) bool {
	if first := cmd.words[0]; first.literal && !p.words[0].looksLike(path.Base(first.text)) {
		return false
	}
	rest := cmd.words[1:]
	for i, g := range p.words {
		switch {
		case i == 0, i == len(p.words)-1 && p.texts[i] == "*":
		case isOption(p.texts[i]):
			if !hasOption(cmd.words[1:], g, p.texts[i]) {
				return false
			}
		default:
			for len(rest) > 0 && !g.mayBe(rest[0]) {
				if !isOption(rest[0].text) {
					return false
				}
				if rest = rest[1:]; len(rest) > 0 && !isOption(rest[0].text) && !g.mayBe(rest[0]) {
					rest = rest[1:] // perhaps the option's value
				}
			}
			if len(rest) == 0 {
				return false
			}
			rest = rest[1:]
		}
	}
	return true
}

func isOption(text string) bool { return len(text) > 1 && text[0] == '-' }

// hasOption reports whether one of the words is an option that a pattern names, or several have all of its letters.
func hasOption(words []word, g *pattern, text string) bool {
	letters := ""
	for _, w := range words {
		if g.mayBe(w) {
			return true
		}
		if isOption(w.text) && w.text[1] != '-' {
			letters += strings.ToLower(w.text[1:])
		}
	}
	return text[1] != '-' && strings.Trim(strings.ToLower(text[1:]), letters) == ""
}

// shellFields splits text at spaces; quotes and \ keep text together.
func shellFields(s string) ([]string, error) {
	var fields []string
	var b strings.Builder
	within, begun := rune(0), false
	escaped := false
	for _, c := range s {
		switch {
		case escaped:
			if within != 0 && c != within && c != '\\' {
				b.WriteByte('\\')
			}
			b.WriteRune(c)
			escaped = false
		case c == '\\' && within != '\'':
			escaped, begun = true, true
		case within != 0 && c == within:
			within = 0
		case within != 0:
			b.WriteRune(c)
		case c == '\'' || c == '"':
			within, begun = c, true
		case c == ' ' || c == '\t' || c == '\n':
			if begun {
				fields = append(fields, b.String())
			}
			b.Reset()
			begun = false
		default:
			b.WriteRune(c)
			begun = true
		}
	}
	if within != 0 || escaped {
		return nil, fmt.Errorf("%q: a quote is not closed", s)
	}
	if begun {
		fields = append(fields, b.String())
	}
	return fields, nil
}
