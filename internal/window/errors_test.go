package window

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// errorLines are lines that report an error, of the kinds that tools commonly print.
var errorLines = []string{
	"ValueError: invalid literal for int() with base 10: 'x1'", "KeyError: 'order_id'", "requests.exceptions.ConnectionError: HTTPConnectionPool(host='db', port=80): Max retries exceeded",
	"E   ModuleNotFoundError: No module named 'orders'", "E       assert 3 == 4", "tests/test_order.py:77: AssertionError", "FAILED tests/test_order.py::test_open - AssertionError: assert 3 == 4",
	`java.lang.NullPointerException: Cannot invoke "Order.id()" because "o" is null`, `Exception in thread "main" java.lang.IllegalStateException`, "Caused by: java.sql.SQLException: no such table",
	"thread 'main' panicked at src/main.rs:42:13: index out of bounds: the len is 3 but the index is 7", "error[E0308]: mismatched types", "error: could not compile `orders` (bin) due to 1 previous error",
	"panic: runtime error: invalid memory address or nil pointer dereference", "fatal error: all goroutines are asleep - deadlock!", "./store.go:31:9: undefined: openStore", "./main.go:12:2: declared and not used: y",
	"--- FAIL: TestOrder (0.01s)", "FAIL\tacme/orders\t0.012s", "Segmentation fault (core dumped)", "src/app.ts(14,7): error TS2322: Type 'string' is not assignable to type 'number'.",
	"src/app.c:12:5: error: expected ';' before 'return'", "main.o: undefined reference to `order_open'", "collect2: error: ld returned 1 exit status", "LINK : fatal error LNK1120: 1 unresolved externals",
	"make: *** [Makefile:12: all] Error 2", "Unhandled exception. System.InvalidOperationException: Sequence contains no elements",
	"Store.cs(12,5): error CS0103: The name 'store' does not exist in the current context", "Uncaught ReferenceError: x is not defined", "[TypeError: generate is not a function]", "npm ERR! code ELIFECYCLE",
	"not ok 3 - opens the order", "HTTP/1.1 503 Service Unavailable", `10.0.0.1 - - "GET /orders HTTP/1.1" 500 12`, "curl: (7) Failed to connect to localhost port 8080: Connection refused",
	"fatal: not a git repository (or any of the parent directories): .git", "CONFLICT (content): Merge conflict in store.go", " ! [rejected]        main -> main (non-fast-forward)", "permission denied: ./run.sh",
	"bash: kubectl: command not found", "ls: cannot access 'x': No such file or directory", "2031-05-01T10:00:00Z ERROR worker: cannot reach db", `{"level":"error","msg":"lost the leader"}`,
	"level=error msg=\"lost the leader\"", "psql: error: connection to server failed", "app.rb:3:in `open': undefined method `id' for nil (NoMethodError)", "PHP Fatal error:  Uncaught Exception: no order in /srv/a.php:3",
	"Error: Process completed with exit code 1.", "Error response from daemon: pull access denied for acme/orders", "ssh: connect to host bastion port 22: Connection timed out", "Killed",
}

func TestErrorLines(t *testing.T) {
	for _, line := range errorLines {
		if got := errorScore(line); got < plainError {
			t.Errorf("%q: %d", line, got)
		}
	}
	for _, line := range []string{"", "12 passed, 0 failed in 3 s", "no errors", "compiled without errors", "errors: 0", `{"error":null,"id":7}`, "INFO request 17 handled in 3 ms status 200", "ok  \tacme/orders\t0.1s",
		"row 17 of 2000", "src/a.c:12:4: warning: x is not read", "src/a.c: In function 'open':", "see rows.go line 12 for the rest", "! it is done", "0 Fehler, 3 Hinweise", "构建完成,没有错误", "エラーはありません",
		"note: src/a.py:12: see there", "Status: Created", "3 examples, 0 failures", "EXAMPLE: ENGLISH", "** (see below)", "- **Result:** all is written", "##[section]Starting: build", "tests/test_a.py::test_open PASSED", "Traceback (most recent call last):", "Copying files to dist/", "HTTP/1.1 200 OK", "the weather is fine", "+ [1 of 7] linking"} {
		if got := errorScore(line); got != noError {
			t.Errorf("%q is no error: %d", line, got)
		}
	}
	for _, line := range []string{"\t\tthrow new Error(`no order: ${id}`);", "    24→    } catch (error) {", "| `error` | Error states |", "// returns an error if the file is not there", "\treturn fmt.Errorf(\"no order: %w\", err)",
		"  errorMessage: string;", "it is said to have failed once, but nobody could tell why it was so and what was done about it, since all of the logs of that day were deleted long ago by a job"} {
		if got := errorScore(line); got > mention {
			t.Errorf("%q only speaks of errors: %d", line, got)
		}
	}
}

// longOutput puts each line among ordinary ones.
func longOutput(lines ...string) string {
	ordinary := func(from int) string {
		var b strings.Builder
		for i := range 2000 {
			fmt.Fprintf(&b, "10:%02d:%02d INFO request %d served\n", i/60%60, i%60, from+i)
		}
		return b.String()
	}
	return ordinary(0) + strings.Join(lines, "\n") + "\n" + ordinary(2000)
}

// TestErrorsOfLongOutputsSurvive: a line that reports an error survives in a digest of a long output, alone and among others, as text, in JSON, and when the
// output itself was put aside or pruned before.
func TestErrorsOfLongOutputsSurvive(t *testing.T) {
	testkit.Sequential(t)
	holds := func(name, digest, line string) {
		t.Helper()
		if line = strings.ReplaceAll(strings.TrimSpace(line), "\t", " "); !strings.Contains(digest, line) {
			t.Errorf("%s: %q is not in\n%s", name, line, digest)
		}
	}
	for _, line := range errorLines {
		w := newWriter(1)
		w.user("run it")
		w.use(&pool.Result{Text: longOutput(line)})
		holds("text", Digest(w.d.Messages), line)
		raw, _ := json.Marshal(map[string]any{"exit": 1, "output": map[string]string{"stdout": longOutput(line)}})
		w.d.Messages[2].Result = &pool.Result{JSON: raw}
		holds("JSON", Digest(w.d.Messages), line)
	}
	for _, threshold := range []int{1_000_000, 10} { // put aside, pruned
		w := newWriter(1)
		w.user("run it")
		w.use(&pool.Result{Text: longOutput(errorLines[:18]...)})
		w.assistant(w.words(300))
		for range 8 {
			w.user(w.words(150))
			w.assistant(w.words(150))
		}
		o := options(2000)
		o.PruneThreshold, o.PruneKeep, o.KeepBlocks, o.DigestTokens = threshold, 0, 1, 600
		if _, err := Standard(o, nil, nil).Run(t.Context(), w.d); err != nil {
			t.Fatal(err)
		}
		digest := ""
		for _, m := range w.d.Messages {
			if m.Kind == "digest" {
				digest += m.Text()
			}
		}
		for _, line := range errorLines[:18] {
			holds(fmt.Sprint("threshold ", threshold), digest, line)
		}
	}
}

// TestErrorsStandInWhatStandsForAnOutput: the text in place of an output that is shortened or put aside names its errors.
func TestErrorsStandInWhatStandsForAnOutput(t *testing.T) {
	middling := strings.Repeat("10:00:00 INFO a request was served, again\n", 1) + longOutput("KeyError: 'order_id'")
	middling = middling[len(middling)/2-3000 : len(middling)/2+3000]
	for name, text := range map[string]string{"put aside": longOutput("KeyError: 'order_id'"), "shortened": middling} {
		f := smaller(nil, "", &pool.Result{Text: text}, true, SmallOutput)
		if f.rule == "" || len(f.text) >= len(text) || !strings.Contains(f.text, "KeyError: 'order_id'") {
			t.Errorf("%s: %s, %.400s", name, f.rule, f.text)
		}
	}
}

// TestErrorsOfManyToolsSurvive: testdata/errors.txt has lines of many tools and languages. The last 45 were written after the rules, which found 44 of them.
func TestErrorsOfManyToolsSurvive(t *testing.T) {
	raw, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := options(0).Window(nil).Counter
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for lines := range slices.Chunk(strings.Split(strings.TrimSpace(string(raw)), "\n"), 6) {
		output := longOutput(strings.Join(lines, "\n10:00:00 INFO a request was served\n"))
		inJSON, _ := json.Marshal(map[string]any{"exit": 1, "output": map[string]string{"stdout": output}})
		for _, result := range []*pool.Result{{Text: output}, {JSON: inJSON}} {
			w := newWriter(1)
			w.user("run it")
			w.use(result)
			digest := gather(w.d.Messages, nil, func(m *chatctx.DraftMessage) *pool.Message { return m.Message }).within(c, 400)
			for _, line := range lines {
				if !strings.Contains(flat(digest), flat(line)) {
					t.Errorf("%q is not in\n%s", line, digest)
				}
			}
		}
	}
}

// TestFailedTestsInARow: of many failed tests the first lines stay whole, followed by the names of others and the number of the rest.
func TestFailedTestsInARow(t *testing.T) {
	var few, many strings.Builder
	for i := range 60 {
		line := fmt.Sprintf("FAILED tests/test_orders.py::test_%c%d - AssertionError: assert %d == 4\n", 'a'+i%26, i, i)
		if many.WriteString(line); i < 8 {
			few.WriteString(line)
		}
	}
	for text, want := range map[string]string{
		few.String(): " - AssertionError: assert 2 == 4 @ also test_d3, test_e4, test_f5, test_g6, test_h7",
		many.String(): " - AssertionError: assert 2 == 4 @ also test_d3, test_e4, test_f5, test_g6, test_h7, test_i8, test_j9, test_k10, test_l11, test_m12, test_n13, test_o14, test_p15, test_q16, test_r17, test_s18, test_t19, " +
			"test_u20, test_v21, test_w22 and 37 more",
		"not ok 1 - opens\nnot ok 2 - closes\nnot ok 3 - opens\n":                                   "not ok 1 - opens",
		"test orders::open1 ... FAILED\ntest orders::open2 ... FAILED\ntest orders::close ... ok\n": "test orders::open1 ... FAILED @ also open2",
	} {
		if found := find(text); len(found) == 0 || !slices.ContainsFunc(found, func(p problem) bool { return strings.HasSuffix(p.String(), want) }) {
			t.Errorf("%+v, none ends with %q", found, want)
		}
	}
}

// TestErrorsKeepTheirPlace: a compiler's error keeps its place from the line after it.
func TestErrorsKeepTheirPlace(t *testing.T) {
	got := find("error[E0308]: mismatched types\n  --> src/main.rs:4:9\n   |\n4  |     x\n\nerror[E0425]: cannot find value `y` in this scope\n --> src/rows.rs:17:5\n")
	want := []string{"error[E0308]: mismatched types @ --> src/main.rs:4:9", "error[E0425]: cannot find value `y` in this scope @ --> src/rows.rs:17:5"}
	if len(got) != 2 || got[0].String() != want[0] || got[1].String() != want[1] {
		t.Errorf("%+v, want %q", got, want)
	}
}

func find(text string) []problem {
	most := errorsHit
	return problems(text, &most)
}

func TestProblemsInJSON(t *testing.T) {
	got := find(outputText(`{"ok":false,"error":{"code":404,"message":"no order 7"},"list":[1,2],"log":"a\nb\nTypeError: x is undefined\n"}`))
	want := []string{"error: code: 404, message: no order 7", "TypeError: x is undefined"}
	if len(got) != 2 || got[0].line != want[0] || got[1].line != want[1] {
		t.Errorf("%+v, want %q", got, want)
	}
	for _, broken := range []string{"{", `{"a":`, `[1,`, ""} {
		if find(outputText(broken)) != nil {
			t.Errorf("%q has problems", broken)
		}
	}
}

func FuzzProblems(f *testing.F) {
	for _, line := range errorLines {
		f.Add(line)
	}
	f.Add("panicked at a:\n\n  File \"x\", line 1\n\tat\x00")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range find(text) {
			if len(p.line) > problemLine+16 || strings.Contains(p.String(), "\n") || p.score == noError {
				t.Errorf("%+v of %q", p, text)
			}
		}
		d := []*chatctx.DraftMessage{{Entry: pool.Entry{Message: &pool.Message{Role: pool.ToolRole, Result: &pool.Result{Text: text}}}}}
		digest := HistoryMark + " " + Digest(d)
		if again := parseDigest(digest).String(); again != digest {
			t.Errorf("read and written again it is another:\n%s\n%s", digest, again)
		}
	})
}
