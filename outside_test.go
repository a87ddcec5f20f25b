package chatctx_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestOutside builds and tests testdata/outside as a module of somebody else, which has an own provider, enhancer, format and engine, and programs that use them. Its
// go.mod is made of this module's, so that it needs no more than is here.
func TestOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the command")
	}
	importsOf(t) // reads all files, so that a cached result does not hide a change
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/outside")); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(module, "/")
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	mod = bytes.Replace(mod, []byte("module "+name+"\n"), []byte("module example.org/outside\n"), 1)
	mod = append(mod, "\nrequire "+name+" v0.0.0\n\nreplace "+name+" => "+strconv.Quote(here)+"\n"...)
	sum, err := os.ReadFile("go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{"go.mod": mod, "go.sum": sum} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestEmbeddingQuotesOutside: what docs/embedding.md shows of the module stands there, line for line; // … stands for lines between.
func TestEmbeddingQuotesOutside(t *testing.T) {
	doc, err := os.ReadFile("docs/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	quotes := regexp.MustCompile("(?s)From \\[(testdata/outside/[^]]+)\\]\\([^\n]*\n\n```go\n(.*?)```").FindAllSubmatch(doc, -1)
	for _, q := range quotes {
		file, err := os.ReadFile(string(q[1]))
		if err != nil {
			t.Error(err)
		}
		for part := range bytes.SplitSeq(q[2], []byte("// …\n")) {
			if !bytes.Contains(file, part) {
				t.Errorf("%s has no\n%s", q[1], part)
			}
		}
	}
	if n := bytes.Count(doc, []byte("From [testdata/outside/")); n < 5 || n != len(quotes) {
		t.Errorf("%d of %d quotations were found", len(quotes), n)
	}
}
