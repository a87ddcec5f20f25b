package base

import "golang.org/x/sys/windows"

// ticks returns the time since the boot, in microseconds. All processes read the same clock, which nobody can set.
func ticks() int64 { return windows.DurationSinceBoot().Microseconds() }
