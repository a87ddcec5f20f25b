//go:build unix && !linux && !darwin

package base

func bootID() string { return "" }
