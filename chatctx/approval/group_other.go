//go:build unix && !linux

package approval

import (
	"os/exec"
	"syscall"
)

// group is a command with those processes that stay in its process group.
type group struct{ cmd *exec.Cmd }

// newGroup puts a command into a group. This system offers no way to hold a process that leaves it, with a helper or without.
func newGroup(cmd *exec.Cmd, _ []string) *group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return &group{cmd}
}

func (g *group) started() error { return nil }

// kill ends all processes of the group.
func (g *group) kill() error { return killGroup(g.cmd) }

func (g *group) close() {}

// Reap does nothing except on Linux.
func Reap([]string) int { return noHelper }
