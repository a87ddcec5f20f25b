package main

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/api.txt anew")

func TestLongLinesCountAsSeveral(t *testing.T) {
	var l lines
	l.add("package p\n\n\t// a comment\n" + strings.Repeat("x", 140) + "\n" + "\t" + strings.Repeat("x", 137) + "\n" + strings.Repeat("é", 281))
	if want := (lines{counted: 1 + 1 + 1 + 1 + 2 + 3, written: 6, comments: 1}); l != want {
		t.Errorf("counted %+v, want %+v", l, want)
	}
}

// TestWhatThePublicPackagesExport: each kind of name is found, and none of internal packages and of test support.
func TestWhatThePublicPackagesExport(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles everything")
	}
	t.Chdir("../..")
	names, err := api()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"pool type Message", "pool func NewText", "chatctx method Store.Begin", "chatctx/settings func InForce"} {
		if !slices.Contains(names, want) {
			t.Errorf("%q is not among %d names", want, len(names))
		}
	}
	for _, n := range names {
		if strings.Contains(n, "internal/") || strings.Contains(n, "adaptertest") || strings.HasPrefix(n, "chatctx/kv/kvtest ") {
			t.Errorf("%q is counted", n)
		}
	}
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Error("a name is counted twice")
	}
}

// TestAPI holds what the public packages declare against testdata/api.txt, so that nothing that others use goes or changes unseen. docs/compatibility.md says what
// is promised. After a change that is meant: go test ./internal/figures -run TestAPI -update
func TestAPI(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles everything")
	}
	t.Chdir("../..")
	packages, err := public()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range packages {
		lines = append(lines, declarations(p)...)
	}
	const file = "testdata/api.txt"
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	promised := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	for _, l := range promised {
		if !slices.Contains(lines, l) {
			t.Errorf("gone or changed: %s", l)
		}
	}
	for _, l := range lines {
		if !slices.Contains(promised, l) {
			t.Errorf("new: %s", l)
		}
	}
	if t.Failed() {
		t.Log("if this is meant: go test ./internal/figures -run TestAPI -update, and a line in CHANGELOG.md")
	}
}
