package main

import (
	"bytes"
	"os"
	"testing"
)

// TestTable holds the table that is in the tree to the one that the rules make.
func TestTable(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../chatctx/secrets/rules.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("chatctx/secrets/rules.json is not what gitleaks' rules make: run go generate in chatctx/secrets")
	}
	if n := bytes.Count(want, []byte(`{"id":`)); n < 200 {
		t.Errorf("only %d rules", n)
	}
}
