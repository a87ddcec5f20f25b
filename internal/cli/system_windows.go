package cli

import (
	"strings"
	"syscall"
)

// brokenPipe is what a write gives after the reader has gone: ERROR_NO_DATA.
var brokenPipe error = syscall.Errno(232)

// catchPipe has nothing to do: there is no such signal here.
func catchPipe() {}

// shellCommand is how a command from the environment, with its arguments, is run.
func shellCommand(line string, args ...string) []string {
	return append(strings.Fields(line), args...)
}

// defaultEditor is for people who have set none.
const defaultEditor = "notepad"
