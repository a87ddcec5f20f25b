package main

import (
	"slices"
	"strings"
	"testing"
)

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
	for _, want := range []string{"pool type Message", "pool func NewText", "chatctx method Store.Begin", "chatctx/settings type Setting"} {
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
