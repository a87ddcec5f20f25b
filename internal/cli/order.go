package cli

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// orderer puts the words of a command line into the order that urfave/cli reads: shared flags, the command, its own flags, the arguments. It makes no value, and refuses
// nothing but flags that nobody knows and flags without their value.
type orderer struct {
	table []*command
	out   parsed
	rest  []string
}

// order takes a command line apart by the commands of table.
func order(table []*command, args []string) (*parsed, error) {
	o := &orderer{table: table, rest: args}
	for len(o.rest) > 0 {
		a := o.next()
		var err error
		switch {
		case a == "--" && o.out.command() == nil && len(o.rest) > 0: // -- ends flags only after a command
			o.word(o.next())
		case a == "--":
			o.out.args, o.rest = append(o.out.args, o.rest...), nil
		case !looksLikeFlag(a):
			o.word(a)
		case strings.HasPrefix(a, "--"):
			err = o.long(a[2:])
		default:
			err = o.short(a[1:])
		}
		if err != nil {
			return &o.out, err
		}
	}
	return &o.out, nil
}

func (o *orderer) next() string {
	a := o.rest[0]
	o.rest = o.rest[1:]
	return a
}

// looksLikeFlag distinguishes flags from arguments: "-" is standard input, and text such as "- first" is text.
func looksLikeFlag(a string) bool {
	if len(a) < 2 || a[0] != '-' {
		return false
	}
	c, _ := utf8.DecodeRuneInString(a[1:])
	return !unicode.IsSpace(c)
}

// word takes a word that is no flag: the next part of the command's name, or an argument. Where a command is expected, a word that is none ends the line: no flag is known after it.
func (o *orderer) word(w string) {
	if sub := findCommand(o.out.below(o.table), w); sub != nil && len(o.out.args) == 0 {
		o.out.path = append(o.out.path, sub)
		return
	}
	o.out.args = append(o.out.args, w)
	o.out.bare = len(o.out.args)
	if o.out.wantsCommand() {
		o.out.help, o.rest = false, nil
	}
}

// known returns the flags that may stand here, the command's own in front: they hide shared ones. Before the command these are the shared ones of all commands.
func (o *orderer) known() (all []*flag, own int) {
	c := o.out.command()
	if c == nil {
		return sharedFlags(onBranch), 0
	}
	return slices.Concat(c.flags, sharedFlags(c.scope)), len(c.flags)
}

// find returns the flag with a name.
func (o *orderer) find(name string) (found *flag, own bool) {
	all, n := o.known()
	i := slices.IndexFunc(all, func(f *flag) bool { return f.answersTo(name) })
	if i < 0 {
		return nil, false
	}
	return all[i], i < n
}

// knows reports whether a word of several letters is the name of a flag.
func (o *orderer) knows(name string) bool {
	f, _ := o.find(name)
	return f != nil && utf8.RuneCountInString(name) > 1
}

// long takes --name, --name=value and --name value.
func (o *orderer) long(a string) error {
	name, value, has := strings.Cut(a, "=")
	if name == "help" {
		o.out.help = true
		return nil
	}
	f, own := o.find(name)
	if f == nil {
		return o.noFlag("--"+name, name)
	}
	return o.add(f, own, value, has)
}

// short takes -n5, -n=5, -n 5, and several flags without values behind one dash.
func (o *orderer) short(letters string) error {
	for letters != "" {
		whole := letters
		r, size := utf8.DecodeRuneInString(letters)
		letters = letters[size:]
		if r == 'h' {
			o.out.help = true
			continue
		}
		f, own := o.find(whole[:size])
		if name, _, _ := strings.Cut(whole, "="); f == nil || takesValue(f) && o.knows(name) {
			return o.noShort(whole)
		}
		if takesValue(f) || strings.HasPrefix(letters, "=") {
			return o.add(f, own, strings.TrimPrefix(letters, "="), letters != "")
		}
		if err := o.add(f, own, "", false); err != nil {
			return err
		}
	}
	return nil
}

// add keeps a flag as --name=value. If it needs a value and has none yet, the next word is the value, whatever it begins with.
func (o *orderer) add(f *flag, own bool, value string, has bool) error {
	switch {
	case has:
	case !takesValue(f):
		value = "true"
	case len(o.rest) == 0:
		return usagef("--%s needs a value: --%s %s", f.name, f.name, valueWord(f))
	default:
		value = o.next()
	}
	kept := &o.out.shared
	if own {
		kept = &o.out.own
	}
	*kept = append(*kept, "--"+f.name+"="+value)
	return nil
}
