//go:build !race

package testkit

// Race reports whether the race detector watches the tests, with which they are some eight times slower.
const Race = false
