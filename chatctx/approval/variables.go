package approval

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// harmless are variables that only say how a program talks or for what it builds: set before a command, they make no program start another one.
var harmless = []string{
	"CI", "DEBUG", "VERBOSE", "NODE_ENV", "RAILS_ENV", "RACK_ENV", "APP_ENV", "FLASK_ENV", "DJANGO_DEBUG", "MIX_ENV",
	"ASPNETCORE_ENVIRONMENT", "DOTNET_CLI_TELEMETRY_OPTOUT", "DOTNET_NOLOGO",
	"GOOS", "GOARCH", "GOARM", "GOAMD64", "CGO_ENABLED", "GO111MODULE", "GOMAXPROCS", "RUST_LOG", "RUST_BACKTRACE", "CARGO_TERM_COLOR",
	"CARGO_INCREMENTAL", "LOG_LEVEL",
	"PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONUTF8", "PIP_NO_INPUT", "PIP_DISABLE_PIP_VERSION_CHECK", "HUSKY",
	"HF_HUB_OFFLINE", "TOKENIZERS_PARALLELISM",
	"LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM", "PORT",
	"NEXT_TELEMETRY_DISABLED",
	"HOMEBREW_NO_AUTO_UPDATE", "GIT_TERMINAL_PROMPT", "DOCKER_BUILDKIT", "COMPOSE_DOCKER_CLI_BUILD", "BUILDKIT_PROGRESS",
	"CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS",
	"LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME",
}

// counted are variables that some shells compute the value of.
var counted = []string{"COLUMNS", "LINES"}

// ofShells are variables that mean something to one shell or another, ofZsh to zsh alone, and so does what begins like one of ofShellsBegin.
var (
	ofShells = []string{
		"PATH", "IFS", "HOME", "ENV", "CDPATH", "MAIL", "MAILPATH", "MAILCHECK", "OPTARG", "OPTIND", "OPTERR", "PPID", "PWD", "OLDPWD",
		"RANDOM", "SRANDOM", "SECONDS", "LINENO", "UID", "EUID",
		"GID", "EGID", "USERNAME", "LOGNAME", "USER", "GROUPS", "SHELL", "SHLVL", "SHELLOPTS", "FUNCNAME", "FUNCNEST", "GLOBIGNORE",
		"GLOBSORT", "EXECIGNORE", "FIGNORE", "FPATH", "FCEDIT",
		"EDITOR", "VISUAL", "HOSTFILE", "HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "VENDOR", "INPUTRC", "IGNOREEOF", "LISTMAX",
		"TIMEFORMAT", "TIMEFMT", "TMOUT", "TMPDIR", "TMPPREFIX",
		"NULLCMD", "READNULLCMD", "REPLY", "REPORTTIME", "MODULE_PATH", "MANPATH", "PROMPT", "RPROMPT", "PROMPT_COMMAND",
		"PROMPT_DIRTRIM", "SPROMPT", "STTY", "TEXTDOMAIN", "TEXTDOMAINDIR",
		"WORDCHARS", "WATCH", "WATCHFMT", "DIRSTACK", "DIRSTACKSIZE", "KEYTIMEOUT", "KEYBOARD_HACK", "LOGCHECK", "CPUTYPE", "ERRNO",
		"ARGV0", "BAUD", "MAPFILE", "PIPESTATUS", "COPROC", "PGRP",
		"EXECSHELL", "CHILD_MAX", "POSIXLY_CORRECT", "PSVAR", "SAVEHIST", "TTY", "TTYIDLE", "USER_ID", "EPOCHSECONDS", "EPOCHREALTIME",
		"MATCH", "MBEGIN", "MEND",
		"histchars", "auto_resume",
	}
	ofZsh = []string{
		"path", "fpath", "cdpath", "fignore", "mailpath", "manpath", "module_path", "psvar", "prompt", "argv", "status", "pipestatus",
		"match", "mbegin", "mend", "watch", "signals",
		"options", "commands", "functions", "aliases", "parameters", "builtins", "reswords", "history", "dirstack", "jobstates",
		"jobtexts", "jobdirs", "nameddirs", "userdirs", "modules",
		"galiases", "saliases", "zle_bracketed_paste", "usergroups", "errnos", "sysparams", "patchars", "keymaps", "widgets",
		"funcstack", "functrace", "prompt_opts", "stat",
	}
	ofShellsBegin = []string{"BASH", "COMP", "EMACS", "HIST", "KSH", "PROMPT", "PS", "READLINE", "RPS", "SPROMPT", "TRY_", "ZSH", "ZLE", "ZDOTDIR", "dis_", "_"}
)

// before records a variable that is set in the environment of a command.
func (s *reader) before(name string, value word) {
	s.variables = append(s.variables, name)
	switch {
	case !isName(name):
		s.cannot("it sets a variable: " + name)
	case slices.Contains(counted, name) && !value.isNumber():
		s.cannot("it sets a variable: " + name)
	case !slices.Contains(harmless, name):
		s.names = append(s.names, name)
	}
}

// alone records a variable of the shell itself.
func (s *reader) alone(name string) {
	s.variables = append(s.variables, name)
	switch {
	case !isName(name) || slices.Contains(ofShells, name) || slices.Contains(counted, name):
		s.cannot("it sets a variable of the shell: " + name)
	case s.shells&zsh != 0 && slices.Contains(ofZsh, name):
		s.cannot("it sets a variable of the shell: " + name)
	case slices.ContainsFunc(ofShellsBegin, func(begin string) bool { return strings.HasPrefix(name, begin) }):
		s.cannot("it sets a variable of the shell: " + name)
	case slices.Contains(harmless, name):
	case s.env != nil && slices.Contains(s.env, name), s.env == nil && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") != "":
		s.names = append(s.names, name) // it changes the environment of what comes after it, or may
	}
}

// assign records an assignment. Those before a command are in its environment.
func (s *reader) assign(a *syntax.Assign, beforeCommand bool) {
	if a.Name == nil || a.Append || a.Naked || a.Index != nil || a.Array != nil {
		s.cannot("it sets a variable in a way of its own")
		return
	}
	value := literalWord(a.Value)
	if beforeCommand {
		s.before(a.Name.Value, value)
		return
	}
	if a.Value != nil && !toldValue(a.Value.Parts) {
		s.cannot("it sets a variable to what is put in when it runs: " + a.Name.Value)
	}
	s.alone(a.Name.Value)
}

// toldValue reports whether a value is literal, or what commands print.
func toldValue(parts []syntax.WordPart) bool {
	for _, part := range parts {
		switch p := part.(type) {
		case *syntax.CmdSubst:
		case *syntax.DblQuoted:
			if !toldValue(p.Parts) {
				return false
			}
		default:
			if !literalPart(part, true).literal {
				return false
			}
		}
	}
	return true
}

// declared records export NAME=VALUE; nothing else of its kind can be told.
func (s *reader) declared(d *syntax.DeclClause) {
	for _, a := range d.Args {
		value := literalWord(a.Value)
		split := a.Value != nil && !value.single && s.shells&(dash|busybox) != 0
		if d.Variant.Value != "export" || a.Name == nil || a.Index != nil || a.Array != nil || a.Append || split {
			s.cannot("what " + d.Variant.Value + " does")
			return
		}
		if a.Naked && slices.Contains(counted, a.Name.Value) {
			continue
		}
		s.before(a.Name.Value, value)
	}
}
