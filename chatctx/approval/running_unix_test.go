//go:build unix

package approval

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// running reports whether a process is there and has not ended; a zombie that nobody waits for has.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return true
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

// killed is the exit code of a process that killed itself.
const killed = -1

func killSelf() { syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// goAway has a command leave the process group and the session.
func goAway(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
