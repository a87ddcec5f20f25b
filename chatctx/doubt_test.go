package chatctx

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
)

// spoilNewestMeta changes the newer of the two records at a file's beginning.
func spoilNewestMeta(t *testing.T, path string, spoil func(record []byte)) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	size := int(binary.NativeEndian.Uint32(raw[24:]))
	number := func(page int) uint64 { return binary.NativeEndian.Uint64(raw[page*size+16+48:]) }
	newest := 0
	if number(1) > number(0) {
		newest = 1
	}
	spoil(raw[newest*size+16 : newest*size+80])
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// reopen opens a store that the caller closes without a check.
func reopen(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{Create: true, Program: "test", Judge: byName{}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNewestChangeInDoubt: where the newest record at the file's beginning is damaged, in whatever field, each program that opens the store is warned, also
// after a change has overwritten the trace, until somebody was told by a check or a repair.
func TestNewestChangeInDoubt(t *testing.T) {
	fields := map[string]func([]byte){"torn": func(r []byte) { clear(r[40:]) }, "gone": func(r []byte) { clear(r) }}
	for name, at := range map[string]int{"magic": 0, "version": 4, "page size": 8, "root": 24, "freelist": 32, "pages": 40, "transaction": 48, "checksum": 56} {
		fields[name] = func(r []byte) { r[at] ^= 4 }
	}
	for name, spoil := range fields {
		path := filepath.Join(t.TempDir(), "s.db")
		s := reopen(t, path)
		c := newContext(t, s, "a", ">b")
		appendTo(t, c, "", says("the last")...)
		if len(s.Warnings()) > 0 {
			t.Fatalf("before: %q", s.Warnings())
		}
		if err := s.at().Close(); err != nil {
			t.Fatal(err)
		}
		spoilNewestMeta(t, path, spoil)
		for round, change := range []bool{false, true, false, true} {
			s := reopen(t, path)
			if change {
				appendTo(t, &ChatContext{ID: c.ID, store: s}, "", says("next")...)
			}
			if w := s.Warnings(); len(w) != 1 || w[0] != base.DoubtText {
				t.Errorf("%s, opening %d: %q", name, round, w)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		endsDoubt(t, name, path)
	}
}

// endsDoubt checks that the problem is reported, and that EndDoubt and Repair end the warning.
func endsDoubt(t *testing.T, name, path string) {
	t.Helper()
	s := reopen(t, path)
	told := false
	err := s.Maintenance().Check(t.Context(), CheckOptions{}, func(p record.Problem) { told = told || p.Where == DoubtPlace })
	if err != nil || !told {
		t.Errorf("%s: the check does not tell of it (%v)", name, err)
	}
	if strings.HasPrefix(name, "t") { // one way for some, the other for the others
		err = care.EndDoubt(t.Context(), base.Of(s))
	} else {
		_, err = s.Maintenance().Repair(t.Context(), record.RepairOptions{})
	}
	if err = errors.Join(err, s.at().Close()); err != nil {
		t.Error(err)
	}
	s = reopen(t, path)
	defer closeChecked(t, s)
	if len(s.Warnings()) > 0 {
		t.Errorf("%s: it still warns: %q", name, s.Warnings())
	}
}

// TestOlderMetaIsNoDoubt: the other record is the state before and is not needed.
func TestOlderMetaIsNoDoubt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	s := reopen(t, path)
	newContext(t, s, "a")
	if err := s.at().Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	older := 0
	if size := int(binary.NativeEndian.Uint32(raw[24:])); binary.NativeEndian.Uint64(raw[16+48:]) > binary.NativeEndian.Uint64(raw[size+16+48:]) {
		older = size
	}
	raw[older+16+24] ^= 4
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	s = reopen(t, path)
	if len(s.Warnings()) > 0 {
		t.Errorf("it warns: %q", s.Warnings())
	}
	newContext(t, s, "b") // overwrites it
	closeChecked(t, s)
}
