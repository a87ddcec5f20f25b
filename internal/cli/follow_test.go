package cli

import (
	"bufio"
	"encoding/json"
	"io"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

// TestFollow: log -f goes on with what others add, a line of JSON a message, by its filters, and ends with Ctrl-C.
func TestFollow(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no interrupt can be sent to one process there")
	}
	path := filledStore(t, 3)
	must(t, path, "add", "user", "the last of the old ones")
	cmd := program(t, path, "log", "-f", "--json", "-n", "1", "--grep", "old|new", "--role", "user")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	next := func() (text string, turn string) {
		var m struct {
			Content []struct{ Text string }
			Turn    string
		}
		if !lines.Scan() {
			t.Fatal("the log ended")
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil || len(m.Content) != 1 {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		return m.Content[0].Text, m.Turn
	}
	var got []string
	read := func() {
		text, _ := next()
		got = append(got, text)
	}
	read()
	must(t, path, "add", "user", "new 1")
	read()
	must(t, path, "undo") // the branch is shorter, and grows again
	must(t, path, "add", "assistant", "new, but not the user's")
	must(t, path, "add", "user", "something else")
	must(t, path, "fork", "aside")
	must(t, path, "add", "user", "new, but elsewhere")
	must(t, path, "switch", "main")
	must(t, path, "add", "user", "new 2")
	read()
	cmd.Process.Signal(syscall.SIGINT)
	rest, err := io.ReadAll(out)
	if code := exitCode(cmd.Wait()); code != exitInterrupted || err != nil || len(rest) > 0 {
		t.Errorf("ended with %d, %v: %s", code, err, rest)
	}
	if want := []string{"the last of the old ones", "new 1", "new 2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	must(t, path, "check")
}
