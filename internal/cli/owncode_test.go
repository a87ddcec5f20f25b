package cli

import (
	"testing"

	"github.com/chatctx/chatctx/internal/operation"
)

// ownCode are the commands that the table of operations does not make, beside those about the program itself, and why they have code of their own.
var ownCode = map[string]string{
	"append":          "it stores what comes as long as more comes, in batches that are durable before the next is read",
	"log":             "it follows a branch, and says between messages what goes to the model",
	"send":            "words are shown as they come, and calls are asked about in place",
	"ask":             "several answers are shown side by side as they come",
	"retry":           "as send and ask",
	"chat":            "a person talks at the terminal",
	"calls review":    "a person decides at the terminal, and edits arguments there",
	"replay":          "it runs many turns, and shows how far each is",
	"bisect":          "it goes on with what a person or a program says of each step",
	"ui":              "it draws on the whole terminal",
	"import":          "it reads the files of other tools, and may follow them",
	"export":          "it writes bytes into files and pipes",
	"serve":           "it is a server",
	"web":             "as serve, for a browser",
	"mcp":             "as serve, for agents",
	"gate run":        "it gives the terminal to the agent, and ends with its code",
	"gate passphrase": "it asks at a terminal, so that no line, pipe or API has the words",
	"gate hook":       "it answers an agent in that agent's own form, before a deadline",
}

// TestCommandsAreOperations: the table of operations makes every command but those that are named: 15, and the gate's hook, run and passphrase.
func TestCommandsAreOperations(t *testing.T) {
	const most = 18
	if len(ownCode) > most {
		t.Errorf("%d commands have code of their own, more than %d", len(ownCode), most)
	}
	program := map[string]bool{}
	for _, c := range programCommands() {
		program[c.name] = true
	}
	made := map[string]bool{}
	for _, o := range operation.All() {
		made[o.Typed] = true
	}
	seen := map[string]bool{}
	var walk func(above string, list []*command)
	walk = func(above string, list []*command) {
		for _, c := range list {
			name := above + c.name
			_, own := ownCode[name]
			seen[name] = true
			switch leaf := c.run != nil; {
			case made[name] && own:
				t.Errorf("%s is an operation: take it off the list", name)
			case leaf && !made[name] && !own && !program[name]:
				t.Errorf("%s is no operation of the table", name)
			}
			walk(name+" ", c.subs)
		}
	}
	walk("", allCommands())
	for name := range ownCode {
		if !seen[name] {
			t.Errorf("there is no command %s: take it off the list", name)
		}
	}
}
