package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	urfave "github.com/urfave/cli/v2"

	"github.com/chatctx/chatctx/internal/operation"
)

// readBy gives words to urfave/cli as they stand, without order.
func readBy(table []*command, words ...string) (*parsed, string, error) {
	var printed bytes.Buffer
	p := &parsed{}
	app := newApp(table, p, func(context.Context, *parsed) error { return nil })
	app.Writer, app.ErrWriter = &printed, &printed
	err := app.Run(append([]string{"chatctx"}, words...))
	return p, printed.String(), err
}

// TestAppIsTheTable walks the commands of urfave/cli: each of help is there with exactly its flags, and the shared flags stand on the program alone.
func TestAppIsTheTable(t *testing.T) {
	table := allCommands()
	app := newApp(table, &parsed{}, nil)
	namesOf := func(flags []urfave.Flag) (names []string) {
		for _, f := range flags {
			names = append(names, f.Names()[0])
		}
		return names
	}
	own := func(flags []*flag) (names []string) {
		for _, f := range flags {
			names = append(names, f.name)
		}
		return names
	}
	if got := namesOf(app.Flags); !slices.Equal(got, []string{"context", "branch", "store", "json", "no-config", "quiet"}) {
		t.Errorf("the program has the flags %q", got)
	}
	leaves := 0
	var walk func(under string, table []*command, made []*urfave.Command)
	walk = func(under string, table []*command, made []*urfave.Command) {
		if len(table) != len(made) {
			t.Fatalf("%q has %d commands, and urfave/cli has %d", under, len(table), len(made))
		}
		for i, c := range table {
			m := made[i]
			if m.Name != c.name || !slices.Equal(namesOf(m.Flags), own(c.flags)) || m.SkipFlagParsing || !m.HideHelp || m.OnUsageError == nil || m.Action == nil {
				t.Errorf("%s%s is not the command %s with the flags %q", under, c.name, m.Name, namesOf(m.Flags))
			}
			if len(c.subs) == 0 {
				leaves++
			}
			walk(under+c.name+" ", c.subs, m.Subcommands)
		}
	}
	walk("", table, app.Commands)
	if leaves < 100 {
		t.Errorf("walked over only %d commands", leaves)
	}
}

// TestTrapsOfTheLibrary: what urfave/cli does of itself, and a command line must not.
func TestTrapsOfTheLibrary(t *testing.T) {
	table := allCommands()
	for _, c := range []struct {
		line string // words separated by |
		name string
		args string
	}{
		{"send|help", "send", "help"},                     // a subcommand of its own
		{"send|h", "send", "h"},                           // its other name
		{"tag|--|rm", "tag", "rm"},                        // an argument with the name of a subcommand
		{"tag|--|--|rm", "tag", "--|rm"},                  // and behind another --
		{"add|user|--generate-bash-completion|-", "", ""}, // its completion
		{"add|user|- text", "add", "user|- text"},
		{"add|--|-x|--json", "add", "-x|--json"},
	} {
		p, err := split(table, strings.Split(c.line, "|"))
		if c.name == "" {
			if err == nil {
				t.Errorf("%s is taken", c.line)
			}
			continue
		}
		if err != nil || p.name() != c.name || strings.Join(p.args, "|") != c.args {
			t.Errorf("%s: %s %q, %v", c.line, p.name(), p.args, err)
		}
	}
	for _, c := range []string{"log", "lsx"} { // -json is not --json
		if _, err := split(table, []string{c, "-json"}); err == nil {
			t.Errorf("%s -json is taken", c)
		}
	}
	labels, err := split(table, []string{"ls", "--label", "a,b", "--label=c"})
	if in, is := labels.in.(*operation.Listing); err != nil || !is || !slices.Equal(in.Labels, []string{"a,b", "c"}) {
		t.Errorf("--label a,b: %+v, %v", labels.in, err)
	}
	both, err := split(table, []string{"--store", "F", "config", "--store", "a=b"})
	if err != nil || both.common.Store != "F" || !both.in.(*operation.Configuring).Default {
		t.Errorf("--store F config --store a=b: the store %q, %v", both.common.Store, err)
	}
}

// TestTrapStoreOfConfig: config's own --store, which has no value, leaves the store alone that is named before the command.
func TestTrapStoreOfConfig(t *testing.T) {
	for line, want := range map[string]struct {
		store string
		own   bool
		args  string
	}{
		"config|--store":                  {"", true, ""},
		"config|--store|a=b":              {"", true, "a=b"},
		"config|--store=true|a=b":         {"", true, "a=b"},
		"config|--store=false|a=b":        {"", false, "a=b"},
		"--store|F|config|a=b":            {"F", false, "a=b"},
		"--store|F|config|--store":        {"F", true, ""},
		"--store=F|config|--store|a=b":    {"F", true, "a=b"},
		"--store=F|config|a=b|--store":    {"F", true, "a=b"},
		"--store=F|op|log|--store":        {"F", true, ""},
		"--store|F|rules|ls|--store":      {"F", true, ""},
		"--json|--store|F|config|--store": {"F", true, ""},
	} {
		p, err := split(allCommands(), strings.Split(line, "|"))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		flag := reflect.ValueOf(p.in).Elem().FieldByName("Default")
		if !flag.IsValid() {
			flag = reflect.ValueOf(p.in).Elem().FieldByName("Store")
		}
		own := flag.Bool()
		if p.common.Store != want.store || own != want.own || strings.Join(p.args, "|") != want.args {
			t.Errorf("%s: the store %q, its own flag %v, the arguments %q", line, p.common.Store, own, p.args)
		}
	}
	if _, err := split(allCommands(), []string{"config", "--store=FILE", "a=b"}); err == nil {
		t.Error("config --store=FILE is taken, and FILE is no store there")
	}
}

// TestTrapsOfOutput: a line that makes no sense ends with the code of usage, and all that is said of it goes to standard error, what may have been meant too.
func TestTrapsOfOutput(t *testing.T) {
	for line, want := range map[string]string{
		"nothing":              `no command "nothing"`,
		"lgo":                  "did you mean chatctx log?",
		"checkout main":        "here it is chatctx switch",
		"Revert":               "here it is chatctx undo",
		"reflog":               "here it is chatctx op log",
		"branch delete x":      "here it is chatctx branch rm",
		"label new x":          "here it is chatctx label add",
		"help grep":            "here it is chatctx search",
		"branch mvv":           "did you mean chatctx branch mv?",
		"log --jsom":           "did you mean --json?",
		"log -json":            "did you mean --json?",
		"log --nothing":        "no flag --nothing",
		"log -n":               "--n needs a value",
		"log -n x":             "-n takes a whole number",
		"ls --since yesterday": `no time "yesterday"`,
		"gc --max-size much":   `no size "much"`,
		"gc --older-than much": `no age "much"`,
		"fork":                 "fork needs NAME",
	} {
		var out, errOut bytes.Buffer
		code := Main(strings.Fields(line), strings.NewReader(""), &out, &errOut)
		if code != exitUsage || out.Len() > 0 || !strings.Contains(errOut.String(), want) {
			t.Errorf("%s ends with %d, prints %q, and says %q, not %q", line, code, &out, &errOut, want)
		}
	}
}

// TestSynonyms: each word of another program names a command that is there, and is none itself.
func TestSynonyms(t *testing.T) {
	table := allCommands()
	for word, other := range synonyms() {
		if findCommand(table, word) != nil {
			t.Errorf("%s is a command itself", word)
		}
		p, err := split(table, strings.Fields(other))
		if c := p.command(); c == nil || strings.HasPrefix(c.name, "-") || err != nil && strings.Contains(err.Error(), "no command") {
			t.Errorf("%s stands for %s, which is no command: %v", word, other, err)
		}
	}
	for word := range groupSynonyms {
		for _, c := range table {
			if (&parsed{path: []*command{c}}).synonym(word) != "" && findCommand(c.subs, word) != nil {
				t.Errorf("%s %s is a command itself", c.name, word)
			}
		}
	}
}

// TestAppPrintsNothing: a line that urfave/cli cannot read is an error of ours, and nothing goes to standard output.
func TestAppPrintsNothing(t *testing.T) {
	for _, line := range []string{"--nothing", "log --nothing", "log -nn -- --", "nothing -- --", "branch ls --json -- --", "log --n", "log --store x -- --", "calls ls -json -- --"} {
		words := strings.Fields(line)
		_, printed, err := readBy(allCommands(), words...)
		var usage *usageError
		if printed != "" || !errors.As(err, &usage) {
			t.Errorf("%s: printed %q, %v", line, printed, err)
		}
	}
	for _, line := range []string{"--help", "-h", "log --help", "branch ls -h"} {
		if p, printed, err := readBy(allCommands(), strings.Fields(line)...); printed != "" || err != nil || p.in != nil {
			t.Errorf("%s: printed %q, %v", line, printed, err)
		}
	}
}

// TestToolsExitCodeIsNotOurs: urfave/cli ends the process with the code of an error that has one, as that of a program does which a command started.
func TestToolsExitCodeIsNotOurs(t *testing.T) {
	failed := exec.Command("sh", "-c", "exit 7").Run()
	var coded urfave.ExitCoder
	if !errors.As(failed, &coded) {
		t.Fatalf("%v has no exit code", failed)
	}
	p := &parsed{}
	err := newApp(allCommands(), p, func(context.Context, *parsed) error { return failed }).Run([]string{"chatctx", "version", "--", "--"})
	if !errors.Is(err, failed) {
		t.Errorf("the error is %v", err)
	}
}

// TestLinesAtOnce reads many lines at once, as a chat does: they share nothing.
func TestLinesAtOnce(t *testing.T) {
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			name := fmt.Sprint("branch-", i)
			p, err := split(allCommands(), []string{"fork", name, "--at", "@" + fmt.Sprint(i), "--store", name})
			if err != nil || p.in.(*operation.Forking).Name != name || string(p.in.(*operation.Forking).At) != "@"+fmt.Sprint(i) || p.common.Store != name {
				t.Errorf("line %d gives %+v, %v", i, p, err)
			}
		})
	}
	group.Wait()
}

// TestLikeness: what resembles a word most is what urfave/cli would suggest too.
func TestLikeness(t *testing.T) {
	var commands []*urfave.Command
	eachCommand(func(name string, c *command) { commands = append(commands, &urfave.Command{Name: c.name}) })
	tried := 0
	for _, c := range commands {
		for _, typo := range []string{c.Name[1:], c.Name + "s", "x" + c.Name, strings.ToUpper(c.Name[:1]) + c.Name[1:], c.Name[:len(c.Name)-1]} {
			best, score := "", 0.0
			for _, other := range commands {
				if s := likeness(other.Name, typo); s > score {
					best, score = other.Name, s
				}
			}
			for _, own := range []string{"help", "h"} { // which the library always has
				if likeness(own, typo) >= score {
					best = ""
				}
			}
			if best == "" {
				continue
			}
			tried++
			if want := urfave.SuggestCommand(commands, typo); want != fmt.Sprintf(urfave.SuggestDidYouMeanTemplate, best) {
				t.Errorf("%q is like %q, and the library says: %s", typo, best, want)
			}
		}
	}
	if tried < 300 {
		t.Errorf("compared only %d words", tried)
	}
}
