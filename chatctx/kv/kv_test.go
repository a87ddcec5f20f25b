package kv_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/engine"
)

// FuzzPrefix: a key is within the range of a prefix if and only if it begins with it.
func FuzzPrefix(f *testing.F) {
	for _, s := range []string{"", "a", "ab", "a\xff", "\xff", "\xff\xff", "b"} {
		f.Add([]byte("a"), []byte(s))
		f.Add([]byte("\xff"), []byte(s))
		f.Add([]byte("a\xff"), []byte(s))
		f.Add([]byte{}, []byte(s))
	}
	f.Fuzz(func(t *testing.T, prefix, key []byte) {
		before := bytes.Clone(prefix)
		r := kv.Prefix(prefix)
		within := bytes.Compare(key, r.From) >= 0 && (r.To == nil || bytes.Compare(key, r.To) < 0)
		if within != bytes.HasPrefix(key, prefix) {
			t.Errorf("prefix %q, key %q: within %t", prefix, key, within)
		}
		if !bytes.Equal(prefix, before) {
			t.Error("the prefix was changed")
		}
	})
}

func TestLockedError(t *testing.T) {
	since := time.Date(2026, 3, 1, 14, 5, 6, 0, time.Local)
	for _, test := range []struct {
		holder kv.Holder
		want   string
	}{
		{kv.Holder{}, "another program has it open; waited 5s"},
		{kv.Holder{PID: 7, Command: "app", Since: since}, "app (process 7) has had it open since 14:05:06; waited 5s"},
		{kv.Holder{PID: 7, Command: "app", Purpose: "import", Since: since}, "app (process 7) for import has had it open"},
		{kv.Holder{PID: 7, Command: "app", Since: since, Waits: true}, "app (process 7) waits for it too: if no other program has it open, that one was stopped: let it go on, or end it; waited 5s"},
	} {
		err := &kv.LockedError{Holder: test.holder, Waited: 5 * time.Second}
		if !errors.Is(err, kv.ErrLocked) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

func TestPurpose(t *testing.T) {
	ctx := context.Background()
	if got := engine.Purpose(ctx); got != "" {
		t.Errorf("purpose of nothing: %q", got)
	}
	if got := engine.Purpose(engine.WithPurpose(ctx, "backup")); got != "backup" {
		t.Errorf("purpose: %q", got)
	}
}
