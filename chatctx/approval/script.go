package approval

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// script is what a shell text does, as far as that can be told without running it.
type script struct {
	commands []*simple
	untold   string // why it cannot be told which commands run; "": it can
}

// simple is one simple command.
type simple struct {
	words []word
	// through: it only starts another command, which is judged in its place.
	through bool
}

// word is one word of a command. If it is not literal, the shell fills it in when the command runs, and text is its source.
type word struct {
	text    string
	literal bool
}

// line returns the command on a line. Words with special characters are quoted.
func (c *simple) line() string {
	words := make([]string, len(c.words))
	for i, w := range c.words {
		words[i] = w.text
		if w.literal && (w.text == "" || strings.ContainsFunc(w.text, func(r rune) bool { return strings.ContainsRune(" \t\n'\"\\$`;&|<>()", r) })) {
			words[i] = "'" + strings.ReplaceAll(w.text, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// Limits of a script; beyond them it cannot be told what it does.
const (
	longestScript = 64 << 10
	deepestScript = 8 // scripts nested in scripts
)

// readScript parses a shell text as bash would.
func readScript(text string) *script {
	s := &script{}
	s.read(text, 0)
	return s
}

func (s *script) cannot(why string) {
	s.untold = cmp.Or(s.untold, why)
}

func (s *script) read(text string, depth int) {
	switch {
	case len(text) > longestScript || depth > deepestScript:
		s.cannot("it is too long")
		return
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }):
		s.cannot("it holds control characters")
	case strings.Contains(text, "\\\n") && strings.Contains(text, "#"):
		s.cannot("a comment may go on in the next line, or not") // the parser takes the next line as part of the comment, bash does not
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		s.cannot("it is not shell text: " + err.Error())
	}
	if file == nil {
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		s.node(n, depth)
		return true
	})
}

// node records what a node of the tree does by itself, apart from its children.
func (s *script) node(n syntax.Node, depth int) {
	switch n := n.(type) {
	case *syntax.CallExpr:
		if len(n.Assigns) > 0 {
			s.cannot("it sets a variable")
		}
		if len(n.Args) > 0 {
			s.call(n.Args, depth)
		}
	case *syntax.Redirect:
		s.redirect(n)
	case *syntax.Assign, *syntax.DeclClause, *syntax.LetClause, *syntax.CStyleLoop:
		s.cannot("it sets a variable")
	case *syntax.ForClause:
		s.cannot("it sets a variable")
	case *syntax.ArithmCmd, *syntax.ArithmExp:
		s.cannot("it computes, which may run commands")
	case *syntax.CoprocClause:
		s.cannot("it starts a coprocess")
	case *syntax.ParamExp:
		if n.Excl || n.Index != nil || n.Slice != nil || n.Names != 0 || n.Repl != nil || n.Width || n.Exp != nil && !slices.Contains(plainExpansions, n.Exp.Op) {
			s.cannot("it puts in a variable in a way that may run commands or set it")
		}
	case *syntax.SglQuoted:
		if n.Dollar {
			s.cannot("it holds $'…'")
		}
	case *syntax.DblQuoted:
		if n.Dollar {
			s.cannot(`it holds $"…"`)
		}
	case *syntax.CmdSubst:
		if n.TempFile || n.ReplyVar {
			s.cannot("it is of another shell")
		}
	case *syntax.BinaryTest:
		if n.Op >= syntax.TsEql && n.Op <= syntax.TsGtr {
			s.cannot("it computes in [[ ]], which may run commands")
		}
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			s.cannot("it computes in [[ ]], which may run commands")
		}
	case *syntax.TestDecl:
		s.cannot("it is of another shell")
	}
}

// plainExpansions only insert a variable or an alternative.
var plainExpansions = []syntax.ParExpOperator{
	syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull,
	syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix,
}

// redirect accepts here-documents and copies of descriptors, which do nothing; what a redirection to a file does cannot be told.
func (s *script) redirect(r *syntax.Redirect) {
	w := literalWord(r.Word)
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
	case syntax.DplIn, syntax.DplOut:
		if !w.literal || strings.Trim(w.text, "0123456789-") != "" {
			s.cannot("it redirects to a file")
		}
	default:
		if !w.literal || w.text != "/dev/null" {
			s.cannot("it redirects to a file")
		}
	}
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		s.cannot("it sets a variable")
	}
}

// call records a command with its words.
func (s *script) call(args []*syntax.Word, depth int) {
	cmd := &simple{}
	for _, a := range args {
		cmd.words = append(cmd.words, literalWord(a))
	}
	s.command(cmd, depth)
}

// command records a command and those that it starts.
func (s *script) command(cmd *simple, depth int) {
	s.commands = append(s.commands, cmd)
	first := cmd.words[0]
	name := path.Base(first.text)
	switch {
	case !first.literal:
		s.cannot("what runs is put in when it runs: " + first.text)
	case slices.Contains(untoldCommands, name):
		s.cannot("what " + name + " does")
	case strings.HasPrefix(first.text, "-"): // a flag of time, which some shells take for a flag and others run
		s.cannot("what a command that begins with " + first.text + " starts")
	case slices.Contains(starters, name) && isInstalled(first.text):
		s.cannot("what " + name + " starts")
	case name == "find" && slices.ContainsFunc(cmd.words, func(w word) bool {
		return !w.literal || slices.ContainsFunc(findActions, func(action string) bool { return strings.HasPrefix(w.text, action) })
	}):
		s.cannot("what find starts, removes or writes")
	case name == "printf" && len(cmd.words) > 1 && (!cmd.words[1].literal || strings.HasPrefix(cmd.words[1].text, "-v")):
		s.cannot("it sets a variable")
	case (name == "test" || name == "[") && slices.ContainsFunc(cmd.words, func(w word) bool { return !w.literal || w.text == "-v" || w.text == "-R" }):
		s.cannot("what " + name + " looks at")
	case slices.Contains(shells, name):
		s.shell(cmd, depth)
	case wrappers[name] != nil:
		s.wrapper(name, cmd, depth)
	}
}

// untoldCommands take commands from elsewhere, set variables, or change what commands mean.
var untoldCommands = []string{
	"eval", "source", ".", "exec", "trap", "alias", "unalias", "builtin", "coproc", "enable", "hash", "mapfile", "readarray", "complete", "compgen", "compopt", "bind", "fc", "history",
	"jobs", "let", "declare", "typeset", "local", "export", "readonly", "nameref", "read", "unset", "getopts", "set", "shopt", "wait", "xargs", "parallel", "select", "call", "suspend", "caller",
}

// isInstalled reports whether a command is one of the system and not a program of the project's own with the name of one.
func isInstalled(command string) bool {
	dir := path.Dir(command)
	return !strings.Contains(command, "/") || path.Base(dir) == "bin" || path.Base(dir) == "sbin"
}

// starters run the command that they are given as it is, and have options of their own that nobody reads here.
var starters = []string{
	"bwrap", "caffeinate", "chroot", "chrt", "cpulimit", "dbus-run-session", "doas", "entr", "faketime", "fakeroot", "firejail", "flock", "ionice", "ltrace", "nsenter", "numactl",
	"pkexec", "prlimit", "proxychains", "proxychains4", "rlwrap", "runuser", "script", "setarch", "setpriv", "setsid", "stdbuf", "strace", "systemd-run", "taskset", "torsocks", "unbuffer",
	"unshare", "watch", "xvfb-run",
}

// findActions begin the words with which find does more than print on the terminal.
var findActions = []string{"-exec", "-ok", "-delete", "-fprint", "-fls"}

var shells = []string{"bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "busybox", "fish", "rbash", "su"}

// shell parses bash -c and sh -c with a literal text.
func (s *script) shell(cmd *simple, depth int) {
	w := cmd.words
	name := path.Base(w[0].text)
	if (name != "bash" && name != "sh") || len(w) != 3 || w[1] != (word{"-c", true}) || !w[2].literal {
		s.cannot("what " + name + " is given to run")
		return
	}
	cmd.through = w[0].text == name
	s.read(w[2].text, depth+1)
}

// wrapper describes how a program is called that starts another: its flags without a value, its flags with a value in the next word, and the number of
// words before the command.
type wrapper struct {
	flags, valued []string
	before        int
	// open: the wrapper changes who runs the command, so it is judged too.
	open bool
}

var wrappers = map[string]*wrapper{
	"sudo":    {flags: []string{"-n", "-E", "-H", "-S", "-k", "-b", "-A", "-P"}, valued: []string{"-u", "-g", "-p"}, open: true},
	"env":     {flags: []string{"-i", "-0"}, valued: []string{"-u"}},
	"timeout": {flags: []string{"--preserve-status", "--foreground", "-v"}, valued: []string{"-k", "-s"}, before: 1},
	"nohup":   {},
	"nice":    {valued: []string{"-n"}},
	"time":    {flags: []string{"-p"}},
	"command": {flags: []string{"-p"}},
}

// wrapper records the command that a wrapper is given to start.
func (s *script) wrapper(name string, cmd *simple, depth int) {
	kind := wrappers[name]
	rest := cmd.words[1:]
	if name == "command" && len(rest) > 0 && (rest[0] == word{"-v", true} || rest[0] == word{"-V", true}) {
		return // it only prints what it would run
	}
	for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") && rest[0].literal {
		flag := rest[0].text
		rest = rest[1:]
		switch {
		case flag == "--":
		case slices.Contains(kind.flags, flag):
			continue
		case slices.Contains(kind.valued, flag) && len(rest) > 0 && rest[0].literal:
			rest = rest[1:]
			continue
		default:
			s.cannot("what " + name + " does with " + flag)
			return
		}
		break
	}
	if kind.before > len(rest) {
		s.cannot("what " + name + " starts")
		return
	}
	if kind.before > 0 && !rest[0].literal {
		s.cannot("what " + name + " starts")
	}
	rest = rest[kind.before:]
	switch {
	case len(rest) == 0:
		return // it starts nothing and is judged by its own words
	case !rest[0].literal:
		s.cannot("what " + name + " starts")
	case (name == "env" || name == "sudo") && strings.Contains(rest[0].text, "="):
		s.cannot("it sets a variable")
	}
	cmd.through = !kind.open && cmd.words[0].text == name
	s.command(&simple{words: rest}, depth)
}

// literalWord returns a word's literal value, or its source if the shell fills something in.
func literalWord(w *syntax.Word) word {
	if w == nil {
		return word{}
	}
	if lone := w.Lit(); lone == "[" || lone == "]" || lone == "{}" {
		return word{lone, true} // neither a pattern nor a brace expansion
	}
	var b strings.Builder
	literal := true
	for _, part := range w.Parts {
		text, ok := literalPart(part, false)
		b.WriteString(text)
		literal = literal && ok
	}
	if text := b.String(); literal || text != "" {
		return word{text, literal}
	}
	return word{"$", false}
}

func literalPart(part syntax.WordPart, quoted bool) (string, bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		return unescape(p.Value, quoted)
	case *syntax.SglQuoted:
		return p.Value, !p.Dollar
	case *syntax.DblQuoted:
		var b strings.Builder
		literal := !p.Dollar
		for _, inner := range p.Parts {
			text, ok := literalPart(inner, true)
			b.WriteString(text)
			literal = literal && ok
		}
		return b.String(), literal
	case *syntax.ParamExp:
		if p.Param != nil {
			return "$" + p.Param.Value, false
		}
	case *syntax.CmdSubst:
		return "$(…)", false
	}
	return "$", false
}

// unescape removes the backslashes from a piece of a word. Outside of quotes, the shell expands braces, file patterns and ~.
func unescape(s string, quoted bool) (string, bool) {
	var b strings.Builder
	literal := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\' && i+1 < len(s) && (!quoted || strings.IndexByte("$`\"\\\n", s[i+1]) >= 0):
			i++
			b.WriteByte(s[i])
			continue
		case !quoted && strings.IndexByte("*?[]{}~", c) >= 0:
			literal = false
		}
		b.WriteByte(c)
	}
	return b.String(), literal
}
