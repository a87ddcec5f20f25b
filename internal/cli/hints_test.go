package cli

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// prompt is a person's shell in front of a store of two conversations, Q and Z. Each command is the program itself.
type prompt struct {
	t *testing.T
	q string // the id of Q
}

func newPrompt(t *testing.T) *prompt {
	s := &prompt{t: t}
	dir := t.TempDir()
	t.Setenv("CHATCTX_STORE", filepath.Join(dir, "s.db"))
	t.Setenv("CHATCTX_CONTEXT", "")
	t.Setenv("XDG_STATE_HOME", dir)
	for _, title := range []string{"Q", "Z"} {
		s.must("", "new", title)
		s.must("", "add", "user", "What of "+title+"?")
		s.must("", "append", "-")
		s.must("", "fork", "side")
		s.must("", "add", "user", "Beside.")
		s.must("", "fork", "other", "--at", "@1")
		s.must("", "add", "assistant", "Another answer.")
		s.must("", "switch", "main")
	}
	ids, _ := s.must("", "ls", "--json")
	s.q = regexp.MustCompile(`"context":"([^"]*)","title":"Q"`).FindStringSubmatch(ids)[1]
	return s
}

// types runs a command line and returns what it prints on standard output and on standard error.
func (s *prompt) types(stdin string, args ...string) (out, notes string, code int) {
	var stdout, stderr bytes.Buffer
	if len(args) > 0 && args[0] == "append" && stdin == "" {
		stdin = `{"role":"assistant","content":"Much.","tool_calls":[]}` + "\n" + `{"role":"user","content":"More?"}` + "\n"
	}
	code = Main(args, strings.NewReader(stdin), &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

func (s *prompt) must(stdin string, args ...string) (out, notes string) {
	s.t.Helper()
	out, notes, code := s.types(stdin, args...)
	if code != 0 {
		s.t.Fatalf("chatctx %q ends with %d: %s%s", args, code, out, notes)
	}
	return out, notes
}

// state is all that undo brings back: conversations, branches, their messages, tools and rules; not when something changed last, nor how many messages wait for gc.
func (s *prompt) state() string {
	var out string
	for _, all := range [][]string{{"export", "--all"}, {"tools", "ls", "--context=" + s.q}, {"rules", "ls", "--context=" + s.q}, {"ls", "--json"}} {
		part, _ := s.must("", all...)
		out += part
	}
	var lines []string
	for line := range strings.Lines(out) {
		lines = append(lines, regexp.MustCompile(`,?("branches":[0-9]+,"messages":[0-9]+|"updated_at":"[^"]*")`).ReplaceAllString(line, ""))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// differing are the lines that only one of two states has.
func differing(a, b string) []string {
	in, now := strings.Split(a, "\n"), strings.Split(b, "\n")
	only := slices.DeleteFunc(slices.Clone(in), func(l string) bool { return slices.Contains(now, l) })
	return append(only, slices.DeleteFunc(now, func(l string) bool { return slices.Contains(in, l) })...)
}

// printedLine finds the command lines that a note has for the person to type.
var printedLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`chatctx [a-z][^\n]*?(?:  |;|$|\n)`) })

func printed(notes string) (lines []string) {
	for _, line := range printedLine().FindAllString(notes, -1) {
		lines = append(lines, strings.Trim(line, " ;\n"))
	}
	return lines
}

// TestHintsAreAboutWhatWasDone types what each command prints to be typed: what undoes it brings back just what it changed, from whichever conversation it was typed in.
func TestHintsAreAboutWhatWasDone(t *testing.T) {
	commands := [][]string{
		{"add", "user", "One more."}, {"append", "-"}, {"edit", "@1", "Which?"}, {"rewind", "@1"}, {"drop", "@2"}, {"clear"}, {"fork", "deep", "--at", "@1"}, {"switch", "side"},
		{"branch", "mv", "side", "far"}, {"branch", "rm", "side"}, {"tag", "good", "@1"}, {"system", "Be short."}, {"prompt", "Kindly."}, {"config", "model=m"}, {"pick", "side", "@4"},
		{"merge", "side", "--append"}, {"pin", "@1"}, {"exclude", "@2"}, {"compact", "--summary", "All of it.", "--keep-messages", "1"}, {"rename", "Q", "R"}, {"label", "add", "work", "Q"},
		{"new", "P"}, {"new", "--from", "Q"}, {"use", "Q"}, {"rm", "Q"}, {"take", "other"}, {"sub", "start", "A task"}, {"tools", "add", "look", "--", "cat"}, {"rules", "add", "allow", "look"},
	}
	for _, command := range commands {
		for _, from := range []string{"flag", "environment", "current"} {
			t.Run(strings.Join(command, "_")+"/"+from, func(t *testing.T) {
				s := newPrompt(t) // Z is current
				args := slices.Clone(command)
				takes := scopeOf(strings.Join(command, " ")) >= onContext
				switch {
				case from == "flag" && takes:
					args = append(args[:1:1], append([]string{"--context=Q"}, args[1:]...)...)
				case from == "environment":
					t.Setenv("CHATCTX_CONTEXT", "Q")
				case from == "current":
					s.must("", "use", "Q")
				}
				before := s.state()
				_, notes := s.must("", args...)
				if before == s.state() && command[0] != "use" && command[0] != "switch" {
					t.Fatalf("%q changed nothing", args)
				}
				undone := false
				for _, line := range printed(notes) {
					words, _ := cutWords(strings.TrimPrefix(line, "chatctx "))
					if words[0] != "undo" && !strings.HasPrefix(line, "chatctx use ") {
						continue
					}
					undone = true
					s.must("", words...)
				}
				if !undone && !(command[0] == "use" && from == "current") {
					t.Fatalf("%q prints no way back: %s", args, notes)
				}
				if after := s.state(); after != before {
					t.Errorf("%q and then %q is not as before: %s", args, printed(notes), differing(before, after))
				}
			})
		}
	}
}

// TestHintsOfAChat: what a chat prints is about the conversation in which it was done, wherever the chat has gone meanwhile and whatever it began with.
func TestHintsOfAChat(t *testing.T) {
	s := newPrompt(t)
	before := s.state()
	_, notes, _ := s.types("/use Z\n/rename Z ZZ\n/tag good @1\n/new P\n/add user \"Only here.\"\n/config model=m\n", "chat", "--context", "Q", "--model", "m", "--provider", "ollama")
	lines := printed(notes)
	slices.Reverse(lines)
	undone := 0
	for _, line := range lines {
		words, _ := cutWords(strings.TrimPrefix(line, "chatctx "))
		if words[0] == "undo" {
			undone++
			s.must("", words...)
		}
	}
	if after := s.state(); undone != 5 || after != before {
		t.Errorf("%d of the lines %q were typed, and the store is not as before: %s", undone, lines, differing(before, after))
	}
	s.must("", "config", "--default", "base_url=http://127.0.0.1:1", "retries=0")
	_, notes, code := s.types("/use Z\nHow?\n", "chat", "--context", "Q", "--model", "m", "--provider", "ollama")
	again := slices.IndexFunc(printed(notes), func(l string) bool { return strings.HasPrefix(l, "chatctx send --continue") })
	if code == 0 || again < 0 || strings.Contains(printed(notes)[again], "--context Q") {
		t.Errorf("a question in Z that got no answer is asked again with %q", printed(notes))
	}
}

// TestNewInAChatTakesTheModelAlong: a conversation that a chat begins asks the model of the branch where it was begun, at the same address, unless the line names another.
func TestNewInAChatTakesTheModelAlong(t *testing.T) {
	s := newPrompt(t)
	s.must("", "config", "--default", "model=everywhere")
	s.must("", "config", "--context", "Q", "model=mine", "provider=ollama", "base_url=http://127.0.0.1:1", "temperature=0.5")
	s.types("/new P\n/new O --model other\n", "chat", "--context", "Q")
	for title, want := range map[string]string{"P": `{"base_url":"http://127.0.0.1:1","model":"mine","provider":"ollama"}`, "O": `{"model":"other"}`} {
		out, _ := s.must("", "config", "--all", "--context", title, "--json")
		if !strings.Contains(out, `"settings":`+want) {
			t.Errorf("%s begins with %s instead of %s", title, out, want)
		}
	}
}
