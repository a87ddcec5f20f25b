package cli

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/plural"
)

// entry is what a command does, with its parameters: the fields of a struct.
type entry struct {
	params []param
	fresh  func() any
	do     func(r *run, in any) error
}

// in makes the entry of a function. The tags of T's fields say what they are, and fields of embedded structs stand in their place:
//
//	Name string       `arg:"NAME"`                              an argument; words as in [TEXT|-] and REF…, a slice for the last kind
//	At   string       `flag:"at" doc:"end with {REF}"`          a flag; doc is its line in the help, with the word for its value in braces
//	All  bool         `flag:"all,a" doc:"all of them"`          also -a
//	Text *string      `flag:"text,empty" doc:"the {TEXT}"`      it may be empty; a pointer tells "not given" from zero
//	N    int          `flag:"n" default:"20" doc:"at most {N}"` the value without the flag
//	Here bool         `flag:"here" old:"all" doc:"of this one"` the spellings of before, which are read as ever and shown nowhere
//	Dir  string       `flag:"dir" env:"CHATCTX_DIR" doc:"…"`    the variable that has the value if the command line does not; an empty one is unset
//
// Fields are texts, truths, numbers, times, JSON, slices of them, or types with UnmarshalText, whose error says what the flag takes, or is a usageError. They check the form of a value alone: what
// a name means in the store is found in the command.
func in[T any](do func(*run, *T) error) *entry {
	return &entry{paramsOf(reflect.TypeFor[T]()), func() any { return new(T) }, func(r *run, in any) error { return do(r, in.(*T)) }}
}

// param is a field of a command's struct: a flag, or an argument.
type param struct {
	index []int // as in reflect.Value.FieldByIndex
	flag  *flag // nil: an argument
	word  string
	words []string // all that it may be; nil for anything
	empty bool     // it may be given and empty
}

// name returns what a parameter is called in an error.
func (p *param) name() string {
	if p.flag != nil {
		return p.flag.dashed()
	}
	if strings.Contains(p.word, "|") {
		return "the argument"
	}
	return p.bare()
}

// put parses a text into the parameter's field.
func (p *param) put(field reflect.Value, s string) error {
	if p.words != nil && !slices.Contains(p.words, s) {
		return fmt.Errorf("%s takes %s, not %q", p.name(), plural.Or(p.words), s)
	}
	k := kindFor(field.Type())
	if p.flag != nil {
		k = p.flag.kind
	}
	return put(field, k, p.name(), s)
}

// place returns the word that stands in the help for a value.
func (p *param) place() string {
	if p.flag != nil {
		return valueWord(p.flag)
	}
	return p.bare()
}

// bare returns an argument's word without what says how many of it there are.
func (p *param) bare() string { return strings.Trim(p.word, "[]…") }

// paramCache has the parameters of each struct that was asked for.
var paramCache sync.Map // reflect.Type to []param

func paramsOf(t reflect.Type) []param {
	if known, ok := paramCache.Load(t); ok {
		return known.([]param)
	}
	all := fieldParams(t, nil)
	paramCache.Store(t, all)
	return all
}

// fieldParams returns the parameters among the fields of a struct. above is the index of the struct itself.
func fieldParams(t reflect.Type, above []int) (all []param) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(above[:len(above):len(above)], i)
		if _, inner := f.Tag.Lookup("params"); (inner || f.Anonymous) && f.Type.Kind() == reflect.Struct {
			all = append(all, fieldParams(f.Type, index)...)
			continue
		}
		if tag, ok := f.Tag.Lookup("arg"); ok {
			word, option, _ := strings.Cut(tag, ",")
			all = append(all, param{index: index, word: word, words: wordsOf(f), empty: option == "empty"})
		}
		if tag, ok := f.Tag.Lookup("flag"); ok {
			all = append(all, flagParam(f, index, tag))
		}
	}
	return all
}

// wordsOf returns the words that a field may be, nil for anything.
func wordsOf(f reflect.StructField) []string {
	if words := f.Tag.Get("words"); words != "" {
		return strings.Fields(words)
	}
	return nil
}

// inBackquotes turns the braces of a doc tag into the backquotes that a tag cannot have.
var inBackquotes = strings.NewReplacer("{", "`", "}", "`")

// whenForms are the forms of a time that a flag takes.
const whenForms = ": 2025-01-31, 2025-01-31T10:00:00Z, 12h, 7d"

func flagParam(f reflect.StructField, index []int, tag string) param {
	options := strings.Split(tag, ",")
	p := param{index: index, words: wordsOf(f), flag: &flag{name: options[0], kind: kindFor(f.Type), usage: inBackquotes.Replace(f.Tag.Get("doc")), env: f.Tag.Get("env"), otherwise: f.Tag.Get("default"), old: strings.Fields(f.Tag.Get("old"))}}
	if f.Type == reflect.TypeFor[*time.Time]() {
		p.flag.usage += whenForms
	}
	for _, o := range options[1:] {
		if p.empty = p.empty || o == "empty"; o != "empty" {
			p.flag.short = o
		}
	}
	return p
}

// kindFor returns the kind of flag for a field of a type.
func kindFor(t reflect.Type) kind {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return text
	case t.Kind() == reflect.Slice:
		return several
	case reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return text
	}
	switch t.Kind() {
	case reflect.Bool:
		return onOff
	case reflect.Int:
		return number
	case reflect.Uint64:
		return revision
	case reflect.Int64:
		return span
	}
	return text
}

// put parses a text into a field. what names the field in an error.
func put(field reflect.Value, kind kind, what, s string) error {
	if raw, ok := field.Addr().Interface().(*json.RawMessage); ok {
		if *raw = json.RawMessage(s); !json.Valid(*raw) {
			return usagef("%s is not JSON", what)
		}
		return nil
	}
	switch field.Kind() {
	case reflect.Slice:
		one := reflect.New(field.Type().Elem()).Elem()
		if err := put(one, kindFor(one.Type()), what, s); err != nil {
			return err
		}
		field.Set(reflect.Append(field, one))
		return nil
	case reflect.Pointer:
		one := reflect.New(field.Type().Elem())
		if err := put(one.Elem(), kind, what, s); err != nil {
			return err
		}
		field.Set(one)
		return nil
	}
	if at, ok := field.Addr().Interface().(*time.Time); ok {
		t, err := operation.When(s, time.Now())
		*at = t.Time()
		return formed(err)
	}
	if u, ok := field.Addr().Interface().(encoding.TextUnmarshaler); ok {
		err := formed(u.UnmarshalText([]byte(s)))
		if own := (*usageError)(nil); err == nil || errors.As(err, &own) {
			return err
		}
		return fmt.Errorf("%s takes %w, not %q", what, err, s)
	}
	v, err := kind.parse(what, s)
	if err == nil {
		field.Set(reflect.ValueOf(v).Convert(field.Type()))
	}
	return err
}

// formed makes an error of a value's form a usageError, with the forms that it may have.
func formed(err error) error {
	var form *operation.FormError
	if errors.As(err, &form) {
		return &usageError{form.Text, form.Hint}
	}
	return err
}

// valueOf returns what was given for a parameter, zero if nothing was.
func valueOf[T any](given *T) (v T) {
	if given != nil {
		v = *given
	}
	return v
}

// putArgs puts the arguments into their fields.
func (e *entry) putArgs(in any, args []string) error {
	for _, p := range e.params {
		if p.flag != nil {
			continue
		}
		field := reflect.ValueOf(in).Elem().FieldByIndex(p.index)
		these := args[:min(1, len(args))]
		if field.Kind() == reflect.Slice {
			these = args
		}
		args = args[len(these):]
		for _, a := range these {
			if err := p.put(field, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// describe writes the parameters of its entry into a command.
func (c *command) describe() {
	if c.run == nil {
		return
	}
	var words []string
	for _, p := range c.run.params {
		name := p.bare()
		if p.flag == nil {
			words = append(words, p.word)
		} else {
			c.flags = append(c.flags, p.flag)
			name = "--" + p.flag.name
		}
		if p.words != nil && c.words == nil {
			c.words = map[string][]string{}
		}
		if p.words != nil {
			c.words[p.place()] = p.words
		}
		if p.empty {
			c.mayBeEmpty = append(c.mayBeEmpty, name)
		}
	}
	c.args = strings.Join(words, " ")
	c.do = func(r *run) error {
		if r.in == nil { // the command stands for one that lists, which has other parameters
			r.in = c.run.fresh()
		}
		return c.run.do(r, r.in)
	}
}
