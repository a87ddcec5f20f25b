package approval

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// group is a command with all processes that it starts, even those that leave its process group: they are in a cgroup, or are children of a helper. If
// neither is available, it is the process group.
type group struct {
	cmd    *exec.Cmd
	cgroup *os.File // the cgroup's folder
	life   *os.File // of a helper: when it is closed, even by the end of this process, the helper ends everything
	theirs *os.File // the helper's end of life
}

func newGroup(cmd *exec.Cmd, helper []string) *group {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	g := &group{cmd: cmd}
	switch {
	case cgroups():
		g.control()
	case len(helper) > 0 && cmd.Err == nil:
		g.under(helper)
	}
	return g
}

// control gives the command a cgroup.
func (g *group) control() {
	dir, err := makeCgroup()
	if err != nil {
		return
	}
	g.cgroup = dir
	g.cmd.SysProcAttr.UseCgroupFD, g.cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
}

// under runs the command under a helper.
func (g *group) under(helper []string) {
	theirs, life, err := os.Pipe()
	if err != nil {
		return
	}
	g.theirs, g.life = theirs, life
	g.cmd.ExtraFiles = []*os.File{theirs}
	g.cmd.Args = append(append([]string{}, helper...), append([]string{g.cmd.Path}, g.cmd.Args...)...)
	g.cmd.Path = helper[0]
	if self, err := os.Executable(); err == nil && self == helper[0] {
		g.cmd.Args[0] = os.Args[0] // a program that acts by its name keeps that name
	}
}

func (g *group) started() error {
	if g.theirs != nil {
		_ = g.theirs.Close()
		g.theirs = nil
	}
	return nil
}

// kill ends all processes of the group.
func (g *group) kill() error {
	switch {
	case g.cmd.Process == nil:
		return nil
	case g.cgroup != nil:
		if err := os.WriteFile(filepath.Join(g.cgroup.Name(), "cgroup.kill"), []byte("1"), 0); err == nil {
			return nil
		}
	case g.life != nil:
		err := g.cmd.Process.Signal(syscall.SIGTERM)
		if errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		return err
	}
	return killGroup(g.cmd)
}

func (g *group) close() {
	for _, f := range []*os.File{g.theirs, g.life} {
		if f != nil {
			_ = f.Close()
		}
	}
	if g.cgroup != nil {
		removeCgroup(g.cgroup)
	}
}

// cgroups reports whether this process may make cgroups and start commands in them. It tries that once.
var cgroups = sync.OnceValue(func() bool {
	dir, err := makeCgroup()
	if err != nil {
		return false
	}
	defer removeCgroup(dir)
	if _, err := os.Stat(filepath.Join(dir.Name(), "cgroup.kill")); err != nil { // Linux before 5.14
		return false
	}
	probe := exec.Command("true")
	probe.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	return probe.Run() == nil
})

// makeCgroup makes a cgroup below this process's own.
func makeCgroup() (*os.File, error) {
	own, err := ownCgroup()
	if err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(own, "chatctx-*")
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(path)
	if err != nil {
		_ = os.Remove(path)
	}
	return dir, err
}

// removeWait bounds the wait for killed processes to leave their cgroup.
const removeWait = time.Second

func removeCgroup(dir *os.File) {
	defer dir.Close()
	for end := time.Now().Add(removeWait); os.Remove(dir.Name()) != nil && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
}

// ownCgroup returns the folder of this process's cgroup, of version 2.
func ownCgroup() (string, error) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	of, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	own := ""
	for line := range strings.Lines(string(of)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			own = path
		}
	}
	for line := range strings.Lines(string(mounts)) {
		about, kind, _ := strings.Cut(line, " - ")
		fields := strings.Fields(about)
		if !strings.HasPrefix(kind, "cgroup2 ") || len(fields) < 5 || own == "" {
			continue
		}
		root, at := fields[3], fields[4]
		if below, err := filepath.Rel(root, own); err == nil && below != ".." && !strings.HasPrefix(below, "../") {
			return filepath.Join(at, below), nil
		}
	}
	return "", fmt.Errorf("no cgroup of the second version")
}
