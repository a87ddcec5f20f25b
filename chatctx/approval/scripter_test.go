package approval

import (
	"math/rand/v2"
	"strings"
)

// scripter makes scripts that try to run what is not seen.
type scripter struct {
	rng  *rand.Rand
	deep int
}

func (g *scripter) pick(words ...string) string { return words[g.rng.IntN(len(words))] }

// text makes a text: a list of commands, one that was spoilt, a known trap in another place, or signs as they come.
func (g *scripter) text() string {
	switch g.rng.IntN(13) {
	case 0, 1:
		return g.spoilt(g.list())
	case 2:
		return g.soup()
	case 3:
		return g.around(g.pick(traps...))
	case 4:
		return g.spoilt(g.around(g.pick(traps...)))
	case 5:
		return g.around(g.hereDocument())
	case 6:
		return g.around(g.filling())
	case 7:
		return g.plain() + g.pick("; ", "\n", " && ", " | ") + g.plain()
	}
	return g.list()
}

// traps are texts that one shell or another, or the parser, read or once read in ways of their own.
var traps = []string{
	"cat <<E\nE\\\n\nrm PWNED\nE\n", "cat <<E\n\\\nE\nrm PWNED\nE\n", "cat <<E\n$(\nE\nrm x\n)\nE\n", "cat <<'E'\nrm x\nE\n", "cat <<E 'a\nE\nrm x\nb'\nE\n", "cat <<\\E\na\nE\nrm x\nE\n",
	"cat <<E\n`\nE\nrm x\n`\nE\n", "cat <<E\n${V:-\nE\nrm x\n}\nE\n", "cat <<-E\n\tE\nrm x\nE\n", "cat <<E <<F\nE\nF\nrm x\nE\n", "aa $(cat <<E\nx)\nE\n)\n", "aa $(cat <<'E'\n)' rm x '(\nE\n)\n",
	"cat <<E; aa \\\nE\nrm x\nE\n", "cat <<E # '\nE\nrm x\n'", "aa \"$(cat <<'E'\n\"; rm x; \"\nE\n)\"", "cat <<''\n\nrm x\n", "cat <<\"E\"F\nEF\nrm x\n", "cat <<$E\n$E\nrm x\n$E\n",
	"aa &>/dev/null rm x", "aa; [[ a || rm == b ]]", "[[ a && rm x ]]", "aa &>>/dev/null rm x", "aa |& rm", "aa >&x rm", "{ aa } always { rm x; }", "{ aa } rm x; }", "if { aa } { rm x } ; then aa; fi",
	"aa 12>/dev/null x", "12>/dev/null aa", "aa {f}>/dev/null", "{fd}>x aa", "aa <1-5>x", "aa >! rm", "=aa x", "aa =rm", "noglob rm x", "repeat 2 rm x", "nocorrect rm", "aa *(e:'rm x':)", "aa $~D", "aa ${~D}",
	"aa $D", "aa \"$A[1]\"", "aa $A[$(rm x)]", "aa $N:e", "1=x rm", "V=1 rm x", "V+=1 aa", "aa=1 bb", "-x aa", "aa ${A@P}", "aa ${!A}", "aa $((A))", "aa $(($A))", "aa $[A]", "aa ${N:A}", "aa ${x:$A}", "((A))",
	"[ -v \"$A\" ]", "[ $B A ]", "[ \"$B\" \"$A\" ]", "test $B $A", "[ \"$A\" -eq 1 ]", "[ 1 -eq \"$A\" ]", "[ \"$A\" = 1 ]", "[ -t \"$A\" ]", "[[ $A -eq 1 ]]", "[[ -v $A ]]", "[[ -n $A ]]", "[[ $A == $D ]]",
	"printf %d \"$A\"", "printf \"$B\" \"$A\"", "printf %s \"$A\"", "printf -v \"$A\" x", "printf %n \"$A\"", "printf %n PATH; aa", "printf %c%i x \"$A\"", "read \"$A\" <E", "read -r v <E", "unset \"$A\"", "unset v", "export \"$A\"", "export CI=1", "export CI=$C", "exit $A", "exit $?",
	"return $A", "shift $A", "break $A", "wait $A", "COLUMNS='a[$(rm x)]' aa", "COLUMNS=80 aa", "LINES='a[$(rm y)]'", "RANDOM=$A", "SECONDS='a[$(rm x)]'; aa", "OPTIND='a[$(rm x)]'; aa", "for COLUMNS in $A; do aa; done",
	"for v in $A; do aa \"$v\"; done", "for v in 1 2; do aa $v; done", "v=$(aa); bb \"$v\"", "v=rm; $v x", "v=1; bb $((v))", "while read -r l; do aa \"$l\"; done <E", "PATH=. aa", "HOME=x aa", "PS4='$(rm x)' aa; set -x; aa",
	"set -e; aa", "set -x; aa", "set -a; V=1; aa", "set -- $A; aa $1", "f() { rm x; }", "f() { aa; }; f", "time { rm x; }", "time ! rm x", "time V=1 aa", "time aa", "command aa", "exec aa", "env exec aa", "env command rm x",
	"echo x | xargs rm", "echo rm | xargs", "echo x | xargs -I{} aa {}", "echo rm | xargs -I{} {} x", "echo rm | xargs env", "find . -exec aa {} +", "find E -exec aa {} \\;", "find E -exec sh -c 'rm x' \\;", "find E -ex* aa \\;",
	"find $B aa", "aa `bb`", "aa `bb \\`rm\\``", "aa \"`bb \\\"x\\\"`\"", "aa ${V:-'$(rm x)'}", "aa \"${V:-'$(rm x)'}\"", "aa ${V:-`rm x`}", "aa \"${V:-\"$(rm x)\"}\"", "aa ${V#'}'}", "aa \"${V%\\}$(rm x)}\"",
	"aa $'\\'; rm x; #'", "aa $\"x\"", "aa a\\\nb", "aa #\\\nrm x", "aa \\\n# x\nrm", "a\\\na", "aa {b,c}", "{aa,rm} x", "aa {1..3}", "aa }", "aa {", "aa @{u}", "aa a}b", "aa; }", "function f { aa; }; f", "function rm { aa; }",
	"aa <(rm x)", "aa >(rm x)", "<E", ">E", "aa >E", "aa <E", "aa 2>&1", "aa >&-", "aa 2>&1-", "aa <<<x", "aa <<<\"$(rm x)\"", "case a in a) aa ;; *) rm x ;; esac", "case a in a) aa ;& *) bb ;; esac", "case $(rm x) in *) aa;; esac",
	"aa $(case x in x) rm y;; esac)", "aa $(bb # )\n)", "aa $(bb; (cc))", "aa $((1+2))", "aa $((08))", "aa $((1?2:3))", "aa \"$((1))\"", "((1))", "aa $( (bb) )", "coproc rm x", "select v in a; do rm; done", "aa & bb", "aa &! rm x",
	"aa &| rm x", "! aa", "! ! rm", "aa $#x", "aa $-", "aa \"$@\"", "aa $*", "\"$@\" aa", "aa \"x$\"", "aa $/", "aa x$", "aa ~", "aa ~/x", "aa !x", "aa ^x^y", "aa x^rm", "alias aa=rm\naa x", "sh -c 'aa; bb'", "bash -c 'rm x'",
	"zsh -c 'aa =bb'", "busybox sh -c 'aa'", "dash -c 'aa &>/dev/null rm x'", "sh -e -c 'aa' x y", "sh -ec aa", "bash -o pipefail -c 'aa|bb'", "mksh -c 'aa'", "nohup aa", "nice -n 5 aa", "timeout 5 aa", "env CI=1 aa", "env V=1 aa",
	"aa 'b\nrm x\n'", "aa \"b\nrm x\n\"", "aa b\\;rm", "aa b\\\\;bb", "aa 'b'\\''c'", "aa \"\\\\\"; bb", "aa \"\\`rm\\`\"", "aa \\$(bb)", "aa \\`bb", "aa %1", "%1 aa", "aa=b", "a-b=c", "a[1]=x aa", "a[$(rm x)]=1",
	"aa ${#A}", "aa ${#}", "aa ${A:+b}", "aa ${Z:?$(rm x)}", "aa ${Z:=x}", "aa ${A/x/y}", "aa ${A^^}", "aa $_", "aa ${A%%x*}", "aa ${D##*/}", "aa \"${C}\"", "$C", "${C}", "\"$C\"", "$(echo rm) x", "a$Z", "aa $C; $Z", "$Z aa", "$Z rm x",
}

// hereDocument makes a here-document whose end may be found in several places.
func (g *scripter) hereDocument() string {
	mark := g.pick("E", "'E'", "\"E\"", "\\E", "E", "-E", "-'E'", " E", "E1", "\"E 1\"", "$E")
	var b strings.Builder
	b.WriteString(g.pick("cat", "aa", "aa -x", "{ aa; } ") + " <<" + mark + g.pick("", "", "", " | bb", " > x", " && bb", "; bb", " 2>&1", " \\", " 'b", " $(bb", " # x", " \"$A\"", " <<F", ")") + "\n")
	for range g.rng.IntN(5) {
		b.WriteString(g.pick("a", "", "\t", " ", "rm x", "$(rm h)", "$(bb)", "`bb`", "$A", "${A:-b}", "$((1))", "\\$(rm x)", "'", "\"", "E", "\tE", "E ", "\\E", "E\\", "\\", " \\", "$(", ")", "(", "`", "${V:-", "}", "#", "F", "E)", "é") + "\n")
	}
	b.WriteString(g.pick("E\n", "E\n", "E\n", "E", "\tE\n", "E1\n", "E 1\n", "F\nE\n", "") + g.pick("", "", g.plain(), "rm x", "E\n"))
	return b.String()
}

// filling makes commands with redirections, variables and computations in their places.
func (g *scripter) filling() string {
	var b strings.Builder
	if g.rng.IntN(2) == 0 {
		name := g.pick("V", "v", "A", "CI", "LC_ALL", "COLUMNS", "TZ", "PATH", "IFS", "x", "SECONDS", "i", "LANG")
		b.WriteString(g.pick("", "", "export ", "readonly ", "declare -i ", "local ") + name + g.pick("=", "=", "=", "+=", "[0]=") +
			g.pick("1", "'a b'", "$A", "\"$A\"", "$(bb)", "'a[$(rm f)]'", "", "~", "(a b)", "*", "rm", "-v", "\"x$(bb)\"") + g.pick(" ", "; ", "\n", " && "))
	}
	for i := range 1 + g.rng.IntN(2) {
		if i > 0 {
			b.WriteString(g.pick("; ", " | ", " && ", "\n"))
		}
		b.WriteString(g.pick("aa", "bb", "echo", "printf %s", "printf %d", "test -n", "[ -f", "[ 1 -eq", "[ $# -gt", "[[ -n", "[[ 1 -eq", "read -r", "unset", "export", "exit", "shift", "set", "cd", "wait", "time", "exec", "xargs", "xargs aa", "find", "env", "$v", "$x"))
		for range g.rng.IntN(3) {
			b.WriteString(" " + g.pick("$A", "\"$A\"", "${A}", "${A:-x}", "${A#a}", "${A:1}", "${A[1]}", "$((1+1))", "$((A))", "$((i))", "\"$((1))\"", "$v", "\"$x\"", "v", "x", "1", "-e", "-x", "aa", "$D", "\"$D\"", "*", "$C", "\"$C\"", "$B", "\"$B\"", "-v", "$?"))
		}
		b.WriteString(g.pick("", "", " ]", " ]]", " >x", " </dev/null", " 2>&1", " >>x", " >&2", " &>x", " 2>/dev/null", " <E", " >|x", " 1<>x", " >$A", " >\"$A\"", " 9>&-", " 10>x", " >&$A"))
	}
	return b.String()
}

// around puts a text into another place.
func (g *scripter) around(text string) string {
	inner := strings.TrimSuffix(text, "\n")
	switch g.rng.IntN(14) {
	case 0:
		return "(" + inner + "\n)"
	case 1:
		return "{ " + inner + "\n}"
	case 2:
		return "bb $(" + inner + "\n)"
	case 3:
		return "bb \"$(" + inner + "\n)\""
	case 4:
		return "f() { " + inner + "\n}\nf"
	case 5:
		return g.simple() + g.pick("; ", " | ", " && ", " || ", "\n") + text
	case 6:
		return inner + g.pick("; ", " | ", " && ", " || ", "\n") + g.simple()
	case 7:
		return "if " + inner + "\nthen " + g.simple() + "\nelse " + g.simple() + "\nfi"
	case 8:
		return "for v in 1 2\ndo " + inner + "\ndone"
	case 9:
		return g.pick("sh", "bash", "dash", "zsh", "mksh") + " -c '" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	case 10:
		return "cat <<" + g.pick("F", "'F'", "-F") + "\n" + inner + "\nF\n" + g.simple()
	case 11:
		return "`" + inner + "`"
	}
	return text
}

// spoilt changes a text in a few places.
func (g *scripter) spoilt(text string) string {
	b := []byte(text)
	for range 1 + g.rng.IntN(3) {
		if len(b) == 0 {
			break
		}
		at := g.rng.IntN(len(b))
		switch g.rng.IntN(4) {
		case 0:
			b = append(b[:at:at], b[at+1:]...)
		case 1:
			b[at] = g.pick(signs...)[0]
		default:
			b = append(b[:at:at], append([]byte(g.pick(signs...)), b[at:]...)...)
		}
	}
	return strings.ToValidUTF8(string(b), "")
}

var signs = []string{
	"\\", "\n", "'", "\"", "`", "$", "(", ")", "{", "}", "<", ">", "&", "|", ";", " ", "#", "!", "=", "*", "?", "[", "]", "~", "-", "\t", "\\\n", "$(", "${", "<<", "E", "é", "Á", "à", "È", "\u00a0", "A", "$A", "1", ":", "%", "^", "+", ",", "@", "/",
}

// soup is words and signs in any order.
func (g *scripter) soup() string {
	var b strings.Builder
	b.WriteString(g.pick("aa ", "", "aa", "bb "))
	for range 2 + g.rng.IntN(10) {
		b.WriteString(g.pick("aa", "bb", "rm", "x", " ", " ", " ", "\n", ";", "|", "&", "&&", "||", "(", ")", "{ ", "; }", "<<E", "\nE\n", "<<'E'", "'", "\"", "$A", "${A}", "$(", ")", "$((", "))", "[[ ", " ]]", "[ ", " ]", "if ", "; then ", "; fi",
			"for v in ", "; do ", "; done", "case ", " in ", ";;", "esac", "!", ">", "<", ">x", "<E", "2>&1", "&>", ">&", "\\", "\\\n", "=", "V=", "*", "`", "#", "~", "1", "-v", "%", "function ", "time ", "{a,b}", "$", "f()"))
	}
	return b.String()
}

// plain is a text that all shells read alike.
func (g *scripter) plain() string {
	words := []string{g.pick("aa", "bb", "cc", "git")}
	for range g.rng.IntN(4) {
		words = append(words, g.pick("a", "-x", "'a b'", "\"$A\"", "$A", "*", "\"a $B\"", "x.y/z", "\"$(aa)\"", "$(bb a)", "2>&1", ">/dev/null", "2>/dev/null", "${A:-b}", "--f=1"))
	}
	return strings.Join(words, " ")
}

func (g *scripter) word() string {
	if g.deep > 4 {
		return g.pick("a", "-x", "'b c'")
	}
	g.deep++
	defer func() { g.deep-- }()
	switch g.rng.IntN(26) {
	case 0:
		return "$(" + g.list() + ")"
	case 1:
		return "`" + g.simple() + "`"
	case 2:
		return "\"x$(" + g.simple() + ")\""
	case 3:
		return "<(" + g.simple() + ")"
	case 4:
		return "${V:-$(" + g.simple() + ")}"
	case 5:
		return g.pick("$V", "${V}", "\"$V\"", "$1", "$#", "$?", "\"$@\"", "${V:-aa}", "${V%x}", "${#V}")
	case 6:
		return g.pick("*", "a*", "[ab]", "{a,b}", "{1..3}", "~", "a~b", "?", "{}", "{a", "a=b", "x=~")
	case 7:
		return g.pick("\"a\\\"b\"", "'a'\"b\"c", "a\\ b", "\\$V", "'$(rm x)'", "\\`rm\\`", "\"\\$(rm)\"", "a\\\nb", "''", "\"\"", "'\\'", "\"a\nb\"")
	case 8:
		return g.pick("$'a'", "$\"a\"", "$((1+1))", "$((a[$(rm y)]))", "${!V}", "${V:0:1}", "${V/a/b}", "${V:=x}", "${V@P}", "$[1]")
	case 9:
		return g.pick("#a", "a#b", "\\#", "!", "\\;", "';'", "\\&", "'|'")
	}
	return g.pick("a", "b", "-x", "--flag=1", "'a b'", "7", "status", "x.y/z")
}

func (g *scripter) name() string {
	return g.pick("aa", "bb", "cc", "git", "'aa'", "a\"a\"", "\\bb", "\"cc\"", "r''m", "rm", "b\\b", "a\\\na")
}

func (g *scripter) simple() string {
	words := []string{g.name()}
	for range g.rng.IntN(3) {
		words = append(words, g.word())
	}
	s := strings.Join(words, " ")
	switch g.rng.IntN(30) {
	case 0:
		s += g.pick(" 2>&1", " >/dev/null", " 2>/dev/null", " >&2", " <&-", " <<<x", " <<<\"$(rm h)\"")
	case 1:
		s += g.pick(" >out", " <in", " &>out", " >>out", " >| out", " {fd}>out")
	case 2:
		s = g.pick("V=1 ", "V+=1 ", "PATH=/x ", "a[$(rm i)]=1 ") + s
	}
	return s
}

func (g *scripter) wrapped() string {
	inner := g.simple()
	if g.rng.IntN(4) == 0 {
		inner = g.wrapped()
	}
	switch g.rng.IntN(16) {
	case 0:
		return g.pick("eval ", "exec ", "xargs ", "source ", ". ", "builtin ", "trap ", "coproc ") + inner
	case 1:
		return "find . " + g.pick("-exec", "-name", "-ok", "-delete") + " " + inner
	case 2, 3, 4:
		script := g.list()
		if g.rng.IntN(3) == 0 {
			return g.pick("bash", "sh") + " -c \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", "$", g.pick("$", "\\$")).Replace(script) + "\""
		}
		return g.pick("bash", "sh", "bash -x") + " -c '" + strings.ReplaceAll(script, "'", `'\''`) + "'" + g.pick("", "", " $0", " a")
	}
	return g.pick("sudo ", "sudo -n ", "env ", "env V=1 ", "env -u V ", "timeout 5 ", "timeout -k 1 5 ", "timeout --foreground 5 ", "nohup ", "nice ", "nice -n 3 ", "nice -3 ", "time ", "time -p ", "command ", "command -v ", "command -- ",
		"\\time ", "env -- ", "! ", "env -S ", "timeout $V 5 ", "sudo -u a ") + inner
}

func (g *scripter) list() string {
	if g.deep > 4 {
		return g.simple()
	}
	g.deep++
	defer func() { g.deep-- }()
	var b strings.Builder
	for i := range 1 + g.rng.IntN(3) {
		if i > 0 {
			b.WriteString(g.pick("; ", " && ", " || ", " | ", "\n", " |& ", " & ", " ;\n", " && \\\n"))
		}
		b.WriteString(g.command())
	}
	return b.String()
}

func (g *scripter) command() string {
	switch g.rng.IntN(24) {
	case 0:
		return "(" + g.list() + ")"
	case 1:
		return "{ " + g.list() + "\n}"
	case 2:
		return "if " + g.list() + "\nthen " + g.list() + "\nelse " + g.list() + "\nfi"
	case 3:
		return g.pick("while ", "until ") + g.list() + "\ndo " + g.list() + "\nbreak; done"
	case 4:
		return "for v in " + g.word() + " " + g.word() + "\ndo " + g.list() + "\ndone"
	case 5:
		return "case " + g.word() + " in\n" + g.pick("a", "*", "b|c") + ") " + g.list() + "\n;;\n" + "*) " + g.list() + "\n;; esac"
	case 6:
		name := g.pick("f", "g", "timeout", "env")
		return g.pick(name+"() ", "function "+name+" ", name+" () ") + "{ " + g.plain() + g.pick("; ", "\n", " | ") + g.plain() + "\n}\n" + name + " " + g.word()
	case 7:
		return g.simple() + " <<" + g.pick("E\n", "'E'\n", "-E\n") + "line $(" + g.simple() + ") `" + g.simple() + "` \\$(rm z)\nE\n"
	case 8:
		return "[[ " + g.pick("-f x", "a == a", "$(rm t) == a", "'a[$(rm u)]' -eq 0", "-v 'a[$(rm v)]'", "a =~ $(rm w)", "! -e "+g.word()) + " ]]"
	case 9:
		return g.pick("[ -f x ]", "test -n \"$(rm s)\"", "[ -v 'a[$(rm q)]' ]", "printf -v 'a[$(rm p)]' x", "read v", "let 'a[$(rm l)]=1'", "((a[$(rm m)]))", "declare 'b[$(rm d)]=1'", "unset 'c[$(rm n)]'", "cd .", ":", "true", "shopt -s extglob")
	case 10, 11, 12, 13, 14, 15:
		return g.wrapped()
	case 16:
		return "# " + g.simple() + "\n" + g.simple()
	}
	return g.simple()
}
