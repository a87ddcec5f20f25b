package cli

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// parsed is a command line: first its words in order, and, once urfave/cli has read these, its values.
type parsed struct {
	path   []*command // the command, after those above it; empty if none was named
	shared []string   // flags that other commands have too, as --name=value, in their original order
	own    []string   // the command's own flags, in the same form
	args   []string
	conf   *config // the person's config file
	bare   int     // number of arguments before a --
	help   bool    // --help: nothing else counts

	common commonFlags // the values of the shared flags
	in     any         // the command's parameters, a pointer to its struct; nil if it has none
	faults []error     // values that their flags do not take
}

// command returns the named command, nil if there is none.
func (p *parsed) command() *command {
	if len(p.path) == 0 {
		return nil
	}
	return p.path[len(p.path)-1]
}

// below returns the commands that may come next: those of table if none is named yet.
func (p *parsed) below(table []*command) []*command {
	if c := p.command(); c != nil {
		return c.subs
	}
	return table
}

// wantsCommand reports whether the line has no command yet that can do something with an argument.
func (p *parsed) wantsCommand() bool {
	c := p.command()
	return c == nil || c.args == "" && len(c.subs) > 0
}

// name returns the command as it is typed: "branch ls".
func (p *parsed) name() string {
	names := make([]string, len(p.path))
	for i, c := range p.path {
		names[i] = c.name
	}
	return strings.Join(names, " ")
}

// words returns the command line for urfave/cli. The first -- ends the flags; the second one keeps it from taking an argument for a subcommand.
func (p *parsed) words() []string {
	words := append([]string{"chatctx"}, p.shared...)
	for _, c := range p.path {
		words = append(words, c.name)
	}
	if p.help {
		return append(words, "--help")
	}
	return append(append(append(words, p.own...), "--", "--"), p.args...)
}

// typedOn returns the command line again, without the store and the conversation, on another branch.
func (p *parsed) typedOn(branch string) string { return p.typed("--branch "+quote(branch), "branch") }

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
	if more != "" {
		words = append(words, more)
	}
	if slices.ContainsFunc(p.args, looksLikeFlag) {
		words = append(words, "--")
	}
	for _, a := range p.args {
		words = append(words, quote(a))
	}
	return strings.Join(words, " ")
}

// over returns the shared flags that count if those of this line stand over others.
func (p *parsed) over(others commonFlags) commonFlags {
	v := reflect.ValueOf(&others).Elem()
	for _, param := range paramsOf(v.Type()) {
		for _, kept := range p.shared {
			if s, is := strings.CutPrefix(kept, param.flag.dashed()+"="); is {
				_ = put(v.FieldByIndex(param.index), param.flag.kind, "", s) // where it matters, it was read already
			}
		}
	}
	return others
}

// flagWords returns the texts among the flags of a struct that are given, as --name=value.
func flagWords[T any](in T) (words []string) {
	v := reflect.ValueOf(in)
	for _, param := range paramsOf(v.Type()) {
		if field := v.FieldByIndex(param.index); field.Kind() == reflect.String && field.String() != "" {
			words = append(words, param.flag.dashed()+"="+field.String())
		}
	}
	return words
}

// flagTyped returns a flag that was kept as --name=value as it is typed.
func flagTyped(all []*flag, kept string) string {
	name, value, _ := strings.Cut(kept, "=")
	for _, f := range all {
		switch {
		case f.name != name[2:]:
		case takesValue(f):
			return f.dashed() + " " + quote(value)
		case value == "true":
			return f.dashed()
		}
	}
	return quote(kept)
}

// check refuses a line that its command cannot take, before anything is done.
func (p *parsed) check() error {
	c := p.command()
	if p.wantsCommand() && (p.bare > 0 || c == nil && len(p.args) > 0) {
		return p.noCommand(p.args[0])
	}
	if c == nil {
		return nil
	}
	known := sharedFlags(c.scope)
	for _, kept := range p.shared {
		name, _, _ := strings.Cut(kept[2:], "=")
		if !slices.ContainsFunc(known, func(f *flag) bool { return f.name == name }) {
			return &usageError{fmt.Sprintf("%s takes no --%s", p.name(), name), "chatctx " + p.name() + " --help lists the flags"}
		}
	}
	if err := p.checkEmpty(c); err != nil {
		return err
	}
	if err := c.checkArgs(p.name(), p.args); err != nil {
		return err
	}
	if len(p.faults) > 0 {
		return p.misused(p.faults[0])
	}
	return nil
}

// checkEmpty refuses empty flags and arguments: a variable that a shell script forgot to set must not mean the current conversation, or all of them. The
// words of a command behind -- are passed on unchanged.
func (p *parsed) checkEmpty(c *command) error {
	hint := "a variable that is not set? leave it out for the default"
	for _, kept := range slices.Concat(p.shared, p.own) {
		if name, empty := strings.CutSuffix(kept, "="); empty && strings.Count(kept, "=") == 1 && !slices.Contains(c.mayBeEmpty, name) {
			return &usageError{fmt.Sprintf("%s: %s is empty", p.name(), name), hint}
		}
	}
	for i, a := range p.args {
		word := c.argumentAt(i)
		if a != "" || slices.Contains(c.mayBeEmpty, word) && (i >= p.bare || c.hidden) {
			continue
		}
		if slices.ContainsFunc(c.flags, func(f *flag) bool { return f.name == "clear" }) {
			hint = "to remove it: chatctx " + p.name() + " --clear"
		}
		return &usageError{fmt.Sprintf("%s: %s is empty", p.name(), word), hint}
	}
	return nil
}

// misused is the error for a line with a value that its command does not take.
func (p *parsed) misused(err error) error {
	if own := (*usageError)(nil); errors.As(err, &own) {
		return err
	}
	return &usageError{p.name() + ": " + err.Error(), strings.TrimSpace("chatctx "+p.name()) + " --help"}
}
