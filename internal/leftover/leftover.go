// Package leftover removes files and folders that programs left which were killed. It decides by their names alone, which have the program's number in them, and opens none of them.
package leftover

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Name is the pattern, for os.CreateTemp and os.MkdirTemp, of something that Remove with this prefix finds once this program is gone.
func Name(prefix string) string { return prefix + strconv.Itoa(os.Getpid()) + "-*" }

// Remove removes what is called like Name's and whose program is gone. What cannot be removed stays.
func Remove(dir, prefix string) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, f := range all {
		rest, ours := strings.CutPrefix(f.Name(), prefix)
		number, _, whole := strings.Cut(rest, "-")
		if pid, err := strconv.Atoi(number); ours && whole && err == nil && !running(pid) {
			os.RemoveAll(filepath.Join(dir, f.Name()))
		}
	}
}

// running reports whether a process of this machine may still run.
func running(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	return !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
