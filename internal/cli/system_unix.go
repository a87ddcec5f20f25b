//go:build unix

package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// brokenPipe is what a write gives after the reader has gone.
var brokenPipe error = syscall.EPIPE

// catchPipe makes a write to a closed standard output an error instead of the end of the process. The signal is caught and
// not ignored, since a pager or an editor would inherit that.
func catchPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// shellCommand is how a command from the environment, with its arguments, is run.
func shellCommand(line string, args ...string) []string {
	if len(args) == 0 {
		return []string{"/bin/sh", "-c", line}
	}
	return append([]string{"/bin/sh", "-c", line + ` "$@"`, line}, args...)
}

// defaultEditor is for people who have set none.
const defaultEditor = "vi"
