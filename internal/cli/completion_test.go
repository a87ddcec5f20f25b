package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/testkit"
)

// completionHarness makes each shell complete a command line and print what it offers, a line each: LINE is that line, and SCRIPT the file with what chatctx completion prints.
var completionHarness = map[string]string{
	"bash": `source "$SCRIPT"
COMP_LINE=$LINE COMP_POINT=${#LINE}
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'
IFS=$'\n' read -r -d '' -a COMP_WORDS <<<"$WORDS"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
[ "${COMP_WORDS[COMP_CWORD]}" = EMPTY ] && COMP_WORDS[COMP_CWORD]=
_chatctx
printf '%s\n' "${COMPREPLY[@]}"`,
	"fish": `source $SCRIPT
complete -C "$LINE" | string replace -r '\t.*' ''; true`,
	"zsh": `compdef() { :; }
_describe() { print -l -- "${(@)${(@P)3}%%:*}"; }
_files() { :; }
source $SCRIPT
words=("${(@f)WORDS}")
[[ $words[-1] == EMPTY ]] && words[-1]=
CURRENT=$#words
_chatctx`,
}

// TestCompletionInShells completes in each shell that is installed, with the script that the program prints for it.
func TestCompletionInShells(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "chats.db")
	run := func(args ...string) string {
		out, err := exec.Command("chatctx", append([]string{"--store", store}, args...)...).Output()
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		return string(out)
	}
	run("new", "Two words")
	run("add", "user", "A question?")
	run("add", "assistant", "An answer.")
	run("fork", "side", "--at", "@1")
	run("switch", "main")
	run("tools", "add", "read_file", "--", "cat")
	lines := []struct {
		words []string
		want  []string
		plain bool // the same in each shell
	}{
		{[]string{"chatctx", "swi"}, []string{"switch"}, true},
		{[]string{"chatctx", "switch", ""}, []string{"main", "side"}, true},
		{[]string{"chatctx", "show", "u"}, []string{"u1"}, true},
		{[]string{"chatctx", "show", "side@"}, []string{"side@", "side@u1"}, true},
		{[]string{"chatctx", "log", "u1..a"}, []string{"u1..a1"}, false}, // and ids that begin with an a
		{[]string{"chatctx", "tools", "show", "r"}, []string{"read_file"}, true},
		{[]string{"chatctx", "retry", "--provider", "ge"}, []string{"gemini"}, true},
		{[]string{"chatctx", "ask", "--models", "gpt-4,gpt-3.5"}, []string{"gpt-4,gpt-3.5-turbo"}, true},
		{[]string{"chatctx", "use", "Two"}, []string{"Two words"}, false},
		{[]string{"chatctx", "config", "provider=ge"}, []string{"provider=gemini"}, false},
		{[]string{"chatctx", "show", `"$(touch x)"`}, nil, false}, // nothing of it is run, whatever is offered
		{[]string{"chatctx", "show", "$(touch x)"}, nil, false},
		{[]string{"chatctx", "add", "user", "`touch x`", ""}, nil, false},
		{[]string{"chatctx", "send", `"$(touch x)"`, "--model", "g"}, nil, false},
	}
	for shell, harness := range completionHarness {
		if testkit.Race && shell != "bash" { // what shells make of the scripts does not depend on it
			continue
		}
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skip("no " + shell)
			}
			script := filepath.Join(dir, shell)
			if err := os.WriteFile(script, []byte(run("completion", shell)), 0o600); err != nil {
				t.Fatal(err)
			}
			here := t.TempDir()
			defer func() {
				if made, err := os.ReadDir(here); err != nil || len(made) > 0 {
					t.Errorf("what was typed was run: it made %v, %v", made, err)
				}
			}()
			for _, l := range lines {
				ctx, cancel := context.WithTimeout(t.Context(), safety)
				defer cancel()
				words := slices.Clone(l.words)
				if words[len(words)-1] == "" {
					words[len(words)-1] = "EMPTY"
				}
				cmd := exec.CommandContext(ctx, path, "-c", harness)
				cmd.Dir = here
				cmd.Env = append(os.Environ(), "CHATCTX_STORE="+store, "SCRIPT="+script, "LINE="+strings.Join(l.words, " "), "WORDS="+strings.Join(words, "\n"), "HOME="+dir)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("%q: %v\n%s", l.words, err, out)
				}
				if l.want == nil {
					continue
				}
				got := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(out), `\ `, " ")), "\n")
				if l.plain && !slices.Equal(got, l.want) || !slices.Contains(got, l.want[0]) && !strings.HasSuffix(l.want[0], got[0]) {
					t.Errorf("%q: %q, not %q", l.words, got, l.want)
				}
			}
		})
	}
}
