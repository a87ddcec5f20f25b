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

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

func init() { talkCommandsOfTests["dialogue"] = scriptDialogue }

// scriptDialogue: dialogue FILE COMMAND ARGS… runs a command at a terminal. A line of FILE is what to type, a Go string, after "<", or after ">" a
// regular expression to wait for in what has been written since the last one.
func scriptDialogue(ts *testscript.TestScript, neg bool, args []string) {
	master, slave, err := openTerminal()
	ts.Check(err)
	defer master.Close()
	self, err := os.Executable()
	ts.Check(err)
	cmd := exec.Command(self, args[2:]...)
	cmd.Args[0] = args[1] // the test binary is the program of that name
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "PATH", "TERM", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "CHATCTX_MODEL", "NO_COLOR"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	ts.Check(cmd.Start())
	defer cmd.Process.Kill()
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
	heard := ""
	for _, line := range strings.Split(strings.TrimSpace(ts.ReadFile(args[0])), "\n") {
		what := strings.TrimSpace(line[1:])
		if line[0] == '<' {
			text, err := strconv.Unquote(what)
			ts.Check(err)
			_, err = io.WriteString(master, text)
			ts.Check(err)
			continue
		}
		heard = waitFor(ts, said, heard, regexp.MustCompile(what))
	}
	for range said { // until the program has gone
	}
	if err := cmd.Wait(); err != nil && !neg {
		ts.Fatalf("%v", err)
	}
}

// waitFor waits for an expression and gives what came after it.
func waitFor(ts *testscript.TestScript, said <-chan string, heard string, want *regexp.Regexp) string {
	deadline := time.After(time.Minute)
	for {
		if at := want.FindStringIndex(heard); at != nil {
			return heard[at[1]:]
		}
		select {
		case text, ok := <-said:
			if !ok {
				ts.Fatalf("the program ended; no %s in %q", want, heard)
			}
			heard += text
		case <-deadline:
			ts.Fatalf("no %s in %q", want, heard)
		}
	}
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
