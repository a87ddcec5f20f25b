package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	urfave "github.com/urfave/cli/v3"

	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/kv"
	_ "github.com/chatctx/chatctx/internal/firstgc"
)

// Main runs one command line, without the program's name, and returns the exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	if len(args) > 0 && args[0] == reapWord {
		return approval.Reap(args[1:])
	}
	catchPipe()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	con := newConsole(ctx, in, out, errOut)
	con.helper = helper()
	defer con.restore()
	err := execute(ctx, con, args)
	if closeErr := con.out.close(); err == nil {
		err = closeErr
	}
	printError(errOut, err, wantsJSON(args))
	code, _ := classify(err)
	return code
}

// reapWord is the command with which this program starts itself to hold the processes of a tool. Nobody types it.
const reapWord = "__reap"

// helper returns how this program starts itself to run a tool.
func helper() []string {
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, reapWord}
}

// execute runs one command line on a console. A program that reads commands while it runs calls it for each.
func execute(ctx context.Context, con *console, args []string) error {
	if len(args) == 1 && args[0] == "--version" { // what many people try first
		args = []string{"version"}
	}
	p, err := split(allCommands(), args)
	if err != nil {
		return err
	}
	cmd := p.command()
	if cmd == nil && (len(args) == 0 || !p.help) {
		return welcome(ctx, con, p)
	}
	if p.help {
		con.page()
		return printHelp(con.out, p)
	}
	return runCommand(ctx, con, p)
}

// runCommand lets urfave/cli parse the values of the flags and runs the command. It puts the shared flags before the command's name and its own after it,
// so that a command may have a flag with the name of a shared one.
func runCommand(ctx context.Context, con *console, p *parsed) error {
	cmd := p.command()
	usage := func(_ context.Context, _ *urfave.Command, err error, _ bool) error {
		return &usageError{p.name() + ": " + badValue(err), "chatctx " + p.name() + " --help"}
	}
	leaf := &urfave.Command{
		Name:                      p.name(),
		HideHelp:                  true,
		DisableSliceFlagSeparator: true, // of its own flags: a value may contain commas
		Flags:                     cmd.flags,
		OnUsageError:              usage,
		Action: func(ctx context.Context, c *urfave.Command) error {
			r := &run{ctx: ctx, con: con, cmd: cmd, name: p.name(), line: p, flags: c, args: c.Args().Slice(), executors: &executors{}}
			r.ctx = kv.WithWaiting(ctx, r.sayWaiting)
			defer r.close()
			if cmd.paged && !r.json() {
				con.page()
			}
			return r.explained(cmd.do(r))
		},
	}
	app := &urfave.Command{
		Name:                      "chatctx",
		HideHelp:                  true,
		HideVersion:               true,
		DisableSliceFlagSeparator: true,
		Flags:                     sharedFlags(onBranch),
		Commands:                  []*urfave.Command{leaf},
		OnUsageError:              usage,
		ExitErrHandler:            func(context.Context, *urfave.Command, error) {},
		Writer:                    con.out,
		ErrWriter:                 con.err,
	}
	line := append([]string{"chatctx"}, p.shared...)
	line = append(append(line, leaf.Name), p.own...)
	line = append(append(line, "--"), p.args...)
	return app.Run(ctx, line)
}

// unreadable matches urfave/cli's error for a flag's value that cannot be parsed, with that of Go's parser.
var unreadable = regexp.MustCompile(`^invalid value ("(?:[^"\\]|\\.)*") for flag -(\S+): (.*)$`)

// badValue words an error about a flag's value for people.
func badValue(err error) string {
	m := unreadable.FindStringSubmatch(err.Error())
	if m == nil {
		return err.Error()
	}
	kind := "a whole number"
	switch {
	case strings.Contains(m[3], "duration"):
		kind = "a time such as 90s, 5m or 2h"
	case m[3] == "parse error":
		kind = "true or false, or stands alone"
	case strings.Contains(m[3], "ParseFloat"):
		kind = "a number"
	}
	dash := "--"
	if len(m[2]) == 1 {
		dash = "-"
	}
	return fmt.Sprintf("%s%s takes %s, not %s", dash, m[2], kind, m[1])
}

// wantsJSON looks for --json in a command line that could not be parsed.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}
