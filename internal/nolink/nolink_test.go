package nolink

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOpen: an ordinary file is opened, a link is refused by name wherever it leads, and nothing is ever made.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("file"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link": "file", "dangling": "none", "loop": "loop", "folder": ".", "chain": "link"} {
		if err := os.Symlink(to, in(link)); err != nil {
			t.Skip(err)
		}
		if err := Check(in(link)); !errors.Is(err, ErrLink) || !strings.Contains(err.Error(), in(link)) {
			t.Errorf("Check of %s: %v", link, err)
		}
		if f, _, err := Open(in(link), os.O_RDWR|os.O_CREATE|os.O_TRUNC); !errors.Is(err, ErrLink) {
			f.Close()
			t.Errorf("Open of %s: %v", link, err)
		}
	}
	for _, name := range []string{"none", "."} {
		if f, _, err := Open(in(name), os.O_RDWR|os.O_CREATE); err == nil || errors.Is(err, ErrLink) {
			f.Close()
			t.Errorf("Open of %s: %v", name, err)
		}
	}
	f, info, err := Open(in("file"), os.O_RDWR|os.O_TRUNC)
	if err != nil || info.Size() != 4 || Check(in("file")) != nil || Check(in("none")) != nil {
		t.Fatal(info, err)
	}
	f.Close()
	if _, err := os.Lstat(in("none")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a file was made where the dangling link leads: ", err)
	}
}
