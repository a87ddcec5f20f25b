// Package leftover is the room for files and folders that a program removes again itself, and that stay where it is killed: copies of a store, exports and
// imports under way, dry runs. All have one form of name, by which the next program finds and removes them. It decides by names alone.
//
// It owns that form of name and no others. It must never remove what a program still uses.
package leftover

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// prefix begins each name: .chatctx-tmp-MACHINE-PROCESS-WHAT.
const prefix = ".chatctx-tmp-"

// Name is the pattern, for os.CreateTemp and os.MkdirTemp, of something for a purpose, such as "copy". A star in the purpose stands for the random part.
func Name(what string) string {
	if !strings.Contains(what, "*") {
		what += "-*"
	}
	return base(what)
}

// Path is the path of something for a purpose that this process has once in a folder, such as "rewrite-chats.db".
func Path(dir, what string) string { return filepath.Join(dir, base(what)) }

func base(what string) string {
	return prefix + machine() + "-" + strconv.Itoa(os.Getpid()) + "-" + what
}

// Announce makes the next Sweep of the folder for temporary files also sweep dir, if this process is gone then. done takes that back.
func Announce(dir string) (done func()) {
	f, err := os.CreateTemp("", Name("at"))
	if err != nil {
		return func() {}
	}
	_, err = f.WriteString(dir)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
	}
	return func() { os.Remove(f.Name()) }
}

// announced returns the folder that a file of Announce names, else "".
func announced(path string) string {
	if _, what, _ := strings.Cut(filepath.Base(path), prefix); !strings.Contains(what, "-at-") {
		return ""
	}
	dir, err := os.ReadFile(path)
	if err != nil || !filepath.IsAbs(string(dir)) {
		return ""
	}
	return string(dir)
}

// Sweep removes from the folders what programs left that are gone, and returns what else of the kind is there, in use by another program or not to be
// removed. What this process uses is not listed, nor, in the folder for temporary files, what another one uses: it may be of any store.
func Sweep(dirs ...string) (left []string) {
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		var elsewhere []string
		for _, name := range names(dir) {
			host, pid, known := parse(name)
			path := filepath.Join(dir, name)
			dead := known && host == machine() && !running(pid)
			if at := announced(path); dead && at != "" && at != dir {
				elsewhere = append(elsewhere, at)
			}
			switch {
			case !known && !older(name), known && host == machine() && pid == os.Getpid():
			case dead && os.RemoveAll(path) == nil, !dead && dir == os.TempDir():
			default:
				if _, err := os.Lstat(path); err == nil {
					left = append(left, path)
				}
			}
		}
		if len(elsewhere) > 0 {
			left = append(left, Sweep(elsewhere...)...)
		}
	}
	return left
}

// names reads a folder's names. It does not sort them, since the folder for temporary files may have many.
func names(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	all, _ := d.Readdirnames(-1)
	return all
}

func parse(name string) (host string, pid int, ok bool) {
	rest, ours := strings.CutPrefix(name, prefix)
	f := strings.SplitN(rest, "-", 3)
	if !ours || len(f) < 3 {
		return "", 0, false
	}
	pid, err := strconv.Atoi(f[1])
	return f[0], pid, err == nil
}

// older reports the names of programs of before, which do not say whether their program is gone: what has one is never removed.
func older(name string) bool {
	return strings.HasPrefix(name, ".chatctx-copy-") || strings.HasSuffix(name, ".db.rewrite") || strings.HasSuffix(name, ".db.restoring")
}

// machine names this machine, and in it the container: a process id of another means nothing here.
var machine = sync.OnceValue(func() string {
	name, _ := os.Hostname()
	space, _ := os.Readlink("/proc/self/ns/pid")
	sum := sha256.Sum256([]byte(name + "\x00" + space))
	return fmt.Sprintf("%x", sum[:4])
})

// running reports whether a process of this machine may still run.
func running(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer p.Release()
	return !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone)
}
