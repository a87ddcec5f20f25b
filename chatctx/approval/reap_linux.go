package approval

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Reap is the work of a program that was started as an Executor's Helper; argv are its arguments after the Helper's. It runs a command and becomes the
// parent of everything that the command starts and leaves behind. It ends all of that when the command ends, when the helper is told to end, or when the
// program that started it is gone. It returns the exit code. If a signal ended the command, the same signal ends the helper.
func Reap(argv []string) int {
	if len(argv) < 2 {
		return noHelper
	}
	const life = 3
	syscall.CloseOnExec(life)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Fprintln(os.Stderr, "chatctx: the command's processes cannot be held:", err)
		return noHelper
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		var b [1]byte
		for {
			if _, err := syscall.Read(life, b[:]); err != syscall.EINTR {
				return
			}
		}
	}()
	pid, err := syscall.ForkExec(argv[0], argv[1:], &syscall.ProcAttr{Files: []uintptr{0, 1, 2}, Env: os.Environ(), Sys: &syscall.SysProcAttr{Setpgid: true}})
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", argv[0], err)
		return noHelper
	}
	r := &reaper{command: pid, ended: make(chan syscall.WaitStatus, 1), alone: make(chan struct{})}
	go r.wait()
	var status syscall.WaitStatus
	select {
	case status = <-r.ended:
		r.endAll()
	case <-told:
		r.endAll()
		status = r.last()
	case <-gone:
		r.endAll()
		status = r.last()
	}
	if status.Signaled() {
		signal.Reset(status.Signal())
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
		_ = syscall.Kill(os.Getpid(), status.Signal())
		time.Sleep(time.Second)
	}
	return status.ExitStatus()
}

// reaper waits for a command and for the children that were left to it.
type reaper struct {
	command int
	ended   chan syscall.WaitStatus
	alone   chan struct{} // closed when no child is left
}

func (r *reaper) wait() {
	defer close(r.alone)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return
		case pid == r.command:
			r.ended <- status
		}
	}
}

// last returns how the command ended, after everything was ended. A command that cannot be ended counts as killed.
func (r *reaper) last() syscall.WaitStatus {
	select {
	case status := <-r.ended:
		return status
	default:
		return syscall.WaitStatus(syscall.SIGKILL)
	}
}

// endTries times endAgain bounds the attempts to end children that do not go: those of another user, or in an uninterruptible call.
const (
	endTries = 1000
	endAgain = 2 * time.Millisecond
)

// endAll ends children until none is left. When a child ends, its own children become children of this process.
func (r *reaper) endAll() {
	for range endTries {
		select {
		case <-r.alone:
			return
		default:
		}
		_ = syscall.Kill(-r.command, syscall.SIGKILL)
		for _, pid := range children() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		select {
		case <-r.alone:
			return
		case <-time.After(endAgain):
		}
	}
}

// children returns the child processes of this process.
func children() []int {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, entry := range names {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		text := string(stat)
		after := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name before it may contain anything
		if len(after) > 1 && after[1] == strconv.Itoa(os.Getpid()) {
			out = append(out, pid)
		}
	}
	return out
}
