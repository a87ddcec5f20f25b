package approval

import (
	"path"
	"slices"
	"strings"
)

// untoldCommands take commands from elsewhere, set variables, or change what commands mean, in one shell or another.
var untoldCommands = []string{
	"eval", "source", ".", "trap", "alias", "unalias", "builtin", "coproc", "enable", "disable", "hash", "unhash", "rehash", "mapfile",
	"readarray", "complete", "compgen", "compopt",
	"bind", "bindkey", "fc", "history", "jobs", "let", "declare", "typeset", "local", "export", "readonly", "nameref", "integer",
	"float", "global", "getopts", "shopt", "setopt",
	"unsetopt", "set", "select", "suspend", "stop", "caller", "print", "function", "functions", "foreach", "repeat", "end", "noglob",
	"nocorrect", "emulate", "autoload", "zmodload",
	"zcompile", "zle", "zpty", "ztcp", "zsocket", "zparseopts", "zregexparse", "zformat", "zstyle", "sched", "vared", "limit", "ulimit",
	"r", "run-help", "which-command", "always",
	"private", "comparguments", "compadd", "compcall", "chdir", "fg", "bg", "disown", "[[", "]]", "((", "{", "}", "call", "login",
	"newgrp", "strftime", "zstat", "zf_rm", "sysopen",
	"sysread", "syswrite", "sysseek", "getln", "pushln", "zselect", "zcurses", "ztie", "zuntie", "echotc", "echoti", "zgdbmpath",
	"pcre_match", "zsystem",
}

// starters run the command that they are given as it is, and have options of their own that nobody reads here.
var starters = []string{
	// other users, other roots, other privileges
	"doas", "pkexec", "runuser", "gosu", "su-exec", "capsh", "sg", "run0", "setpriv", "setuidgid", "chpst", "softlimit", "envdir",
	"envuidgid", "runcon", "please", "dzdo", "sudoedit",
	"chroot", "schroot", "dchroot", "fakechroot", "fakeroot", "fakeroot-ng", "pseudo", "proot", "unshare", "nsenter", "bwrap",
	"firejail", "nsjail", "minijail0", "systemd-nspawn",
	// limits, processors, priorities
	"choom", "chrt", "cpulimit", "ionice", "numactl", "prlimit", "schedtool", "taskset", "uclampset", "cgexec", "setarch", "linux32",
	"linux64", "i386", "x86_64", "uname26",
	// terminals, sessions, services
	"dbus-launch", "dbus-run-session", "ssh-agent", "systemd-run", "systemd-inhibit", "systemd-cat", "caffeinate", "setsid", "script",
	"unbuffer", "expect", "rlwrap", "screen", "tmux",
	"dtach", "abduco", "xvfb-run", "xinit", "startx", "tini", "dumb-init", "catatonit", "start-stop-daemon", "daemon", "daemonize",
	"execlineb", "runsv", "s6-setuidgid", "run-parts",
	"at", "batch", "flock", "setlock", "lckdo", "stdbuf", "winpty", "start", "wine", "wine64",
	// watching, tracing, measuring
	"strace", "ltrace", "perf", "valgrind", "gdb", "lldb", "gdbserver", "catchsegv", "hyperfine", "watch", "watchexec", "entr",
	"faketime", "eatmydata", "rr", "bpftrace", "dtruss",
	"heaptrack", "chronic", "ifne", "mispipe", "pee", "zrun", "parallel", "sem", "rush", "genv", "gtimeout", "gnice", "gnohup",
	"gxargs", "gtime",
	// networks
	"proxychains", "proxychains4", "torsocks", "torify", "tsocks", "usewithtor", "distcc",
}

// loaders begin the names of the program that loads other programs.
var loaders = []string{"ld.so", "ld-linux", "ld-musl", "ld-2.", "ld64.so"}

// startsOthers reports whether a command is a program of the system's that starts what it is given. A program of the project's own may have the name of one.
func startsOthers(command string) bool {
	name := programName(command)
	if slices.ContainsFunc(loaders, func(l string) bool { return strings.HasPrefix(name, l) }) {
		return true
	}
	if !slices.Contains(starters, name) && !slices.Contains(starters, strings.TrimPrefix(name, "g")) {
		return false
	}
	dir := path.Dir(command)
	return !strings.Contains(command, "/") || path.Base(dir) == "bin" || path.Base(dir) == "sbin"
}

// wrapper describes how a program is called that starts another: its flags without a value, its flags with a value in the next word, and the number of
// words before the command.
type wrapper struct {
	flags, valued []string
	before        int
	// open: the wrapper does something of its own, so it is judged too.
	open bool
	// sets: words NAME=VALUE before the command set variables.
	sets bool
}

var wrappers = map[string]*wrapper{
	"sudo":    {flags: []string{"-n", "-E", "-H", "-S", "-k", "-b", "-A", "-P"}, valued: []string{"-u", "-g", "-p"}, open: true, sets: true},
	"env":     {flags: []string{"-i", "-0"}, valued: []string{"-u"}, sets: true},
	"timeout": {flags: []string{"--preserve-status", "--foreground", "-v"}, valued: []string{"-k", "-s"}, before: 1},
	"nohup":   {},
	"nice":    {valued: []string{"-n"}},
	"time":    {flags: []string{"-p"}},
	"command": {flags: []string{"-p"}},
	"exec":    {},
	"xargs":   {flags: []string{"-0", "-r", "-t", "--null", "--no-run-if-empty"}, valued: []string{"-n", "-P", "-L", "-d", "-I"}, open: true},
}

// inner returns the words of the command that a wrapper is given to start, none if it starts none, or why that cannot be told.
func (k *wrapper) inner(words []word) (rest []word, why string) {
	name := programName(words[0].text)
	rest = words[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") && rest[0].literal {
		flag := rest[0].text
		rest = rest[1:]
		switch {
		case flag == "--":
		case slices.Contains(k.flags, flag), name == "xargs" && attached(flag):
			continue
		case slices.Contains(k.valued, flag) && len(rest) > 0 && rest[0].literal:
			rest = rest[1:]
			continue
		default:
			return nil, "what " + name + " does with " + flag
		}
		break
	}
	for range k.before {
		if len(rest) == 0 || !rest[0].literal {
			return nil, "what " + name + " starts"
		}
		rest = rest[1:]
	}
	for k.sets && len(rest) > 0 && rest[0].literal && strings.Contains(rest[0].text, "=") {
		rest = rest[1:]
	}
	if len(rest) > 0 && !rest[0].literal {
		return nil, "what " + name + " starts"
	}
	return rest, ""
}

// attached reports whether a flag of xargs has its value with it: -n1, -P4, -I{}.
func attached(flag string) bool {
	if flag == "-I{}" || flag == "-0r" || flag == "-r0" {
		return true
	}
	return len(flag) > 2 && strings.IndexByte("nPL", flag[1]) >= 0 && plainNumber(flag[2:])
}

// command records a command and those that it starts.
func (s *reader) command(cmd *simple) {
	s.commands = append(s.commands, cmd)
	first := cmd.words[0]
	name := programName(first.text)
	_, isShell := shells[name]
	switch {
	case !first.literal:
		s.cannot("what runs is put in when it runs: " + first.text)
	case strings.Contains(first.text, "=") && !first.quoted:
		s.cannot("it may set a variable: " + first.text)
	case first.text == "" || strings.IndexByte("-+%@!", first.text[0]) >= 0: // a flag of time, a job, a sign of another shell
		s.cannot("what a command that begins with " + first.text + " starts")
	case s.shellCommand(name, cmd):
	case slices.Contains(untoldCommands, name):
		s.cannot("what " + name + " does")
	case wrappers[name] != nil:
		s.wrapped(wrappers[name], cmd)
	case isShell:
		s.shell(cmd)
	case startsOthers(first.text):
		s.cannot("what " + name + " starts")
	case name == "find", name == "gfind":
		s.find(cmd)
	}
}

// wrapped records the command that a wrapper starts.
func (s *reader) wrapped(kind *wrapper, cmd *simple) {
	name := programName(cmd.words[0].text)
	if name == "command" && len(cmd.words) > 1 && (cmd.words[1].is("-v") || cmd.words[1].is("-V")) {
		return // it only prints what it would run
	}
	inner, why := kind.inner(cmd.words)
	if why != "" {
		s.cannot(why)
		return
	}
	for _, w := range cmd.words[1 : len(cmd.words)-len(inner)] {
		if variable, value, ok := strings.Cut(w.text, "="); kind.sets && ok && !strings.HasPrefix(w.text, "-") {
			s.before(variable, word{text: value, literal: w.literal, single: w.single})
		}
	}
	switch {
	case len(inner) == 0 && name == "xargs":
		inner = []word{{text: "echo", literal: true, single: true}}
	case len(inner) == 0:
		return // it starts nothing and is judged by its own words
	}
	cmd.through = !kind.open && cmd.words[0].text == name
	if name == "xargs" {
		inner = s.filled(cmd, inner)
	}
	switch {
	case inner == nil:
	case name == "command":
		s.command(&simple{words: inner})
	default:
		s.start(inner)
	}
}

// ofTheShell are wrappers that no program is.
var ofTheShell = []string{"exec", "command"}

// start records a command that another program starts: the commands of shells are none then.
func (s *reader) start(words []word) {
	if name := programName(words[0].text); slices.Contains(ofTheShell, name) {
		s.cannot("what " + name + " is when a program starts it")
	}
	s.command(&simple{words: words})
}

// filled returns the words that xargs starts a program with: what it reads comes last, or in the place of the mark that -I names. A program that starts
// others could take it for a command.
func (s *reader) filled(cmd *simple, inner []word) []word {
	mark := ""
	for i, w := range cmd.words[:len(cmd.words)-len(inner)] {
		switch {
		case w.is("-I"):
			mark = cmd.words[i+1].text
		case w.is("-I{}"):
			mark = "{}"
		}
	}
	name := programName(inner[0].text)
	_, isShell := shells[name]
	begins := isShell || wrappers[name] != nil || startsOthers(inner[0].text) || name == "find" || name == "gfind"
	if begins || mark != "" && strings.Contains(inner[0].text, mark) {
		s.cannot("what xargs starts")
		return nil
	}
	inner = slices.Clone(inner)
	for i, w := range inner {
		if mark != "" && strings.Contains(w.text, mark) {
			inner[i].literal = false
		}
	}
	if mark == "" {
		inner = append(inner, word{text: "…"})
	}
	return inner
}

// shell reads the literal script of a shell.
func (s *reader) shell(cmd *simple) {
	name := programName(cmd.words[0].text)
	in, rest, _ := shellScript(cmd.words)
	if in == 0 || len(rest) == 0 || !rest[0].literal {
		s.cannot("what " + name + " is given to run")
		return
	}
	cmd.through = cmd.words[0].text == name
	s.nested(rest[0].text, in)
}

// findActions begin the words with which find does more than print on the terminal, or starts programs.
var (
	findActions = []string{"-delete", "-fprint", "-fls", "-files0-from"}
	findStarts  = []string{"-exec", "-execdir", "-ok", "-okdir"}
)

// find records the commands that find starts.
func (s *reader) find(cmd *simple) {
	for i := 1; i < len(cmd.words); i++ {
		w := cmd.words[i]
		switch {
		case !w.literal && !w.noFlag():
			s.cannot("what find is given to do: " + w.text)
		case slices.ContainsFunc(findActions, func(action string) bool { return strings.HasPrefix(w.text, action) }):
			s.cannot("what find removes or writes")
		case slices.Contains(findStarts, w.text):
			i = s.findStart(cmd.words, i+1)
		case strings.HasPrefix(w.text, "-exec"), strings.HasPrefix(w.text, "-ok"):
			s.cannot("what find starts")
		}
	}
}

// findStart records a command that find starts, and returns the place of the word that ends it.
func (s *reader) findStart(words []word, from int) int {
	var inner []word
	for i := from; i < len(words); i++ {
		w := words[i]
		if w.is(";") || w.is("+") && len(inner) > 0 && inner[len(inner)-1].text == "{}" {
			s.found(inner)
			return i
		}
		if !w.literal && !w.single || w.is("+") {
			break
		}
		if strings.Contains(w.text, "{}") {
			w.literal = false
		}
		inner = append(inner, w)
	}
	s.cannot("what find starts")
	return len(words)
}

func (s *reader) found(inner []word) {
	if len(inner) == 0 || !inner[0].literal {
		s.cannot("what find starts")
		return
	}
	s.start(inner)
}
