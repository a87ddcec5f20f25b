package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestToolsCannotReadTheEnvironment runs a tool that reads the environment of every process it may look at. It finds the command's key only where a debugger
// was let in.
func TestToolsCannotReadTheEnvironment(t *testing.T) {
	const key = "OPENAI_API_KEY=sk-of-this-command"
	dir := t.TempDir()
	tool := filepath.Join(dir, "looks")
	script := "#!/bin/sh\ncat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a 'sk-of-this-[c]ommand'\nexit 0\n"
	if err := os.WriteFile(tool, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, open := range []bool{false, true} {
		path := filledStore(t, 1)
		calls := `{"role":"assistant","tool_calls":[{"id":"k1","tool_name":"looks","arguments":{}}]}` + "\n"
		add := program(t, path, "append", "-")
		add.Stdin = strings.NewReader(calls)
		if out, err := add.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		must(t, path, "tools", "add", "looks", "--", tool)
		must(t, path, "calls", "approve", "k1")
		run := program(t, path, "calls", "run")
		run.Env = append(run.Env, key)
		if open {
			run.Env = append(run.Env, "CHATCTX_DUMPABLE=1")
		}
		out, err := asOrdinary(run)
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
		got := must(t, path, "log", "--json")
		if strings.Contains(got, "sk-of-this-command") != open {
			t.Errorf("open for debuggers: %v; the result is %s", open, got)
		}
	}
}

// asOrdinary runs a command that may not trace any process: root may read everything otherwise.
func asOrdinary(cmd *exec.Cmd) (out []byte, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // it is not unlocked: the thread, which has lost a right, ends here
		for _, right := range []uintptr{unix.CAP_SYS_PTRACE, unix.CAP_PERFMON, unix.CAP_SYS_ADMIN} {
			if err = unix.Prctl(unix.PR_CAPBSET_DROP, right, 0, 0, 0); err != nil && os.Getuid() == 0 {
				return
			}
		}
		out, err = cmd.CombinedOutput()
	}()
	<-done
	return out, err
}
