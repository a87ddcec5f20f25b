//go:build unix

package approval

import (
	"errors"
	"os/exec"
	"syscall"
)

// group is a command with all the processes that it starts: a process group of its own.
type group struct{ cmd *exec.Cmd }

func newGroup(cmd *exec.Cmd) *group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return &group{cmd}
}

func (g *group) started() error { return nil }

// kill ends all of them.
func (g *group) kill() error {
	if g.cmd.Process == nil {
		return nil
	}
	err := syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

func (g *group) close() {}
