package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/input"
	"github.com/chatctx/chatctx/internal/ui"
)

// console is where a command line reads and writes, with the abilities of the other end.
type console struct {
	in        io.Reader
	out       *output
	err       io.Writer
	inTTY     bool
	tty       bool // standard output is a terminal
	errs      bool // standard error is a terminal
	color     bool
	plain     bool                       // draw with ASCII only
	width     int                        // columns
	barShown  bool                       // a progress bar is on the present line of standard error
	restore   func()                     // restores the terminals
	told      *sync.Map                  // what was reported once: settings that are not in force, warnings
	live      *ui.Prompt                 // a line is edited below the output, as in a chat; nil: none
	hint      func(string) string        // rewrites what is to be typed as it is typed here; nil: unchanged
	happens   func(turn.Event)           // gets the events of an answer; nil: nobody
	begins    map[string]json.RawMessage // settings that a new conversation begins with
	forgotten map[string]string          // the environment that the command does not use
	helper    []string                   // how this program is started to hold the processes of a tool; nil: not at all
}

// newConsole inspects the three streams and the environment.
func newConsole(ctx context.Context, in io.Reader, out, errOut io.Writer) *console {
	c := &console{told: &sync.Map{}, in: input.New(ctx, in), err: errOut, inTTY: isTerminal(in), tty: isTerminal(out), errs: isTerminal(errOut)}
	restoreOut, obeys := ansi(out)
	restoreErr, _ := ansi(errOut)
	dumb := os.Getenv("TERM") == "dumb"
	force := os.Getenv("CLICOLOR_FORCE")
	switch {
	case os.Getenv("NO_COLOR") != "":
	case force != "" && force != "0":
		c.color = true
	default:
		c.color = c.tty && !dumb && obeys
	}
	c.restore = func() {
		restoreErr()
		restoreOut()
	}
	c.plain = dumb
	c.width = columns(out)
	c.out = newOutput(ctx, out)
	return c
}

// stdin is standard input for another program: the file itself if it is one.
func (c *console) stdin() io.Reader {
	if i, ok := c.in.(*input.Reader); ok {
		return i.From
	}
	return c.in
}

// asks reports whether there is somebody to ask.
func (c *console) asks() bool { return c.inTTY && c.errs }

// page sends all further output through the pager, if there is a terminal and a pager.
func (c *console) page() {
	if c.tty && os.Getenv("TERM") != "dumb" {
		c.out.pager = pagerCommand()
	}
}

// styles of text on a terminal.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	cyan   = "36"
)

// paint gives s a style, if there is colour.
func (c *console) paint(style, s string) string {
	if !c.color || s == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && f != nil && term.IsTerminal(int(f.Fd()))
}

// columns returns the width to use: the terminal's, else that of COLUMNS, else 80.
func columns(out io.Writer) int {
	if isTerminal(out) {
		if w, _, err := term.GetSize(int(out.(*os.File).Fd())); err == nil && w >= 20 {
			return w
		}
	}
	if w, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && w >= 20 {
		return w
	}
	return 80
}

// output is buffered standard output. After its first error it writes nothing more and keeps the error. An interrupt ends a write that nobody reads.
type output struct {
	ctx   context.Context
	w     io.Writer
	buf   *bufio.Writer
	err   error
	pager *pagerSpec // started with the first bytes, so that an error without output starts none
	page  *pagerProcess
}

func newOutput(ctx context.Context, w io.Writer) *output {
	o := &output{ctx: ctx, w: w}
	o.buf = bufio.NewWriterSize(sink{o}, 32<<10)
	return o
}

// Write buffers p. It never fails before the output is flushed; loops check stopped.
func (o *output) Write(p []byte) (int, error) { return o.buf.Write(p) }

func (o *output) flush() error {
	if err := o.buf.Flush(); err != nil && o.err == nil {
		o.err = err
	}
	return o.err
}

// stopped reports whether further output is useless.
func (o *output) stopped() bool { return o.err != nil }

// close flushes, waits for the pager, and returns the error that was kept.
func (o *output) close() error {
	err := o.flush()
	if o.page != nil {
		o.page.wait()
	}
	if l, ok := o.w.(*lineWriter); ok {
		l.end()
	}
	return err
}

// lineWriter passes on whole lines from several writers.
type lineWriter struct {
	print func(string)
	mu    sync.Mutex
	rest  string
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest += string(p)
	if end := strings.LastIndexByte(l.rest, '\n') + 1; end > 0 {
		l.print(l.rest[:end])
		l.rest = l.rest[end:]
	}
	return len(p), nil
}

// end passes on a line without an end.
func (l *lineWriter) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rest != "" {
		l.print(l.rest)
		l.rest = ""
	}
}

// sink is the unbuffered end of an output.
type sink struct{ o *output }

func (s sink) Write(p []byte) (int, error) {
	o := s.o
	if o.err != nil {
		return 0, o.err
	}
	if o.pager != nil && o.page == nil {
		if o.page = o.pager.start(o.w); o.page != nil {
			o.w = o.page.in
		}
		o.pager = nil
	}
	n, err := input.Await(o.ctx, func() (int, error) { return o.w.Write(p) })
	if isBrokenPipe(err) {
		err = errBroken
	}
	o.err = err
	return n, err
}

func isBrokenPipe(err error) bool {
	is := func(broken error) bool { return errors.Is(err, broken) }
	return err != nil && (slices.ContainsFunc(brokenPipes, is) || is(io.ErrClosedPipe))
}
