package approval

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/jsontree"
)

// The operators of conditions.
const (
	Equals = "equals" // a JSON value; a value that is no JSON is a text
	Prefix = "prefix"
	Glob   = "glob"   // matches both as a text and as a path
	Regexp = "regexp" // matches the whole value
	Range  = "range"  // LO..HI, both included; one may be missing
	Under  = "under"  // a path to or below the folder, with symlinks resolved
	Each   = "each"   // each command of a shell text
	Writes = "writes" // each file that a shell text opens by a redirection
	Sets   = "sets"   // each variable that a shell text sets
	Tool   = "tool"   // a pattern of the tool's name, without an argument
)

// Ops returns the operators on arguments in the order of the help text.
func Ops() []string {
	return []string{Equals, Prefix, Glob, Regexp, Range, Under, Each, Writes, Sets}
}

// answer is what a condition may say of arguments. unsure means that it cannot tell.
type answer int

const (
	no answer = iota
	unsure
	yes
)

func truth(ok bool) answer {
	if ok {
		return yes
	}
	return no
}

// subject is a call as conditions see it.
type subject struct {
	tool string
	args *jsontree.Value
	err  error  // why the arguments cannot be read
	dir  string // the base of relative paths; "": unknown
	// command is the tool's command, env the names of the variables that it adds; nil: unknown.
	command, env []string
	// twins: some keys differ only in case, so nothing about the arguments is sure.
	twins bool
}

// condition is a parsed condition. Its tests apply to one value each: surely is strict and holds only if every program reads the value so; possibly allows
// every reading.
type condition struct {
	source *record.Condition
	path   []step
	names  *pattern // of Tool
	surely func(v *jsontree.Value, s *subject) bool
	// lacks returns why surely does not hold; nil: it cannot say more than possibly.
	lacks func(v *jsontree.Value, s *subject) string
	// possibly is asked about each value in what the path names.
	possibly func(v *jsontree.Value, s *subject) (answer, string)
	// commands is of each; files of writes, variables of sets.
	commands         *commands
	files, variables []*pattern
}

// parseCondition parses a condition and refuses one that can never be meant.
func parseCondition(source *record.Condition) (*condition, error) {
	c := &condition{source: source}
	var err error
	if source.Op == Tool {
		if source.Value == "" || source.Argument != "" || strings.Contains(source.Value, " ") {
			return nil, fmt.Errorf("the condition tool takes a pattern of tool names and nothing else; if you mean an argument of this name, put it in quotes: %q", Tool)
		}
		c.names, err = parseGlob(source.Value)
		return c, err
	}
	if source.Argument == "" || source.Argument == Tool {
		return nil, fmt.Errorf("the condition names no argument; if you mean an argument named tool, put it in quotes: %q", Tool)
	}
	if c.path, err = parsePath(source.Argument); err != nil {
		return nil, err
	}
	make, ok := operators[source.Op]
	if !ok {
		return nil, fmt.Errorf("there is no operator %q: use one of %s", source.Op, strings.Join(Ops(), ", "))
	}
	return c, make(c, source.Value)
}

var operators = map[string]func(c *condition, value string) error{
	Equals: equals, Prefix: prefix, Glob: glob, Regexp: expression, Range: within, Under: inFolder, Each: each, Writes: writes, Sets: sets,
}

// holds reports whether a condition surely holds for a call.
func (c *condition) holds(s *subject) bool {
	if c.names != nil {
		return c.names.text.MatchString(norm.NFC.String(s.tool))
	}
	if s.err != nil || s.twins {
		return false
	}
	values, ok := sure(s.args, c.path)
	for _, v := range values {
		ok = ok && c.surely(v, s)
	}
	return ok
}

// missing returns why a condition does not surely hold.
func (c *condition) missing(s *subject) string {
	if c.lacks != nil && s.err == nil {
		values, _ := sure(s.args, c.path)
		for _, v := range values {
			if why := c.lacks(v, s); why != "" {
				return why
			}
		}
	}
	_, why := c.mayHold(s)
	return why
}

// mayHold returns whether a condition possibly holds for a call, and why.
func (c *condition) mayHold(s *subject) (answer, string) {
	if c.names != nil {
		return truth(c.names.foldedText.MatchString(norm.NFC.String(s.tool))), "the tool is " + s.tool
	}
	if s.err != nil {
		return unsure, "the arguments cannot be read: " + s.err.Error()
	}
	best, why := no, "there is no argument "+c.source.Argument
	seen := false
	possible(s.args, c.path, func(v *jsontree.Value) {
		below(v, func(v *jsontree.Value) {
			a, because := c.possibly(v, s)
			if !seen || a > best {
				best, why = a, because
			}
			seen = true
		})
	})
	if why == "" {
		why = fmt.Sprintf("%s: %s", c.source.String(), map[answer]string{no: "no", unsure: "undecided", yes: "yes"}[best])
	}
	return best, why
}

// SplitCondition parses ARGUMENT OP VALUE, or tool PATTERN. A quoted name may contain spaces.
func SplitCondition(s string) (argument, op, value string, ok bool) {
	end := strings.IndexByte(s, ' ')
	for inQuotes, i := false, 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			inQuotes = !inQuotes
		case s[i] == '\\' && inQuotes:
			i++
		case s[i] == ' ' && !inQuotes:
			end, i = i, len(s)
		}
	}
	if end <= 0 {
		return "", "", "", false
	}
	argument, rest := s[:end], s[end+1:]
	if argument == Tool {
		return "", Tool, rest, rest != ""
	}
	op, value, ok = strings.Cut(rest, " ")
	return argument, op, value, ok
}

// onText makes a condition from tests on texts. possibly is asked about each reading of the text as a path.
func (c *condition) onText(surely, possibly func(text string) bool) {
	c.surely = func(v *jsontree.Value, _ *subject) bool {
		text, ok := textOf(v)
		return ok && !hasHalves(text) && surely(text)
	}
	c.possibly = func(v *jsontree.Value, s *subject) (answer, string) {
		text, ok := textOf(v)
		switch {
		case v.Kind == jsontree.Null:
			return unsure, ""
		case !ok:
			return no, ""
		case slices.ContainsFunc(readings(text, s.dir), possibly):
			return yes, ""
		case hasHalves(text):
			return unsure, ""
		case strings.Contains(c.source.Value, "/") && leadsAnywhere(text):
			return unsure, "undecided: nobody knows where the path leads"
		}
		return no, ""
	}
}

// homes lists the ways in which a path names the home folder.
var homes = []string{"~", "$HOME", "${HOME}"}

// readings returns the texts for which a text stands if it is a path: itself, the path without detours and without a file scheme, the path from the folder
// in which it is used and relative to that, and with each name of the home folder; all of them also with % decoded.
func readings(text, dir string) []string {
	all := plainReadings(text, dir)
	if decoded, err := url.PathUnescape(text); err == nil && decoded != text {
		all = append(all, plainReadings(decoded, dir)...)
	}
	return all
}

func plainReadings(text, dir string) []string {
	slashed := strings.ReplaceAll(text, `\`, "/")
	if dir == "" && !strings.ContainsAny(slashed, "/~") {
		return []string{text}
	}
	if len(slashed) > 5 && strings.EqualFold(slashed[:5], "file:") {
		slashed = strings.TrimPrefix(slashed[5:], "//")
		if plain, err := url.PathUnescape(slashed); err == nil {
			slashed = plain
		}
	}
	clean := path.Clean(slashed)
	all := []string{text, clean, clean + "/"}
	home, err := os.UserHomeDir()
	home, dir = filepath.ToSlash(home), filepath.ToSlash(dir)
	absolute := clean
	for _, name := range homes {
		if rest, ok := strings.CutPrefix(clean, name+"/"); ok && err == nil {
			absolute = path.Join(home, rest)
		}
	}
	if dir != "" && !path.IsAbs(absolute) {
		absolute = path.Join(dir, clean)
	}
	all = append(all, absolute)
	if rest, ok := strings.CutPrefix(absolute, home+"/"); ok && err == nil {
		for _, name := range homes {
			all = append(all, name+"/"+rest)
		}
	}
	if rest, ok := strings.CutPrefix(absolute, dir+"/"); ok && dir != "" {
		all = append(all, rest)
	}
	return all
}

// leadsAnywhere reports whether nobody can tell where a path leads: it goes up through folders, which may be links, names them with %, or begins with another
// user's home, a variable or a scheme.
func leadsAnywhere(text string) bool {
	if strings.ContainsAny(text, `/\`) && slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return r == '/' || r == '\\' }), "..") {
		return true
	}
	if encoded().MatchString(text) || runtime.GOOS == "windows" && otherOnWindows(text) != "" {
		return true
	}
	first, _, _ := strings.Cut(text, "/")
	return !strings.ContainsAny(text, " \t\n") && !slices.Contains(homes, first) && (strings.HasPrefix(first, "~") || strings.HasPrefix(first, "$") || strings.HasSuffix(first, ":") && len(first) > 2)
}

func prefix(c *condition, value string) error {
	value = norm.NFC.String(value)
	c.onText(func(text string) bool {
		return strings.HasPrefix(text, value) && !strings.Contains(text, "..") && !encodedDot().MatchString(text)
	},
		func(text string) bool { return strings.HasPrefix(fold(text), fold(value)) })
	return nil
}

func glob(c *condition, value string) error {
	p, err := parseGlob(value)
	if err != nil {
		return err
	}
	c.onText(p.surely, p.possibly)
	return nil
}

func expression(c *condition, value string) error {
	value = norm.NFC.String(value)
	if _, err := regexp.Compile(value); err != nil { // checked by itself, since the text around it could change its meaning
		return err
	}
	exact, err := regexp.Compile(`(?s)\A(?:` + value + `)\z`)
	if err != nil {
		return err
	}
	folded, err := regexp.Compile(`(?is)\A(?:` + value + `)\z`)
	if err != nil {
		return err
	}
	c.onText(exact.MatchString, folded.MatchString)
	return nil
}

// within makes the condition on a number in a range.
func within(c *condition, value string) error {
	lo, hi, err := bounds(value)
	if err != nil {
		return err
	}
	c.possibly = func(v *jsontree.Value, _ *subject) (answer, string) {
		if v.Kind == jsontree.List || v.Kind == jsontree.Object {
			return no, "" // its elements count
		}
		n, ok := number(v.Text)
		if v.Kind != jsontree.Number || !ok {
			return unsure, ""
		}
		return truth((lo == nil || n.compare(*lo) >= 0) && (hi == nil || n.compare(*hi) <= 0)), ""
	}
	c.surely = func(v *jsontree.Value, s *subject) bool {
		a, _ := c.possibly(v, s)
		return a == yes
	}
	return nil
}

// bounds parses LO..HI.
func bounds(s string) (lo, hi *decimal, err error) {
	from, to, ok := strings.Cut(s, "..")
	if !ok || from == "" && to == "" {
		return nil, nil, fmt.Errorf("the range %q cannot be read: write LO..HI, LO.. or ..HI", s)
	}
	read := func(word string) *decimal {
		if word == "" {
			return nil
		}
		d, ok := number(word)
		if !ok {
			err = fmt.Errorf("the range %q: %q is not a number, or its exponent is too large", s, word)
		}
		return &d
	}
	lo, hi = read(from), read(to)
	if err == nil && lo != nil && hi != nil && lo.compare(*hi) > 0 {
		err = fmt.Errorf("the range %q is empty: write the smaller end first", s)
	}
	return lo, hi, err
}

func inFolder(c *condition, value string) error {
	if value == "" {
		return errors.New("under needs a folder")
	}
	c.possibly = func(v *jsontree.Value, s *subject) (answer, string) {
		switch v.Kind {
		case jsontree.String:
			return under(v.Text, value, s.dir, true)
		case jsontree.List, jsontree.Object:
			return no, ""
		}
		return unsure, "it is not a path"
	}
	c.surely = func(v *jsontree.Value, s *subject) bool {
		if v.Kind != jsontree.String {
			return false
		}
		a, _ := under(v.Text, value, s.dir, false)
		return a == yes
	}
	return nil
}

// equals makes the condition on equal JSON values. A value that is no JSON stands for a text.
func equals(c *condition, value string) error {
	want, err := jsontree.Parse([]byte(value))
	if err != nil {
		want = &jsontree.Value{Kind: jsontree.String, Text: value}
	}
	plain, wanted := fold(value), fold(value)
	if want.Kind == jsontree.String {
		wanted = fold(want.Text)
	}
	c.surely = func(v *jsontree.Value, _ *subject) bool { return same(v, want, false) == yes }
	c.possibly = func(v *jsontree.Value, s *subject) (answer, string) {
		a := same(v, want, true)
		if text, ok := textOf(v); ok && a != yes {
			a = max(a, sameNumber(text, want.Text))
			if v.Kind != jsontree.Number {
				a = max(a, truth(slices.ContainsFunc(readings(text, s.dir), func(text string) bool { return fold(text) == plain || fold(text) == wanted })))
			}
			if a == no && strings.Contains(value, "/") && leadsAnywhere(text) {
				return unsure, "undecided: nobody knows where the path leads"
			}
		}
		return a, ""
	}
	return nil
}

// sameNumber compares texts that may be numbers.
func sameNumber(a, b string) answer {
	if !isNumber(a) || !isNumber(b) {
		return no
	}
	x, okX := number(a)
	y, okY := number(b)
	if !okX || !okY {
		return unsure
	}
	return truth(x == y)
}

// same compares JSON values. folded ignores case in texts and keys.
func same(a, b *jsontree.Value, folded bool) answer {
	if a.Kind != b.Kind {
		return no
	}
	switch a.Kind {
	case jsontree.Number:
		return sameNumber(a.Text, b.Text)
	case jsontree.String:
		if hasHalves(a.Text) && !folded {
			return no
		}
		return truth(sameText(a.Text, b.Text, folded))
	case jsontree.List:
		return sameList(a, b, folded)
	case jsontree.Object:
		return sameObject(a, b, folded)
	}
	return truth(a.Text == b.Text)
}

func sameText(a, b string, folded bool) bool {
	if folded {
		return fold(a) == fold(b)
	}
	return norm.NFC.String(a) == norm.NFC.String(b)
}

func sameList(a, b *jsontree.Value, folded bool) answer {
	if len(a.List) != len(b.List) {
		return no
	}
	all := yes
	for i := range a.List {
		all = min(all, same(a.List[i], b.List[i], folded))
	}
	return all
}

func sameObject(a, b *jsontree.Value, folded bool) answer {
	if len(a.Members) != len(b.Members) {
		return no
	}
	all := yes
	for _, m := range a.Members {
		best := no
		for _, n := range b.Members {
			if folded && fold(m.Name) == fold(n.Name) || m.Name == n.Name {
				best = max(best, same(m.Value, n.Value, folded))
			}
		}
		all = min(all, best)
	}
	return all
}
