package approval

import (
	"os"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
)

// everydayCommands reads testdata/everyday.txt.
func everydayCommands(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile("testdata/everyday.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for line := range strings.Lines(string(raw)) {
		switch more, ok := strings.CutPrefix(line, "  "); {
		case ok:
			all[len(all)-1] += "\n" + strings.TrimSuffix(more, "\n")
		case strings.TrimSpace(line) != "" && line[0] != '#':
			all = append(all, strings.TrimSuffix(line, "\n"))
		}
	}
	if len(all) != 200 {
		t.Fatalf("there are %d everyday commands, not 200", len(all))
	}
	return all
}

// TestEverydayCommands: of the commands of every day, so many are allowed without asking if all their programs are.
func TestEverydayCommands(t *testing.T) {
	for _, c := range []struct {
		shell      string
		conditions []string
		atLeast    int // of 200
	}{
		{"bash", []string{"each *"}, 184}, {"bash", []string{"each *", "writes *"}, 190}, {"sh", []string{"each *"}, 180}, {"zsh", []string{"each *"}, 176},
	} {
		allow := onCommand(t, record.Allow, c.conditions...)
		passed := 0
		for _, command := range everydayCommands(t) {
			if ruling := ruledCommand(t, []string{c.shell, "-c", "{command}"}, command, allow); ruling.Effect == record.Allow {
				passed++
			} else {
				t.Logf("held in %s: %s\n\t%s", c.shell, command, ruling.Notes[0].Why)
			}
		}
		t.Logf("%d of 200 everyday commands pass in %s with %q", passed, c.shell, c.conditions)
		if passed < c.atLeast {
			t.Errorf("only %d of 200 everyday commands pass in %s with %q, not %d", passed, c.shell, c.conditions, c.atLeast)
		}
	}
}

// TestADenyOfOneProgramHoldsNoEverydayCommand: a deny of a program asks about few commands that do not run it.
func TestADenyOfOneProgramHoldsNoEverydayCommand(t *testing.T) {
	deny := onCommand(t, record.Deny, "each shred")
	all := &record.Rule{Effect: record.Allow, Tool: "*"}
	passed := 0
	for _, command := range everydayCommands(t) {
		if ruledCommand(t, []string{"bash", "-c", "{command}"}, command, deny, all).Effect == record.Allow {
			passed++
		}
	}
	if t.Logf("%d of 200", passed); passed < 190 {
		t.Errorf("a deny of another program lets only %d of 200 everyday commands pass", passed)
	}
}
