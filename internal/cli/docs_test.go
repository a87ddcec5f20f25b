package cli

import (
	goflag "flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/subtask"
)

var update = goflag.Bool("update", false, "write docs/cli.md and the golden files")

const docsFile = "../../docs/cli.md"

// TestDocs holds docs/cli.md and docs/settings.md against the commands and the table of settings. After a change: go test ./internal/cli -run TestDocs -update
func TestDocs(t *testing.T) {
	holdDocs(t, docsFile, docs())
	holdDocs(t, "../../docs/settings.md", settingsDocs())
}

func holdDocs(t *testing.T, file, want string) {
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is stale: go test ./internal/cli -run TestDocs -update\n%s", file, firstDifference(string(have), want))
	}
}

func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("line %d\n- %s\n+ %s", i+1, as[i], bs[i])
		}
	}
	return "one ends before the other"
}

// TestEveryCommandIsDescribed: what the help and the docs need is there.
func TestEveryCommandIsDescribed(t *testing.T) {
	eachCommand(func(name string, c *command) {
		if c.hidden {
			return
		}
		if c.does == "" || c.example == "" || c.json == "" {
			t.Errorf("%s lacks a line, an example or its JSON", name)
		}
		if !strings.Contains(c.example, "chatctx "+name) && !strings.Contains(c.example, "chatctx "+strings.Split(name, " ")[0]) {
			t.Errorf("the example of %s does not show it: %s", name, c.example)
		}
		for _, f := range c.flags {
			if _, usage := flagText(f); usage == "" {
				t.Errorf("%s --%s says nothing", name, f.name)
			}
		}
		seen := map[string]bool{}
		for _, f := range c.allFlags() {
			n := f.name
			if seen[n] {
				t.Errorf("%s has --%s twice", name, n)
			}
			seen[n] = true
		}
	})
}

// TestConstantsAreSaid: a tag cannot hold a constant.
func TestConstantsAreSaid(t *testing.T) {
	usage := func(in any, name string) string {
		params := paramsOf(reflect.TypeOf(in))
		i := slices.IndexFunc(params, func(p param) bool { return p.flag != nil && p.flag.name == name })
		return params[i].flag.usage
	}
	if want := fmt.Sprintf("else %d", subtask.DefaultDepth); !strings.HasSuffix(usage(operation.Starting{}, "depth"), want) {
		t.Errorf("sub start --depth does not say %q", want)
	}
	for _, by := range cost.Grouping() {
		if !strings.Contains(usage(operation.CostQuery{}, "per"), string(by)) {
			t.Errorf("cost --per does not say %q", by)
		}
	}
}

// TestExamples: the examples are command lines that the program takes.
func TestExamples(t *testing.T) {
	eachCommand(func(name string, c *command) {
		for line := range strings.Lines(c.example) {
			_, after, found := strings.Cut(strings.TrimSpace(line), "chatctx ")
			if !found {
				continue
			}
			for _, end := range []string{" > ", " < ", " | ", ")"} {
				if name != "new" && name != "add" {
					after, _, _ = strings.Cut(after, end)
				}
			}
			if _, err := split(allCommands(), shellWords(after)); err != nil {
				t.Errorf("%s: %q is refused: %v", name, line, err)
			}
		}
	})
}

// shellWords splits a line at spaces outside of double quotes.
func shellWords(line string) []string {
	var words []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

func eachCommand(fn func(name string, c *command)) {
	var walk func(prefix string, list []*command)
	walk = func(prefix string, list []*command) {
		for _, c := range list {
			fn(prefix+c.name, c)
			walk(prefix+c.name+" ", c.subs)
		}
	}
	walk("", allCommands())
}

// docs writes docs/cli.md.
func docs() string {
	var b strings.Builder
	b.WriteString(docsHead)
	for _, row := range exitCodes {
		fmt.Fprintf(&b, "| %d | %s |\n", row.code, row.means)
	}
	b.WriteString(docsJSON)
	for _, g := range commandTable() {
		fmt.Fprintf(&b, "\n## %s\n", g.title)
		for _, c := range g.commands {
			if !c.hidden {
				docCommand(&b, "", c)
			}
		}
	}
	return b.String()
}

const settingsHead = `# Settings

This file is made from the table in package settings, which ` + "`chatctx config`, `help config`" + `, completion, the library and the API use too.

` + "`chatctx config NAME=VALUE`" + ` sets one on the branch, with ` + "`--all`" + ` for the conversation, with ` + "`--default`" + ` for the store.

**Which place counts.** ` + "`nearest`" + `: the first place with a value wins, in this order: a flag of the command, the branch, the conversation, the store, the environment, the config file. ` + "`with its address`" + `: likewise, but if a place has its own ` + "`base_url`" + ` or another ` + "`provider`" + `,
the address of every wider place no longer counts, nor do the values there that count with it. A key (` + "`key_env`" + `) counts only with the ` + "`base_url`" + ` of its own place, or if no place has one, so that it goes to no
address for which it was not set. An address without a ` + "`provider`" + ` in its place gets OpenAI's protocol.

A share is a number from 0 to 1 or a percentage. Names that are not in the table are refused; a program's own
settings begin with ` + "`app.`" + `. Unknown settings and wrong values from a file or a later version are kept but not in force, and are named once. From somebody else's file only
the settings marked harmless come into force; ` + "`chatctx config --accept`" + ` shows and accepts the others.
`

// settingsDocs writes docs/settings.md.
func settingsDocs() string {
	var b strings.Builder
	b.WriteString(settingsHead)
	var group settings.Group
	for _, s := range settings.All() {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n## %s\n\n| name | value | default | counts | environment | harmless | what it does |\n| --- | --- | --- | --- | --- | --- | --- |\n", upper(string(group)))
		}
		harmless := ""
		if s.Harmless {
			harmless = "yes"
		}
		env := s.Env()
		if env != "" {
			env = "`" + env + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s | %s |\n", s.Title(), s.Takes(), s.Default, s.Scope, env, harmless, s.Does)
	}
	return b.String()
}

func docCommand(b *strings.Builder, under string, c *command) {
	name := under + c.name
	fmt.Fprintf(b, "\n### chatctx %s\n\n%s.\n", usageLine(name, c), upper(c.does))
	if c.more != "" {
		fmt.Fprintf(b, "\n%s\n", c.more)
	}
	if c.table != nil {
		fmt.Fprintf(b, "\n```text\n%s```\n", c.table())
	}
	if list := docFlags(c); list != "" {
		fmt.Fprintf(b, "\n%s", list)
	}
	info := "sh"
	if why := notRun[name]; why != "" {
		info += " not run: " + why
	}
	fmt.Fprintf(b, "\n```%s\n%s\n```\n", info, c.example)
	if c.json != "" {
		fmt.Fprintf(b, "\nJSON: `%s`\n", c.json)
	}
	for _, s := range c.subs {
		docCommand(b, name+" ", s)
	}
}

func docFlags(c *command) string {
	var b strings.Builder
	for _, f := range append(slices.Clone(c.flags), scopeFlags(c.scope)...) {
		name, usage := flagText(f)
		fmt.Fprintf(&b, "- `%s`: %s\n", name, usage)
	}
	return b.String()
}

// scopeFlags are the shared ones that not every command has.
func scopeFlags(on scope) []*flag {
	all := sharedFlags(on)
	return all[:len(all)-len(sharedFlags(onStore))]
}

const docsHead = `<!-- Made from the program: go test ./internal/cli -run TestDocs -update -->
# The command line

    chatctx [--store FILE] COMMAND [flags] [arguments]

` + "`chatctx`" + ` alone says where you are, or what to type first. ` + "`chatctx help COMMAND`" + ` shows a command's flags, its JSON and an example.

**The store** is the file that ` + "`--store`" + ` names, else ` + "`CHATCTX_STORE`" + `, else ` + "`chatctx/chats.db`" + ` in ` + "`XDG_DATA_HOME`" + `
(` + "`~/.local/share`" + ` if that is not set; ` + "`%LOCALAPPDATA%`" + ` on Windows). If there is none, init, new, import, add, append, send, ask, chat, tools add --store, restore-from, repair --from and web make it,
readable by you alone; other commands that need one end with exit code 10. An empty file is no store. ` + "`FILE.lock`" + ` next to it has no data.

**The conversation.** A command that reads or changes one takes ` + "`--context`" + ` (else ` + "`CHATCTX_CONTEXT`" + `, else the current one: the
last one that new, use or an import of one conversation chose) and, if it works on a branch, ` + "`--branch`" + ` (else the active one).

**Flags** may come before or after arguments; ` + "`--`" + ` ends them, for text that begins with a dash. ` + "`-n5`, `-n 5`, `--n=5`" + ` are the same. An
unknown flag is refused.

**References.** ` + "`chatctx help refs`" + ` shows them:

` + "```text\n" + helpRefs + "```" + `

An ambiguous reference is refused with a list, and an unknown one with similar names. Ids are shown by their last eight digits. If a command needs a message on the
active branch and the message is on another one, it is refused with the command to type.

**Words.** ` + "`chatctx help concepts`" + ` explains them:

` + "```text\n" + helpConcepts + "```" + `

**Text** given as ` + "`-`" + ` is read from standard input, without its last newline (` + "`--raw`" + ` keeps it).

**Output.** Data goes to standard output, everything else to standard error. With ` + "`--json`" + ` every command prints JSON: one object, or
one a line. Colours, the pager (` + "`PAGER`, else `less`" + `) and questions are for terminals only; ` + "`NO_COLOR`, `CLICOLOR_FORCE` and `TERM=dumb`" + ` are
respected. Without a terminal a command never asks: it prints the command to run instead. A reader that goes away early is no error.

**Keys and addresses** of providers come from the environment, and are never stored: ` + "`OPENAI_API_KEY`, `OPENAI_BASE_URL`, `OPENAI_ORG_ID`; `ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`; `GEMINI_API_KEY` or `GOOGLE_API_KEY`, `GOOGLE_GEMINI_BASE_URL`; `OLLAMA_HOST`, `OLLAMA_API_KEY`" + `.
The settings ` + "`base_url` and `key_env`" + ` win over them ([settings.md](settings.md)), and ` + "`CHATCTX_MODEL`" + ` names the model if no setting does.

**Undo.** Every change says what it made, and the command that takes it back. Commands that remove something take ` + "`--dry-run`" + `; they ask
only if undo cannot help.

## Exit codes

| code | meaning |
| --- | --- |
`

const docsJSON = `
With ` + "`--json`" + ` an error is ` + "`{\"error\": {\"code\", \"kind\", \"message\", \"hint\"?, \"candidates\"?, \"more_candidates\"?, \"retry_after\"?}}`" + ` on standard error.

## JSON

Later versions may add fields. Times are RFC 3339 in UTC; unknown values are null; ids are whole; positions count from 1.

A message is ` + "`id, parent_id, role, content[part], tool_calls[{id, tool_name, arguments, effective_arguments, changed_by{kind, name, claimed, said_by_file}, approval_status, execution}], tool_result{request_id, result | parts, is_error, compact_summary}, metadata{model_id, provider_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, usage, finish_reason, error, completed_at}, turn, position, created_at, session, hidden, kind, unfinished, outcome (as of send; only where an answer is not as it should be), copied_from, tags, source{format, context, node, role}`" + `.
parent_id is the message before it on the branch shown; input_tokens is the whole input, cached or not.

A part is one of ` + "`{type: text, text}`; `{type: image | document, media_type, name, data | sha256, size | url}` (data is base64); `{type: thinking, thinking, signature, redacted, provider}`; `{type: tool_call, id}`" + `,
which marks the place of a call among the parts (calls without one come after the text); or a part of another type, unchanged.

To ` + "`append`" + ` a message, role and one of content, tool_calls and tool_result are enough; content may be just a text.
`

// TestHelpFits80Columns: every page of help, and every example in it, can be read on a terminal of 80 columns.
func TestHelpFits80Columns(t *testing.T) {
	fits := func(name, text string) {
		t.Helper()
		for line := range strings.Lines(text) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 {
				t.Errorf("help %s: a line of %d columns: %s", name, n, line)
			}
		}
	}
	var b strings.Builder
	printOverview(&b)
	fits("", b.String())
	for name, text := range topics {
		fits(name, text)
	}
	pages := 0
	var walk func(p *parsed, list []*command)
	walk = func(p *parsed, list []*command) {
		for _, c := range list {
			at := &parsed{path: append(slices.Clone(p.path), c)}
			b.Reset()
			if err := printHelp(&b, at); err != nil {
				t.Error(err)
			}
			fits(at.name(), b.String())
			pages++
			walk(at, c.subs)
		}
	}
	walk(&parsed{}, allCommands())
	if pages < 100 {
		t.Errorf("only %d pages", pages)
	}
}
