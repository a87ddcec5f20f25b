package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/operation/toy"
	"github.com/chatctx/chatctx/internal/testkit"
)

// TestOneFileIsACommand: an operation that one file adds is a command with its help, its JSON, its completion and its page.
func TestOneFileIsACommand(t *testing.T) {
	if !testkit.Again(t, toy.Variable) {
		return
	}
	store := filepath.Join(t.TempDir(), "chats.db")
	must(t, store, "new", "Boats")
	for _, c := range []struct {
		line string
		want []string
	}{
		{"help", []string{"Toys", "tops and their spinning"}},
		{"help toy spin", []string{"chatctx toy spin COLOUR", "Spin a top in a conversation", "It stays there as a label.", "--times N", "how often it spins: N times", "chatctx toy spin red --times 2", "JSON: operation, context, branch, affected_summaries"}},
		{"help toy spin --json", []string{`"usage":"chatctx toy spin COLOUR"`, `"flag":"--times N"`, `label","example"`}},
		{"__complete t", []string{"toy\ttops and their spinning"}},
		{"__complete -- toy spin --t", []string{"--times\thow often it spins: N times"}},
		{"__complete toy spin g", []string{"green"}},
		{"toy spin green", []string{"label: greengreengreen"}},
		{"toy spin red --times 1 --json", []string{`{"operation":"`, `"label":"red"}`}},
		{"label ls", []string{"greengreengreen  1 conversation", "red  1 conversation"}},
	} {
		got := must(t, store, strings.Fields(c.line)...)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("chatctx %s lacks %q:\n%s", c.line, want, got)
			}
		}
	}
	if out, err := program(t, store, "toy", "spin", "blue").CombinedOutput(); err == nil || !strings.Contains(string(out), `COLOUR takes red or green, not "blue"`) {
		t.Errorf("a colour that is none gives %v: %s", err, out)
	}
	if page := docs(); !strings.Contains(page, "## Toys") || !strings.Contains(page, "### chatctx toy spin COLOUR") {
		t.Error("docs/cli.md would lack the command")
	}
	must(t, store, "check")
}
