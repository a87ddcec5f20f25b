package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

func TestCommandWords(t *testing.T) {
	for line, want := range map[string][]string{
		`vi`: {"vi"}, `code --wait`: {"code", "--wait"}, "  a \t b ": {"a", "b"}, `"a b" c`: {"a b", "c"}, `'a b' c`: {"a b", "c"}, `x --title="a b" --other='c d'`: {"x", "--title=a b", "--other=c d"},
		`emacsclient -a ""`: {"emacsclient", "-a", ""}, `"it's" O'Brien d'x`: {"it's", "O'Brien", "d'x"}, `vim -c 'set tw=72'`: {"vim", "-c", "set tw=72"},
	} {
		if got, err := commandWords(line); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %q, %v; want %q", line, got, err, want)
		}
	}
	want := []string{"a b", `\x`}
	if !backslashQuotes {
		want = []string{`a\`, "b", `\\x`}
	}
	if got, err := commandWords(`a\ b \\x`); err != nil || !slices.Equal(got, want) {
		t.Errorf("with backslashes: %q, %v", got, err)
	}
	for _, line := range []string{`"a`, `a 'b`, `x "a' b`} {
		if got, err := commandWords(line); err == nil {
			t.Errorf("%s is %q", line, got)
		}
	}
}

// TestCommandOf: a program whose path has blanks is found with and without quotes around it.
func TestCommandOf(t *testing.T) {
	name := "my editor"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	program := filepath.Join(t.TempDir(), "the programs", name)
	if err := errors.Join(os.Mkdir(filepath.Dir(program), 0o700), os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{program, `"` + program + `"`, program + " -w", `"` + program + `" -w`, program + ` "-w"  `} {
		got, err := commandOf("EDITOR", line)
		if err != nil || got[0] != program || len(got) > 1 && got[1] != "-w" || len(got) > 2 {
			t.Errorf("%s is %q, %v", line, got, err)
		}
	}
	if err := os.Remove(program); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if got, err := commandOf("EDITOR", program); err != nil || got[0] == program {
		t.Errorf("a program that is not there is %q, %v", got, err)
	}
	if _, err := commandOf("EDITOR", `vi "x`); err == nil {
		t.Error("a quote that is not closed was taken")
	}
}
