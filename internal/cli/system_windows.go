package cli

import (
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// brokenPipes are the errors of a write after the reader has gone. Which one it is depends on whether the reader went before or during the write, and on
// how the pipe was made.
var brokenPipes = []error{windows.ERROR_BROKEN_PIPE, windows.ERROR_NO_DATA, windows.ERROR_PIPE_NOT_CONNECTED}

// catchPipe does nothing: this system has no such signal.
func catchPipe() {}

// defaultEditor is for people who have set none.
const defaultEditor = "notepad"

// backslashQuotes: a backslash separates folders here, and quotes nothing.
const backslashQuotes = false

// ansi makes a console obey escape sequences, which it does not by default. restore restores its mode; ok is false if it cannot, before Windows 10.
func ansi(w io.Writer) (restore func(), ok bool) {
	none := func() {}
	f, isFile := w.(*os.File)
	if !isFile {
		return none, true
	}
	console := windows.Handle(f.Fd())
	var mode uint32
	if windows.GetConsoleMode(console, &mode) != nil || mode&windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING != 0 {
		return none, true // no console, or one that does
	}
	if windows.SetConsoleMode(console, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) != nil {
		return none, false
	}
	return func() { _ = windows.SetConsoleMode(console, mode) }, true
}
