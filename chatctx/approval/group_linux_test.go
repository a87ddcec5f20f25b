package approval

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
)

// TestNothingGetsAway: what leaves its process group and session ends with the command that started it, in a cgroup and under a helper.
func TestNothingGetsAway(t *testing.T) {
	real := cgroups
	defer func() { cgroups = real }()
	for _, how := range []string{"cgroup", "helper"} {
		t.Run(how, func(t *testing.T) {
			e := &Executor{}
			cgroups = real
			if how == "helper" {
				cgroups = func() bool { return false }
				e.Helper = self(t, "reap")
			} else if !real() {
				t.Skip("no cgroup may be made here")
			}
			b := newBench(t)
			b.rule(record.Allow, "*")
			pidFile := filepath.Join(t.TempDir(), "pid")
			b.tool(record.Tool{Name: "leave", Command: self(t, "leave", pidFile, "away")})
			for _, name := range []string{"fail", "die", "zeros", "args"} {
				b.tool(record.Tool{Name: name, Command: self(t, name, "a b", "")})
			}
			b.tool(record.Tool{Name: "nowhere", Command: []string{filepath.Join(t.TempDir(), "not there")}})
			b.tool(record.Tool{Name: "homeless", Command: self(t, "args"), Dir: filepath.Join(t.TempDir(), "gone")})
			for _, c := range []struct {
				tool    string
				isError bool
				says    string
			}{
				{"leave", false, "started"}, {"fail", true, "before it failed\n\n[exit status 3]"}, {"die", true, "signal: killed"},
				{"zeros", false, "3 bytes that are not text"}, {"args", false, `["a b",""]`}, {"nowhere", true, "not there"}, {"homeless", true, "gone, in which the tool homeless runs, does not exist"},
			} {
				r := b.runOne(e, c.tool, `{}`)
				if r.IsError != c.isError || !strings.Contains(r.Text, c.says) {
					t.Errorf("%s: error %t, %q", c.tool, r.IsError, tail(r.Text))
				}
				if c.tool == "leave" {
					gone(t, pidFile)
				}
			}
			b.hangs(e, pidFile, "away")
		})
	}
}

// TestAHelperEndsWithItsProgram: when the program that started it is gone, so is all that it held.
func TestAHelperEndsWithItsProgram(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	real := cgroups
	defer func() { cgroups = real }()
	cgroups = func() bool { return false }
	tool := self(t, "hang", pidFile, "away")
	cmd := exec.Command(tool[0], tool[1:]...)
	g := newGroup(cmd, self(t, "reap"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.started(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the tool's start", func() bool { raw, err := os.ReadFile(pidFile); return err == nil && len(raw) > 0 })
	g.close() // as the end of this process would
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Errorf("the helper ends with %v", err)
	}
	gone(t, pidFile)
}
