//go:build unix

package record

import (
	"errors"
	"syscall"

	"github.com/chatctx/chatctx/pool"
)

// processAlive reports whether there is a process of that id; one of another user counts.
func processAlive(pid int, _ pool.Time) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// thisBegun: an id of the boot is enough here.
func thisBegun() pool.Time { return 0 }
