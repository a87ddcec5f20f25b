package testkit

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Again runs the test that calls it once more, in a process whose environment has a variable, and reports whether this is that process.
func Again(t *testing.T, variable string) bool {
	t.Helper()
	if os.Getenv(variable) != "" {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"=1", "GOCOVERDIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}
