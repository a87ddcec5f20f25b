package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// flag describes a flag of a command.
type flag struct {
	name      string
	short     string // a letter that stands for the name, or ""
	kind      kind
	usage     string // with the word for its value in backquotes
	env       string // the variable that has the value if the command line does not; an empty one is unset
	otherwise string // the value without either
	hidden    bool   // an old name: read, but not shown
}

// kind is what a flag's value is.
type kind int

const (
	text     kind = iota // the last one counts
	several              // a text; all of them count
	onOff                // true or false, true if nothing stands there
	number               // a whole number
	revision             // a whole number, not below zero
	span                 // a time such as 90s
)

// parse reads a value of the flag or argument that what names. Its error says what that takes.
func (k kind) parse(what, s string) (v any, err error) {
	takes := "a whole number"
	switch k {
	case onOff:
		v, err = strconv.ParseBool(s)
		takes = "true or false, or stands alone"
	case number:
		var n int64
		n, err = strconv.ParseInt(s, 0, strconv.IntSize)
		v = int(n)
	case revision:
		v, err = strconv.ParseUint(s, 0, 64)
	case span:
		v, err = time.ParseDuration(s)
		takes = "a time such as 90s, 5m or 2h"
	default:
		v = s
	}
	if err != nil {
		return nil, fmt.Errorf("%s takes %s, not %q", what, takes, s)
	}
	return v, nil
}

// dashed returns a flag's name as it is typed.
func (f *flag) dashed() string {
	if utf8.RuneCountInString(f.name) == 1 {
		return "-" + f.name
	}
	return "--" + f.name
}

func (f *flag) aliases() []string { return strings.Fields(f.short) }
func (f *flag) envs() []string    { return strings.Fields(f.env) }

// values are those of a command's flags, by name. A flag that the command does not have is looked for above: there are the shared flags, and behind them
// those of the chat in which the command was typed.
type values struct {
	flags []*flag
	given map[string][]any
	above *values
}

func (v *values) add(f *flag, s string) error {
	value, err := f.kind.parse(f.dashed(), s)
	if err == nil {
		v.given[f.name] = append(v.given[f.name], value)
	}
	return err
}

// find returns a flag and what was given for it.
func (v *values) find(name string) (*flag, []any) {
	for ; v != nil; v = v.above {
		for _, f := range v.flags {
			if f.name == name {
				return f, v.given[name]
			}
		}
	}
	return nil, nil
}

// all returns the values of a flag, or the one that it has without any. Those of another type than T are none.
func all[T any](v *values, name string) (list []T) {
	f, given := v.find(name)
	if f != nil && given == nil && f.otherwise != "" {
		if otherwise, err := f.kind.parse(f.name, f.otherwise); err == nil {
			given = []any{otherwise}
		}
	}
	for _, one := range given {
		if one, ok := one.(T); ok {
			list = append(list, one)
		}
	}
	return list
}

// last returns the value of a flag that counts, zero if there is none.
func last[T any](v *values, name string) (value T) {
	if list := all[T](v, name); len(list) > 0 {
		value = list[len(list)-1]
	}
	return value
}

func (r *run) flag(name string) string        { return last[string](r.flags, name) }
func (r *run) texts(name string) []string     { return all[string](r.flags, name) }
func (r *run) is(name string) bool            { return last[bool](r.flags, name) }
func (r *run) number(name string) int         { return last[int](r.flags, name) }
func (r *run) revision(name string) uint64    { return last[uint64](r.flags, name) }
func (r *run) span(name string) time.Duration { return last[time.Duration](r.flags, name) }

// given reports whether the command line or the environment has a flag.
func (r *run) given(name string) bool {
	_, given := r.flags.find(name)
	return given != nil
}

// byName makes the values of the shared flags, and those of a command's struct, findable by names.
func (p *parsed) byName() {
	shared := &values{flags: sharedFlags(onBranch), given: map[string][]any{"json": {p.common.JSON}}}
	for name, v := range map[string]string{"store": p.common.Store, "context": p.common.Context, "branch": p.common.Branch} {
		if v != "" {
			shared.given[name] = []any{v}
		}
	}
	p.flags.above = shared
	if p.in == nil {
		return
	}
	for _, f := range p.flags.flags {
		for _, kept := range p.own {
			if s, ok := strings.CutPrefix(kept, "--"+f.name+"="); ok {
				_ = p.flags.add(f, s) // it was read already
			}
		}
	}
}

func takesValue(f *flag) bool { return f.kind != onOff }

// valueWord returns the word for a flag's value, which its usage has in backquotes.
func valueWord(f *flag) string {
	if !takesValue(f) {
		return ""
	}
	if _, after, ok := strings.Cut(f.usage, "`"); ok {
		word, _, _ := strings.Cut(after, "`")
		return word
	}
	return "VALUE"
}
