//go:build !unix

package chatctx

func bootID() string { return "" }

// processAlive cannot tell here: a claim ends by not being renewed.
func processAlive(int) bool { return true }
