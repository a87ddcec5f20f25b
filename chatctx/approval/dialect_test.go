package approval

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/record"
)

// ruledCommand is what rules say of a shell text, which a tool gives to a program.
func ruledCommand(t *testing.T, template []string, text string, rules ...*record.Rule) *record.Ruling {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"command": text})
	if err != nil {
		t.Fatal(err)
	}
	return Rules{}.Judge(rules, &record.Question{Tool: "shell", Arguments: raw, Command: template})
}

// onCommand makes a rule from conditions on the argument command.
func onCommand(t *testing.T, effect string, conditions ...string) *record.Rule {
	t.Helper()
	r := &record.Rule{Effect: effect, Tool: "shell"}
	for _, c := range conditions {
		r.When = append(r.When, cond(t, "command "+c))
	}
	if err := (Rules{}).Rule(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestToolsNameTheirShell: the template of a tool says which shell reads its text.
func TestToolsNameTheirShell(t *testing.T) {
	for template, want := range map[string]dialect{
		"": anyShell, "bash -c {command}": bash, "/bin/bash -c {command}": bash, "bash.exe -c {command}": bash, "bash -e -c {command}": bash, "bash -ec {command}": bash, "bash -euo pipefail -c {command}": bash,
		"bash -c -e {command}": 0, "bash -o pipefail -c {command} {x}": bash, "bash --norc --noprofile -c {command}": bash, "bash -lc {command}": bash, "bash -c {command?}": bash, "rbash -c {command}": bash,
		"sh -c {command}": sh, "/bin/sh -e -c {command}": sh, "env sh -c {command}": sh, "/usr/bin/env bash -c {command}": bash, "env A=b sh -c {command}": sh, "timeout 5 sh -c {command}": sh,
		"nice -n 5 zsh -c {command}": zsh, "zsh -c {command}": zsh, "dash -c {command}": dash, "ash -c {command}": dash | busybox, "busybox sh -c {command}": busybox, "busybox ash -c {command}": busybox, "mksh -c {command}": mksh,
		"sudo -u x bash -c {command}": bash,
		// nothing can be told
		"pwsh -c {command}": 0, "powershell -Command {command}": 0, "cmd /c {command}": 0, "cmd.exe /C {command}": 0, "fish -c {command}": 0, "ksh -c {command}": 0, "nu -c {command}": 0, "busybox {command}": 0, "bash {command}": 0,
		"bash -i -c {command}": 0, "bash -O extglob -c {command}": 0, "bash -s": 0, "bash --rcfile x -c {command}": 0, "sh -c ls~{command}": 0, "sh -c echo~'{command}'": 0, "docker exec c pwsh -c {command}": 0, "zsh -o extendedglob -c {command}": 0,
		"python3 -c run('{command}')": 0, "bash -c x {command}{command}": 0,
		// another program, which may give it to any shell
		"run {command}": anyShell, "ssh host {command}": anyShell, "run --command={command}": anyShell, "docker exec c sh -c {command}": anyShell, "sh -c eval~$1 _ {command}": anyShell, "env -S x {command}": anyShell,
	} {
		var words []string
		for _, w := range strings.Fields(template) {
			words = append(words, strings.ReplaceAll(w, "~", " "))
		}
		if got := settingOf(words, "command", nil); got.shells != want {
			t.Errorf("%s: %05b, want %05b", template, got.shells, want)
		}
	}
	for template, known := range map[string]bool{"bash -c {command}": true, "sh -ec {command}": true, "bash -lc {command}": false, "zsh -c {command}": false, "env bash -c {command}": false, "": false} {
		if got := settingOf(strings.Fields(template), "command", []string{"FOO"}); (got.env != nil) != known || known && !slices.Contains(got.env, "FOO") {
			t.Errorf("%s: its variables are %q", template, got.env)
		}
	}
	if got := settingOf([]string{"bash", "-c", "{command}"}, "command", []string{"BASH_ENV"}); got.env != nil {
		t.Error("a file that BASH_ENV names may set any variable")
	}
}

// TestEachShellReadsItsOwn: a text is allowed, and no deny is undecided about it, in the shells that are named, and in no other.
func TestEachShellReadsItsOwn(t *testing.T) {
	shellNames := map[byte][]string{
		'b': {"bash", "-c", "{command}"}, 's': {"sh", "-c", "{command}"}, 'd': {"dash", "-c", "{command}"}, 'x': {"busybox", "sh", "-c", "{command}"}, 'z': {"zsh", "-c", "{command}"}, 'm': {"mksh", "-c", "{command}"}, 'u': nil,
	}
	allow := onCommand(t, record.Allow, "each *")
	deny := onCommand(t, record.Deny, "each touch")
	all := &record.Rule{Effect: record.Allow, Tool: "*"}
	for _, c := range []struct{ told, text string }{
		{"bsdxzmu", "ls; cat x"}, {"bsdxzmu", "ls *.go | head -5 && cat 'a b' \"$x\" || true"}, {"bsdxzmu", "for f in a b; do cat \"$f\"; done"}, {"bsdxzmu", "if [ -n \"$x\" ]; then ls; else cat y; fi"},
		{"bsdxzmu", "while test -f x; do sleep 1; done"}, {"bsdxzmu", "set -e; ls"}, {"bsdxzmu", "ls \"$(cat x)\" $(pwd)"}, {"bsdxzmu", "ls 2>&1 >/dev/null"}, {"bsdxzmu", "f() { ls; }; f"}, {"bsdxzmu", "ls & cat"},
		{"bsdxzmu", "CI=1 LC_ALL=C TZ=UTC ls"}, {"bsdxzmu", "echo $((1 + 2 * 3))"}, {"bsdxzmu", "cat <<'E'\ntouch PWNED\nE\n"}, {"bsdxzmu", "cat <<E\n$x $(ls)\nE\n"}, {"bsdxzmu", "ls \\\n  -l"}, {"bsdxzmu", "x=1; ls \"$x\""},
		{"bsdxzmu", "x=$(ls); cat \"$x\""}, {"bsdxzmu", "while read -r line; do echo \"$line\"; done"}, {"bsdxzmu", "sh -c 'ls; cat'"}, {"bsdxzmu", "find . -name '*.go' -exec cat {} +"}, {"bsdxzmu", "ls | xargs cat"}, {"bsdxzmu", "cat \"$(cat <<'E'\na b\nE\n)\""},
		{"b", "ls &>/dev/null"}, {"b", "ls &>>/dev/null"}, {"b", "ls |& cat"}, {"b", "cat <(ls)"}, {"b", "function f { ls; }"}, {"b", "((1)); ls"}, {"b", "[[ $x == a* ]] && ls"}, {"b", "ls {a,b}"},
		{"bsdxm", "ls =cat"}, {"bsdxm", "ls \"$x[1]\""}, {"bsdxm", "ls a}"}, {"bsdxm", "ls $x:h"}, {"bsdx", "ls $~x"}, {"bsdx", "ls \"$~x\""}, {"bsdxzmu", "grep \"x$\" y"}, {"bsdxm", "> /dev/null; ls"}, {"bsdx", "[ \"$x\" -eq 1 ]; ls"}, {"bsdxzmu", "[ $# -eq 0 ]; ls"}, {"bsdx", "printf %d \"$x\""},
		{"bzm", "cat <<<x"}, {"bsdxzmu", "time ls"}, {"bsdxm", "time -p ls"}, {"bzm", "[[ -n $x ]]; ls"},
		// none
		{"", "cat <<E\nE\\\n\ntouch PWNED\nE\n"}, {"", "cat <<E\n\\\nE\ntouch PWNED\nE\n"}, {"", "cat <<E\n \\\nE\nls\nE\n"}, {"", "(cat <<'E'\nE)\nls\nE\n)"}, {"", "cat <<E\n$(\nE\n)\nE\n"}, {"", "ls $(cat <<E)\nx\nE\n"}, {"", "cat <<E <<F\nE\nF\n"}, {"", "cat <<E 'a\nE\nb'\nE\n"}, {"", "ls \"$(cat <<'E'\n'\nE\n)\""},
		{"", "ls 12>/dev/null"}, {"", "ls 2>&1-"}, {"", "ls >&x"}, {"", "noglob ls"}, {"", "repeat 2 ls"}, {"", "1=x ls"}, {"", "-x ls"}, {"", "ls &!\\cat"}, {"bsdxzmu", "! ls"}, {"", "ls *(x)"}, {"", "ls $'x'"}, {"", "ls `echo \\`ls\\``"}, {"", "ls ${x:-'a'}"}, {"", "ls ${x@P}"}, {"", "ls ${!x}"},
		{"", "ls ${x[a]}"}, {"", "ls ${x:a}"}, {"", "ls ${x:=a}"}, {"", "echo $((x))"}, {"", "echo $(($x))"}, {"", "x='a[$(touch y)]'; echo $((x))"}, {"", "((x)); ls"}, {"", "let x=1"}, {"", "declare -i x=y"}, {"", "[[ $x -eq 1 ]]; ls"}, {"", "test -v \"$x\""},
		{"", "[ $x ]; ls"}, {"", "[ \"$x\" y ]; ls"}, {"", "printf -v x y"}, {"", "printf %n PATH; ls"}, {"", "printf '%5n' PATH; ls"}, {"", "printf '%s%ln' a PATH"}, {"bsdx", "printf '%05.2f %-3d%%' 1 2"}, {"bsdxzmu", "printf '%-5s|%s\\n' a \"$x\""}, {"", "printf \"$x\" y"}, {"", "read \"$x\""}, {"", "unset \"$x\""}, {"", "export \"$x\""}, {"", "PS4=x; ls"}, {"", "IFS=x; ls"}, {"", "IFS= read -r x; ls"}, {"", "$x ls"},
		{"", "HOME=x git status"}, {"", "PATH=x ls"}, {"", "LD_PRELOAD=x ls"}, {"", "export PATH=x; ls"}, {"", "x+=1; ls"}, {"", "x=$y; ls"}, {"", "x=(a b); ls"}, {"", "COLUMNS='a[$(touch x)]' ls"}, {"", "SECONDS='a[x]'; ls"}, {"", "HOME=x; git status"}, {"", "exit $x"},
		{"", "return $x"}, {"", "shift $x"}, {"", "wait $x"}, {"", "ls | xargs env"}, {"", "ls | xargs -I{} {} x"}, {"", "find . -exec {} \\;"}, {"", "find $x"}, {"", "env exec ls"}, {"", "eval ls"}, {"", ". x"}, {"", "csh -c ls"}, {"", "pwsh -c ls"}, {"", "sh -c \"$x\""},
		{"", "trap ls EXIT"}, {"", "alias x=ls"}, {"", "exec -a x ls"}, {"", "coproc ls"}, {"", "select x in a; do ls; done"}, {"", "for ((;;)); do ls; done"}, {"", "cat >/dev/tcp/x/1"}, {"", "ls # \\\ncat"}, {"", "l\\\ns"}, {"", "time -- ls"},
	} {
		for name, template := range shellNames {
			want := map[bool]string{true: record.Allow, false: record.Ask}[strings.IndexByte(c.told, name) >= 0]
			if got := ruledCommand(t, template, c.text, allow); got.Effect != want {
				t.Errorf("allow each * in %q of %q: %s (%s), want %s", template, c.text, got.Effect, got.Notes[0].Why, want)
			}
			if strings.Contains(c.text, "touch") && want == record.Allow {
				continue
			}
			if got := ruledCommand(t, template, c.text, deny, all); got.Effect == record.Allow != (want == record.Allow) {
				t.Errorf("deny each touch in %q of %q: %s (%s)", template, c.text, got.Effect, got.Why)
			}
		}
	}
	for _, template := range [][]string{{"pwsh", "-c", "{command}"}, {"cmd", "/c", "{command}"}} {
		if got := ruledCommand(t, template, "ls", allow); got.Effect != record.Ask {
			t.Errorf("in %s ls is %s", template[0], got.Effect)
		}
	}
}

// TestStartersAreATable: what a program is given to start is judged, or cannot be told.
func TestStartersAreATable(t *testing.T) {
	allow := onCommand(t, record.Allow, "each *")
	deny := onCommand(t, record.Deny, "each rm")
	all := &record.Rule{Effect: record.Allow, Tool: "*"}
	for _, program := range strings.Fields(`csh tcsh yash nu elvish pwsh powershell cmd toybox coreutils linux32 linux64 choom uclampset gosu su-exec capsh sg ld.so perf valgrind gdb eatmydata proot chronic
		ifne systemd-inhibit dbus-launch ssh-agent tini dumb-init torify /lib64/ld-linux-x86-64.so.2 /lib/ld-musl-x86_64.so.1 strace.exe PERF /usr/bin/perf fish su doas setsid stdbuf watch flock gtimeout`) {
		for _, flags := range []string{" ", " -c ", " -- "} {
			text := program + flags + "rm x"
			if got := ruledCommand(t, nil, text, allow); got.Effect != record.Ask {
				t.Errorf("%s is %s", text, got.Effect)
			}
			if got := ruledCommand(t, nil, text, deny, all); got.Effect == record.Allow {
				t.Errorf("deny each rm, and %s is allowed", text)
			}
		}
	}
	for _, text := range []string{"rm.exe x", "RM.EXE x", "/c/bin/rm.exe x", `"C:\bin\rm.exe" x`, "env rm x", "env.exe rm x", "timeout 5 rm.exe x", "xargs -0 rm", "ls | xargs -n1 rm", "find . -exec rm {} +", "find . -execdir rm.exe {} \\;", "nice -n 5 sh -c 'rm x'", "exec rm x", "command rm x", "CI=1 rm x"} {
		if got := ruledCommand(t, nil, text, deny, all); got.Effect != record.Deny {
			t.Errorf("deny each rm, and %s is %s (%s)", text, got.Effect, got.Why)
		}
	}
	for text, want := range map[string]string{"ls | xargs cat": record.Ask, "find . -exec cat {} +": record.Ask, "xargs": record.Ask, "./tini x": record.Allow} {
		if got := ruledCommand(t, nil, text, onCommand(t, record.Allow, "each ls cat ./tini")); got.Effect != want {
			t.Errorf("%s is %s (%s): xargs and find are programs themselves", text, got.Effect, got.Notes[0].Why)
		}
	}
}

// TestWrites: an allow of programs covers no file that a redirection opens, unless a condition writes does; a deny of programs is not undecided by one.
func TestWrites(t *testing.T) {
	bash := []string{"bash", "-c", "{command}"}
	programs := "each ls cat cd"
	for _, c := range []struct {
		conditions []string
		text, want string
	}{
		{[]string{programs}, "ls > out", record.Ask}, {[]string{programs}, "ls >> out", record.Ask}, {[]string{programs}, "ls < in", record.Ask}, {[]string{programs}, "ls > /dev/null 2>&1", record.Allow}, {[]string{programs}, "ls >/dev/stderr", record.Allow},
		{[]string{programs, "writes *"}, "ls > out; cat < in >> \"$x\"", record.Allow}, {[]string{programs, "writes *"}, "rm x > out", record.Ask}, {[]string{programs, "writes *"}, "ls", record.Allow},
		{[]string{programs, "writes *.log /tmp/**"}, "ls > a.log", record.Allow}, {[]string{programs, "writes *.log /tmp/**"}, "ls > /tmp/x/y", record.Allow}, {[]string{programs, "writes *.log /tmp/**"}, "ls > a.txt", record.Ask},
		{[]string{programs, "writes /tmp/**"}, "ls > /tmp/../etc/x", record.Ask}, {[]string{programs, "writes /tmp/**"}, "ls > /tmp/$x", record.Ask}, {[]string{programs, "writes *.log"}, "cd /etc; ls > a.log", record.Ask}, {[]string{programs, "writes *.log"}, "ls > ~/a.log", record.Ask},
		{[]string{programs, "writes a b", "writes b c"}, "ls > b", record.Allow}, {[]string{programs, "writes a b", "writes b c"}, "ls > a", record.Ask}, {[]string{programs, "writes *"}, "ls > /dev/tcp/h/1", record.Ask}, {[]string{programs, "writes *"}, "ls >| x &> y", record.Allow},
		{[]string{"each git", "sets GIT_* HOME"}, "HOME=x GIT_DIR=y git status", record.Allow}, {[]string{"each git", "sets GIT_*"}, "HOME=x git status", record.Ask}, {[]string{"each git"}, "GIT_DIR=x git status", record.Ask}, {[]string{"each git", "sets PATH"}, "export PATH=\"$PATH:x\"; git status", record.Allow},
	} {
		if got := ruledCommand(t, bash, c.text, onCommand(t, record.Allow, c.conditions...)); got.Effect != c.want {
			t.Errorf("%q of %q: %s (%s), want %s", c.conditions, c.text, got.Effect, got.Notes[0].Why, c.want)
		}
	}
	all := &record.Rule{Effect: record.Allow, Tool: "*"}
	for _, c := range []struct{ condition, text, want string }{
		{"each rm", "ls > out", record.Allow}, {"each rm", "rm x > out", record.Deny}, {"each rm", "FOO=x ls", record.Ask}, {"each rm", "CI=1 ls", record.Allow}, {"writes /etc/**", "ls > /etc/x", record.Deny}, {"writes /etc/**", "ls > /srv/../etc/x", record.Deny},
		{"writes /etc/**", "ls < /etc/x", record.Allow}, {"writes /etc/**", "ls > $x", record.Ask}, {"writes /etc/**", "cd /etc; ls > x", record.Ask}, {"writes /etc/**", "ls > x", record.Allow}, {"writes *", "ls > x", record.Deny}, {"writes *", "ls >/dev/null", record.Allow},
		{"writes *", "eval x", record.Ask}, {"sets PATH", "PATH=x ls", record.Deny}, {"sets path", "PATH=x ls", record.Deny}, {"sets PATH", "CI=x ls", record.Allow}, {"sets X", "eval x", record.Ask}, {"sets f", "for f in a; do ls; done", record.Deny},
	} {
		if got := ruledCommand(t, bash, c.text, onCommand(t, record.Deny, c.condition), all); got.Effect != c.want {
			t.Errorf("deny %q of %q: %s (%s), want %s", c.condition, c.text, got.Effect, got.Why, c.want)
		}
	}
	for _, alone := range []string{"command writes *", "command sets *"} {
		r := &record.Rule{Effect: record.Allow, Tool: "shell", When: []record.Condition{cond(t, alone)}}
		if err := (Rules{}).Rule(r); err == nil {
			t.Errorf("an allow with %q alone would allow every program", alone)
		}
		r.When = append(r.When, cond(t, "other each ls"))
		if err := (Rules{}).Rule(r); err == nil {
			t.Errorf("each of another argument says nothing of %q", alone)
		}
	}
	except := &record.Rule{Effect: record.Deny, Tool: "shell", Unless: []record.Condition{cond(t, "command each ls")}}
	if got := ruledCommand(t, bash, "ls > x", except, all); got.Effect != record.Deny {
		t.Errorf("an exception for ls covers what it writes: %s", got.Effect)
	}
}
