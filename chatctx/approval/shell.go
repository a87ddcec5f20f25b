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

// commands is what a condition each asks of a shell text.
type commands struct {
	patterns []commandPattern
	// files and variables are the patterns of each condition writes and sets beside it, all of which count. They only say what an allowed text may do besides.
	files, variables [][]*pattern
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
	c.commands = &commands{}
	for _, f := range fields {
		p, err := parseCommandPattern(f)
		if err != nil {
			return err
		}
		c.commands.patterns = append(c.commands.patterns, p)
	}
	c.onScript(c.commands.lacks, c.commands.possibly)
	return nil
}

// onScript makes a condition from tests on what a shell text does. lacks returns why it does not surely hold.
func (c *condition) onScript(lacks func(*script) string, possibly func(*script, *subject) (answer, string)) {
	c.lacks = func(v *jsontree.Value, s *subject) string {
		if v.Kind != jsontree.String || hasHalves(v.Text) {
			return "it is not shell text"
		}
		return lacks(s.script(c, v))
	}
	c.surely = func(v *jsontree.Value, s *subject) bool { return c.lacks(v, s) == "" }
	c.possibly = func(v *jsontree.Value, s *subject) (answer, string) {
		if v.Kind != jsontree.String {
			return unsure, "it is not shell text"
		}
		return possibly(s.script(c, v), s)
	}
}

// script reads a value as the shell of the call's tool does, if the value is the argument that the tool gives to it.
func (s *subject) script(c *condition, v *jsontree.Value) *script {
	at := settingOf(s.command, c.source.Argument, s.env)
	if own, ok := sure(s.args, c.path); at.shells != 0 && (!ok || len(own) != 1 || own[0] != v) {
		at = setting{shells: anyShell}
	}
	return readScript(v.Text, at)
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

// lacks returns why a script does not surely run commands of the patterns alone, "" if it does.
func (c *commands) lacks(s *script) string {
	switch {
	case s.untold != "":
		return "it is undecided which commands run: " + s.untold
	case len(s.commands) == 0:
		return "no command runs"
	}
	for _, cmd := range s.commands {
		if !cmd.through && !slices.ContainsFunc(c.patterns, func(p commandPattern) bool { return p.surely(cmd) }) {
			return "no pattern is about the command " + cmd.line()
		}
	}
	if name := nameBeside(s.names, c.variables); name != "" {
		return name + " may change what runs, and no condition sets names it"
	}
	if why := s.fileBeside(c.files); why != "" {
		return why + ", and no condition writes is about that"
	}
	return ""
}

func (c *commands) possibly(s *script, _ *subject) (answer, string) {
	best, why := no, "no command fits"
	if len(s.names) > 0 {
		best, why = unsure, "it is undecided which commands run: it sets "+s.names[0]
	}
	if s.untold != "" {
		best, why = unsure, "it is undecided which commands run: "+s.untold
	}
	for _, cmd := range s.commands {
		for _, p := range c.patterns {
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
		star := g.everything()
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

// everything reports whether a pattern is *.
func (p *pattern) everything() bool { return p.text.String() == `(?s)\A(?:.*)\z` }

// possibly returns whether the command may begin with these words, or its whole line may match. A program counts by its name, in whatever folder it is.
func (p *commandPattern) possibly(cmd *simple) answer {
	best := yes
	for i, g := range p.words {
		star := g.everything()
		switch {
		case i == len(p.words)-1 && star && i > 0:
		case i >= len(cmd.words):
			if !slices.ContainsFunc(cmd.words, func(w word) bool { return !w.literal }) {
				best = no
			} else {
				best = min(best, unsure)
			}
		case g.looksLike(cmd.words[i].text), i == 0 && g.names(cmd.words[0].text):
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

// names reports whether a program looks like the pattern, in whatever folder it is, with .exe or without.
func (p *pattern) names(program string) bool {
	return p.looksLike(path.Base(program)) || p.looksLike(programName(program))
}

// mayBe reports whether a word looks like the pattern or is filled in by the shell.
func (p *pattern) mayBe(w word) bool { return !w.literal || p.looksLike(w.text) }

// disguised reports whether options hide the pattern's words: git -C x push for git push; rm -fr, rm -r -f and rm x -rf for rm -rf.
func (p *commandPattern) disguised(cmd *simple) bool {
	if first := cmd.words[0]; first.literal && !p.words[0].names(first.text) {
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
