package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// TestEmpty gives every command each of its flags, and each of its arguments, empty: all are refused before anything else is looked at, but
// for those that stand in mayBeEmpty.
func TestEmpty(t *testing.T) {
	t.Setenv("CHATCTX_STORE", t.TempDir()+"/none.db")
	t.Setenv("CHATCTX_CONTEXT", "")
	flags, arguments := 0, 0
	refused := func(what string, line []string) {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := Main(line, strings.NewReader("x"), &out, &errOut); code != exitUsage || !strings.Contains(errOut.String(), what+" is empty") {
			t.Errorf("chatctx %q: exit code %d, %s", line, code, errOut.String())
		}
	}
	var walk func(path []string, c *command)
	walk = func(path []string, c *command) {
		path = append(slices.Clone(path), c.name)
		for _, sub := range c.subs {
			walk(path, sub)
		}
		if c.hidden {
			return
		}
		var args []string
		for _, a := range c.arguments() {
			args = append(args, "x")
			refused(a.word, append(slices.Clone(path), append(slices.Clone(args[:len(args)-1]), "")...))
			if !slices.Contains(c.mayBeEmpty, a.word) {
				refused(a.word, append(append(slices.Clone(path), "--"), append(slices.Clone(args[:len(args)-1]), "")...))
			}
			arguments++
		}
		for _, f := range flagsHere(&parsed{path: []*command{c}}) {
			name := "--" + f.name
			if !takesValue(f) || slices.Contains(c.mayBeEmpty, name) {
				continue
			}
			refused(name, append(slices.Clone(path), append(slices.Clone(args), name, "")...))
			refused(name, append(slices.Clone(path), append(slices.Clone(args), name+"=")...))
			flags++
		}
	}
	for _, c := range allCommands() {
		walk(nil, c)
	}
	if flags < 200 || arguments < 60 {
		t.Errorf("only %d flags and %d arguments were tried", flags, arguments)
	}
}
