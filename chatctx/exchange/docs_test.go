package exchange

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// structuralDocs returns the list for docs/formats.md.
func structuralDocs() string {
	var b strings.Builder
	line := func(name string) {
		fmt.Fprintf(&b, "- %s: `%s`\n", name, strings.Join(slices.Sorted(maps.Keys(structuralKeys[name])), "`, `"))
	}
	for _, name := range slices.Sorted(maps.Keys(structuralKeys)) {
		line(name)
	}
	return strings.Replace(b.String(), "- :", "- all:", 1)
}

var updateDocs = flag.Bool("docs", false, "write the list of structural keys into docs/formats.md")

// TestStructuralDocs compares the list of structural keys in docs/formats.md with the one that readers use.
func TestStructuralDocs(t *testing.T) {
	const path, begin, end = "../../docs/formats.md", "say how a file hangs together:", "## chatctx: our own JSON lines"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, found := strings.Cut(rest, end)
	if !ok || !found {
		t.Fatal("no list of structural keys in docs/formats.md")
	}
	want := before + begin + "\n\n" + structuralDocs() + "\n" + end + after
	if *updateDocs {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Error("docs/formats.md lists other keys: go test -run StructuralDocs -docs ./chatctx/exchange")
	}
}
