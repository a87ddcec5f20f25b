package cli

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		line   string // words separated by |
		name   string
		shared string
		own    string
		args   string
	}{
		{"log", "log", "", "", ""},
		{"log|-n5", "log", "", "--n=5", ""},
		{"log|-n|5", "log", "", "--n=5", ""},
		{"log|-n=5", "log", "", "--n=5", ""},
		{"log|--n=5|--json", "log", "--json=true", "--n=5", ""},
		{"log|-n|-5", "log", "", "--n=-5", ""},
		{"--store|x|log", "log", "--store=x", "", ""},
		{"--store|-x|log", "log", "--store=-x", "", ""},
		{"add|user|hello|--store=x", "add", "--store=x", "", "user|hello"},
		{"add|--key|k|user|hello", "add", "", "--key=k", "user|hello"},
		{"add|user|--key|k|hello", "add", "", "--key=k", "user|hello"},
		{"add|user|-", "add", "", "", "user|-"},
		{"add|user|--|--json", "add", "", "", "user|--json"},
		{"add|user|- one", "add", "", "", "user|- one"},
		{"add|user|-\nx", "add", "", "", "user|-\nx"},
		{"add|--image|a|--image=b|user|x", "add", "", "--image=a|--image=b", "user|x"},
		{"calls|resolve|c|--result=", "calls resolve", "", "--result=", "c"},
		{"add|user|x|--key=a=b", "add", "", "--key=a=b", "user|x"},
		{"--branch|b|add|user|x", "add", "--branch=b", "", "user|x"},
		{"branch|ls", "branch ls", "", "", ""},
		{"branch|--json|ls", "branch ls", "--json=true", "", ""},
		{"branch|mv|ls|rm", "branch mv", "", "", "ls|rm"},
		{"tag|x", "tag", "", "", "x"},
		{"tag|rm|x", "tag rm", "", "", "x"},
		{"tag|--|rm", "tag", "", "", "rm"},
		{"tag|x|rm", "tag", "", "", "x|rm"},
		{"tag|--|--|rm", "tag", "", "", "--|rm"},
		{"--|log|-n5", "log", "", "--n=5", ""},
		{"log|-f", "log", "", "--follow=true", ""},
		{"log|-fn5|--raw", "log", "", "--follow=true|--n=5|--verbatim=true", ""},
		{"log|-f=false", "log", "", "--follow=false", ""},
		{"config|--store|a=b", "config", "", "--default=true", "a=b"},
		{"--store|f|config|--store|a=b", "config", "--store=f", "--default=true", "a=b"},
		{"op|log|--store", "op log", "", "--global=true", ""},
		{"backup|--yes=false|f", "backup", "", "--yes=false", "f"},
	} {
		p, err := split(allCommands(), strings.Split(c.line, "|"))
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		got := []string{p.name(), strings.Join(p.shared, "|"), strings.Join(p.own, "|"), strings.Join(p.args, "|")}
		if want := []string{c.name, c.shared, c.own, c.args}; !reflect.DeepEqual(got, want) {
			t.Errorf("%q gives %q, not %q", c.line, got, want)
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"nothing":                "no command",
		"nothing|--zz":           "no command",
		"--help|nothing":         "no command",
		"branch|zz|--help":       "no branch command",
		"log|--nothing":          "no flag --nothing",
		"log|-z":                 "no flag -z",
		"log|-nn":                "-n takes a whole number",
		"log|-json":              "no flag -json",
		"log|x|y":                "too many arguments",
		"add|user|x|--key=":      "--key is empty",
		"add|user|x|--key|":      "--key is empty",
		"log|-n":                 "needs a value",
		"fork":                   "fork needs NAME",
		"add|user|x|y":           "too many arguments",
		"pick|b":                 "pick needs REF",
		"label":                  "", // lists the labels
		"branch":                 "",
		"label|zz":               "no label command",
		"sub|--goal|x":           "no flag --goal",
		"branch|zz":              "no branch command",
		"ls|--context|x":         "no flag --context",
		"--context|x|ls":         "takes no --context",
		"--at|x|fork|y":          "no flag --at",
		"add|user|-5 degrees":    "no flag -5",
		"add|user|---":           "no flag ---",
		"--branch|b|op|log":      "takes no --branch",
		"show|--save":            "needs a value: --save DIR",
		"tree|--branch|x":        "no flag --branch",
		"version|--context|else": "no flag --context",
	} {
		_, err := split(allCommands(), strings.Split(line, "|"))
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", line, err)
			}
			continue
		}
		var usage *usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, not %q", line, err, want)
		}
	}
}

// TestOrderTakesHelp finds --help wherever a flag may stand, and nowhere else.
func TestOrderTakesHelp(t *testing.T) {
	for line, want := range map[string]bool{"--help": true, "-h": true, "log|--help": true, "--help|log": true, "log|-h": true, "log|-fh": true, "log|x|y|z|--help": true,
		"log|--|--help": false, "add|user|--key|--help|x": false, "log|-n|-h": false} {
		p, err := order(allCommands(), strings.Split(line, "|"))
		if err != nil || p.help != want {
			t.Errorf("%s: help %v, %v", line, p.help, err)
		}
	}
}

// FuzzSplit: no command line panics, and what is taken apart holds every word that came in.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"log\x00-n5", "add\x00user\x00--\x00-x", "--store\x00x\x00config\x00--store", "branch\x00rm\x00x\x00--yes", "-\x00--\x00", "tag\x00rm", "\xff\x00-\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		words := strings.Split(line, "\x00")
		p, err := split(allCommands(), words)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		if p.help {
			return
		}
		for _, a := range p.args {
			if !slices.Contains(words, a) {
				t.Errorf("the argument %q came from nowhere", a)
			}
		}
		if c := p.command(); c != nil && c.checkArgs(p.name(), p.args) != nil {
			t.Errorf("%q has arguments that it does not take: %q", p.name(), p.args)
		}
	})
}

// TestClassify: each kind of error has its exit code.
func TestClassify(t *testing.T) {
	for _, row := range exitCodes {
		if row.means == "" {
			t.Errorf("exit code %d says nothing", row.code)
		}
	}
	seen := map[int]bool{}
	for _, row := range exitCodes {
		if seen[row.code] {
			t.Errorf("exit code %d stands twice", row.code)
		}
		seen[row.code] = true
	}
}
