//go:build unix

package cli

import (
	"io"
	"os"
	"os/signal"
	"syscall"
)

// brokenPipes are the errors of a write after the reader has gone.
var brokenPipes = []error{syscall.EPIPE}

// catchPipe makes a write to a closed standard output an error instead of the end of the process. The signal is caught and not ignored, since a pager or an
// editor would inherit that.
func catchPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// defaultEditor is for people who have set none.
const defaultEditor = "vi"

// backslashQuotes: in the shell a backslash quotes the next character.
const backslashQuotes = true

// ansi makes a terminal obey escape sequences. On this system terminals always do.
func ansi(io.Writer) (restore func(), ok bool) { return func() {}, true }
