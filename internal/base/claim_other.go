//go:build !unix && !windows

package base

import "github.com/chatctx/chatctx/pool"

func bootID() string { return "" }

// processAlive cannot tell on this system: a claim ends when it is not renewed.
func processAlive(int, pool.Time) bool { return true }

// thisBegun is unknown on this system.
func thisBegun() pool.Time { return 0 }
