package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// flag describes a flag of a command.
type flag struct {
	name      string
	short     string // a letter that stands for the name, or ""
	kind      kind
	usage     string // with the word for its value in backquotes
	env       string // the variable that has the value if the command line does not; an empty one is unset
	otherwise string // the value without either
}

// kind is what a flag's value is.
type kind int

const (
	_        kind = iota // a text; the last one counts
	several              // a text; all of them count
	onOff                // true or false, true if nothing stands there
	number               // a whole number
	revision             // a whole number, not below zero
	span                 // a time such as 90s
)

// names are what the flag may be called.
func (f *flag) names() []string {
	if f.short == "" {
		return []string{f.name}
	}
	return []string{f.name, f.short}
}

// parse reads a value. Its error says what the flag takes.
func (f *flag) parse(s string) (v any, err error) {
	takes := "a whole number"
	switch f.kind {
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
		dash := "--"
		if len(f.name) == 1 {
			dash = "-"
		}
		return nil, fmt.Errorf("%s%s takes %s, not %q", dash, f.name, takes, s)
	}
	return v, nil
}

// values are those of a command's flags, by name. A flag that the command does not have is looked for above: there are the shared flags, and behind them
// those of the chat in which the command was typed.
type values struct {
	flags []*flag
	given map[string][]any
	above *values
}

// readValues parses flags that were kept as --name=value.
func readValues(flags []*flag, kept []string, above *values) (*values, error) {
	v := &values{flags, map[string][]any{}, above}
	for _, f := range flags {
		prefix := "--" + f.name + "="
		for _, k := range kept {
			if s, ok := strings.CutPrefix(k, prefix); ok {
				if err := v.add(f, s); err != nil {
					return nil, err
				}
			}
		}
		if s := os.Getenv(f.env); f.env != "" && s != "" && v.given[f.name] == nil {
			if err := v.add(f, s); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func (v *values) add(f *flag, s string) error {
	value, err := f.parse(s)
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
		if otherwise, err := f.parse(f.otherwise); err == nil {
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

// outer is the key of a context for the values of the command in which another one is typed.
type outer struct{}

// valuesOf parses the flags of a command line. It keeps the command's own apart from the shared ones, so that both may have a flag of one name.
func valuesOf(ctx context.Context, cmd *command, p *parsed) (*values, error) {
	above, _ := ctx.Value(outer{}).(*values)
	shared, err := readValues(sharedFlags(onBranch), p.shared, above)
	if err != nil {
		return nil, err
	}
	return readValues(cmd.flags, p.own, shared)
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
