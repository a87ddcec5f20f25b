//go:build !unix

package pgtest

import "errors"

// Cluster is a server. There is none on this system.
type Cluster struct{}

// ErrMissing: tests have no PostgreSQL server on this system.
var ErrMissing = errors.New("tests start no PostgreSQL server on this system")

// Server is nil.
var Server *Cluster

// Main runs the tests.
func Main(run func() int, _ ...string) int { return run() }

// Asked is false.
func Asked() bool { return false }

// Name makes no name.
func Name() string { return "" }

// URL leads nowhere.
func (*Cluster) URL(string, ...string) string { return "" }

// NewProxy makes none.
func (*Cluster) NewProxy() (*Proxy, error) { return nil, ErrMissing }

// Proxy stands before a server. There is none on this system.
type Proxy struct{ Scanned func(bucket string) }

// URL leads nowhere.
func (*Proxy) URL(string, ...string) string { return "" }

// Close does nothing.
func (*Proxy) Close() {}
