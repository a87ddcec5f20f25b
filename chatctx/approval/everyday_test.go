package approval

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
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
	const atLeast = 0.84
	rule := &chatctx.Rule{Effect: chatctx.Allow, Tool: "shell", When: []chatctx.Condition{{Argument: "command", Op: Each, Value: "*"}}}
	commands := everydayCommands(t)
	passed := 0
	for _, command := range commands {
		raw, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		q := &chatctx.Question{Tool: "shell", Arguments: raw}
		if ruling := (Rules{}).Judge([]*chatctx.Rule{rule}, q); ruling.Effect == chatctx.Allow {
			passed++
		} else {
			t.Logf("held: %s\n\t%s", command, ruling.Notes[0].Why)
		}
	}
	t.Logf("%d of %d everyday commands pass", passed, len(commands))
	if float64(passed) < atLeast*float64(len(commands)) {
		t.Errorf("only %d of %d everyday commands pass", passed, len(commands))
	}
}
