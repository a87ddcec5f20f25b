package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
	"mvdan.cc/sh/v3/shell"
)

func init() { talkCommandsOfTests["dialogue"] = scriptDialogue }

// scriptDialogue: dialogue FILE COMMAND ARGS… runs a command at a terminal. A line of FILE is what to type, a Go string, after "<", or after ">" a
// regular expression to wait for in what has been written since the last one, or after "=" one that is to fit what the terminal shows, with what has scrolled
// away, or after "$" another command to run meanwhile.
func scriptDialogue(ts *testscript.TestScript, neg bool, args []string) {
	master, slave, err := openTerminal()
	ts.Check(err)
	defer master.Close()
	self, err := os.Executable()
	ts.Check(err)
	cmd := exec.Command(self, args[2:]...)
	cmd.Args[0] = args[1] // the test binary is the program of that name
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "CHATCTX_HISTORY", "PAGER", "PATH", "TERM", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "CHATCTX_MODEL", "NO_COLOR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(cmd.Start())
	defer cmd.Process.Kill()
	name := slave.Name()
	slave.Close()
	said := make(chan string)
	go func() {
		defer close(said)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			said <- string(buf[:n])
		}
	}()
	shown := newShown(said)
	defer shown.close()
	for _, line := range strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n") {
		what := strings.TrimSpace(line[1:])
		switch line[0] {
		case '$':
			words, err := shell.Fields(what, ts.Getenv)
			ts.Check(err)
			ts.Check(ts.Exec(words[0], words[1:]...))
			continue
		case '<':
			text, err := strconv.Unquote(what)
			ts.Check(err)
			shown.waitUntilRead(ts, name)
			_, err = io.WriteString(master, text)
			ts.Check(err)
			continue
		}
		shown.waitFor(ts, regexp.MustCompile(what), line[0] == '=')
	}
	for range said { // until the program has gone
	}
	if err := cmd.Wait(); err != nil && !neg {
		ts.Fatalf("%v", err)
	}
}

// shown is what a program wrote, and what a terminal shows of it.
type shown struct {
	said  <-chan string
	heard string // since the last match
	em    *vt.Emulator
}

func newShown(said <-chan string) *shown {
	s := &shown{said: said, em: vt.NewEmulator(80, 24)}
	go io.Copy(io.Discard, s.em) // what it answers
	return s
}

func (s *shown) close() { s.em.InputPipe().(io.Closer).Close() }

// screen is what scrolled away and what is on the screen, without spaces at the ends of lines.
func (s *shown) screen() string {
	var b strings.Builder
	for y := range s.em.ScrollbackLen() {
		for x := range s.em.Width() {
			if c := s.em.ScrollbackCellAt(x, y); c != nil {
				b.WriteString(c.Content)
			}
		}
		b.WriteByte('\n')
	}
	lines := strings.Split(b.String()+s.em.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \r")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// waitFor waits for an expression: on the screen, or in what came since the last one.
func (s *shown) waitFor(ts *testscript.TestScript, want *regexp.Regexp, screen bool) {
	deadline := time.After(60 * time.Second)
	for {
		text := s.heard
		if screen {
			text = s.screen()
		}
		if at := want.FindStringIndex(text); at != nil {
			if !screen {
				s.heard = s.heard[at[1]:]
			}
			return
		}
		select {
		case said, ok := <-s.said:
			if !ok {
				ts.Fatalf("the program ended; no %s in %q", want, text)
			}
			s.hear(said)
		case <-deadline:
			ts.Fatalf("no %s in %q; written: %q", want, text, s.heard[max(len(s.heard)-8000, 0):])
		}
	}
}

// waitUntilRead waits until the program has read what was typed before: two lines in one read would be a paste.
func (s *shown) waitUntilRead(ts *testscript.TestScript, terminal string) {
	for {
		f, err := os.OpenFile(terminal, os.O_RDWR|syscall.O_NOCTTY, 0)
		ts.Check(err)
		n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCINQ)
		f.Close()
		if ts.Check(err); n == 0 {
			return
		}
		select {
		case said := <-s.said:
			s.hear(said)
		case <-time.After(time.Millisecond):
		}
	}
}

// hear takes what the program wrote.
func (s *shown) hear(said string) {
	s.heard += said
	_, _ = io.WriteString(s.em, said) // an emulator takes all
}

// openTerminal makes a pseudo-terminal of 80 by 24.
func openTerminal() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	fd := int(master.Fd())
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	if err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		return nil, nil, err
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	return master, slave, err
}
