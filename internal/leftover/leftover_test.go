package leftover

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// TestSweep: what a program that is gone left goes, a folder with all that is in it. What is another's, in use, of another machine or called otherwise stays; all
// of it that is ours is named, but for this process's own.
func TestSweep(t *testing.T) {
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	of := func(machine string, pid int) string { return prefix + machine + "-" + strconv.Itoa(pid) }
	dead, parent := gone.Process.Pid, os.Getppid()
	named := []string{of(machine(), parent) + "-copy-1", of("another", dead) + "-copy-1", ".chatctx-copy-123", "s.db.rewrite"}
	stay := append([]string{of(machine(), dead), prefix + "x", "other-1-1", "s.db", "s.db.lock"}, named...)
	for _, name := range append(stay, of(machine(), dead)+"-trial-2", of(machine(), dead)+"-export-x-3") {
		if err := os.MkdirAll(filepath.Join(dir, name, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mine, err := os.MkdirTemp(dir, Name("trial"))
	if err != nil {
		t.Fatal(err)
	}
	once := Path(dir, "rewrite-s.db")
	if err := os.Mkdir(once, 0o700); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, n := range named {
		want = append(want, filepath.Join(dir, n))
	}
	left := Sweep(dir, filepath.Join(dir, "none"), dir)
	slices.Sort(left)
	slices.Sort(want)
	if !slices.Equal(left, want) {
		t.Errorf("it names %v, not %v", left, want)
	}
	all := names(dir)
	slices.Sort(all)
	stay = append(stay, filepath.Base(mine), filepath.Base(once))
	slices.Sort(stay)
	if !slices.Equal(all, stay) {
		t.Errorf("%v are there, not %v", all, stay)
	}
}
