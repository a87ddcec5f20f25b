package leftover

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// TestRemove: what a program that is gone left goes, a folder with all that is in it; what is another's, of one that runs or called otherwise stays.
func TestRemove(t *testing.T) {
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	stay := []string{"left-x-1", "left-" + strconv.Itoa(os.Getpid()) + "-1", "left-99999999", "other-99999999-1"}
	slices.Sort(stay)
	for _, name := range append(stay, "left-"+strconv.Itoa(gone.Process.Pid)+"-folder", "left-"+strconv.Itoa(gone.Process.Pid)+"-2") {
		if err := os.MkdirAll(filepath.Join(dir, name, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	mine, err := os.MkdirTemp(dir, Name("left-"))
	if err != nil {
		t.Fatal(err)
	}
	Remove(dir, "left-")
	Remove(filepath.Join(dir, "none"), "left-")
	var left []string
	all, err := os.ReadDir(dir)
	for _, f := range all {
		if f.Name() != filepath.Base(mine) {
			left = append(left, f.Name())
		}
	}
	if err != nil || !slices.Equal(left, stay) || len(all) != len(stay)+1 {
		t.Errorf("%v are left, and not %v: %v", left, stay, err)
	}
}
