// Package storetest opens stores for tests of several packages. Whatever a test did to such a store, its end checks it. No program links this package.
package storetest

import (
	"context"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// Open opens the store at path, in memory if that is "". The end of the test checks and closes it.
func Open(t testing.TB, path string, o chatctx.Options) *chatctx.Store {
	t.Helper()
	open := func() (*chatctx.Store, error) { return chatctx.Open(path, o) }
	if path == "" {
		open = func() (*chatctx.Store, error) { return chatctx.OpenMemory(o) }
	}
	s, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Close(t, s) })
	return s
}

// Check fails the test for each invariant that the store breaks.
func Check(t testing.TB, s *chatctx.Store) {
	t.Helper()
	err := s.Maintenance().Check(context.Background(), chatctx.CheckOptions{Full: true}, func(p record.Problem) { t.Errorf("check: invariant %d, %s: %s", p.Invariant, p.Where, p.Text) })
	if err != nil {
		t.Errorf("check: %v", err)
	}
}

// Close checks a store and closes it.
func Close(t testing.TB, s *chatctx.Store) {
	t.Helper()
	Check(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
