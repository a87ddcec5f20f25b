//go:build !unix

package pgtest

import "errors"

// Cluster stands for a server. There is none on this system.
type Cluster struct{}

// ErrMissing says that tests have no PostgreSQL server on this system.
var ErrMissing = errors.New("tests start no PostgreSQL server on this system")

// Server is always nil on this system.
var Server *Cluster

// Main runs the tests and returns their exit code.
func Main(run func() int, _ ...string) int { return run() }

// Asked returns false.
func Asked() bool { return false }

// Name returns "".
func Name() string { return "" }

// URL returns "".
func (*Cluster) URL(string, ...string) string { return "" }

// NewProxy returns ErrMissing.
func (*Cluster) NewProxy() (*Proxy, error) { return nil, ErrMissing }

// Proxy stands between a program and a server. There is none on this system.
type Proxy struct{ Scanned func(bucket string) }

// URL returns "".
func (*Proxy) URL(string, ...string) string { return "" }

// Close does nothing.
func (*Proxy) Close() {}
