//go:build !unix && !windows

package record

import "github.com/chatctx/chatctx/pool"

func bootID() string { return "" }

// processAlive cannot tell here: a claim ends by not being renewed.
func processAlive(int, pool.Time) bool { return true }

// thisBegun: nothing is known of processes here.
func thisBegun() pool.Time { return 0 }
