package approval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/chatctx/chatctx/chatctx"
)

// The operators of a condition on an argument.
const (
	Equals = "equals" // the text, or the JSON of what is no text
	Prefix = "prefix"
	Glob   = "glob"   // * within a name, ** across folders
	Regexp = "regexp" // the whole value
	Range  = "range"  // LO..HI, both included; one may be left out
	Under  = "under"  // a path that, symlinks resolved, lies in the folder or is it
)

// Ops are the operators, in the order in which help lists them.
var Ops = []string{Equals, Prefix, Glob, Regexp, Range, Under}

// answer is what a condition says of arguments. Unsure is one that cannot be told: a number where a path should be, a folder that cannot be read. It never allows
// and always denies.
type answer int

const (
	no answer = iota
	unsure
	yes
)

// checkCondition refuses conditions that can never be meant.
func checkCondition(c *chatctx.Condition) error {
	if c.Argument == "" {
		return errors.New("a condition needs the name of an argument")
	}
	switch c.Op {
	case Equals, Prefix:
		return nil
	case Glob:
		if !doublestar.ValidatePattern(c.Value) {
			return fmt.Errorf("the pattern %q is not one", c.Value)
		}
		return nil
	case Regexp:
		_, err := wholeRegexp(c.Value)
		return err
	case Range:
		_, _, err := bounds(c.Value)
		return err
	case Under:
		if c.Value == "" {
			return errors.New("under needs a folder")
		}
		return nil
	}
	return fmt.Errorf("no operator %q: there are %s", c.Op, strings.Join(Ops, ", "))
}

func wholeRegexp(s string) (*regexp.Regexp, error) { return regexp.Compile(`^(?:` + s + `)$`) }

// bounds reads LO..HI.
func bounds(s string) (lo, hi *float64, err error) {
	from, to, ok := strings.Cut(s, "..")
	if !ok || from == "" && to == "" {
		return nil, nil, fmt.Errorf("the range %q: write LO..HI, one of them may be left out", s)
	}
	read := func(word string) *float64 {
		if word == "" {
			return nil
		}
		f, e := strconv.ParseFloat(word, 64)
		if e != nil || f != f {
			err = fmt.Errorf("the range %q: %q is no number", s, word)
		}
		return &f
	}
	lo, hi = read(from), read(to)
	return lo, hi, err
}

// decodeArguments reads arguments; numbers stay as they are written.
func decodeArguments(raw json.RawMessage) (any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// lookUp finds an argument: a name, and with dots deeper ones. A name that has dots itself wins.
func lookUp(v any, name string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		if found, ok := v[name]; ok {
			return found, true
		}
		for i := 0; i < len(name); i++ {
			if name[i] != '.' {
				continue
			}
			if next, ok := v[name[:i]]; ok {
				return lookUp(next, name[i+1:])
			}
		}
	case []any:
		head, rest, more := strings.Cut(name, ".")
		i, err := strconv.Atoi(head)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		if !more {
			return v[i], true
		}
		return lookUp(v[i], rest)
	}
	return nil, false
}

// holds says whether a condition holds for arguments. Relative paths are read in dir.
func holds(c *chatctx.Condition, args any, dir string) (answer, string) {
	v, ok := lookUp(args, c.Argument)
	if !ok {
		return no, fmt.Sprintf("there is no argument %s", c.Argument)
	}
	text, isText := v.(string)
	a := unsure
	why := ""
	switch {
	case c.Op == Equals && !isText:
		raw, err := json.Marshal(v)
		a = truth(err == nil && string(raw) == c.Value)
	case c.Op == Equals:
		a = truth(text == c.Value)
	case c.Op == Range:
		a = inRange(v, c.Value)
	case !isText:
		return unsure, fmt.Sprintf("%s is no text", c.Argument)
	case c.Op == Prefix:
		a = truth(strings.HasPrefix(text, c.Value))
	case c.Op == Glob:
		ok, err := doublestar.Match(c.Value, text)
		a = truth(ok && err == nil)
	case c.Op == Regexp:
		if re, err := wholeRegexp(c.Value); err == nil {
			a = truth(re.MatchString(text))
		}
	case c.Op == Under:
		a, why = under(text, c.Value, dir)
	}
	if why == "" {
		why = fmt.Sprintf("%s %s %s: %s", c.Argument, c.Op, c.Value, map[answer]string{no: "no", unsure: "cannot be told", yes: "yes"}[a])
	}
	return a, why
}

func truth(ok bool) answer {
	if ok {
		return yes
	}
	return no
}

func inRange(v any, value string) answer {
	number, ok := v.(json.Number)
	lo, hi, err := bounds(value)
	if !ok || err != nil {
		return unsure
	}
	f, err := number.Float64()
	if err != nil {
		return unsure
	}
	return truth((lo == nil || f >= *lo) && (hi == nil || f <= *hi))
}

// under says whether a path lies in a folder once all symlinks are resolved. What is not there yet counts by where it would be. Programs read a .. after a
// link in two ways; where these differ about the folder it cannot be told.
func under(path, folder, dir string) (answer, string) {
	in, err := realPath(folder, dir, false)
	if err != nil {
		return unsure, fmt.Sprintf("%s cannot be resolved: %v", folder, err)
	}
	inside := 0
	var at string
	for _, clean := range []bool{true, false} {
		if at, err = realPath(path, dir, clean); err != nil {
			return unsure, fmt.Sprintf("%s cannot be resolved: %v", path, err)
		}
		if rel, err := filepath.Rel(in, at); err == nil && filepath.IsLocal(rel) {
			inside++
		}
	}
	word := []string{"not in", "perhaps in", "in"}[inside]
	return []answer{no, unsure, yes}[inside], fmt.Sprintf("%s is %s, %s %s", path, at, word, in)
}

// maxLinks bounds the symlinks of one path.
const maxLinks = 255

// realPath makes a path absolute and resolves its symlinks, name by name, also those that lead to what is not there. clean takes out each .. with the name before it first.
func realPath(path, dir string, clean bool) (string, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return "", errors.New("it is no path")
	}
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		path = abs + string(filepath.Separator) + path
	}
	if clean {
		path = filepath.Clean(path)
	}
	volume := filepath.VolumeName(path)
	return resolve(volume, names(path[len(volume):]))
}

func names(path string) []string { return strings.Split(path, string(filepath.Separator)) }

// resolve walks down from a volume's root.
func resolve(volume string, left []string) (string, error) {
	done := volume + string(filepath.Separator)
	for links := 0; len(left) > 0; {
		name := left[0]
		left = left[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		done = filepath.Join(done, name)
		to, err := os.Readlink(done)
		if err != nil {
			if st, err := os.Lstat(done); err == nil && st.Mode()&fs.ModeSymlink != 0 || errors.Is(err, fs.ErrPermission) {
				return "", fmt.Errorf("%s cannot be read", done)
			}
			continue // no link, or not there
		}
		if links++; links > maxLinks {
			return "", errors.New("its links go round in circles")
		}
		done = filepath.Dir(done)
		to = filepath.FromSlash(to)
		if filepath.IsAbs(to) {
			done = filepath.VolumeName(to) + string(filepath.Separator)
		}
		left = append(names(to[len(filepath.VolumeName(to)):]), left...)
	}
	return done, nil
}
