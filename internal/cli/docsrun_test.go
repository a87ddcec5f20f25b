package cli

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// docPage is a Markdown file whose fenced blocks are run. A block is
//
//	sh              run in order with the other blocks of its page, in one shell
//	sh each         run line by line, each line on the store as the blocks before left it
//	sh not run: WHY shown only
//
// and of another language it is in otherLanguages. What a page needs and does not show stands in comments that begin with "<!-- sh".
type docPage struct {
	name   string
	blocks []docBlock
}

type docBlock struct {
	line     int
	info     string // after the fence, or "sh" for a comment
	text     string
	unfenced bool // from a comment
}

// otherLanguages are those of blocks that no shell runs, and what holds them to be true.
var otherLanguages = map[string]string{
	"go":         "built and run by the tests of the module's root",
	"python":     "run by the tests of approvals and of package serve",
	"javascript": "run by the tests of package serve",
	"text":       "what a program prints; no commands",
}

// pagesToRun are README.md and docs/*.md. docs/cli.md is made of the commands' own examples, each of which has a store to itself: TestExamplesRun.
func pagesToRun(t *testing.T) []*docPage {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(names) < 10 {
		t.Fatalf("docs: %d, %v", len(names), err)
	}
	var pages []*docPage
	for _, name := range append(names, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, &docPage{filepath.Base(name), blocksOf(t, name, string(text))})
	}
	return pages
}

func blocksOf(t *testing.T, name, text string) []docBlock {
	t.Helper()
	var all []docBlock
	var open *docBlock
	for i, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case open != nil && (isFence && !open.unfenced || line == "-->" && open.unfenced):
			all = append(all, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		case isFence:
			open = &docBlock{line: i + 1, info: strings.TrimSpace(fence)}
		case line == "<!-- sh":
			open = &docBlock{line: i + 1, info: "sh", unfenced: true}
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the block does not end", name, open.line)
	}
	return all
}

// TestEveryBlockIsRun: no block of the documentation is left out without a reason.
func TestEveryBlockIsRun(t *testing.T) {
	ran := 0
	for _, p := range pagesToRun(t) {
		for _, b := range p.blocks {
			where := fmt.Sprintf("%s:%d", p.name, b.line)
			why, shown := strings.CutPrefix(b.info, "sh not run: ")
			switch {
			case b.info == "sh", b.info == "sh each":
				ran++
			case shown && len(strings.Fields(why)) < 2:
				t.Errorf("%s: not run, but why?", where)
			case !shown && otherLanguages[b.info] == "":
				t.Errorf("%s: a block of %q: nothing runs it (sh; sh not run: WHY; text)", where, b.info)
			case b.info == "text" && regexp.MustCompile(`(?m)^(\$ |chatctx \S|go (run|install) )`).MatchString(b.text):
				t.Errorf("%s: commands in a block of text", where)
			}
		}
	}
	if ran < 100 {
		t.Errorf("only %d blocks are run", ran)
	}
}

// TestDocsAsPasted runs the commands of README and docs in order, as somebody pastes them into a shell beside a checkout, with a provider that answers.
func TestDocsAsPasted(t *testing.T) {
	for _, p := range pagesToRun(t) {
		if p.name == "cli.md" {
			continue
		}
		var script strings.Builder
		for _, b := range p.blocks {
			switch b.info {
			case "sh":
				fmt.Fprintf(&script, "at=%s:%d\n%s", p.name, b.line, b.text)
			case "sh each":
				fmt.Fprintf(&script, "at=%s:%d\n", p.name, b.line)
				for line := range strings.Lines(b.text) {
					fmt.Fprintf(&script, "keep\n%sback\n", line)
				}
			}
		}
		if script.Len() == 0 {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			pasted(t, script.String()+"at='the end'\nif [ -e \"$CHATCTX_STORE\" ]; then chatctx check --full; fi\n")
		})
	}
}

// pasteHead is what goes before a page: the program of the tests stands in for what go builds.
const pasteHead = `set -eo pipefail
trap 'code=$?; [ "$at" = done ] || { echo "$at: exit $code: $BASH_COMMAND" >&2; exit 99; }' EXIT
go() {
  case "$*" in
    "install ./cmd/chatctx" | "test ./...") ;;
    "run ./cmd/chatctx "*) shift 2; chatctx "$@" ;;
    *) echo "go $*?" >&2; return 1 ;;
  esac
}
git() { echo '+ Petrel'; }
append() { chatctx append - > appended; }
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
keep() { cp "$CHATCTX_STORE" kept.db; }
back() { cp kept.db "$CHATCTX_STORE"; }
`

// notRun are the commands of docs/cli.md whose examples are only shown.
var notRun = map[string]string{
	"chat":            "it needs a terminal; TestTalkScripts types into one",
	"ui":              "it needs a terminal; package ui's tests have one",
	"calls watch":     "it goes on until Ctrl-C; calls.txtar runs it",
	"calls review":    "it needs a terminal; review.txtar types into one",
	"gate hook":       "an agent starts it; gate.txtar runs it",
	"gate run":        "it starts an agent; gaterun.txtar runs it",
	"gate install":    "it changes an agent's settings; gateinstall.txtar runs it",
	"serve":           "it goes on until Ctrl-C; serve.txtar runs it",
	"mcp":             "it goes on until its input ends; mcp.txtar runs it",
	"web":             "it goes on until Ctrl-C; serve.txtar runs it",
	"init":            "it needs a PostgreSQL server of that name",
	"grant":           "it needs a PostgreSQL server of that name",
	"copy":            "it needs a PostgreSQL server of that name",
	"gate passphrase": "it asks at a terminal; talk/decider.txtar types into one",
}

// linesNotRun are lines of other examples that are only shown.
var linesNotRun = map[string]string{
	"chatctx import --watch claude-code codex":                            "it goes on until Ctrl-C; TestWatch runs it",
	"chatctx log -f -n 3 --json":                                          "it goes on until Ctrl-C; TestFollow runs it",
	"chatctx bisect u2..@":                                                "it needs a terminal",
	"chatctx tools add files --mcp -- npx some-mcp-server /srv":           "the server is made up; tools.txtar runs one",
	"chatctx tools add search --mcp https://mcp.example.com/mcp --global": "the server is made up; tools.txtar runs one",
}

// exampleStore makes the store on which each example of docs/cli.md is run. It is where the examples are: in a conversation "Holiday plans" with a branch trains.
const exampleStore = `
chatctx new Work
chatctx add user "What is to do?"
chatctx new "Holiday plans" --model gpt-4o
chatctx config budget=100000
chatctx tools add read_file -- cat -- {path}
chatctx tools add shell -- sh -c {command}
append <<'END'
{"role":"user","content":"Where should we go in May?"}
{"role":"assistant","content":"To Lisbon, by night train."}
{"role":"user","content":"How long does it take?"}
{"role":"assistant","content":"Ten hours."}
{"role":"user","content":"And what does it cost?"}
{"role":"assistant","content":"Some 90 euros."}
{"role":"user","content":"Is there a boat?"}
END
chatctx fork trains
append <<'END'
{"role":"assistant","content":"No."}
{"role":"user","content":"Then what by train?"}
{"role":"assistant","content":"By way of Madrid."}
END
chatctx switch main
append <<'END'
{"role":"assistant","content":"From Genoa."}
{"role":"user","content":"And how long does that take?"}
END
`

// aCallWaits has a call wait at the end of the branch.
const aCallWaits = `append <<'END'
{"role":"assistant","content":"I look.","tool_calls":[{"id":"toolu_1","tool_name":"read_file","arguments":{"path":"/srv/docs/notes.txt"}}]}
END
`

// aSub is a sub-context that has begun.
const aSub = `ID=$(chatctx sub start "Find out which tests are slow" --json | field context)
`

// aRule is a rule.
const aRule = `ID=$(chatctx rules add ask write_file --json | field rule)
`

// examplesNeed is what an example needs beside that store. ID takes the place of an id that is made up.
var examplesNeed = map[string]string{
	"template save":  `printf 'Review this.\n' > review.txt`,
	"template show":  `chatctx template save review "Review this."`,
	"template rm":    `chatctx template save review "Review this."`,
	"artifact show":  "printf hello > hello.bin; chatctx add user Look. --file hello.bin\n",
	"bisect":         "printf '#!/bin/sh\\ncat > turns; ! grep -q Genoa turns\\n' > judge; chmod +x judge\n",
	"branch restore": "chatctx branch rm trains\n",
	"branch mv":      "chatctx branch rm trains; chatctx edit @3 'How far is it?'; chatctx switch main\n",
	"calls approve":  aCallWaits,
	"calls cancel":   aCallWaits,
	"calls claim":    aCallWaits + "chatctx calls approve @:1\n",
	"calls deny":     aCallWaits,
	"calls expire":   aCallWaits,
	"calls resolve":  aCallWaits + "chatctx calls approve @:1; chatctx calls claim @:1 --pid $(sh -c 'echo $$')\n",
	"calls run":      aCallWaits + "chatctx calls approve @:1\n",
	"calls show":     aCallWaits,
	"calls wait":     aCallWaits + "chatctx calls approve @:1\nprintf '#!/bin/sh\n' > run-the-tool; chmod +x run-the-tool\n",
	"compact":        "for i in 1 2 3 4 5 6; do words=$(printf 'word %.0s' {1..900}); echo '{\"role\":\"user\",\"content\":\"And? '\"$words\"'\"}'; echo '{\"role\":\"assistant\",\"content\":\"So.\"}'; done | append\n",
	"compare":        "chatctx rewind @-1; chatctx rewind @-2 --branch trains\n",
	"completion":     "mkdir -p ~/.zsh/completions ~/.config/fish/completions; Out-String() { cat; }; Invoke-Expression() { cat > /dev/null; }\n",
	"edit":           "chatctx branch rm trains\n",
	"fork":           "chatctx branch rm trains\n",
	"import":         "cp testdata/chatgpt-export.json conversations.json; mkdir ~/Downloads; cp conversations.json ~/Downloads/chatgpt-export.zip; mkdir -p ~/.claude/projects/p; echo \"$claudeCode\" > ~/.claude/projects/p/s.jsonl\n",
	"label rm":       "chatctx label add work holiday\n",
	"prompt":         "echo 'Answer in verse.' > style.txt\n",
	"redo":           "chatctx undo\n",
	"repair":         "cp \"$CHATCTX_STORE\" broken.db\n",
	"restore":        "chatctx rm holiday\n",
	"restore-from":   "chatctx backup ~/chats-copy.db; rm \"$CHATCTX_STORE\"\n",
	"resume":         "chatctx compact --keep-tokens 10 --summary 'We go by train.'\n",
	"rules diff":     aRule,
	"rules rm":       aRule,
	"rules test":     aCallWaits,
	"serve token rm": "chatctx serve token add phone --scope read\n",
	"send":           "echo 'Petrel, Tern' > notes.txt\n",
	"shorten":        "chatctx append - <<'END'\n{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c9\",\"tool_name\":\"test\",\"arguments\":{},\"approval_status\":\"approved\"}]}\n{\"role\":\"tool\",\"tool_result\":{\"request_id\":\"c9\",\"result\":\"3 fail\"}}\nEND\n",
	"show":           "ID=$(chatctx show @-1 --json | field id)\n",
	"sub abandon":    aSub,
	"sub return":     aSub,
	"sub run":        aSub,
	"sub show":       aSub,
	"tag rm":         "chatctx tag good\n",
	"take":           "chatctx rewind @-2 --branch trains\n",
	"title":          "chatctx new; chatctx config model=gpt-5; append <<'END'\n{\"role\":\"user\",\"content\":\"Hello\"}\nEND\n",
	"tools add":      "echo '{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}}}' > read.json; chatctx tools rm read_file\n",
}

// alone are the commands whose lines each want the store as it was before the others.
var alone = map[string]bool{"branch rm": true, "compact": true, "calls run": true}

const claudeCode = `{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"Hello"}}`

// TestExamplesRun runs each example of docs/cli.md on a store to itself.
func TestExamplesRun(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base.db")
	pasted(t, exampleStore+"cp \"$CHATCTX_STORE\" "+base+"\n")
	shown := map[string]bool{}
	eachCommand(func(name string, c *command) {
		for line := range strings.Lines(c.example) {
			shown[strings.TrimSpace(line)] = true
		}
		shown[name] = true
		if c.hidden || notRun[name] != "" {
			return
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var example []string
			for _, line := range strings.Split(c.example, "\n") {
				if linesNotRun[line] == "" {
					example = append(example, regexp.MustCompile(`\b(1a2b3c4d|8f3a21bc)\b`).ReplaceAllString(line, `"$$ID"`))
				}
			}
			if alone[name] {
				example = strings.Split("keep\n"+strings.Join(example, "\nback; keep\n"), "\n")
			}
			pasted(t, "cp "+base+" \"$CHATCTX_STORE\"\nat='what it needs'\n"+examplesNeed[name]+
				"\nat="+quote(name)+"\n"+strings.Join(example, "\n")+"\nat='the end'\nchatctx check > /dev/null\n")
		})
	})
	for _, name := range slices.Concat(slices.Collect(maps.Keys(notRun)), slices.Collect(maps.Keys(linesNotRun)), slices.Collect(maps.Keys(examplesNeed))) {
		if !shown[name] {
			t.Errorf("no example is or belongs to %q", name)
		}
	}
}

// pasted runs a script in a folder and a home of its own, in which nothing may fail.
func pasted(t *testing.T, script string) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	if _, err := exec.LookPath("jq"); err != nil && strings.Contains(script, "jq ") && os.Getenv("CI") == "" {
		t.Skip("no jq")
	}
	dir := t.TempDir()
	for _, sub := range []string{"home", "checkout"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	data, err := filepath.Abs("../../testdata")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(data, filepath.Join(dir, "checkout", "testdata")); err != nil {
		t.Skip(err)
	}
	server := httptest.NewServer(&fakeProvider{always: "say Petrel."})
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), safety)
	defer cancel()
	cmd := exec.CommandContext(ctx, bash, "-c", pasteHead+script+"at=done\n")
	cmd.WaitDelay = time.Second
	cmd.Dir = filepath.Join(dir, "checkout")
	cmd.Env = append(providerEnv(server.URL), "PATH="+os.Getenv("PATH"), "HOME="+filepath.Join(dir, "home"), "XDG_DATA_HOME="+filepath.Join(dir, "home"),
		"CHATCTX_STORE="+filepath.Join(dir, "home", "chats.db"), "TZ=UTC", "TERM=xterm", "COLUMNS=80", "GORACE=atexit_sleep_ms=0", "claudeCode="+claudeCode)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
}
