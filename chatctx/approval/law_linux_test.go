package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chatctx/chatctx/internal/testkit"
)

// standIn is a program that only writes down how it was called, beside itself. Called sudo or time it starts what it is given, as those do.
const standIn = `package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		os.Exit(9)
	}
	words := append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...)
	if words[0] != "time" {
		line, _ := json.Marshal(words)
		f, err := os.OpenFile(filepath.Join(filepath.Dir(self), "..", "calls"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			os.Exit(9)
		}
		f.Write(append(line, '\n'))
		f.Close()
	}
	n := 0
	for _, a := range os.Args[1:] {
		n += len(a)
	}
	if words[0] != "sudo" && words[0] != "time" {
		os.Exit(n % 2)
	}
	for i, a := range os.Args[1:] {
		if (a == "" || a[0] != '-') && os.Args[i] != "-u" {
			c := exec.Command(a, os.Args[i+2:]...)
			c.Stdout, c.Stderr = os.Stdout, os.Stderr
			if c.Run() != nil {
				os.Exit(1)
			}
			return
		}
	}
}
`

// standIns are the programs that texts find: those that they mean to start, and what only a wrong reading takes for one.
var standIns = []string{
	"aa", "bb", "cc", "rm", "git", "sudo", "time", "a", "b", "x", "y", "E", "f", "g", "line", "status", "7", "12", "[[", "]]", "{", "}", "!", "function", "repeat", "noglob", "end", "coproc",
	"then", "fi", "do", "done", "-x", "-v", "-p", "aa=1", "V=1", "1=x", "=aa", "x.y", "b\\b", "a b", "{a,b}", "$V", "in", "select", "foreach", "always", "EOF", "e", "exec", "command", "echo",
	"printf", "test", "[", "time:", "esac", "case", "if", "for", "while", "p", "q", "h", "i", "l", "m", "n", "d", "s", "t", "u", "v", "w", "z", "~", "*", "?", "%1", "_", "cat", "touch",
}

// realOnes start others, and are themselves.
var realOnes = []string{"env", "timeout", "nohup", "nice", "xargs", "find", "bash", "dash", "zsh", "mksh", "busybox"}

// realShell is a shell that texts are run in.
type realShell struct {
	name string   // of the tests
	argv []string // up to the text; the first word is what the shell is called
	file string   // the program
	at   dialect
}

var realShells = []realShell{
	{"bash", []string{"bash", "--norc", "--noprofile", "-c"}, "bash", bash},
	{"bash as sh", []string{"sh", "-c"}, "bash", sh},
	{"dash", []string{"dash", "-c"}, "dash", dash},
	{"busybox", []string{"busybox", "sh", "-c"}, "busybox", busybox},
	{"mksh", []string{"mksh", "-c"}, "mksh", mksh},
	{"zsh", []string{"zsh", "-f", "-c"}, "zsh", zsh},
}

// shellBench runs texts in one shell, where they find stand-ins alone.
type shellBench struct {
	t               *testing.T
	realShell       realShell
	dir, calls, cwd string
}

// newShellBenches returns a bench for each shell of this machine. A shell that is missing fails the test if CI is set.
func newShellBenches(t *testing.T) []*shellBench {
	t.Helper()
	program := filepath.Join(t.TempDir(), "stand-in")
	source := program + ".go"
	if err := os.WriteFile(source, []byte(standIn), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Skipf("the stand-ins cannot be built: %v: %s", err, out)
	}
	var all []*shellBench
	for _, one := range realShells {
		file, err := exec.LookPath(one.file)
		switch {
		case err != nil && os.Getenv("CI") != "":
			t.Fatalf("%s is missing: install it", one.file)
		case err != nil:
			t.Logf("%s is missing: nothing is run in it", one.file)
			continue
		}
		one.file = file
		all = append(all, newShellBench(t, one, program))
	}
	return all
}

func newShellBench(t *testing.T, one realShell, program string) *shellBench {
	b := &shellBench{t: t, realShell: one, dir: t.TempDir()}
	b.calls = filepath.Join(b.dir, "calls")
	bin := filepath.Join(b.dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(bin, standIns[0])
	if err := os.WriteFile(own, raw, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range standIns[1:] {
		if err := os.Link(own, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range append(realOnes, "sh") {
		from := name
		if name == "sh" {
			from = map[string]string{"bash as sh": "bash"}[one.name]
			if from == "" {
				from = "dash"
			}
		}
		if file, err := exec.LookPath(from); err == nil {
			if err := os.Symlink(file, filepath.Join(bin, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b
}

// fresh makes a new folder for texts to run in, with files for patterns to find.
func (b *shellBench) fresh() {
	b.cwd = b.t.TempDir()
	for _, name := range []string{"a", "ab", "x.y", "-v", "E"} {
		if err := os.WriteFile(filepath.Join(b.cwd, name), nil, 0o600); err != nil {
			b.t.Error(err)
		}
	}
}

// run runs a text, and returns the commands that ran. The variables are traps: their values are code where a shell computes them or reads them again.
func (b *shellBench) run(text string) ([][]string, error) {
	if err := os.WriteFile(b.calls, nil, 0o600); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.realShell.file, append(b.realShell.argv[1:len(b.realShell.argv):len(b.realShell.argv)], text)...)
	cmd.Args[0] = b.realShell.argv[0]
	cmd.Dir = b.cwd
	cmd.Env = []string{"PATH=" + filepath.Join(b.dir, "bin"), "A=a[$(rm A)]", "B=-v", "C=aa; rm C", "D=*(e:rm D:)", "N=a[`rm N`]", "FUNCNEST=20"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd.ExtraFiles = []*os.File{w}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return nil, err
	}
	for resource, most := range map[int]uint64{unix.RLIMIT_CPU: 2, unix.RLIMIT_FSIZE: 1 << 16, unix.RLIMIT_CORE: 0} {
		_ = unix.Prlimit(cmd.Process.Pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil)
	}
	_, open := r.Read(make([]byte, 1)) // ends when the last process has, also one in the background
	_ = cmd.Wait()
	if open == nil {
		return nil, errors.New("somebody wrote into the pipe")
	}
	raw, err := os.ReadFile(b.calls)
	if err != nil {
		return nil, err
	}
	var ran [][]string
	for line := range bytes.Lines(raw) {
		var words []string
		if err := json.Unmarshal(line, &words); err != nil {
			return nil, err
		}
		ran = append(ran, words)
	}
	return ran, nil
}

// at is where the texts of a bench run, as rules know it.
func (b *shellBench) at() setting {
	return setting{shells: b.realShell.at, env: []string{"PATH", "A", "B", "C", "D", "N", "FUNCNEST"}}
}

// unjudged runs a text if an allow could be sure of it, and returns the first command that ran and was not read from it.
func (b *shellBench) unjudged(text string) (told bool, ran [][]string, odd []string, s *script) {
	s = readScript(text, b.at())
	if s.untold != "" || len(s.names) > 0 {
		return false, nil, nil, s
	}
	ran, err := b.run(text)
	if err != nil {
		b.t.Errorf("%s: %v: %s", b.realShell.name, err, text)
	}
	for _, words := range ran {
		if !judged(s, words) {
			return true, ran, words, s
		}
	}
	return true, ran, nil, s
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

// TestNoCommandRunsUnjudged: in no real shell does a command run that was not read from its text, unless it was said that it cannot be told.
func TestNoCommandRunsUnjudged(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts many programs")
	}
	benches := newShellBenches(t)
	const atOnce = 100
	rounds, total := 0, make([]int, len(benches))
	var ran int
	var mu sync.Mutex
	for seed := range testkit.Seeds(t, 3) {
		g := &scripter{rng: rand.New(rand.NewPCG(seed, 1))}
		texts := make([]string, atOnce)
		rounds++
		for i := range texts {
			texts[i] = g.text()
		}
		var wg sync.WaitGroup
		for i, b := range benches {
			wg.Go(func() {
				b.fresh()
				defer os.RemoveAll(b.cwd)
				for _, text := range texts {
					told, calls, odd, s := b.unjudged(text)
					mu.Lock()
					if ran += len(calls); told {
						total[i]++
					}
					if odd != nil {
						t.Errorf("seed %d: in %s ran %q, which was not read from\n%s\n%q", seed, b.realShell.name, odd, text, commandsOf(s))
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			break
		}
	}
	for i, b := range benches {
		t.Logf("%s: %d of %d texts could be told", b.realShell.name, total[i], rounds*atOnce)
		if total[i] < 10*rounds {
			t.Errorf("%s: too little was tried: %d texts could be told", b.realShell.name, total[i])
		}
	}
	t.Logf("%d commands ran", ran)
	if ran < 10*rounds*len(benches) {
		t.Errorf("too little was tried: %d commands ran", ran)
	}
}

func commandsOf(s *script) []string {
	var out []string
	for _, c := range s.commands {
		out = append(out, c.line())
	}
	return out
}
