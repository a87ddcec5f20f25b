package approval

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// dialect is a set of shells. A text is read for all of them at once: what they read differently cannot be told.
type dialect uint8

const (
	bash dialect = 1 << iota
	dash
	busybox
	mksh
	zsh

	sh       = bash | dash | busybox // what sh may be
	anyShell = sh | mksh | zsh       // nobody knows which shell it is
)

// shells are the programs that run shell text. The text of one without a dialect cannot be told.
var shells = map[string]dialect{
	"bash": bash, "rbash": bash, "sh": sh, "dash": dash, "ash": dash | busybox, "busybox": busybox, "mksh": mksh, "lksh": mksh,
	"zsh": zsh,
	"ksh": 0, "ksh93": 0, "rksh": 0, "oksh": 0, "loksh": 0, "pdksh": 0, "yash": 0, "posh": 0, "fish": 0, "csh": 0, "tcsh": 0, "rc": 0,
	"es": 0, "nu": 0, "elvish": 0, "xonsh": 0,
	"osh": 0, "ysh": 0, "oil": 0, "murex": 0, "ion": 0, "pwsh": 0, "powershell": 0, "cmd": 0, "su": 0, "toybox": 0, "coreutils": 0,
	"rzsh": 0, "slsh": 0,
}

// setting is where a shell text runs: who reads it, and which variables it finds.
type setting struct {
	shells dialect
	// env has the names of the variables that the shell inherits; nil: nobody knows them.
	env []string
}

// settingOf returns where the value of an argument runs, by the command of its tool and the names of the variables that the tool adds to kept.
func settingOf(template []string, argument string, env []string) setting {
	unknown := setting{shells: anyShell}
	if len(template) == 0 {
		return unknown
	}
	mine := func(element string) bool { return element == "{"+argument+"}" || element == "{"+argument+"?}" }
	for _, element := range template {
		if !mine(element) && strings.Contains(strings.ReplaceAll(element, "?}", "}"), "{"+argument+"}") && !flagBefore().MatchString(element) {
			return setting{} // the text is a part of another one
		}
	}
	wrapped := false
	cmd := &simple{}
	for _, element := range template {
		cmd.words = append(cmd.words, word{text: element, literal: true, single: true})
	}
	for {
		kind := wrappers[programName(cmd.words[0].text)]
		if kind == nil {
			break
		}
		inner, why := kind.inner(cmd.words)
		if why != "" || len(inner) == 0 {
			return unknown
		}
		wrapped = true // and may find other variables
		cmd = &simple{words: inner}
	}
	if _, ok := shells[programName(cmd.words[0].text)]; !ok {
		if slices.ContainsFunc(template, func(e string) bool { of, ok := shells[programName(e)]; return ok && of == 0 }) {
			return setting{}
		}
		return unknown
	}
	in, rest, login := shellScript(cmd.words)
	switch {
	case in == 0 || len(rest) == 0:
		return setting{}
	case !mine(rest[0].text):
		return unknown // it is an argument of another script, which may run it
	case login || wrapped || in&zsh != 0 || slices.Contains(env, "BASH_ENV") || slices.Contains(env, "ENV"):
		return setting{shells: in} // files of the user's are read first, and may set more
	}
	return setting{shells: in, env: slices.Concat(kept, []string{"CHATCTX_CALL", "CHATCTX_CALL_ID", "CHATCTX_DUMPABLE"}, env)}
}

// flagBefore matches an element that gives the whole argument as the value of a flag.
var flagBefore = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^--?[A-Za-z][A-Za-z0-9-]*=\{[^{}]*\}$`) })

// shellScript returns the shells that may read the script of a command like bash -e -c SCRIPT, and the words from the script on; none if it is not such a
// command. login: the shell reads files of the user's first.
func shellScript(words []word) (in dialect, rest []word, login bool) {
	in, rest = shells[programName(words[0].text)], words[1:]
	if in == busybox {
		if len(rest) == 0 || !rest[0].literal || rest[0].text != "sh" && rest[0].text != "ash" {
			return 0, nil, false
		}
		rest = rest[1:]
	}
	text := false
	for ; !text && len(rest) > 0 && rest[0].literal && strings.HasPrefix(rest[0].text, "-"); rest = rest[1:] {
		flag := rest[0].text
		switch {
		case slices.Contains([]string{"--norc", "--noprofile", "--posix"}, flag) && in == bash:
			continue
		case flag == "--login" && in == bash:
			login = true
			continue
		case !shellFlags().MatchString(flag):
			return 0, nil, false
		}
		text, login = text || strings.Contains(flag, "c"), login || strings.Contains(flag, "l")
		if strings.Contains(flag, "o") {
			if rest = rest[1:]; len(rest) == 0 || !rest[0].literal || !slices.Contains(shellOptions, rest[0].text) {
				return 0, nil, false
			}
		}
	}
	if !text || len(rest) > 0 && rest[0].literal && strings.HasPrefix(rest[0].text, "-") {
		return 0, nil, false // some take options there, too
	}
	return in, rest, login
}

// shellFlags match flags of shells that do not change how a text is read; o takes one of shellOptions.
var shellFlags = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-[celux]*o?[celux]*$`) })

var shellOptions = []string{"errexit", "nounset", "pipefail", "xtrace"}

// programName returns the name of a program, without its folder and without .exe. Case is folded, as some file systems do.
func programName(command string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(command, `\`, "/")))
	return strings.TrimSuffix(name, ".exe")
}
