package ui

import (
	"io"
	"os/exec"
	"time"

	tea "charm.land/bubbletea/v2"
)

// aside gives the terminal to something else, and then calls ended with its error.
func aside(c tea.ExecCommand, ended func(error) tea.Msg) tea.Cmd {
	return tea.Exec(unhurried{c}, ended)
}

// unhurried makes a command take a moment. The library stops the clock of the screen beside this; had it no time for that, it would stop the clock that the next
// screen has started, and nothing would be drawn any more.
type unhurried struct{ tea.ExecCommand }

func (c unhurried) Run() error {
	moment := time.NewTimer(100 * time.Millisecond)
	defer func() { <-moment.C }()
	return c.ExecCommand.Run()
}

// program is another program as a tea.ExecCommand.
type program struct{ *exec.Cmd }

func (p *program) SetStdin(r io.Reader)  { p.Stdin = r }
func (p *program) SetStdout(w io.Writer) { p.Stdout = w }
func (p *program) SetStderr(w io.Writer) { p.Stderr = w }

// function is a function as a tea.ExecCommand.
type function func() error

func (f function) Run() error        { return f() }
func (function) SetStdin(io.Reader)  {}
func (function) SetStdout(io.Writer) {}
func (function) SetStderr(io.Writer) {}
