package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/screen"
)

// messageField is what log --fields can print of a message.
type messageField struct {
	name string
	of   func(e *chatctx.Entry) string
}

var messageFields = []messageField{
	{"id", func(e *chatctx.Entry) string { return e.ID.String() }},
	{"ref", func(e *chatctx.Entry) string { return short(e.ID) }},
	{"position", func(e *chatctx.Entry) string { return strconv.Itoa(e.Position) }},
	{"turn", func(e *chatctx.Entry) string { return e.Turn }},
	{"role", func(e *chatctx.Entry) string { return string(e.Role) }},
	{"model", func(e *chatctx.Entry) string { return e.Meta.Model }},
	{"created", func(e *chatctx.Entry) string { return e.Created.Time().UTC().Format(time.RFC3339) }},
	{"text", spokenText},
}

// oneLineFields are those of log --oneline.
var oneLineFields = []string{"ref", "role", "text"}

// fields returns the fields of a line for each message, nil if messages are not lines.
func (in *logIn) fields(json bool) (names []string, err error) {
	switch {
	case !in.OneLine && in.Fields == "":
		return nil, nil
	case in.OneLine && in.Fields != "":
		return nil, usagef("log takes --oneline or --fields, not both")
	case json:
		return nil, &usageError{"log --json has all fields", "leave out --oneline and --fields"}
	case in.OneLine:
		return oneLineFields, nil
	}
	var known []string
	for _, f := range messageFields {
		known = append(known, f.name)
	}
	for _, name := range strings.Split(in.Fields, ",") {
		if name = strings.TrimSpace(name); !slices.Contains(known, name) {
			return nil, &usageError{fmt.Sprintf("log --fields: no field %q", name), "a field is " + plural.Or(known)}
		}
		names = append(names, name)
	}
	return names, nil
}

// messageLine returns fields of a message in one line that is safe on a terminal, with tabs between.
func messageLine(e *chatctx.Entry, names []string) string {
	values := make([]string, len(names))
	for i, name := range names {
		at := slices.IndexFunc(messageFields, func(f messageField) bool { return f.name == name })
		values[i] = clean(strings.Join(strings.Fields(messageFields[at].of(e)), " "))
	}
	return strings.Join(values, "\t")
}

// spokenText is what a message says, in words: what is unusual about it, its text, its result, or else what it calls and how many files it has.
func spokenText(e *chatctx.Entry) string {
	text := e.Text()
	if e.Result != nil {
		text = cmp.Or(text, e.Result.Text, string(e.Result.JSON))
	}
	for i := range e.Calls {
		text += " → " + e.Calls[i].Tool + "(" + string(e.Calls[i].Arguments) + ")"
	}
	if files := len(e.Content); text == "" && files > 0 {
		text = count(files, "part") + " without text"
	}
	if state := screen.StateWords(e, ""); len(state) > 0 {
		text = "(" + strings.Join(state, ", ") + ") " + text
	}
	return text
}
