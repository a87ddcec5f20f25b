package cli

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

func programCommands() []*command {
	return []*command{
		{name: "completion", does: "print the completion script for bash, zsh, fish or powershell", scope: onProgram, run: in(doCompletion),
			more: "It completes commands, flags and values: conversations, branches, messages with BRANCH@, tags, labels, calls, tools, models, providers, settings with their values, operations.",
			example: `source <(chatctx completion bash)
chatctx completion zsh > ~/.zsh/completions/_chatctx
chatctx completion fish > ~/.config/fish/completions/chatctx.fish
chatctx completion powershell | Out-String | Invoke-Expression`,
			json: "shell, script"},
		{name: "__complete", does: "print what can stand in place of the last word", scope: onProgram, run: in(doComplete), hidden: true},
		{name: "help", does: "list the commands, or show the flags and an example of one", scope: onProgram, run: in(doHelp), paged: true,
			more: "help concepts explains the words, help refs how messages and conversations are named.",
			json: "command, usage, does, more, flags[{flag, usage}], json, example, commands[the same]", example: "chatctx help fork"},
		{name: "version", does: "print the version", scope: onProgram, do: doVersion,
			json: "version, revision, modified, go, os, arch", example: "chatctx version"},
	}
}

// versionJSON identifies this program.
type versionJSON struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// programVersion reads what the Go tool stored in the program.
func programVersion() versionJSON {
	v := versionJSON{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func doVersion(r *run) error {
	v := programVersion()
	return r.emit(v, func() {
		r.printf("chatctx %s", v.Version)
		if v.Revision != "" {
			r.printf(" (%s", v.Revision[:min(12, len(v.Revision))])
			if v.Modified {
				r.printf(", modified")
			}
			r.printf(")")
		}
		r.printf(" %s %s/%s\n", v.Go, v.OS, v.Arch)
	})
}

type helpIn struct {
	Words []string `arg:"[COMMAND…]"`
}

func doHelp(r *run, in *helpIn) error {
	p := &parsed{}
	table := allCommands()
	if topic, ok := topics[strings.Join(in.Words, " ")]; ok {
		return r.emit(map[string]string{"topic": in.Words[0], "text": topic}, func() { r.printf("%s", topic) })
	}
	if len(in.Words) > 1 && topics[in.Words[0]] != "" {
		return usagef("the topic %s stands alone: chatctx help %[1]s", in.Words[0])
	}
	for _, word := range in.Words {
		found := findCommand(table, word)
		if alias, ok := r.line.conf.alias(word); ok && found == nil && len(in.Words) == 1 {
			return r.emit(map[string]string{"alias": word, "stands_for": alias}, func() { r.printf("%s stands for: chatctx %s\n", clean(word), clean(alias)) })
		}
		if found == nil {
			return p.noCommand(word)
		}
		p.path = append(p.path, found)
		table = found.subs
	}
	return doPrintHelp(r, p)
}

// doPrintHelp prints the help of a command, or the overview of all.
func doPrintHelp(r *run, p *parsed) error {
	if r.json() {
		return r.printJSON(helpJSON(p, p.below(allCommands())))
	}
	r.con.page()
	return printHelp(r.con.out, p)
}

// commandJSON is a command in the JSON of help.
type commandJSON struct {
	Command  string        `json:"command"`
	Usage    string        `json:"usage"`
	Does     string        `json:"does"`
	More     string        `json:"more,omitempty"`
	Flags    []flagJSON    `json:"flags"`
	JSON     string        `json:"json"`
	Example  string        `json:"example"`
	Commands []commandJSON `json:"commands,omitempty"`
}

type flagJSON struct {
	Flag  string `json:"flag"`
	Usage string `json:"usage"`
}

// helpJSON describes a command and its subcommands, or all commands.
func helpJSON(p *parsed, under []*command) commandJSON {
	j := commandJSON{Command: p.name(), Usage: "chatctx [--store FILE] COMMAND [flags] [arguments]", Flags: []flagJSON{}}
	shared := sharedFlags(onStore)
	if c := p.command(); c != nil {
		j.Usage, j.Does, j.More, j.JSON, j.Example = "chatctx "+usageLine(p.name(), c), c.does, c.more, c.json, c.example
		shared = c.allFlags()
	}
	for _, f := range shared {
		name, usage := flagText(f)
		j.Flags = append(j.Flags, flagJSON{name, usage})
	}
	for _, c := range under {
		if !c.hidden {
			j.Commands = append(j.Commands, helpJSON(&parsed{path: append(slices.Clone(p.path), c)}, c.subs))
		}
	}
	return j
}

func findCommand(table []*command, name string) *command {
	for _, c := range table {
		if c.name == name {
			return c
		}
	}
	return nil
}

// printHelp prints the help of a command, or the list of all.
func printHelp(w io.Writer, p *parsed) error {
	c := p.command()
	if c == nil {
		printOverview(w)
		return nil
	}
	fmt.Fprint(w, filled(upper(c.does), "", ""), "\n", filled("chatctx "+usageLine(p.name(), c), "  ", "    "))
	if c.more != "" {
		fmt.Fprint(w, "\n", filled(c.more, "", ""))
	}
	if c.table != nil {
		fmt.Fprintf(w, "\n%s", c.table())
	}
	if len(c.subs) > 0 {
		fmt.Fprintf(w, "\nCommands:\n")
		for _, s := range c.subs {
			fmt.Fprint(w, listed(p.name()+" "+usageLine(s.name, s), s.does, commandColumn))
		}
	}
	fmt.Fprintf(w, "\nFlags, before or after the arguments:\n")
	for _, f := range c.allFlags() {
		name, usage := flagText(f)
		fmt.Fprint(w, listed(name, usage, flagColumn))
	}
	if c.example != "" {
		fmt.Fprintf(w, "\nExample:\n%s", indent(c.example, "  "))
	}
	if c.json != "" {
		fmt.Fprint(w, "\n", filled("JSON: "+c.json, "", "  "))
	}
	return nil
}

// printOverview prints all commands by their groups.
func printOverview(w io.Writer) {
	fmt.Fprint(w, filled("chatctx keeps conversations with language models in one file, with all their branches.", "", ""), "\n  chatctx [--store FILE] COMMAND [flags] [arguments]\n")
	for _, g := range commandTable() {
		fmt.Fprintf(w, "\n%s\n", g.title)
		for _, c := range g.commands {
			if !c.hidden {
				fmt.Fprint(w, listed(usageLine(c.name, c), c.does, commandColumn))
			}
		}
	}
	fmt.Fprintf(w, "\nchatctx help COMMAND shows a command's flags, its JSON and an example;\nchatctx help concepts explains the words, chatctx help refs how to name things.\n")
}

// usageLine is a command as it is typed, with its arguments.
func usageLine(name string, c *command) string {
	return strings.TrimRight(name+" "+c.args, " ")
}
