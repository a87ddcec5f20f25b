package cli

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// dryRuns are command lines whose --dry-run has to say what the run does, by the command. They work on the store of dryRunStore.
func dryRuns() map[string][]string {
	return map[string][]string{
		"branch rm": {"branch rm side"},
		"clear":     {"clear", "clear --branch side"},
		"config":    {"config --accept --context Foreign"},
		"drop":      {"drop @2", "drop u1 a2"},
		"exclude":   {"exclude @2 @3"},
		"gc":        {"gc --older-than 1ms", "gc --keep-operations 0 --older-than 1ms", "gc --max-size 40KB", "gc --max-size 1KB --older-than 3d"},
		"import":    {"import new.jsonl", "import own.jsonl foreign.jsonl", "import messages.json"},
		"include":   {"include @1"},
		"interrupt": {"interrupt", "interrupt --all", "interrupt --branch side"},
		"label add": {"label add work Big Other"},
		"label rm":  {"label rm old Big Other"},
		"pin":       {"pin @2 @3"},
		"prune":     {"prune", "prune --keep-tokens 10"},
		"compact":   {"compact --digest --keep-tokens 50", "compact --summary short --keep-tokens 50"},
		"purge":     {"purge --message u1", "purge --message u1 --message a2", "purge --branch side", "purge Other", "purge Big", "purge --message @1 --context Other"},
		"redact":    {"redact --pattern SECRET[0-9]+", "redact --pattern SECRET[0-9]+ --context Other", "redact --pattern nowhere"},
		"repair":    {"repair"},
		"rewind":    {"rewind u1", "rewind @2"},
		"rm":        {"rm Other", "rm Big Other"},
		"unpin":     {"unpin @1"},
	}
}

// others have figures of another kind: what a provider will take, which tests of what it took hold against it, and which conversations an export has, and what
// changes in an agent's settings, which gateinstall.txtar holds.
var others = []string{"export", "gate install", "gate uninstall", "replay", "send", "title"}

// dryRunStore makes a store with all that a removal may count: attachments in one and in two conversations, forks, copies, calls, tags, old operations and
// trash.
func dryRunStore(t *testing.T) string {
	dir := t.TempDir()
	path := filepath.Join(dir, "chats.db")
	file := func(name, text string) string {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	one, both := file("one.txt", strings.Repeat("one SECRET1 ", 600)), file("both.txt", strings.Repeat("both SECRET2 ", 600))
	file("messages.json", `[{"conversations":[{"from":"human","value":"hello"},{"from":"gpt","value":"welcome"}]}]`)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere.db")
	must(t, elsewhere, "new", "Foreign")
	must(t, elsewhere, "add", "user", "from elsewhere", "--file", file("large.txt", strings.Repeat("large ", 900)))
	must(t, elsewhere, "config", "base_url=http://localhost:1/v1")
	must(t, elsewhere, "export", "--all", "-o", filepath.Join(dir, "foreign.jsonl"))
	do := func(args ...string) { must(t, path, args...) }
	do("import", filepath.Join(dir, "foreign.jsonl"))
	do("new", "Gone", "--system", "SECRET3")
	do("add", "user", "of the trash", "--file", one)
	do("rm", "Gone", "--yes")
	do("new", "Other")
	do("add", "user", "see SECRET4", "--file", both)
	do("label", "add", "old", "Other")
	do("new", "Big")
	do("label", "add", "old", "Big")
	do("add", "user", "question "+strings.Repeat("soil ", 200), "--file", one)
	do("add", "assistant", "answer SECRET5 "+strings.Repeat("loam ", 200))
	do("add", "user", "second", "--file", both)
	do("add", "assistant", "second answer")
	do("pin", "@1")
	do("exclude", "@2")
	do("fork", "side", "--stay")
	do("add", "user", "aside", "--branch", "side", "--file", file("side.txt", strings.Repeat("side ", 900)))
	do("edit", "@3", "second anew", "--as", "anew")
	do("switch", "main")
	do("export", "Other", "-o", filepath.Join(dir, "own.jsonl"))
	must(t, elsewhere, "new", "New")
	must(t, elsewhere, "add", "user", "not here yet", "--file", filepath.Join(dir, "large.txt"))
	must(t, elsewhere, "export", "New", "-o", filepath.Join(dir, "new.jsonl"))
	do("rewind", "@3", "--yes")
	do("add", "assistant", "another answer")
	return path
}

// jsonLines returns what a command line prints as JSON, an object a line.
func jsonLines(t *testing.T, path, line string, more ...string) (all []map[string]any) {
	t.Helper()
	cmd := program(t, path, append(strings.Fields(line), more...)...)
	cmd.Dir = filepath.Dir(path)
	out, err := cmd.Output()
	if exit, is := err.(*exec.ExitError); is && exit.ExitCode() != exitPartial {
		t.Fatalf("chatctx %s %v: %v\n%s", line, more, err, exit.Stderr)
	}
	for l := range strings.Lines(string(out)) {
		v := map[string]any{}
		if err := json.Unmarshal([]byte(l), &v); err != nil {
			t.Fatalf("chatctx %s: %v in %s", line, err, l)
		}
		all = append(all, v)
	}
	return all
}

// TestDryRunsSayWhatTheRunDoes: every command that has --dry-run prints the figures of its run, and changes nothing.
func TestDryRunsSayWhatTheRunDoes(t *testing.T) {
	for _, name := range commandsWith(allCommands(), "", "dry-run") {
		if len(dryRuns()[name]) == 0 && !slices.Contains(others, name) {
			t.Errorf("%s has --dry-run and no line here", name)
		}
	}
	made := dryRunStore(t)
	for _, name := range slices.Sorted(maps.Keys(dryRuns())) {
		for _, line := range dryRuns()[name] {
			t.Run(line, func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(filepath.Dir(made))); err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, "chats.db")
				var flags []string
				if slices.Contains(commandsWith(allCommands(), "", "yes"), name) {
					flags = []string{"--yes"}
				}
				before := must(t, path, "export", "--all")
				dry := jsonLines(t, path, line, "--dry-run", "--json")
				if must(t, path, "export", "--all") != before {
					t.Error("the dry run changed the store")
				}
				run := jsonLines(t, path, line, append(flags, "--json")...)
				if len(dry) != len(run) {
					t.Fatalf("the dry run has %d lines, the run %d:\n%v\n%v", len(dry), len(run), dry, run)
				}
				for i := range dry {
					sameFigures(t, dry[i], run[i])
				}
				must(t, path, "check")
			})
		}
	}
}

// sameFigures compares what both print: all but what only a run has.
func sameFigures(t *testing.T, dry, run map[string]any) {
	shared := 0
	for k, v := range dry {
		got, both := run[k]
		if !both || slices.Contains([]string{"dry_run", "operation", "operations", "rewritten"}, k) {
			continue
		}
		for _, one := range []any{v, got} { // a conversation that an import makes has another id in each
			for _, in := range list(one) {
				if m, is := in.(map[string]any); is && k == "imported" {
					delete(m, "context")
				}
			}
		}
		if n, is := got.(float64); is && list(v) != nil {
			v, got = len(list(v)), int(n)
		}
		if shared++; !reflect.DeepEqual(v, got) {
			t.Errorf("%s: the dry run says %v, the run %v", k, v, got)
		}
	}
	if shared == 0 {
		t.Errorf("no figure is in both:\n%v\n%v", dry, run)
	}
}

func list(v any) []any { all, _ := v.([]any); return all }

// commandsWith lists the commands that have a flag, by their whole names.
func commandsWith(all []*command, prefix, named string) (names []string) {
	for _, c := range all {
		if slices.ContainsFunc(c.flags, func(f *flag) bool { return f.name == named }) {
			names = append(names, prefix+c.name)
		}
		names = append(names, commandsWith(c.subs, prefix+c.name+" ", named)...)
	}
	return names
}
