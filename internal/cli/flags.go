package cli

import (
	"fmt"
	"slices"
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
	usage     string   // with the word for its value in backquotes
	env       string   // the variable that has the value if the command line does not; an empty one is unset
	otherwise string   // the value without either
	old       []string // spellings of before: read, and shown nowhere
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

// answersTo reports whether a flag is meant by a name without its dashes.
func (f *flag) answersTo(name string) bool {
	return name != "" && (name == f.name || name == f.short || slices.Contains(f.old, name))
}

// dashed returns a flag's name as it is typed.
func (f *flag) dashed() string {
	if utf8.RuneCountInString(f.name) == 1 {
		return "-" + f.name
	}
	return "--" + f.name
}

func (f *flag) envs() []string { return strings.Fields(f.env) }

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
