package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// scope is what a command works on; it determines the flags that the command has beside its own.
type scope int

const (
	onProgram scope = iota // only the program
	onStore                // the store
	onContext              // a context: --context
	onBranch               // a branch of a context: --context and --branch
)

// command describes a command. The package comment explains its fields.
type command struct {
	name    string
	does    string        // one line, for lists
	more    string        // further text for its own help
	table   func() string // a table below that, or nil
	scope   scope
	paged   bool   // long output goes through the pager on a terminal
	json    string // the fields of the object that --json prints; "" if the command only has subcommands and prints nothing
	example string // lines to type
	hidden  bool
	run     *entry           // what it does with the parameters that a struct describes
	do      func(*run) error // in place of run: what it does without parameters. If it has neither, only its subcommands do something
	subs    []*command

	// What run says of the parameters:
	args       string              // "REF [TEXT|-]": how many arguments, and what they are
	flags      []*flag             // those of this command
	words      map[string][]string // the words that may stand for a value, by the word for it
	mayBeEmpty []string            // the flags that may be given and empty (--result), and the argument that may be empty behind a -- (ARG)
}

// group is a heading of the help and its commands.
type group struct {
	title    string
	commands []*command
}

// commandTable lists every command, in the order of the help. A new group is one line here.
func commandTable() []group {
	table := []group{
		{"Conversations", contextCommands()},
		{"Messages", messageCommands()},
		{"Finding", searchCommands()},
		{"Talking to a model", talkCommands()},
		{"Tools and their calls", slices.Concat(callCommands(), ruleCommands(), []*command{{name: "tools"}}, subCommands())},
		{"The window", append(windowCommands(), &command{name: "cost"})},
		{"Branches", slices.Concat(branchCommands(), compareCommands(), replayCommands(), []*command{uiCommand()})},
		{"Changing a history", historyCommands()},
		{"Prompts and settings", settingCommands()},
		{"Taking back", journalCommands()},
		{"Other tools' files", exchangeCommands()},
		{"Space and erasure", spaceCommands()},
		{"Other programs", slices.Concat(serveCommands(), gateCommands(), []*command{mcpCommand()})},
		{"The file", fileCommands()},
		{"The program", programCommands()},
	}
	table = fillIn(table)
	for _, g := range table {
		for _, c := range g.commands {
			c.complete(c.name)
		}
	}
	return table
}

// allCommands is the table without its headings.
func allCommands() []*command {
	var all []*command
	for _, g := range commandTable() {
		all = append(all, g.commands...)
	}
	return all
}

// complete fills in what a command's entry says, and makes a command with a list subcommand show that list if nothing more is typed. name is the command as typed.
func (c *command) complete(name string) {
	c.describe()
	for _, sub := range c.subs {
		list := name + " " + sub.name
		sub.complete(list)
		if c.do == nil && slices.Contains([]string{"ls", "log", "status"}, sub.name) {
			c.do, c.paged, c.more, c.json, c.example = sub.do, sub.paged, "Alone it is "+list+".", "as "+list, "chatctx "+name
		}
	}
}

// commonFlags are the flags that stand before the command or after it. They alone are flags of the whole program.
type commonFlags struct {
	Context  string `flag:"context" env:"CHATCTX_CONTEXT" doc:"the conversation {CTX}; else CHATCTX_CONTEXT, else the current one"`
	Branch   string `flag:"branch" doc:"the branch {BRANCH}; else the active one"`
	Store    string `flag:"store" env:"CHATCTX_STORE" doc:"the store's {FILE}, or postgres://…; else CHATCTX_STORE, else chatctx/chats.db in the data folder"`
	JSON     bool   `flag:"json" doc:"print JSON, errors too: one object, or one a line"`
	NoConfig bool   `flag:"no-config" doc:"leave out the config file"`
	Quiet    bool   `flag:"quiet,q" doc:"print no notices: data and errors alone"`
}

// sharedFlags are the common flags that a command of a scope takes.
func sharedFlags(on scope) (all []*flag) {
	for _, p := range paramsOf(reflect.TypeFor[commonFlags]()) {
		if p.flag.name == "context" && on < onContext || p.flag.name == "branch" && on < onBranch {
			continue
		}
		all = append(all, p.flag)
	}
	return all
}

// allFlags are the flags of a command: its own, and the shared ones. One of these that an own flag hides has to stand before the command.
func (c *command) allFlags() (all []*flag) {
	all = slices.Clone(c.flags)
	for _, f := range sharedFlags(c.scope) {
		if c.hides(f) {
			before := *f
			before.usage += "; here it stands before the command"
			f = &before
		}
		all = append(all, f)
	}
	return all
}

// hides reports whether a shared flag's name means one of the command's own behind the command.
func (c *command) hides(shared *flag) bool {
	return slices.ContainsFunc(c.flags, func(own *flag) bool { return own.answersTo(shared.name) })
}

// argument is one word of command.args.
type argument struct {
	word     string // REF, TEXT|- …
	optional bool
	many     bool
}

// arguments parses command.args.
func (c *command) arguments() []argument {
	var list []argument
	for _, w := range strings.Fields(c.args) {
		a := argument{word: w}
		if strings.HasPrefix(w, "[") && strings.HasSuffix(w, "]") {
			a.word, a.optional = w[1:len(w)-1], true
		}
		if cut, ok := strings.CutSuffix(a.word, "…"); ok {
			a.word, a.many = cut, true
		}
		list = append(list, a)
	}
	return list
}

// argumentAt returns the word for the argument at i, "argument" for one too many.
func (c *command) argumentAt(i int) string {
	list := c.arguments()
	switch n := len(list); {
	case i < n:
		return list[i].word
	case n > 0 && list[n-1].many:
		return list[n-1].word
	}
	return "argument"
}

// checkArgs refuses too few and too many arguments.
func (c *command) checkArgs(name string, args []string) error {
	least, most := 0, 0
	var missing string
	for _, a := range c.arguments() {
		most++
		if !a.optional {
			least++
			if least == len(args)+1 {
				missing = a.word
			}
		}
		if a.many {
			most = len(args) + 1
		}
	}
	usage := strings.TrimSpace("usage: chatctx " + name + " " + c.args)
	if len(args) < least {
		return &usageError{fmt.Sprintf("%s needs %s", name, missing), usage}
	}
	if len(args) > most {
		return &usageError{fmt.Sprintf("%s: too many arguments, from %q on", name, args[most]), usage + "\nput text of several words in quotes"}
	}
	return nil
}

// Flags that several commands have.

// dryRunFlag and its like are embedded in the parameters of commands.
type dryRunFlag struct {
	DryRun bool `flag:"dry-run" doc:"show what would happen"`
}

type yesFlag struct {
	Yes bool `flag:"yes" doc:"do not ask"`
}

type rawFlag struct {
	Raw bool `flag:"raw" doc:"keep the last newline of what comes from standard input"`
}
