package cli

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	goflag "flag"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/chatctx/chatctx/internal/testkit"
)

const linesDir = "../../testdata/lines"

// linesOnly selects recorded files.
var linesOnly = goflag.String("lines", "*", "the files of testdata/lines whose lines TestRecordedLines runs, as a pattern of their names")

// loosen marks the lines that answer otherwise although nothing changed.
var loosen = goflag.Bool("loosen", false, "have only the exit codes of those lines of testdata/lines count that answer otherwise now")

// TestRecordedLines runs the command lines of testdata/lines in this process and compares what each prints on standard
// output and standard error, and its exit code, with what is recorded. -update records what they print now.
//
// A file is a script for testscript, of which each line "run ARGS" is a command line, followed by what it answered: "=
// CODE", "> " before each line of standard output, "2> " before each of standard error. A text of more than a few lines
// stands once a file, in the section of its number: "> same as N". "{id3}" in a command line is the short form of the
// id that is called id3 in the answers before it, "{ID3}" the whole of it.
func TestRecordedLines(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("what is recorded has the paths and messages of Unix")
	}
	dir, err := filepath.Abs(linesDir)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, *linesOnly+".txt"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files: ", err)
	}
	l := newLineRunner(t)
	// The seeds come first: the other files begin with the stores that they made.
	seeds := filepath.Join(dir, "seeds.txt")
	files = slices.DeleteFunc(files, func(f string) bool { return f == seeds })
	begun := time.Now()
	if testkit.Race { // what a line answers does not depend on it: .ci/run runs all lines without
		files = slices.DeleteFunc(files, func(f string) bool { return len(filepath.Base(f))%6 > 0 })
	}
	for _, file := range append([]string{seeds}, files...) {
		l.file(t, file)
	}
	t.Logf("%d command lines, %d of them answer otherwise, in %.1f s", l.ran, l.differ, time.Since(begun).Seconds())
	if all := *linesOnly == "*" && !testkit.Race; all && l.ran < 1500 {
		t.Errorf("only %d command lines", l.ran)
	}
	if l.differ > 0 && !*update && !*loosen {
		t.Errorf("%d of %d lines answer otherwise; if they should: go test ./internal/cli -run RecordedLines -update", l.differ, l.ran)
	}
}

// lineRunner runs recorded command lines.
type lineRunner struct {
	t           *testing.T
	data        string // the folder testdata
	dir         string // for the streams of the program and for the seeds
	names       *recordedNames
	seeds       map[string]*recordedNames
	provider    *fakeProvider
	server      *httptest.Server
	want        []answer // what the lines of the present file answered when they were recorded
	next        int      // the number of the next line of the file
	at          string   // the folder of the next line; "" if that is the script's
	every       string   // the seed with which each line begins; "" if they follow each other
	feed        string   // standard input of the next line
	env         []string // names of variables that the present file sets
	loose       bool     // of the next line only the exit code counts
	unstable    []int    // the lines of the present file that answered otherwise
	ran, differ int
}

// answer is what a command line answers.
type answer struct {
	code     int
	out, err string
}

// endless stands in place of the exit code of a line that does not end.
const endless = -2

func newLineRunner(t *testing.T) *lineRunner {
	l := &lineRunner{t: t, data: must1(filepath.Abs("testdata")), dir: quickFolder(t), provider: &fakeProvider{always: "say Petrel."},
		seeds: map[string]*recordedNames{}}
	l.server = httptest.NewServer(l.provider)
	t.Cleanup(l.server.Close)
	t.Cleanup(func() { countIDs(nil) })
	return l
}

// quickFolder is a folder in memory where there is one: thousands of stores are written to the disk otherwise.
func quickFolder(t *testing.T) string {
	const memory = "/dev/shm"
	dir, err := os.MkdirTemp(memory, "chatctx-lines-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// recordedSteps are what the scripts of recorded lines may use beside testscript's own commands and those of the other scripts.
func (l *lineRunner) steps() map[string]func(*testscript.TestScript, bool, []string) {
	steps := maps.Clone(talkCommandsOfTests)
	maps.Copy(steps, map[string]func(*testscript.TestScript, bool, []string){
		"keep": scriptKeep, "cutfile": scriptCut, "shorten": scriptShorten, "replace": scriptReplace,
		"run": l.run, "http": l.http, "rpc": l.rpc,
		// loose LINE: of a line whose answer differs each time only the exit code is recorded.
		"loose": func(ts *testscript.TestScript, neg bool, args []string) {
			l.loose = true
			l.steps()[args[0]](ts, neg, args[1:])
		},
		// feed FILE: the file is standard input of the next line.
		"feed": func(ts *testscript.TestScript, _ bool, args []string) { l.feed = l.contentOf(ts, args[0]) },
		// also LINE: the line runs in a copy of the folder, which is then as it was.
		"also": l.also,
		// put FILE PATH x|-: writes a file of the script, with ids in place of their words; x: it can be run.
		"put": func(ts *testscript.TestScript, _ bool, args []string) {
			mode := map[string]os.FileMode{"x": 0o700, "-": 0o600}[args[2]]
			ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(l.contentOf(ts, args[0])), mode))
		},
		// every SEED: each line that follows runs in a folder of its own with the files of the seed.
		"every": func(_ *testscript.TestScript, _ bool, args []string) { l.every = args[0] },
		// begin FOLDER SEED: the lines that follow run in a folder of that name with the files of the seed: a home and a checkout.
		"begin": l.begin,
		// save SEED: the folder as it is becomes a seed.
		"save": func(ts *testscript.TestScript, _ bool, args []string) {
			ts.Check(os.CopyFS(filepath.Join(l.dir, args[0]), os.DirFS(l.root(ts))))
			l.seeds[args[0]] = l.names.clone()
		},
	})
	return steps
}

// fresh makes the folder of the next line. Its path is another one each time, for a program keeps a store open for a while after
// the command that used it.
func (l *lineRunner) fresh(ts *testscript.TestScript, seed string) {
	if l.at != "" {
		ts.Check(os.RemoveAll(l.at))
	}
	l.at = filepath.Join(ts.Getenv("WORK"), fmt.Sprintf("line%06d", l.ran))
	l.fill(ts, l.at, seed)
}

// fill makes a folder with the files of a seed, and goes on with the words of its ids.
func (l *lineRunner) fill(ts *testscript.TestScript, dir, seed string) {
	ts.Check(os.MkdirAll(dir, 0o700))
	l.names = newRecordedNames(l.t, dir, l.server.URL)
	if seed == "nothing" {
		return
	}
	if l.seeds[seed] == nil {
		ts.Fatalf("no seed %s", seed)
	}
	ts.Check(os.CopyFS(dir, os.DirFS(filepath.Join(l.dir, seed))))
	l.names.follow(l.seeds[seed])
}

// root is the folder in which the home of the lines is.
func (l *lineRunner) root(ts *testscript.TestScript) string {
	return cmp.Or(ts.Getenv("ROOT"), ts.Getenv("WORK"))
}

func (l *lineRunner) begin(ts *testscript.TestScript, _ bool, args []string) {
	root := filepath.Join(ts.Getenv("WORK"), args[0])
	l.fill(ts, root, args[1])
	home, checkout := filepath.Join(root, "home"), filepath.Join(root, "checkout")
	for _, name := range []string{"HOME", "USERPROFILE", "XDG_DATA_HOME"} {
		ts.Setenv(name, home)
	}
	ts.Setenv("CHATCTX_STORE", filepath.Join(home, "chats.db"))
	ts.Setenv("ROOT", root)
	ts.Check(os.MkdirAll(home, 0o700))
	ts.Check(os.MkdirAll(checkout, 0o700))
	if _, err := os.Lstat(filepath.Join(checkout, "testdata")); err != nil {
		ts.Check(os.Symlink(filepath.Join(l.data, "..", "..", "..", "testdata"), filepath.Join(checkout, "testdata")))
	}
	ts.Check(ts.Chdir(checkout))
}

func (l *lineRunner) also(ts *testscript.TestScript, neg bool, args []string) {
	names := l.names
	l.at = filepath.Join(ts.Getenv("WORK"), fmt.Sprintf("also%06d", l.ran))
	ts.Check(os.CopyFS(l.at, os.DirFS(l.root(ts))))
	l.names = newRecordedNames(l.t, l.at, l.server.URL)
	l.names.follow(names)
	l.steps()[args[0]](ts, neg, args[1:])
	ts.Check(os.RemoveAll(l.at))
	l.at, l.names = "", names
	countIDs(names.counts)
}

// contentOf is the text of a file of the script, with ids in place of their words. A file called .nonl has no newline at its end.
func (l *lineRunner) contentOf(ts *testscript.TestScript, file string) string {
	text := l.names.typed(ts.ReadFile(file))
	if strings.HasSuffix(file, ".nonl") {
		text = strings.TrimSuffix(text, "\n")
	}
	return text
}

// moved is a path of the script's folder in the folder of the line.
func (l *lineRunner) moved(ts *testscript.TestScript, path string) string {
	if l.at == "" {
		return path
	}
	return strings.ReplaceAll(path, l.root(ts), l.at)
}

// serialT is a test whose scripts run one after the other: they share the process.
type serialT struct{ *testing.T }

func (s serialT) Parallel()     {}
func (s serialT) Verbose() bool { return false }
func (s serialT) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(serialT{t}) })
}

// file runs the lines of a file.
func (l *lineRunner) file(t *testing.T, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	script, want, err := withoutAnswers(string(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	l.want, l.next, l.every, l.at, l.feed, l.unstable = want, 0, "", "", "", nil
	l.env = nil
	for _, m := range regexp.MustCompile(`(?m)^(?:env|setlast|keep|shorten) (\w+)`).FindAllStringSubmatch(script, -1) {
		l.env = append(l.env, m[1])
	}
	plain := filepath.Join(l.dir, filepath.Base(name))
	if err := os.WriteFile(plain, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	failed := t.Failed()
	condition := func(cond string) (bool, error) { return cond == "root" && os.Geteuid() == 0, nil }
	work := filepath.Join(l.dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		t.Fatal(err)
	}
	testscript.RunT(serialT{t}, testscript.Params{
		Files: []string{plain}, WorkdirRoot: work, Cmds: l.steps(), Setup: l.setup, ContinueOnError: true, Condition: condition,
	})
	os.RemoveAll(work)
	if l.next == 0 && len(want) > 0 { // -run names another file
		return
	}
	script = l.marked(script)
	if (*update || *loosen) && (failed || !t.Failed()) {
		if err := os.WriteFile(name, []byte(withAnswers(script, l.want[:l.next])), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// marked is a script in which only the exit codes of the lines count that answered otherwise although nothing had
// changed, and without the lines that do not end.
func (l *lineRunner) marked(script string) string {
	a := txtar.Parse([]byte(script))
	var b strings.Builder
	var kept []answer
	n := 0
	for line := range strings.Lines(string(a.Comment)) {
		if isRun(line) && n < l.next {
			got := l.want[n]
			if n++; got.code == endless {
				l.t.Logf("%s is taken out: it does not end", line)
				continue
			}
			if *loosen && slices.Contains(l.unstable, n-1) {
				line = "loose " + strings.TrimPrefix(line, "loose ")
				if rest, is := strings.CutPrefix(line, "loose also "); is {
					line = "also loose " + strings.TrimPrefix(rest, "loose ")
				}
			}
			kept = append(kept, got)
		}
		b.WriteString(line)
	}
	l.want, l.next = kept, len(kept)
	a.Comment = []byte(b.String())
	return string(txtar.Format(a))
}

// linesEnv are the variables of the environment in which lines run; no other is set.
var linesEnv = []string{
	"PATH", "HOME", "USERPROFILE", "XDG_DATA_HOME", "TMPDIR", "TZ", "TERM", "COLUMNS", "NO_COLOR", "GORACE", "DATA", "SERVER",
	"CHATCTX_STORE",
}

func (l *lineRunner) setup(e *testscript.Env) error {
	home := filepath.Join(e.WorkDir, "home")
	set := map[string]string{
		"HOME": home, "USERPROFILE": home, "XDG_DATA_HOME": filepath.Join(e.WorkDir, "data"), "TZ": "UTC", "TERM": "xterm", "COLUMNS": "80",
		"NO_COLOR": "1", "GORACE": "atexit_sleep_ms=0", "SERVER": l.server.URL, "DATA": l.data,
	}
	for _, v := range providerEnv(l.server.URL) {
		name, value, _ := strings.Cut(v, "=")
		set[name] = value
		l.env = append(l.env, name)
	}
	for name, value := range set {
		e.Setenv(name, value)
	}
	e.Values["provider"] = l.provider
	l.provider.mu.Lock()
	l.provider.answers = nil
	l.provider.mu.Unlock()
	l.names = newRecordedNames(l.t, e.WorkDir, l.server.URL)
	return nil
}

// run ARGS: runs a command line and compares its answer with the recorded one.
func (l *lineRunner) run(ts *testscript.TestScript, _ bool, args []string) {
	if l.every != "" {
		l.fresh(ts, l.every)
	}
	typed := slices.Clone(args)
	for i := range args {
		typed[i] = l.moved(ts, l.names.typed(args[i]))
	}
	got, raw := l.answer(ts, typed)
	fmt.Fprint(ts.Stdout(), raw.out)
	fmt.Fprint(ts.Stderr(), raw.err)
	l.compare(ts, "chatctx "+quotedLine(args), got)
}

// compare holds an answer against the recorded one.
func (l *lineRunner) compare(ts *testscript.TestScript, asked string, got answer) {
	if l.loose {
		got.out, got.err, l.loose = "", "", false
	}
	if l.next == len(l.want) {
		l.want = append(l.want, answer{code: -1})
	}
	want := &l.want[l.next]
	l.next++
	l.ran++
	if got == *want {
		return
	}
	l.unstable = append(l.unstable, l.next-1)
	if l.differ++; *update {
		*want = got
		return
	}
	if *loosen {
		if got.code != endless {
			got = answer{code: got.code}
		}
		l.t.Logf("%s: %s\n%s", ts.Name(), asked, differences(*want, got))
		*want = got
		return
	}
	l.t.Errorf("%s: %s\n%s", ts.Name(), asked, differences(*want, got))
}

// lineTime is how long a line may run. With -loosen one that runs for longer is taken out.
func lineTime() time.Duration {
	if *loosen {
		return 10 * time.Second
	}
	return time.Minute
}

// answer runs a command line in the folder of the script. It returns the answer with words for what differs each time, and as it was.
func (l *lineRunner) answer(ts *testscript.TestScript, args []string) (recorded, raw answer) {
	defer l.surroundings(ts)()
	in, typed, err := os.Pipe()
	ts.Check(err)
	feed := l.feed
	l.feed = ""
	go func() {
		_, _ = io.WriteString(typed, feed)
		typed.Close()
	}()
	out, errOut := l.stream("out"), l.stream("err")
	os.Stdin, os.Stdout, os.Stderr = in, out, errOut
	ended := make(chan int, 1)
	go func() { ended <- Main(args, in, out, errOut) }()
	select {
	case raw.code = <-ended:
	case <-time.After(lineTime()):
		if !*loosen {
			ts.Fatalf("chatctx %s does not end", quotedLine(args))
		}
		return answer{code: endless}, answer{}
	}
	in.Close()
	raw.out, raw.err = contentOf(out), contentOf(errOut)
	return answer{raw.code, shortened(l.names.recorded(raw.out)), shortened(l.names.recorded(raw.err))}, raw
}

// shortened is a text that is recorded: of a very long one its length, its hash and its beginning.
func shortened(text string) string {
	const most = 20_000
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s\n… %d bytes, SHA-256 %x\n", strings.ToValidUTF8(text[:1000], ""), len(text), sha256.Sum256([]byte(text)))
}

// surroundings gives this process the environment and the folder of a script, and its own again when the line has ended.
func (l *lineRunner) surroundings(ts *testscript.TestScript) (restore func()) {
	environment, folder := os.Environ(), must1(os.Getwd())
	stdin, stdout, stderr := os.Stdin, os.Stdout, os.Stderr
	os.Clearenv()
	for _, name := range slices.Concat(linesEnv, l.env) {
		v := l.moved(ts, ts.Getenv(name))
		if v != "" {
			os.Setenv(name, v)
		}
	}
	ts.Check(os.Chdir(l.moved(ts, ts.MkAbs("."))))
	return func() {
		os.Stdin, os.Stdout, os.Stderr = stdin, stdout, stderr
		_ = os.Chdir(folder)
		os.Clearenv()
		for _, v := range environment {
			name, value, _ := strings.Cut(v, "=")
			os.Setenv(name, value)
		}
	}
}

// stream opens a file for what the program prints.
func (l *lineRunner) stream(name string) *os.File {
	return must1(os.OpenFile(filepath.Join(l.dir, name), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600))
}

func contentOf(f *os.File) string {
	defer f.Close()
	return string(must1(os.ReadFile(f.Name())))
}

// quotedLine is a command line as a script has it.
func quotedLine(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		if words[i] = a; a == "" || strings.ContainsAny(a, " \t'\"#$\\&*") {
			words[i] = "'" + strings.ReplaceAll(a, "'", "''") + "'"
		}
	}
	return strings.Join(words, " ")
}

// longText is the number of bytes from which a text of an answer has a section of its own.
const longText = 500

// withoutAnswers takes the answers out of a file's text.
func withoutAnswers(text string) (script string, answers []answer, err error) {
	a := txtar.Parse([]byte(text))
	long := map[string]string{}
	a.Files = slices.DeleteFunc(a.Files, func(f txtar.File) bool {
		n, is := strings.CutPrefix(f.Name, "answer ")
		if is {
			long[n] = unmarked(string(f.Data), "> ")
		}
		return is
	})
	var rest, answered strings.Builder
	finish := func() error {
		if answered.Len() == 0 {
			return nil
		}
		if len(answers) == 0 {
			return errors.New("an answer before the first line")
		}
		at := &answers[len(answers)-1]
		*at = answer{code: -1, out: unmarked(answered.String(), "> "), err: unmarked(answered.String(), "2> ")}
		for _, text := range []*string{&at.out, &at.err} {
			if n, is := strings.CutPrefix(*text, "same as "); is {
				*text = long[strings.TrimSpace(n)]
			}
		}
		code, _, _ := strings.Cut(answered.String(), "\n")
		at.code, err = strconv.Atoi(strings.TrimPrefix(code, "= "))
		answered.Reset()
		return err
	}
	for line := range strings.Lines(string(a.Comment)) {
		if isAnswer(line) {
			answered.WriteString(line)
			continue
		}
		if err := finish(); err != nil {
			return "", nil, err
		}
		rest.WriteString(line)
		if isRun(line) {
			answers = append(answers, answer{code: -1})
		}
	}
	if err := finish(); err != nil {
		return "", nil, err
	}
	a.Comment = []byte(rest.String())
	return string(txtar.Format(a)), answers, nil
}

func isRun(line string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return slices.Contains([]string{"run", "loose", "http", "rpc", "also"}, word)
}

func isAnswer(line string) bool {
	return strings.HasPrefix(line, "= ") || strings.HasPrefix(line, "> ") || strings.HasPrefix(line, "2> ")
}

// withAnswers puts the answers into a script.
func withAnswers(script string, answers []answer) string {
	a := txtar.Parse([]byte(script))
	var with strings.Builder
	numbers, before := map[string]int{}, map[string]int{}
	count := func(text string) { before[text]++ }
	for _, got := range answers {
		count(got.out)
		count(got.err)
	}
	mark := func(text, with string) string {
		if len(text) < longText && strings.Count(text, "\n") < 9 || before[text] < 2 {
			return marked(text, with)
		}
		if numbers[text] == 0 {
			numbers[text] = len(numbers) + 1
			a.Files = append(a.Files, txtar.File{Name: fmt.Sprint("answer ", numbers[text]), Data: []byte(marked(text, "> "))})
		}
		return fmt.Sprintf("%ssame as %d\n", with, numbers[text])
	}
	next := 0
	for line := range strings.Lines(string(a.Comment)) {
		with.WriteString(line)
		if isRun(line) && next < len(answers) {
			got := answers[next]
			fmt.Fprintf(&with, "= %d\n%s%s", got.code, mark(got.out, "> "), mark(got.err, "2> "))
			next++
		}
	}
	a.Comment = []byte(with.String())
	return string(txtar.Format(a))
}

// oddLine matches a line that is not written as it is.
var oddLine = lazily("[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u2028\ufeff]|^%|[ \t]$")

// marked puts a mark before each line of a text. A line that would not survive as it is, or that does not end, is
// quoted behind a percent sign.
func marked(text, mark string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		whole, ends := strings.CutSuffix(line, "\n")
		if !ends || whole == "" || oddLine().MatchString(whole) || !bytes.Equal([]byte(whole), []byte(strings.ToValidUTF8(whole, "?"))) {
			line = "%" + strconv.Quote(line) + "\n"
		}
		b.WriteString(mark + line)
	}
	return b.String()
}

// unmarked returns the text whose lines have a mark.
func unmarked(text, mark string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, is := strings.CutPrefix(line, mark)
		if !is {
			continue
		}
		if q, odd := strings.CutPrefix(line, "%"); odd {
			line, _ = strconv.Unquote(strings.TrimSpace(q))
		}
		b.WriteString(line)
	}
	return b.String()
}

// differences shows how an answer differs from the recorded one.
func differences(want, got answer) string {
	var b strings.Builder
	if want.code != got.code {
		fmt.Fprintf(&b, "- exit code %d\n+ exit code %d\n", want.code, got.code)
	}
	for _, s := range []struct{ name, want, got string }{{"standard output", want.out, got.out}, {"standard error", want.err, got.err}} {
		if s.want != s.got {
			fmt.Fprintf(&b, "%s:\n%s", s.name, changedLines(s.want, s.got))
		}
	}
	return b.String()
}

// changedLines shows how a text differs from another, as far as a person wants to read.
func changedLines(a, b string) string {
	const most, width = 24, 300
	if strings.Count(a, "\n") == 1 && strings.Count(b, "\n") == 1 {
		from := 0
		for from < min(len(a), len(b)) && a[from] == b[from] {
			from++
		}
		from = max(0, from-100)
		return fmt.Sprintf("- …%.300q\n+ …%.300q\n", a[from:], b[from:])
	}
	var s strings.Builder
	n := 0
	for line := range strings.Lines(string(diff.Diff("recorded", []byte(a), "now", []byte(b)))) {
		if n++; n <= 3 || n > most+3 { // the head names the texts
			continue
		}
		fmt.Fprintf(&s, "%s\n", shortenedLine(strings.TrimSuffix(line, "\n"), width))
	}
	if n > most+3 {
		fmt.Fprintf(&s, "… %d more\n", n-most-3)
	}
	return s.String()
}

// shortenedLine is the beginning of a line.
func shortenedLine(line string, width int) string {
	if r := []rune(line); len(r) > width {
		return string(r[:width]) + "…"
	}
	return line
}
