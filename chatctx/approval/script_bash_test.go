package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/testkit"
)

// standIn is a program that only says how it was called. Called sudo it starts what it is given, as that does.
const standIn = `package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	os.Args[0] = filepath.Base(os.Args[0])
	line, _ := json.Marshal(map[string]any{"Script": os.Getenv("SCRIPT"), "Words": os.Args})
	f, err := os.OpenFile(os.Getenv("CALLS"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		os.Exit(9)
	}
	f.Write(append(line, '\n'))
	f.Close()
	n := 0
	for _, a := range os.Args[1:] {
		n += len(a)
	}
	if os.Args[0] != "sudo" {
		os.Exit(n % 2)
	}
	for i, a := range os.Args[1:] {
		if a[:1] != "-" {
			c := exec.Command(a, os.Args[i+2:]...)
			if c.Run() != nil {
				os.Exit(1)
			}
			return
		}
	}
}
`

// standIns are the programs that scripts find; the real ones start others.
var (
	standIns = []string{"aa", "bb", "cc", "rm", "git", "find", "sudo", "xargs"}
	realOnes = []string{"bash", "sh", "env", "timeout", "nohup", "nice"}
)

// bashBench runs scripts in real bash.
type bashBench struct {
	t                       *testing.T
	bash, bin, dir, callLog string
}

func newBashBench(t *testing.T) *bashBench {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	b := &bashBench{t: t, bash: bash, bin: t.TempDir(), dir: t.TempDir()}
	source := filepath.Join(b.dir, "main.go")
	if err := os.WriteFile(source, []byte(standIn), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(b.bin, standIns[0])
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Skipf("the stand-ins cannot be built: %v: %s", err, out)
	}
	for _, name := range standIns[1:] {
		if err := os.Link(program, filepath.Join(b.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range realOnes {
		from, err := exec.LookPath(map[string]string{"sh": "bash"}[name] + map[bool]string{true: "", false: name}[name == "sh"])
		if err != nil {
			t.Skipf("there is no %s here", name)
		}
		if err := os.Symlink(from, filepath.Join(b.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	b.callLog = filepath.Join(b.dir, "calls")
	return b
}

// call is a command that ran.
type call struct {
	Script string
	Words  []string
}

// run runs scripts, one after another in one process, and gives what ran.
func (b *bashBench) run(scripts []string) []call {
	b.t.Helper()
	work := b.t.TempDir()
	if err := os.WriteFile(b.callLog, nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
	for i, s := range scripts {
		if err := os.WriteFile(filepath.Join(b.dir, fmt.Sprint("s", i)), []byte(s), 0o600); err != nil {
			b.t.Fatal(err)
		}
	}
	driver := fmt.Sprintf(`for ((n=0;n<%d;n++)); do ( export SCRIPT=$n; . %s/s$n; wait ) </dev/null >/dev/null 2>&1; done; true`, len(scripts), b.dir)
	cmd := exec.Command(b.bash, "--norc", "--noprofile", "-c", driver)
	cmd.Dir = work
	cmd.Env = []string{"PATH=" + b.bin, "CALLS=" + b.callLog, "FUNCNEST=2", "HOME=" + work}
	r, w, err := os.Pipe()
	if err != nil {
		b.t.Fatal(err)
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("%v: %s", err, out)
	}
	w.Close()
	if _, err := r.Read(make([]byte, 1)); err == nil { // ends when the last process has, also one in the background
		b.t.Fatal("somebody wrote into the pipe")
	}
	raw, err := os.ReadFile(b.callLog)
	if err != nil {
		b.t.Fatal(err)
	}
	var calls []call
	for _, line := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		var c call
		if len(line) > 0 && json.Unmarshal(line, &c) != nil {
			b.t.Fatalf("a line %q", line)
		}
		calls = append(calls, c)
	}
	return calls
}

// judged reports whether a command that ran is among those that were read from its script.
func judged(s *script, words []string) bool {
	for _, cmd := range s.commands {
		if fits(cmd.words, words) {
			return true
		}
	}
	return false
}

// fits compares words; one that is put in may be any number of words.
func fits(read []word, ran []string) bool {
	switch {
	case len(read) == 0:
		return len(ran) == 0
	case !read[0].literal:
		for n := range len(ran) + 1 {
			if fits(read[1:], ran[n:]) {
				return true
			}
		}
		return false
	}
	return len(ran) > 0 && ran[0] == read[0].text && fits(read[1:], ran[1:])
}

// scripter makes scripts that try to run what is not seen.
type scripter struct {
	rng  *rand.Rand
	deep int
}

func (g *scripter) pick(words ...string) string { return words[g.rng.IntN(len(words))] }

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
	return g.pick("sudo ", "sudo -n ", "env ", "env -i ", "env V=1 ", "env -u V ", "timeout 5 ", "timeout -k 1 5 ", "timeout --foreground 5 ", "nohup ", "nice ", "nice -n 3 ", "nice -3 ", "time ", "time -p ", "command ", "command -v ", "command -p ", "command -- ",
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
		return g.pick(name+"() ", "function "+name+" ", name+" () ") + "{ " + g.list() + "\n}\n" + name + " " + g.word()
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

// TestNoCommandRunsUnjudged: in real bash no command runs that was not read from its script, unless it was said that it cannot be told.
func TestNoCommandRunsUnjudged(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many programs")
	}
	b := newBashBench(t)
	const atOnce = 100
	rounds, told, ran := 0, 0, 0
	for seed := range testkit.Seeds(t, 20) {
		g := &scripter{rng: rand.New(rand.NewPCG(seed, 1))}
		scripts := make([]string, atOnce)
		rounds++
		read := make([]*script, atOnce)
		for i := range scripts {
			scripts[i] = g.list()
			if read[i] = readScript(scripts[i]); read[i].untold == "" {
				told++
			}
		}
		for _, c := range b.run(scripts) {
			var n int
			if _, err := fmt.Sscan(c.Script, &n); err != nil {
				t.Fatalf("%q ran without the name of its script", c.Words)
			}
			ran++
			if s := read[n]; s.untold == "" && !judged(s, c.Words) {
				t.Fatalf("seed %d: %q ran, which was not read from\n%s\n%v", seed, c.Words, scripts[n], commandsOf(s))
			}
		}
	}
	t.Logf("%d scripts could be told, %d commands ran", told, ran)
	if told < 10*rounds || ran < atOnce*rounds {
		t.Errorf("too little was tried: %d scripts could be told, %d commands ran", told, ran)
	}
}

func commandsOf(s *script) []string {
	var out []string
	for _, c := range s.commands {
		out = append(out, c.line())
	}
	return out
}
