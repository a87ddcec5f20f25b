//go:build unix && !linux

package approval

import (
	"os/exec"
	"syscall"
)

// group is a command with all the processes that it starts and that stay in its process group.
type group struct{ cmd *exec.Cmd }

// newGroup puts a command into a group. There is no way here to hold a process that leaves it, with a helper or without.
func newGroup(cmd *exec.Cmd, _ []string) *group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return &group{cmd}
}

func (g *group) started() error { return nil }

// kill ends all of them.
func (g *group) kill() error { return killGroup(g.cmd) }

func (g *group) close() {}

// Reap is for Linux alone.
func Reap([]string) int { return noHelper }
