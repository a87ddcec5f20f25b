package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestClients runs the clients of docs/api.md as they stand there: each starts the program as its child.
func TestClients(t *testing.T) {
	doc, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ fence, interpreter, file string }{{"python", "python3", "client.py"}, {"javascript", "node", "client.js"}} {
		t.Run(c.fence, func(t *testing.T) {
			_, rest, ok := strings.Cut(string(doc), "```"+c.fence+"\n")
			source, _, end := strings.Cut(rest, "```\n")
			if !ok || !end {
				t.Fatalf("docs/api.md has no client in %s", c.fence)
			}
			if n := strings.Count(source, "\n"); n > 35 {
				t.Errorf("the client has %d lines", n)
			}
			run, err := exec.LookPath(c.interpreter)
			if err != nil {
				t.Skipf("there is no %s here", c.interpreter)
			}
			dir := t.TempDir()
			store, file := filepath.Join(dir, "chats.db"), filepath.Join(dir, c.file)
			if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			must(t, store, "new", "First")
			out, err := exec.CommandContext(t.Context(), run, file, store).CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != "user A name for a boat?" {
				t.Fatalf("%v: %s", err, out)
			}
			if now := must(t, store, "status", "--json"); !strings.Contains(now, `"title":"First"`) {
				t.Errorf("the client moved the current conversation: %s", now)
			}
			must(t, store, "check")
		})
	}
}
