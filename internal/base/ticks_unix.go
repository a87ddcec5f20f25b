//go:build linux || darwin

package base

import "golang.org/x/sys/unix"

// ticks returns the time since the boot, in microseconds, without that in which the machine slept. All processes of a boot read the same clock, which
// nobody can set.
func ticks() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return t.Nano() / 1000
}
