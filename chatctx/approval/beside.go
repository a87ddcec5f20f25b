package approval

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"golang.org/x/text/unicode/norm"
)

// writes makes the condition on the files that redirections of a shell text open. Its patterns are globs, separated by spaces.
func writes(c *condition, value string) (err error) {
	if c.files, err = globs(value); err != nil {
		return err
	}
	c.onScript(func(s *script) string {
		switch {
		case s.untold != "":
			return "it is undecided what it does: " + s.untold
		case len(s.files) == 0:
			return "it opens no file"
		}
		return s.fileBeside([][]*pattern{c.files})
	}, func(s *script, at *subject) (answer, string) {
		best, why := no, "it writes no such file"
		if s.untold != "" {
			best, why = unsure, "it is undecided what it writes: "+s.untold
		}
		for _, f := range s.files {
			for _, p := range c.files {
				if a := f.possibly(p, s.moves, at.dir); a > best {
					best, why = a, "it writes "+f.name.text
				}
			}
		}
		return best, why
	})
	return nil
}

// sets makes the condition on the variables that a shell text sets.
func sets(c *condition, value string) (err error) {
	if c.variables, err = globs(value); err != nil {
		return err
	}
	c.onScript(func(s *script) string {
		switch {
		case s.untold != "":
			return "it is undecided what it does: " + s.untold
		case len(s.variables) == 0:
			return "it sets no variable"
		}
		if name := nameBeside(s.variables, [][]*pattern{c.variables}); name != "" {
			return "it sets " + name
		}
		return ""
	}, func(s *script, _ *subject) (answer, string) {
		for _, name := range s.variables {
			if slices.ContainsFunc(c.variables, func(p *pattern) bool { return p.text.MatchString(name) || p.foldedText.MatchString(name) }) {
				return yes, "it sets " + name
			}
		}
		if s.untold != "" {
			return unsure, "it is undecided what it sets: " + s.untold
		}
		return no, "it sets no such variable"
	})
	return nil
}

// fileBeside names the first file that a text opens and of which a list has no pattern that is surely about it, "" for none.
func (s *script) fileBeside(lists [][]*pattern) string {
	for _, f := range s.files {
		if !covers(lists, func(p *pattern) bool { return f.surely(p, s.moves) }) {
			return "it opens the file " + f.name.text
		}
	}
	return ""
}

// nameBeside returns the first name of a variable for which a list has no pattern, "" for none.
func nameBeside(names []string, lists [][]*pattern) string {
	for _, name := range names {
		if !covers(lists, func(p *pattern) bool { return p.text.MatchString(name) }) {
			return name
		}
	}
	return ""
}

// covers reports whether each of some lists has a pattern that fits. Without a list nothing is covered.
func covers(lists [][]*pattern, fits func(*pattern) bool) bool {
	return len(lists) > 0 && !slices.ContainsFunc(lists, func(list []*pattern) bool { return !slices.ContainsFunc(list, fits) })
}

// globs parses patterns that spaces separate.
func globs(value string) ([]*pattern, error) {
	fields, err := shellFields(value)
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, errors.New("writes and sets need patterns")
	}
	var out []*pattern
	for _, f := range fields {
		p, err := parseGlob(f)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// surely reports whether the file is one of a pattern, wherever the text was when it opened it.
func (f *opened) surely(p *pattern, moves bool) bool {
	name := norm.NFC.String(f.name.text)
	return p.everything() || f.name.literal && untold(name) == "" && (path.IsAbs(name) || !moves) && p.surely(name)
}

// possibly returns whether the file is written and may be one of a pattern.
func (f *opened) possibly(p *pattern, moves bool, dir string) answer {
	name := norm.NFC.String(f.name.text)
	switch {
	case !f.written:
		return no
	case p.everything(), f.name.literal && slices.ContainsFunc(readings(name, dir), p.possibly):
		return yes
	case !f.name.literal, leadsAnywhere(name), moves && !path.IsAbs(name):
		return unsure
	}
	return no
}

// besides gives the conditions writes and sets of an allow to the conditions each on the same argument, which they widen. By themselves they would allow every
// program.
func besides(when []*condition) ([]*condition, error) {
	var out []*condition
	for _, c := range when {
		if c.files == nil && c.variables == nil {
			out = append(out, c)
			continue
		}
		taken := false
		for _, other := range when {
			if other.commands == nil || other.source.Argument != c.source.Argument {
				continue
			}
			taken = true
			if c.files != nil {
				other.commands.files = append(other.commands.files, c.files)
			} else {
				other.commands.variables = append(other.commands.variables, c.variables)
			}
		}
		if !taken {
			return nil, fmt.Errorf("the condition %q only says what an allowed text may do besides: add --when \"%s each …\" for its commands",
				c.source.String(), c.source.Argument)
		}
	}
	return out, nil
}
