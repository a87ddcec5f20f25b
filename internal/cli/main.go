package cli

import (
	"context"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/internal/engine"
	_ "github.com/chatctx/chatctx/internal/firstgc"
	"github.com/chatctx/chatctx/internal/settings"
)

// Main runs one command line, without the program's name, and returns the exit code.
func Main(args []string, in io.Reader, out, errOut io.Writer) int {
	if len(args) > 0 && args[0] == reapWord {
		return approval.Reap(args[1:])
	}
	approval.HideEnvironment()
	hidden, back := forget(args)
	defer back()
	catchPipe()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	con := newConsole(ctx, in, out, errOut)
	con.helper, con.forgotten = helper(), hidden
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
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-V") { // what many people try first
		args = []string{"version"}
	}
	table := allCommands()
	conf, err := readConfigFile(args)
	if err != nil {
		return err
	}
	settings.UseFile(&conf.File)
	given := args
	if args, err = conf.expanded(table, args); err != nil {
		return err
	}
	p, err := order(table, args)
	if err != nil {
		return err
	}
	p.conf = conf
	conf.putModels(p)
	return newApp(table, p, func(ctx context.Context, p *parsed) error {
		switch {
		case p.command() == nil && (len(given) == 0 || !p.help):
			return welcome(ctx, con, p)
		case p.help:
			return doPrintHelp(&run{con: con, common: p.common}, p)
		}
		return runCommand(ctx, con, p)
	}).RunContext(ctx, p.words())
}

// runCommand runs the command of a line that was read.
func runCommand(ctx context.Context, con *console, p *parsed) error {
	cmd := p.command()
	r := &run{con: con, cmd: cmd, name: p.name(), line: p, in: p.in, common: p.common, talks: talksOf(ctx, p.in), opened: &closers{}, executors: &executors{}}
	r.piped, r.ctx = besideCommand(con, p), engine.WithWaiting(ctx, r.sayWaiting)
	defer r.close()
	for _, note := range p.conf.passedOver() {
		if _, before := con.told.LoadOrStore(note, true); !before {
			r.note("%s", note)
		}
	}
	if cmd.paged && !r.json() {
		con.page()
	}
	err := cmd.do(r)
	r.sayKept(err)
	return r.explained(err)
}

// wantsJSON looks for --json in a command line that could not be parsed.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}
