package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestArgumentsThatAreNoText: an argument of a command is bytes, and those that are not UTF-8 come into no store: the command is refused as one that is used wrongly, and
// everything can be read afterwards.
func TestArgumentsThatAreNoText(t *testing.T) {
	store := filepath.Join(t.TempDir(), "chats.db")
	run := func(in string, args ...string) (int, string, string) {
		var out, errs strings.Builder
		code := Main(append([]string{"--store", store}, args...), strings.NewReader(in), &out, &errs)
		return code, out.String(), errs.String()
	}
	for _, args := range [][]string{{"new", "One"}, {"add", "user", "hello"}, {"add", "assistant", "there"}, {"serve", "token", "add", "phone"}} {
		if code, _, errs := run("", args...); code != 0 {
			t.Fatalf("%v: %d %s", args, code, errs)
		}
	}
	const bad = "Stra\xc3"
	for _, args := range [][]string{
		{"new", bad}, {"rename", "One", bad}, {"label", "add", bad, "One"}, {"add", "user", bad}, {"add", bad, "text"}, {"add", "user", "text", "--key", bad},
		{"fork", bad}, {"branch", "mv", "main", bad}, {"tag", bad}, {"edit", "@1", bad}, {"edit", "@1", "text", "--as", bad}, {"system", bad}, {"prompt", bad},
		{"config", "set", "app.k", bad}, {"config", "set", "app." + bad, "1"}, {"config", "set", "app." + bad, "1", "--store"}, {"config", "set", "model", bad},
		{"tools", "add", bad, "--", "x"}, {"tools", "add", "n", "--description", bad, "--", "x"}, {"tools", "add", "n", "--env", "A=" + bad, "--", "x"}, {"tools", "add", "n", "--", "x", bad}, {"tools", "add", "n", "--store", "--", bad},
		{"rules", "add", "allow", bad}, {"rules", "add", "allow", "t", "--reason", bad}, {"rules", "add", "allow", "t", "--when", "path under " + bad}, {"rules", "add", "allow", "t", "--store", "--reason", bad},
		{"sub", "start", bad}, {"serve", "token", "add", bad}, {"serve", "token", "add", "n", "--scope", bad}, {"merge", "main", "--summary", bad}, {"compact", "--summary", bad},
	} {
		code, _, errs := run("", args...)
		if code != 2 {
			t.Errorf("%q: exit code %d: %s", args, code, errs)
		}
		if strings.Contains(errs, "\xc3") {
			t.Errorf("%q: the message has the bytes: %q", args, errs)
		}
	}
	for _, args := range [][]string{{"ls"}, {"log"}, {"op", "log"}, {"tree"}, {"tools", "ls"}, {"rules", "ls"}, {"serve", "token", "ls"}, {"config"}, {"label", "ls"}, {"tag", "ls"}, {"check"}} {
		code, out, errs := run("", append(args, "--json")...)
		if code != 0 {
			t.Errorf("%v: exit code %d: %s", args, code, errs)
		}
		for line := range strings.Lines(out) {
			if !json.Valid([]byte(line)) || strings.Contains(line, `Stra`) {
				t.Errorf("%v: %s", args, line)
			}
		}
	}
	if code, _, errs := run("", "undo"); code != 0 {
		t.Errorf("undo: %d %s", code, errs)
	}
	if code, out, errs := run("", "check", "--full"); code != 0 {
		t.Errorf("check: %d %s%s", code, out, errs)
	}
}
