//go:build unix

package base

import (
	"errors"
	"syscall"

	"github.com/chatctx/chatctx/pool"
)

// processAlive reports whether a process has that id, even one of another user.
func processAlive(pid int, _ pool.Time) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// thisBegun is not needed on this system: the boot id suffices.
func thisBegun() pool.Time { return 0 }
