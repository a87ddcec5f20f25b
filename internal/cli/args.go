package cli

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/xrash/smetrics"
)

// parsed is a command line split into its parts, before the values of flags are parsed.
type parsed struct {
	path   []*command // the command, after those above it; empty if none was named
	shared []string   // flags that other commands have too, as --name=value, in their original order
	own    []string   // the command's own flags, in the same form
	args   []string
	help   bool
}

// command returns the named command, nil if there is none.
func (p *parsed) command() *command {
	if len(p.path) == 0 {
		return nil
	}
	return p.path[len(p.path)-1]
}

// name returns the command as it is typed: "branch ls".
func (p *parsed) name() string {
	names := make([]string, len(p.path))
	for i, c := range p.path {
		names[i] = c.name
	}
	return strings.Join(names, " ")
}

// typed returns the command line again, without the store, the conversation and the shared flags in without, and with more flags.
func (p *parsed) typed(more string, without ...string) string {
	words, without := []string{p.name()}, append(without, "context")
	add := func(kept []string, flags []*flag, without []string) {
		for _, f := range kept {
			if name, _, _ := strings.Cut(f[2:], "="); !slices.Contains(without, name) {
				words = append(words, flagTyped(flags, f))
			}
		}
	}
	add(p.shared, sharedFlags(onBranch), append(without, "store"))
	add(p.own, p.command().flags, without)
	words = append(words, more)
	if slices.ContainsFunc(p.args, looksLikeFlag) {
		words = append(words, "--")
	}
	for _, a := range p.args {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

// flagTyped returns a flag that was kept as --name=value as it is typed.
func flagTyped(all []*flag, kept string) string {
	name, value, _ := strings.Cut(kept, "=")
	for _, f := range all {
		switch {
		case f.name != name[2:]:
		case takesValue(f):
			return name + " " + quote(value)
		case value == "true":
			return name
		}
	}
	return quote(kept)
}

// splitter splits a command line. Flags may stand anywhere; the flag package would take all words after the first argument for arguments
// without a warning.
type splitter struct {
	table []*command
	out   parsed
	seen  map[string]bool // shared flags by name, to be checked once the command is known
	rest  []string
	bare  int      // number of arguments before a --
	empty []string // flags that were given an empty value
}

// split splits args by the commands of table.
func split(table []*command, args []string) (*parsed, error) {
	s := &splitter{table: table, rest: args, seen: map[string]bool{}}
	for len(s.rest) > 0 {
		a := s.rest[0]
		s.rest = s.rest[1:]
		var err error
		switch {
		case a == "--" && s.out.command() == nil && len(s.rest) > 0: // -- ends flags only after a command
			a, s.rest = s.rest[0], s.rest[1:]
			err = s.word(a)
		case a == "--":
			s.out.args = append(s.out.args, s.rest...)
			s.rest = nil
		case !looksLikeFlag(a):
			err = s.word(a)
			s.bare = len(s.out.args)
		case strings.HasPrefix(a, "--"):
			err = s.long(a[2:])
		default:
			err = s.short(a[1:])
		}
		if err != nil {
			return &s.out, err
		}
	}
	return &s.out, s.finish()
}

// looksLikeFlag distinguishes flags from arguments: "-" is standard input, and text such as "- first" is text.
func looksLikeFlag(a string) bool {
	if len(a) < 2 || a[0] != '-' {
		return false
	}
	c, _ := utf8.DecodeRuneInString(a[1:])
	return !unicode.IsSpace(c)
}

// word takes a word that is no flag: the next part of the command's name, or an argument.
func (s *splitter) word(w string) error {
	under := s.table
	c := s.out.command()
	if c != nil {
		under = c.subs
	}
	if len(s.out.args) == 0 {
		for _, sub := range under {
			if sub.name == w {
				s.out.path = append(s.out.path, sub)
				return nil
			}
		}
	}
	if c == nil || c.args == "" && len(under) > 0 {
		return s.unknownCommand(w, under)
	}
	s.out.args = append(s.out.args, w)
	return nil
}

func (s *splitter) unknownCommand(w string, under []*command) error {
	var names []string
	for _, c := range under {
		if !c.hidden {
			names = append(names, c.name)
		}
	}
	what := "command"
	if n := s.out.name(); n != "" {
		what = n + " command"
	}
	return &usageError{fmt.Sprintf("no %s %q", what, w), suggest(w, names, "chatctx "+strings.TrimLeft(s.out.name()+" ", " "), s.helpHint())}
}

func (s *splitter) helpHint() string {
	return strings.Join(strings.Fields("chatctx help "+s.out.name()), " ") + " lists what there is"
}

// flags returns the flags that may stand here: the command's own and the shared ones. Before the command is known these are the ones that any command may
// have.
func (s *splitter) flags() (own, shared []*flag) {
	c := s.out.command()
	if c == nil {
		return nil, sharedFlags(onBranch)
	}
	return c.flags, sharedFlags(c.scope)
}

// find returns the flag with a name. A command's own flag hides a shared one.
func (s *splitter) find(dash, name string) (found *flag, isOwn bool, err error) {
	own, shared := s.flags()
	var names []string
	for i, f := range append(slices.Clone(own), shared...) {
		for _, n := range f.names() {
			if n == name {
				return f, i < len(own), nil
			}
			if len(n) > 1 {
				names = append(names, n)
			}
		}
	}
	hint := "chatctx " + strings.TrimLeft(s.out.name()+" --help", " ") + " lists the flags; -- ends them: put it before text that begins with a dash"
	return nil, false, &usageError{fmt.Sprintf("no flag %s%s", dash, name), suggest(name, names, "--", hint)}
}

// long takes --name, --name=value and --name value.
func (s *splitter) long(a string) error {
	name, value, has := strings.Cut(a, "=")
	if name == "help" {
		s.out.help = true
		return nil
	}
	f, own, err := s.find("--", name)
	if err != nil {
		return err
	}
	return s.add(f, own, value, has)
}

// short takes -n5, -n=5, -n 5, and several flags without values behind one dash.
func (s *splitter) short(letters string) error {
	for letters != "" {
		r, size := utf8.DecodeRuneInString(letters)
		letter := letters[:size]
		letters = letters[size:]
		if r == 'h' {
			s.out.help = true
			continue
		}
		f, own, err := s.find("-", letter)
		if err != nil {
			return s.shortError(err, letter+letters)
		}
		if takesValue(f) || strings.HasPrefix(letters, "=") {
			return s.add(f, own, strings.TrimPrefix(letters, "="), letters != "")
		}
		if err := s.add(f, own, "", false); err != nil {
			return err
		}
	}
	return nil
}

// shortError completes an error for a long flag that was written with one dash.
func (s *splitter) shortError(err error, whole string) error {
	if utf8.RuneCountInString(whole) == 1 {
		return err
	}
	name, _, _ := strings.Cut(whole, "=")
	if _, _, longErr := s.find("--", name); longErr != nil {
		err := longErr.(*usageError)
		err.text = fmt.Sprintf("no flag -%s", whole)
		return err
	}
	return &usageError{fmt.Sprintf("no flag -%s", whole), "did you mean --" + whole + "?"}
}

// add keeps a flag. If it needs a value and has none yet, the next word is the value, whatever it begins with.
func (s *splitter) add(f *flag, own bool, value string, has bool) error {
	name := f.name
	switch {
	case has:
	case !takesValue(f):
		value = "true"
	default:
		if len(s.rest) == 0 {
			return usagef("--%s needs a value: --%s %s", name, name, valueWord(f))
		}
		value, s.rest = s.rest[0], s.rest[1:]
	}
	if value == "" {
		s.empty = append(s.empty, name)
	}
	if own {
		s.out.own = append(s.out.own, "--"+name+"="+value)
		return nil
	}
	s.seen[name] = true
	s.out.shared = append(s.out.shared, "--"+name+"="+value)
	return nil
}

// finish checks the flags that came before the command.
func (s *splitter) finish() error {
	c := s.out.command()
	if c == nil || s.out.help {
		return nil
	}
	known := map[string]bool{}
	for _, f := range sharedFlags(c.scope) {
		known[f.name] = true
	}
	for name := range s.seen {
		if !known[name] {
			return &usageError{fmt.Sprintf("%s takes no --%s", s.out.name(), name), "chatctx " + s.out.name() + " --help lists the flags"}
		}
	}
	if err := s.checkEmpty(c); err != nil {
		return err
	}
	return c.checkArgs(s.out.name(), s.out.args)
}

// checkEmpty refuses empty flags and arguments: a variable that a shell script forgot to set must not mean the current conversation, or all of them. The
// words of a command behind -- are passed on unchanged.
func (s *splitter) checkEmpty(c *command) error {
	hint := "a variable that is not set? leave it out for the default"
	for _, name := range s.empty {
		if !slices.Contains(c.mayBeEmpty, "--"+name) {
			return &usageError{fmt.Sprintf("%s: --%s is empty", s.out.name(), name), hint}
		}
	}
	for i, a := range s.out.args {
		word := c.argumentAt(i)
		if a != "" || slices.Contains(c.mayBeEmpty, word) && (i >= s.bare || c.hidden) {
			continue
		}
		if _, _, err := s.find("--", "clear"); err == nil {
			hint = "to remove it: chatctx " + s.out.name() + " --clear"
		}
		return &usageError{fmt.Sprintf("%s: %s is empty", s.out.name(), word), hint}
	}
	return nil
}

// sameLetters reports whether two words have the same letters in another order.
func sameLetters(a, b string) bool {
	x, y := []rune(a), []rune(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// suggest names the candidate most like word, or else returns the hint.
func suggest(word string, candidates []string, before, hint string) string {
	best, score := "", 0.8
	for _, c := range candidates {
		if word != c && sameLetters(word, c) {
			return "did you mean " + before + c + "?"
		}
		if s := smetrics.JaroWinkler(strings.ToLower(word), strings.ToLower(c), 0.7, 4); s > score {
			best, score = c, s
		}
	}
	if best == "" {
		return hint
	}
	return "did you mean " + before + best + "?"
}
