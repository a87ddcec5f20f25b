package gate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// agentPID returns the process of the agent: the one that started the shell that started this one. 0: it cannot be told.
func agentPID() int {
	pid := os.Getppid()
	name, up := parentOf(pid)
	if name == "sh" || name == "dash" || name == "bash" || name == "busybox" {
		pid = up
	}
	if pid <= 1 {
		return 0
	}
	return pid
}

// Above returns the agent that started this process, as far as it can be told; "" for none. It is a hint and no wall.
func Above(env func(string) string) string {
	for pid, n := os.Getppid(), 0; pid > 1 && n < 64; n++ {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			break
		}
		words := bytes.Split(line, []byte{0})
		for _, word := range words[:min(2, len(words))] { // a script's name stands behind its interpreter's
			if a := agentNamed(filepath.Base(string(word))); a != "" {
				return a
			}
		}
		_, pid = parentOf(pid)
	}
	return agentIn(env)
}

// parentOf returns the name of a process and who started it.
func parentOf(pid int) (name string, up int) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if err != nil || open < 0 || end < open {
		return "", 0
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) > 1 {
		up, _ = strconv.Atoi(fields[1])
	}
	return string(stat[open+1 : end]), up
}

// gone reports whether the agent ended: nobody reads the answer, or its process is no more.
func gone(pid int) bool {
	out := []unix.PollFd{{Fd: 1}}
	if n, err := unix.Poll(out, 0); err == nil && n > 0 && out[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0 {
		return true
	}
	return pid > 0 && unix.Kill(pid, 0) == unix.ESRCH || pid > 0 && zombie(pid)
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	end := bytes.LastIndexByte(stat, ')')
	return err == nil && end > 0 && len(stat) > end+2 && stat[end+2] == 'Z'
}
