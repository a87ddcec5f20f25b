package chatctx

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/pool"
)

// TestCopyGoesOn: nobody can open a copy that was cut short, and a second run goes on with it; claims end, and everything else is as it was.
func TestCopyGoesOn(t *testing.T) {
	dir := t.TempDir()
	from, to, other := filepath.Join(dir, "from.db"), filepath.Join(dir, "to.db"), filepath.Join(dir, "other.db")
	o := Options{Create: true, Program: "test", Judge: byName{}}
	s, err := Open(from, o)
	if err != nil {
		t.Fatal(err)
	}
	c := newContext(t, s, "a")
	appendTo(t, c, "", asks("x"))
	if _, err := decide(c, "", "x", record.Verdict{Status: pool.Approved}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ClaimCall(t.Context(), "", "", "x", record.ClaimOptions{}); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		appendTo(t, c, "", says(strings.Repeat("long ", 50000))...)
	}
	s.Close()

	ctx, cancel := context.WithCancel(t.Context())
	_, err = CopyStore(ctx, from, to, o, record.CopyOptions{Progress: func(n int) {
		if n > 10 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cut short: %v", err)
	}
	for _, path := range []string{from, to} {
		s, err := Open(path, Options{})
		if err == nil {
			_, err = s.Settings(t.Context())
			s.Close()
		}
		if !errors.Is(err, ErrConflict) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := CopyStore(t.Context(), other, to, o, record.CopyOptions{}); !errors.Is(err, ErrNotExist) {
		t.Errorf("a copy of nothing: %v", err)
	}
	done, err := CopyStore(t.Context(), from, to, o, record.CopyOptions{})
	if err != nil || done.Stats.Messages != 42 || done.Digest == (pool.Hash{}) {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, err := CopyStore(t.Context(), to, other, o, record.CopyOptions{Keep: true}); err != nil {
		t.Fatal(err)
	}
	copied, err := Open(to, o)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	checkStore(t, copied)
	if call := findC(t, copied, "", "", "x"); call.Execution != pool.Uncertain {
		t.Errorf("a call that ran is %s", call.State())
	}
	for _, path := range []string{from, to} {
		for _, bucket := range bucketsOf(t, path) {
			if !slices.Contains(care.AllBuckets, bucket) {
				t.Errorf("a copy has not the bucket %s", bucket)
			}
		}
	}
}

// bucketsOf lists what a file has, without the engine's own.
func bucketsOf(t *testing.T, path string) (names []string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error { names = append(names, string(name)); return nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
