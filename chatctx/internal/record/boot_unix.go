//go:build unix && !linux && !darwin

package record

func bootID() string { return "" }
