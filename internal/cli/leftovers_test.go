package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/internal/testkit"
)

// longCommands are those that write a second copy of what the store holds, or rewrite it.
var longCommands = []string{
	"copy --keep chats.db out/t.db", "copy chats.db out/t.db", "backup out/t.db", "export --all -o out/t.jsonl", "import more.jsonl", "import --dry-run more.jsonl",
	"import -", "append more.txt", "purge Big --yes", "purge Big --dry-run", "redact --pattern TOPSECRET[0-9]+ --yes", "redact --pattern TOPSECRET[0-9]+ --dry-run",
	"gc --keep-operations 0 --older-than 1s --yes", "gc --older-than 1s --dry-run", "vacuum", "repair --yes", "repair --dry-run", "restore-from kept.db --yes",
	"repair --from chats.db --store out/t.db", "backup /dev/stdout", "search TOPSECRET7",
}

// killPoints is at how many points of its run each command is killed.
const killPoints = 50

// TestKilledCommandsLeaveNothing kills each long command at a point of its run. After the next command nothing of it is there but what it was to make, and no
// redaction is called complete while a text that it removed is anywhere else.
func TestKilledCommandsLeaveNothing(t *testing.T) {
	made := t.TempDir()
	store := filepath.Join(made, "chats.db")
	var lines strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&lines, `{"role":"user","content":"TOPSECRET%d %s"}`+"\n", i, strings.Repeat("word ", 100))
	}
	for name, text := range map[string]string{"more.txt": lines.String()} {
		if err := os.WriteFile(filepath.Join(made, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must(t, store, "new", "Big")
	must(t, store, "append", filepath.Join(made, "more.txt"))
	must(t, store, "export", "--all", "-o", filepath.Join(made, "more.jsonl"))
	must(t, store, "backup", filepath.Join(made, "kept.db"))
	took := map[string]time.Duration{}
	for seed := range testkit.Seeds(t, 8) {
		line := longCommands[int(seed)%len(longCommands)]
		point := (int(seed) / len(longCommands) * 7) % killPoints
		if took[line] == 0 {
			took[line] = killAfter(t, made, line, time.Hour)
		}
		killAfter(t, made, line, took[line]*time.Duration(2*point+1)/(2*killPoints))
	}
}

// killAfter runs a command line on a copy of a folder, kills it after a time, and looks at what is left. It returns how long the command ran.
func killAfter(t *testing.T, made, line string, after time.Duration) time.Duration {
	t.Helper()
	dir := t.TempDir()
	defer os.RemoveAll(dir)
	for _, sub := range []string{"out", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(dir, os.DirFS(made)); err != nil {
		t.Fatal(err)
	}
	run := func(stdin string, args ...string) (begun time.Time, err error) {
		cmd := program(t, filepath.Join(dir, "chats.db"), args...)
		cmd.Dir, cmd.Env = dir, append(cmd.Env, "TMPDIR="+filepath.Join(dir, "tmp"))
		if stdin != "" {
			f, err := os.Open(filepath.Join(dir, stdin))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			cmd.Stdin = f
		}
		begun = time.Now()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer time.AfterFunc(after, func() { _ = cmd.Process.Kill() }).Stop()
		return begun, cmd.Wait()
	}
	stdin := ""
	if line == "import -" {
		stdin = "more.jsonl"
	}
	begun, _ := run(stdin, strings.Fields(line)...)
	ran := time.Since(begun)
	after = time.Hour
	_, _ = run("", "ls") // a store that has moved is not opened any more
	sources := []string{"chats.db", "more.txt", "more.jsonl", "kept.db"}
	for _, path := range holding(t, dir, "TOPSECRET7 ") {
		whole := strings.HasPrefix(path, "out/t.") || strings.HasPrefix(path, "chats.db.before-")
		if !whole && !slices.Contains(sources, path) {
			t.Errorf("%s, killed after %v: %s is left after the next command", line, after, path)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*", ".chatctx-tmp-*")); len(left) > 0 {
		t.Errorf("%s: %v is left", line, left)
	}
	if _, err := run("", "redact", "--pattern", "TOPSECRET[0-9]+", "--yes"); err == nil && slices.Contains(holding(t, dir, "TOPSECRET7 "), "chats.db") {
		t.Errorf("%s: the redaction is called complete, and the store still has the text", line)
	}
	return ran
}

// holding returns the files of a folder that hold a text.
func holding(t *testing.T, dir, text string) (paths []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, path))
		if err == nil && bytes.Contains(b, []byte(text)) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}
