package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"testing"
)

// TestBugsApply holds the table against the code: each text stands there once, and what a bug makes of the file is still Go.
func TestBugsApply(t *testing.T) {
	files, err := sources("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(bugs) < 40 {
		t.Errorf("the table has %d bugs", len(bugs))
	}
	seen := map[string]bool{}
	for _, b := range bugs {
		path, planted := b.plant(files)
		switch {
		case seen[b.about]:
			t.Errorf("%s: it is there twice", b.about)
		case path == "":
			t.Errorf("%s: its text stands nowhere, or in several places", b.about)
		case bytes.Equal(planted, files[path]):
			t.Errorf("%s: it changes nothing", b.about)
		case len(b.tests) == 0:
			t.Errorf("%s: nothing has to catch it", b.about)
		default:
			if _, err := parser.ParseFile(token.NewFileSet(), path, planted, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s: %v", b.about, err)
			}
		}
		seen[b.about] = true
	}
}
