package cli

import (
	"context"
	"errors"
	goflag "flag"
	"io"
	"reflect"

	urfave "github.com/urfave/cli/v2"
)

// binding connects one command line with the program of urfave/cli that reads it.
type binding struct {
	p   *parsed
	act func(context.Context, *parsed) error
}

// newApp makes the program of urfave/cli for one command line: the commands of table, whose flags write into p. It calls act when the line is read and makes sense. It
// prints nothing itself, and no two lines share one.
func newApp(table []*command, p *parsed, act func(context.Context, *parsed) error) *urfave.App {
	b := &binding{p, act}
	return &urfave.App{
		Name: "chatctx", Commands: b.commands(table), Flags: b.flags(paramsOf(reflect.TypeFor[commonFlags]()), reflect.ValueOf(&p.common).Elem()),
		Action: b.action(nil, nil), OnUsageError: b.unread,
		HideHelp: true, HideHelpCommand: true, HideVersion: true, // they would print texts of their own
		DisableSliceFlagSeparator: true,                            // a value may contain commas
		ExitErrHandler:            func(*urfave.Context, error) {}, // an error of a tool's process would end this one
		Writer:                    io.Discard,
		ErrWriter:                 io.Discard,
	}
}

func (b *binding) commands(table []*command) (all []*urfave.Command) {
	for _, c := range table {
		all = append(all, b.command(c))
	}
	return all
}

func (b *binding) command(c *command) *urfave.Command {
	out := &urfave.Command{Name: c.name, Usage: c.does, ArgsUsage: c.args, Hidden: c.hidden, HideHelp: true, HideHelpCommand: true,
		Subcommands: b.commands(c.subs), OnUsageError: b.unread}
	var in any
	if c.run != nil {
		in = c.run.fresh()
		out.Flags = b.flags(c.run.params, reflect.ValueOf(in).Elem())
	}
	out.Action = b.action(c, in)
	return out
}

// flags makes the flags that write into the fields of a struct.
func (b *binding) flags(params []param, into reflect.Value) (all []urfave.Flag) {
	for _, p := range params {
		if p.flag == nil {
			continue
		}
		field := into.FieldByIndex(p.index)
		if f := p.flag; f.otherwise != "" {
			b.fault(p.put(field, f.otherwise))
		}
		all = append(all, b.field(&p, field))
	}
	return all
}

// field makes the flag that writes into a field: urfave/cli itself does if any text will do.
func (b *binding) field(p *param, field reflect.Value) urfave.Flag {
	f := p.flag
	if to, ok := field.Addr().Interface().(*string); ok && p.words == nil {
		return &urfave.StringFlag{Name: f.name, Usage: f.usage, EnvVars: f.envs(), Value: *to, Destination: to}
	}
	v := &value{takesNone: !takesValue(f), set: func(s string) { b.fault(p.put(field, s)) }}
	return &urfave.GenericFlag{Name: f.name, Usage: f.usage, EnvVars: f.envs(), Value: v}
}

// fault keeps what is wrong with a value until the whole line is read. urfave/cli would stop there, and hand the error on as a text.
func (b *binding) fault(err error) {
	if err != nil {
		b.p.faults = append(b.p.faults, err)
	}
}

// value is where urfave/cli puts what was typed for a flag.
type value struct {
	takesNone bool
	typed     string
	set       func(string)
}

var _ urfave.Generic = &value{}

func (v *value) Set(s string) error { v.typed = s; v.set(s); return nil }
func (v *value) String() string     { return v.typed }
func (v *value) IsBoolFlag() bool   { return v.takesNone }

// action is what urfave/cli calls when it has read a command line. c is nil for a line without a command.
func (b *binding) action(c *command, in any) urfave.ActionFunc {
	return func(u *urfave.Context) error {
		b.p.in, b.p.args = in, u.Args().Slice()
		if len(b.p.args) > 0 && b.p.args[0] == "--" { // the second one of words
			b.p.args = b.p.args[1:]
		}
		if err := b.p.check(); err != nil {
			return err
		}
		if in != nil {
			if err := c.run.putArgs(in, b.p.args); err != nil {
				return b.p.misused(err)
			}
		}
		return b.act(u.Context, b.p)
	}
}

// unread is what urfave/cli calls when it cannot read a command line. order lets only --help through that it does not know.
func (b *binding) unread(u *urfave.Context, err error, _ bool) error {
	if errors.Is(err, goflag.ErrHelp) {
		return b.act(u.Context, b.p)
	}
	return b.p.misused(err)
}

// split reads a command line and does nothing.
func split(table []*command, args []string) (*parsed, error) {
	p, err := order(table, args)
	if err != nil {
		return p, err
	}
	return p, newApp(table, p, func(context.Context, *parsed) error { return nil }).Run(p.words())
}
