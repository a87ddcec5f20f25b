package cli

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/leftover"
)

// TestUnfinishedFilesAreRemoved: what a program that was killed left of a file is removed by who writes it next; what one that runs is writing is not.
func TestUnfinishedFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	ended := exec.Command(os.Args[0], "-test.run", "^$")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(dir, "back[up].db")
	name := func(pid int, end string) string {
		ours := strings.TrimSuffix(leftover.Name("export"), "*")
		p := filepath.Join(dir, strings.Replace(ours, fmt.Sprint("-", os.Getpid(), "-"), fmt.Sprint("-", pid, "-"), 1)+end)
		if err := os.WriteFile(p, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	left, other, no := name(ended.Process.Pid, "1"), name(os.Getpid(), "1"), filepath.Join(dir, ".chatctx-tmp-x")
	if err := os.WriteFile(no, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := &run{}
	if n, err := r.writeFile(target, func(w io.Writer) error { _, err := io.WriteString(w, "whole"); return err }); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	for p, want := range map[string]bool{left: false, other: true, no: true, target: true} {
		if _, err := os.Lstat(p); (err == nil) != want {
			t.Errorf("%s: %v", p, err)
		}
	}
}
