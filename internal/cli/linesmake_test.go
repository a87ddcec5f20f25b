package cli

import (
	"cmp"
	goflag "flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var makeLines = goflag.Bool("make-lines", false, "add command lines to testdata/lines, without their answers")

// TestMakeLines adds lines to testdata/lines: from scripts that have no file there yet, for commands, flags and methods that are new.
// Record their answers then with -run TestRecordedLines -update. It takes none out: the files hold the lines, also those that nothing
// makes any more.
func TestMakeLines(t *testing.T) {
	if !*makeLines {
		t.Skip("only with -make-lines")
	}
	makeFlagLines(t)
	writeMade(t, "api", linesOfAPI(t, describedAPI(t)))
	for _, dir := range []string{"script", "talk"} {
		files, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if base := filepath.Base(file); unlikeHere[base] {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := dir + "-" + strings.TrimSuffix(filepath.Base(file), ".txtar")
			writeMade(t, name, linesOfScript(string(text)))
		}
	}
}

// unlikeHere are scripts about programs that run at the same time and about terminals.
var unlikeHere = map[string]bool{
	"running.txtar": true, "stopped.txtar": true, "terminal.txtar": true, "logterm.txtar": true, "keys.txtar": true, "stopchat.txtar": true,
}

// writeMade writes a file of lines. To a file that is there it adds lines that it lacks, if the order of its lines does not matter.
func writeMade(t *testing.T, name, script string) {
	file := filepath.Join(linesDir, name+".txt")
	old, err := os.ReadFile(file)
	if err == nil && !strings.HasPrefix(script, "every ") {
		return
	}
	if err == nil {
		a, has := txtar.Parse(old), map[string]bool{}
		for line := range strings.Lines(string(a.Comment)) {
			has[strings.TrimPrefix(line, "loose ")] = true
		}
		for line := range strings.Lines(script) {
			if isRun(line) && !has[strings.TrimPrefix(line, "loose ")] {
				a.Comment = append(a.Comment, line...)
			}
		}
		script = string(txtar.Format(a))
	}
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
}

var (
	scriptRuns    = lazily(`^(?:\[[!a-z]+\] )*(?:! |exits \d+ )?chatctx( .*)?$`)
	scriptDoes    = lazily(`^(?:env|stdin|cp|make|(?:! )?exec|mkdir|keep|symlink|setlast|rm|replace|cutfile|shorten|answers|picture) `)
	scriptForThis = lazily(`^\[(?:!windows|file|!server)\] `)
	severalAtOnce = lazily(`^ (?:ask|retry|compare|replay)\b.*(?:--models[ =]\S*,|--models?[ =].*--models?[ =]|-n[ =]?[2-9])`)
	notRecorded   = lazily(`&\w*&?$|exec sh -c .*cmp|chatctx (?:--\S+ \S+ )*(?:serve|web|mcp)(?: --(?:write|everywhere|listen|stdio|no-open|cert|key|host).*)?$`)
)

// linesOfScript keeps the command lines of a script and what they need.
func linesOfScript(text string) string {
	a := txtar.Parse([]byte(text))
	var b strings.Builder
	for line := range strings.Lines(string(a.Comment)) {
		line = strings.TrimSpace(line)
		line = scriptForThis().ReplaceAllString(line, "")
		if notRecorded().MatchString(line) {
			continue
		}
		if m := scriptRuns().FindStringSubmatch(line); m != nil && !strings.HasPrefix(line, "[") {
			word := "run"
			if severalAtOnce().MatchString(m[1]) {
				word = "loose run"
			}
			b.WriteString(word + m[1] + "\n")
		} else if file, is := strings.CutPrefix(line, "stdin "); is {
			b.WriteString("feed " + file + "\n")
		} else if scriptDoes().MatchString(line) {
			b.WriteString(line + "\n")
		}
	}
	a.Comment = []byte(b.String())
	return string(txtar.Format(a))
}

// argumentsTyped are arguments that the store of the examples takes, by their words in the table of commands.
var argumentsTyped = map[string]string{
	"TITLE": "Boats", "CTX": "Work", "REF": "@2", "LABEL": "work", "ROLE": "user", "TEXT|-": "Hello", "TEXT": "Lisbon",
	"FILE|-": "lines.jsonl", "A..B": "@1..@3",
	"CALL": "@:1", "EFFECT": "deny", "TOOL": "shell", "RULE": "{id6}", "ask|deny": "deny", "CALL|TOOL": "read_file",
	"ARGUMENTS": `{"path":"notes.txt"}`,
	"NAME":      "extra", "ARG": "cat", "GOAL|-": "Count the boats", "SESSION": "1", "KEY": "none", "BRANCH": "trains", "TAG": "good",
	"KEY=VALUE": "budget=5000", "OP": "3",
	"PATH": "conversations.json", "USER": "ann", "FROM": "chats.db", "TO": "other.db", "FILE": "file.db", "SHELL": "bash",
	"COMMAND": "log", "WORD": "log", "-": "-",
}

// valuesTyped are values of flags, by the word that stands for them.
var valuesTyped = map[string][2]string{
	"PROVIDER": {"openai", "anthropic"}, "MODEL": {"gpt-4o", "gpt-5"}, "MODELS": {"gpt-4o", "gpt-4o,gpt-5"}, "N": {"2", "3"},
	"REASON": {"because", "so"}, "LABEL": {"work", "x,y"},
	"NAME": {"ann", "bob"}, "WORDS": {"briefly", "shortly"}, "WHEN": {"2026-01-01", "1d"},
	"MODEL:KEY=VALUE": {"gpt-4o:temperature=1", "gpt-4o:top_p=1"}, "MODE": {"replace", "keep"},
	"TIME": {"50ms", "1s"}, "TEXT": {"some words", "others"}, "FILE": {"notes.txt", "style.txt"},
	"CONDITION": {"path=notes.txt", "path=*"}, "PATTERN": {"read*", "Lisbon"}, "STATE": {"pending", "done"},
	"ROLE": {"user", "assistant"}, "ADDRESS": {"256.0.0.1:1", "nowhere:x"}, "KEY": {"none", "sha256:00"}, "REF": {"@2", "@1"},
	"REVISION": {"1", "0"}, "CTX": {"Work", "Holiday plans"},
	"CALL": {"@:1", "@1:1"}, "WORD": {"briefly", "x"}, "TOKENS": {"100", "5"}, "BRANCH": {"trains", "main"},
	"TITLE": {"Boats", "Trains"}, "KEY=VALUE": {"a=b", "budget=5"}, "SCOPES": {"read", "write,run"},
	"DIR": {"out", "."}, "CMD": {"true", "false"}, "RULE": {"{id6}", "x"}, "TOKEN": {"t", "u"}, "WHAT": {"results", "old"},
	"PROCESS": {"1", "2"}, "RE": {"Lis.*", "["}, "AGE": {"1d", "7d"}, "SIZE": {"1MB", "10"},
	"K=env:NAME": {"K=env:HOME", "K=v"}, "FORMAT": {"native", "markdown"}, "JSON": {"{}", "["}, "K=V": {"A=b", "C=d"},
	"CALLID": {"toolu_1", "c1"},
}

// goesOn are the commands that do not end by themselves: of these only refusals and help are recorded.
var goesOn = map[string]bool{
	"serve": true, "web": true, "mcp": true, "calls watch": true, "calls wait": true, "chat": true, "ui": true, "calls review": true, "bisect": true,
}

// goesOnWith are flags with which a command does not end.
var goesOnWith = map[string]bool{"import --watch": true, "log --follow": true}

// typedLines are the command lines of one group of commands.
type typedLines struct{ b strings.Builder }

// line adds a line. Of models that answer at the same time only the exit code is recorded.
func (l *typedLines) line(words ...string) {
	word, line := "run", quotedLine(words)
	if severalAtOnce().MatchString(" " + line) {
		word = "loose run"
	}
	l.b.WriteString(word + " " + line + "\n")
}

// both adds a line as it is, and with --json behind the command's name, where also a -- cannot reach it.
func (l *typedLines) both(before []string, name string, words ...string) {
	for _, json := range []bool{false, true} {
		args := append(slices.Clone(before), strings.Fields(name)...)
		if json {
			args = append(args, "--json")
		}
		l.line(append(args, words...)...)
	}
}

// makeFlagLines writes for each command its help and each of its flags as people type them, and as they mistype them.
func makeFlagLines(t *testing.T) {
	groups := map[string]*typedLines{}
	eachCommand(func(name string, c *command) {
		first, _, _ := strings.Cut(name, " ")
		l := groups[first]
		if l == nil {
			l = &typedLines{}
			l.b.WriteString("every talk\n")
			groups[first] = l
		}
		l.b.WriteString("# " + name + "\n")
		l.help(name)
		if c.do == nil {
			return
		}
		l.arguments(name, c)
		for _, f := range c.flags {
			l.flag(name, c, f)
		}
		for _, f := range sharedFlags(c.scope) {
			l.shared(name, c, f)
		}
	})
	for name, l := range groups {
		writeMade(t, "command-"+strings.Trim(name, "_"), l.b.String())
	}
}

func (l *typedLines) help(name string) {
	l.both(nil, name, "--help")
	l.both(nil, name, "-h")
	l.both(nil, "help", strings.Fields(name)...)
	l.both([]string{"--help"}, name)
	l.both(nil, name, "-help")
	l.both(nil, name, "help")
	l.both(nil, name, "--no-such-flag")
	l.both(nil, name, "-Z")
}

// argumentsOf are those of commands that take others.
var argumentsOf = map[string]string{
	"sub show CTX": "{id7}", "sub run CTX": "{id7}", "sub return CTX": "{id7}", "sub abandon CTX": "{id7}", "serve token rm NAME": "phone",
}

// typedArguments are arguments that a command takes: those that it needs, and if all is set also the others.
func typedArguments(name string, c *command, all bool) (args []string) {
	for _, a := range c.arguments() {
		if all || !a.optional {
			args = append(args, cmp.Or(argumentsOf[name+" "+a.word], argumentsTyped[a.word]))
		}
	}
	return args
}

// arguments adds a command without flags, with all arguments, with too few and too many, with empty ones, and behind --.
func (l *typedLines) arguments(name string, c *command) {
	least, most := typedArguments(name, c, false), typedArguments(name, c, true)
	if !goesOn[name] {
		l.both(nil, name, least...)
		l.both(nil, name, append([]string{"--"}, least...)...)
		if len(most) > len(least) {
			l.both(nil, name, most...)
			l.both(nil, name, append([]string{"--"}, most...)...)
		}
	}
	for i := range most {
		args := slices.Clone(most)
		args[i] = ""
		l.both(nil, name, args...)
		l.both(nil, name, append([]string{"--"}, args...)...)
		args[i] = "nothing of this name"
		if !goesOn[name] {
			l.both(nil, name, args...)
		}
	}
	l.both(nil, name, append(most, "more", "and", "more")...)
	if len(least) > 0 {
		l.both(nil, name)
	}
}

// flag adds the ways to type and to mistype a flag.
func (l *typedLines) flag(name string, c *command, f *flag) {
	args, values, dashed := typedArguments(name, c, false), [2]string{"true", "false"}, "--"+f.name
	if takesValue(f) {
		values = valuesTyped[valueWord(f)]
		if values[0] == "" {
			values = [2]string{"1", "some"}
		}
	}
	with := func(words ...string) []string { return append(words, args...) }
	runs := !goesOn[name] && !goesOnWith[name+" "+dashed]
	l.both(nil, name, with(dashed+"=")...)
	l.both(nil, name, with(dashed+"x="+values[0])...)
	if runs || len(f.name) > 1 {
		l.both(nil, name, with(dashed[1:]+"="+values[0])...)
	}
	if f.kind == onOff || f.kind >= number {
		l.both(nil, name, with(dashed+"=maybe")...)
		l.both(nil, name, with(dashed+"=-1x")...)
	} else if runs {
		l.both(nil, name, with(dashed+"=?!")...)
	}
	if takesValue(f) {
		l.both(nil, name, append(slices.Clone(args), dashed)...)
		l.both(nil, name, with(dashed, "")...)
	}
	if !runs {
		return
	}
	l.both(nil, name, with(dashed+"="+values[0])...)
	l.both(nil, name, with(dashed+"="+values[0], dashed+"="+values[1])...)
	l.both([]string{dashed + "=" + values[0]}, name, args...)
	l.both(nil, name, append(slices.Clone(args), "--", dashed+"="+values[0])...)
	separate := []string{dashed}
	if takesValue(f) {
		separate = append(separate, values[0])
		l.both(nil, name, with(dashed, dashed)...)
	}
	l.both(nil, name, with(separate...)...)
	l.both(nil, name, append(slices.Clone(args), separate...)...)
	for _, short := range []string{f.name, f.short} {
		if len(short) == 1 && takesValue(f) {
			l.both(nil, name, with("-"+short+values[0])...)
			l.both(nil, name, with("-"+short+"="+values[1])...)
			l.both(nil, name, with("-"+short, values[1])...)
			l.both(nil, name, append(slices.Clone(args), "-"+short)...)
		} else if len(short) == 1 {
			l.both(nil, name, with("-"+short)...)
		}
	}
}

// shared adds the ways to type a flag that many commands have.
func (l *typedLines) shared(name string, c *command, f *flag) {
	args, dashed := typedArguments(name, c, false), "--"+f.name
	value := map[string]string{"store": "data/chatctx/chats.db", "context": "Work", "branch": "trains", "json": "true"}[f.name]
	l.both(nil, name, append(slices.Clone(args), dashed+"=")...)
	l.both([]string{dashed + "="}, name, args...)
	if f.name == "json" {
		l.line(append(append(strings.Fields(name), args...), "--json=maybe")...)
	}
	if goesOn[name] {
		return
	}
	l.line(slices.Concat([]string{dashed + "=" + value}, strings.Fields(name), args)...)
	l.line(slices.Concat(strings.Fields(name), args, []string{dashed + "=" + value})...)
	if f.name != "json" {
		l.line(slices.Concat(strings.Fields(name), args, []string{dashed, "nothing of this name"})...)
		l.line(slices.Concat(strings.Fields(name), args, []string{dashed})...)
		l.line(slices.Concat([]string{dashed, value, dashed, "x"}, strings.Fields(name), args)...)
	}
}
