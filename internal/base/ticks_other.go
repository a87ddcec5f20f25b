//go:build !linux && !darwin && !windows

package base

// ticks is unknown on this system.
func ticks() int64 { return 0 }
