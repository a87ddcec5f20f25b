package window

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// compiled returns a regular expression that is compiled at its first use, so that a program that only links this package pays nothing for it.
func compiled(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// These scores say how certain it is that a line reports an error.
const (
	noError      = 0
	mention      = 1 // a word about an error, in prose or in code
	plainError   = 2 // a line that reports one
	certainError = 3 // a line of a shape that only errors have
)

// errorWords are the words, in lower case, of which a line must have one to be examined.
var errorWords = []string{"error", "exception", "panic", "fail", "fatal", "segmentation fault", "core dumped", "undefined", "denied", "no such file", "not found", "cannot ", "can't ",
	"could not", "unable to", "refused", "timed out", "timeout", "out of memory", "killed", "exit status", "exit code", "exited with", "http", "status", "abort", "unresolved",
	"unexpected", "conflict", "npm err!", "***", "critical", "severe", "unauthorized", "forbidden", "not ok", "errno", "sqlstate", "ora-", "not used", "mismatch", "assert", "deadlock",
	"✗", "✖", "✕", "●", "service unavailable", "bad gateway", "non-zero", "interrupt", "overflow", "no space left", "not recognized", "not a ", "address already in use", "level=",
	"multiple definition", "invalid", "rejected", "illegal", "crash", "terminat", "violat", "not allowed", "expired", "unhandled", "uncaught", ": line ", "fault", "unreachable", "x509", "rspec ./", "err_", "enotfound",
	"econn", "etimed", "epipe", "erefused", "eai_again", "ehostun", "enetun", "[emerg]", "[crit]", "[alert]", "deadline exceeded", "no such host", "curl: (", "duplicate symbol", "data race", "breakpoint trap", "backoff", "what():", ": is a directory", ": file exists", ": read-only", ": broken pipe",
	": no route", "resource busy", "temporarily unavailable", "too many open", "not permitted", ": name or service", "too long", "quota exceeded"}

// foreignWords are such words in other languages: for an error, a failure, something not found or refused.
var foreignWords = []string{"fehler", "fehlgeschlagen", "nicht gefunden", "nicht möglich", "verweigert", "existiert nicht", "existiert bereits", "erreur", "échec", "Échec", "échou", "introuvable", "aucun fichier", "impossible d", "refusé",
	"no se pud", "no se puede", "no se encontr", "no existe", "falló", "denegad", "erro:", "não encontrad", "não foi possível", "falha", "errore", "non trovat", "impossibile", "negato",
	"шибка", "ШИБКА", "е найден", "е удалось", "тказано в", "ет такого", "错误", "錯誤", "失败", "失敗", "找不到", "未找到", "没有那个", "拒绝", "无法", "無法", "エラー", "ません", "오류", "에러", "실패", "수 없",
	"łąd", "ŁĄd", "nie można", "nie znaleziono", "fout:", "niet gevonden", "mislukt", "geweigerd", "hata:", "bulunamadı", "başarısız", "chyba:", "fel:", "lỗi", "Lỗi", "خطأ"}

// foreignNone removes the phrases of these languages that say that there was no error.
var foreignNone = strings.NewReplacer("没有错误", "", "无错误", "", "エラーなし", "", "エラーはありません", "", "오류 없음", "")

// byLetter groups errorWords and foreignWords by their first byte.
var byLetter = sync.OnceValue(func() *[256][]string {
	var by [256][]string
	for _, w := range slices.Concat(errorWords, foreignWords) {
		by[w[0]] = append(by[w[0]], w)
	}
	return &by
})

// mayReport reports whether a line should be examined: it has one of the words, or a mark that tools give their errors. lower is the line in lower case.
func mayReport(line, lower string) bool {
	by := byLetter()
	for i := range len(lower) {
		for _, w := range by[lower[i]] {
			if strings.HasPrefix(lower[i:], w) {
				return true
			}
		}
	}
	return marked(line)
}

// toolSays matches lines in which a tool names itself or a place in the source: PROGRAM: FILE:LINE: …, PROGRAM: Module.function: …, FILE:LINE:COLUMN: …
var toolSays = compiled(`^(?:[\w./+-]+: (?:[^\s:]+\.\w{1,5}:[\d(][^\s:]*(?::[\d-]+)*|\[string ".*"\]:\d+|(?:[A-Z]\w*\.)+[^\s:]+): \S|[\w./\\@+-]+\.\w{1,5}:\d+:\d+: \S|[\w./\\@+-]+\.\w{1,5}:\d+: \[[A-Z]\d{3,4}\b|e: \S+:\d+:\d+:? \S)`)

// toldOnly matches findings of compilers and checkers that are not errors.
var toldOnly = compiled(`^(?:\S+(?: \S+)?: )?(?:warning|note|info|hint|remark|style|debug|help|In |in |from )`)

// atLine matches the end of a line that names a place as Perl and PHP do.
var atLine = compiled(` (?:at|in) \S*[./]\S* (?:on )?line \d+(?:, <\$?\w+> (?:line|chunk) \d+)?\.?$`)

// marked reports whether a line reports an error by its beginning or end, whatever its words.
func marked(line string) bool {
	line = strings.TrimLeft(line, " \t")
	first, _, _ := strings.Cut(line, " ")
	switch {
	case strings.HasPrefix(line, "! "), strings.HasPrefix(line, "** ("):
		return certain().MatchString(line)
	case strings.HasSuffix(first, ":"), strings.HasPrefix(first, "e: "):
		return toolSays().MatchString(line) && !toldOnly().MatchString(line)
	case strings.Contains(line, " line "):
		return atLine().MatchString(line) && strings.Count(line, " ") <= mostWords
	}
	return false
}

// mostWords is how many blanks a line that reports something has at most; a longer one is prose.
const mostWords = 24

// labelled matches lines with a label that says error: - **Error:** …, ##[error]…, ::error …, [error] …
var labelled = compiled(`^[\s\-*+>#]*(?:(?:\*\*|__)(?:error|failure|failed|fatal|exception|fehler|erreur|错误|エラー|오류|ошибка)(?:\*\*|__)?\s*[:：]|\[error\]|::error[ :]|failure/error: )`)

// certain matches shapes of errors at the beginning of a line, after a time and the like.
var certain = compiled(`^(?:` + strings.Join([]string{
	`\[?(?:(?:Caused by|Uncaught|Unhandled exception|Unhandled \w+|(?:PHP )?Fatal error|Exception in thread "[^"]*"|[\w./-]+\.\w+(?::\d+)*|During handling)[.:]? +){0,2}` +
		`(?:\(?[A-Za-z_][\w$]*(?:\.|::|\\))*[A-Z]\w*(?:Error|Exception|Panic|Fault|Interrupt|Exit|Failure|Timeout|Expired|NotFound)\b(?:\s*\[[^\]]*\])?(?::|\]?$|\s*\(|\s+at\b|@)`,
	`! +(?:[A-Z]|==>)`, `\*\* \((?:[A-Z]|exit\))`, `terminate called `, `(?:Get|Post|Put|Head|Patch|Delete) "[^"]*": `, `rspec \.?/?\S+:\d+`, `-?ERR\b`, `\S+: line \d+: \S`, `[\w+-]+: terminating `,
	`panic: `, `(?:PHP )?[Ff]atal(?: error)?: `, `thread '.*' (?:\(\d+\) )?panicked`, `Segmentation fault`, `Killed\b`, `Abort(?:ed)?(?: \(core dumped\)| trap)`, `Bus error`, `SIG[A-Z]{3,5}\b`,
	`[Ee]rror(?:\[\w+\])?(?: [A-Z]+\d+)?:? `, `Error$`, `npm (?:ERR!|error)`, `(?:make|gmake|ninja)(?:\[\d+\])?: .*(?:\*\*\*|stopped|failed)`, `\*\*\* `, `FAILED\b`, `--- FAIL`, `FAIL\b`, `not ok \d`,
	`[✗✖✕●×] `, `E: `, `ERROR\b`, `CONFLICT \(`, `CMake Error`, `Build error`, `[EF]\d{4} \d\d:\d\d`, `[\w./\\@-]+\.\w{1,5}[:(]\d+[:,]\d+\)?: (?:fatal )?(?:error|undefined|cannot|expected|missing|unknown|syntax|declared|invalid|assignment|too many|not enough|[\w.]+ (?:redeclared|declared|undefined))`,
	`[\w./\\-]+\.\w{1,5}\(\d+(?:,\d+)?\)\s*: (?:fatal )?error `, `[\w./\\-]+\.\w{1,5}:\d+: (?:\w+(?:Error|Exception)|undefined|error|FAIL|in .*Error)`, `\d+\) .*(?:Error|FAIL)`, `HTTP/[\d.]+ [45]\d\d`, `curl: \(\d+\)`, `ssh: `, `rsync error`,
	`<tool_use_error>`, `(?:LINK|ld(?:\.\w+)?|collect2|clang|gcc|g\+\+|rustc|javac|tsc|cc1\w*)(?:\.exe)?: `, `(?:bash|sh|zsh|\S*/sh)(?:\.exe)?: .*: `, `Traceback: `,
}, "|") + `)`)

// phrases are parts of lines that only errors have, in lower case.
var phrases = []string{"undefined reference to", "unresolved external", "multiple definition of", "symbol(s) not found", "cannot find -l", "core dumped", ": error: ", ": fatal error: ", ": fatal: ",
	"level=error", "level=fatal", "level=critical", "level=panic", "panicked at", "permission denied", "no such file or directory", "command not found", "connection refused", "connection reset",
	"connection timed out", "out of memory", "no space left", "address already in use", "access denied", "access is denied", "authentication failed", "not a git repository", "merge conflict",
	"non-zero exit", "deadlock detected", "is not recognized as", "stack overflow", "segmentation fault", "sqlstate", "ora-0", "x509: ", "context deadline exceeded", "no such host", "duplicate symbol",
	"data race", "uncaught exception", "what():  ", "[emerg]", "[crit]", "[alert]", "kernel panic", "floating point exception", "breakpoint trap", ": is a directory", ": file exists", ": read-only file system", ": broken pipe",
	": no route to host", "network is unreachable", "resource busy", "temporarily unavailable", "too many open files", "operation not permitted", ": name or service not known", "argument list too long",
	"file name too long", "quota exceeded"}

// shapes match errors within a line that has one of the words before each.
var shapes = []struct {
	words []string
	shape func() *regexp.Regexp
}{
	{[]string{"error "}, compiled(`\berror [A-Z]{1,6}\d{2,6}\b`)},
	{[]string{"ERROR", "FATAL", "CRITICAL", "SEVERE", "PANIC", "EXCEPTION"}, compiled(`\b(?:ERROR|FATAL|CRITICAL|SEVERE|PANIC|EXCEPTION)\b`)},
	{[]string{`"level"`, `"severity"`}, compiled(`"(?:level|severity)": ?"(?:error|fatal|critical)"`)},
	{[]string{"HTTP/"}, compiled(`HTTP/[\d.]+"? [45]\d\d\b`)},
	{[]string{" Bad ", " Unauthorized", " Forbidden", " Not ", " Method Not", " Conflict", " Gone", " Unprocessable", " Too Many", " Internal Server", " Service Unavailable", " Gateway Time"},
		compiled(`\b[45]\d\d (?:Bad Request|Unauthorized|Forbidden|Not Found|Method Not Allowed|Conflict|Gone|Unprocessable|Too Many|Internal Server|Not Implemented|Bad Gateway|Service Unavailable|Gateway Time)`)},
	{[]string{"Error: ", "Exception: ", "Error)", "Exception)"}, compiled(`\b[A-Z]\w*(?:Error|Exception): |\(\w+(?:Error|Exception)\)$`)},
	{[]string{"exit"}, compiled(`\bexit(?:ed)?(?: with)?(?: status| code)+:? [1-9]\d*|\bexited with [1-9]`)},
	{[]string{"E"}, compiled(`\bE[A-Z]{4,}\b: |^E +(?:assert|\w+ =) |\bE(?:(?:CONN)?(?:REFUSED|RESET|ABORTED)|TIMEDOUT|SOCKETTIMEDOUT|NOTFOUND|HOSTUNREACH|NETUNREACH|AI_AGAIN|PIPE|ADDRINUSE)\b|\b(?:[A-Z]+_)*ERR(?:OR)?_[A-Z]{3}[A-Z_]*\b`)},
	{[]string{"error", "fail"}, compiled(`\b[1-9]\d* (?:\w+ ){0,2}(?:errors|failures|failing)\b`)},
	{[]string{"BackOff"}, compiled(`\b\w+BackOff\b`)},
	{[]string{"status="}, compiled(`\bstatus=[1-9]\d*/[A-Z]+`)},
	{[]string{"signal: "}, compiled(`signal: \w+`)},
	{[]string{"ssertion"}, compiled(`[Aa]ssertion .{0,60}failed`)},
}

// anywhere returns where the shape of an error begins within a line, or -1. lower is the line in lower case.
func anywhere(line, lower string) int {
	for _, p := range phrases {
		if at := strings.Index(lower, p); at >= 0 {
			return at
		}
	}
	for i := range shapes {
		if containsAny(line, shapes[i].words) {
			if at := shapes[i].shape().FindStringIndex(line); at != nil {
				return at[0]
			}
		}
	}
	return -1
}

func containsAny(s string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

// reported are words of lines that report an error, spokenOf those of lines that speak about one.
var (
	reported = []string{"failed", "failure", "fatal", "error", "cannot", "can't", "could not", "unable to", "refused", "timed out", "timeout", "denied", "forbidden", "unauthorized", "not found", "unexpected",
		"invalid", "aborted", "mismatch", "unhandled", "uncaught", "rejected", "illegal", "crashed", "violates", "violation", "terminated", "unterminated", "not allowed", "expired", "oomkilled", "unreachable"}
	spokenOf = []string{"error", "errors", "exception", "panic", "failed", "failure", "traceback"}
)

// hasWord reports whether a line has one of the words.
func hasWord(t *text, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return t.word(w, 0) >= 0 })
}

// failedStatus are the beginnings of a failed request's status after its name.
var failedStatus = []string{" 4", " 5", "=4", "=5", ":4", ":5", "\"4", "\"5"}

// httpStatus matches the status of a failed request in a log.
var httpStatus = compiled(`\b(?:status(?:[ _]?code)?|http|returned|responded(?: with)?)["']?[ :=]+"?[45]\d\d\b`)

// withoutNothing blanks the words that say that there was no error: no errors, failed: 0. It returns the line, and the line in lower case.
func withoutNothing(line, lower string) (string, string) {
	for _, stem := range []string{"err", "fail", "exception", "problem", "conflict", "fehler"} {
		for i := 0; ; {
			at := strings.Index(lower[i:], stem)
			if at < 0 {
				break
			}
			at += i
			end := at + len(stem)
			for end < len(lower) && wordByte(lower[end]) {
				end++
			}
			if i = end; at > 0 && wordByte(lower[at-1]) {
				continue
			}
			if noneBefore(lower[max(0, at-24):at]) || noneAfter(lower[end:]) {
				blank := strings.Repeat(" ", end-at)
				line, lower = line[:at]+blank+line[end:], lower[:at]+blank+lower[end:]
			}
		}
	}
	return line, lower
}

// noneBefore reports whether one of the last two words says none.
func noneBefore(before string) bool {
	words := strings.Fields(before)
	for _, w := range words[max(0, len(words)-2):] {
		switch strings.Trim(w, "([,:") {
		case "0", "no", "zero", "without", "any", "free", "kein", "keine", "ohne", "sans", "aucune", "sin", "sem", "nessun", "senza", "geen":
			return true
		}
	}
	return false
}

// noneAfter reports whether a value that says none follows, or a word about how errors are handled.
func noneAfter(after string) bool {
	if strings.HasPrefix(after, "-safe") || strings.HasPrefix(after, "-free") || strings.HasPrefix(after, " handling") || strings.HasPrefix(after, " 0") {
		return true
	}
	value, ok := strings.CutPrefix(strings.TrimLeft(after, "\"' "), ":")
	if !ok {
		value = strings.TrimLeft(strings.TrimLeft(after, "\"' "), "!=")
		ok = len(value) < len(strings.TrimLeft(after, "\"' "))
	}
	value = strings.TrimLeft(value, " ")
	if !ok {
		return false
	}
	for _, none := range []string{"0", "null", "nil", "none", "false", "undefined", "[]", `""`, "''"} {
		if rest, is := strings.CutPrefix(value, none); is && (rest == "" || !wordByte(rest[0]) && rest[0] != '.') {
			return true
		}
	}
	return false
}

// programWords are words that are common in code and rare in messages.
var programWords = []string{"throw", "throws", "catch", "raise", "return", "except", "def", "func", "fn", "class", "import", "export", "const", "let", "var", "type", "interface", "public", "private", "static", "async",
	"await", "println", "printf"}

// isCode reports whether a line is one of a program, which speaks of errors that may happen; surely means that no error message looks like it.
func isCode(line string, t *text) (code, surely bool) {
	trimmed := strings.TrimSpace(line)
	number := strings.TrimLeft(trimmed, "0123456789")
	switch {
	case len(number) < len(trimmed) && (strings.HasPrefix(strings.TrimLeft(number, " "), "→") || strings.HasPrefix(number, "|")), strings.HasPrefix(trimmed, "//"), strings.HasPrefix(trimmed, "/*"),
		strings.HasPrefix(trimmed, "* ") || trimmed == "*", strings.HasPrefix(trimmed, "|"), strings.Contains(line, "=>") && !strings.HasPrefix(trimmed, "fatal: [") && !strings.HasPrefix(trimmed, "failed: ["), strings.Contains(line, ":="), strings.HasSuffix(trimmed, "{"),
		member().MatchString(line):
		return true, true
	}
	for _, w := range []string{"throw", "catch", "raise"} {
		if at := t.word(w, 0); at >= 0 && callOrWord(line[at+len(w):]) {
			return true, true
		}
	}
	if strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "<!--") || strings.HasPrefix(trimmed, "@") || strings.HasPrefix(line, "+ ") || strings.HasPrefix(line, "- ") ||
		strings.HasSuffix(trimmed, "(") || strings.HasSuffix(trimmed, "[") || strings.HasSuffix(trimmed, ",") || strings.HasSuffix(trimmed, ";") ||
		containsAny(t.lower, []string{"console.", "log.", "logger.", "fmt.", "errors.new", "this.", "self."}) {
		return true, false
	}
	for _, w := range programWords {
		if at := t.word(w, 0); at >= 0 && callOrWord(line[at+len(w):]) {
			return true, false
		}
	}
	return false, false
}

// member matches a line of an object or a type: a name, a colon, a value and a comma.
var member = compiled(`^\s*["']?\w+["']?\??:\s*[\w'"].*[,;]\s*$`)

// callOrWord reports whether the text after a keyword goes on as code does.
func callOrWord(rest string) bool {
	rest = strings.TrimLeft(rest, " \t")
	return rest != "" && (wordByte(rest[0]) || strings.IndexByte(`({"'*!`, rest[0]) >= 0)
}

var ansi = compiled("\x1b\\[[0-9;?]*[A-Za-z]")

func withoutColour(line string) string {
	if strings.IndexByte(line, 0x1b) < 0 {
		return line
	}
	return ansi().ReplaceAllString(line, "")
}

// before matches what may come before an error on its line: a time, a level, a test runner's or a container's mark.
var before = compiled(`^(?:\s+|E {2,}|> |\[?\d{4}-\d\d-\d\d[T ][\d:.,]+(?:Z|[+-]\d\d:?\d\d)?\]?\s*|\[?\d\d:\d\d:\d\d[\d.,]*\]?\s*|\[[\w./ -]{1,30}\] |(?:stderr|stdout|Error output|err): |[\w.-]{1,24} *\| |remote: |\d+:\d+:\d+ |[!>»] )+`)

// errorScore returns how certain it is that a line reports an error.
func errorScore(line string) int {
	t := newText(line)
	if !mayReport(line, t.lower) {
		return noError
	}
	code, surely := isCode(line, t)
	whole, lower := withoutNothing(line, t.lower)
	t = &text{whole, lower}
	said := whole
	if !certain().MatchString(said) {
		said = whole[len(before().FindString(whole)):]
	}
	if strings.HasPrefix(said, "Traceback (") || strings.TrimSpace(said) == "" {
		return noError
	}
	switch {
	case strings.HasPrefix(said, "npm ") && detail().MatchString(said):
		return mention
	case labelled().MatchString(lower), marked(line):
		return certainError
	case !surely && certain().MatchString(said):
		return certainError
	case code:
		if anywhere(whole, t.lower) >= 0 || hasWord(t, reported) {
			return mention
		}
		return noError
	case anywhere(whole, t.lower) >= 0:
		return certainError
	case containsAny(lower, failedStatus) && httpStatus().MatchString(lower):
		return plainError
	case hasWord(t, reported), containsAny(foreignNone.Replace(lower), foreignWords):
		if strings.Count(said, " ") > mostWords {
			return mention // a sentence of prose
		}
		return plainError
	case hasWord(t, spokenOf):
		return mention
	}
	return noError
}

// detail matches lines that go with an error and say little.
var detail = compiled(`^npm (?:ERR!|error) (?:path|workspace|location|command|errno|syscall|A complete log|cwd|prefix|gyp (?:stack|cwd))\b|^npm (?:ERR!|error) *$`)

// problem is an error that a text reports: its line, and the stack frame that says where.
type problem struct {
	line, frame string
	own         bool     // the frame is one of the user's code
	also        []string // further places, or further tests that failed
	more        int      // the number of those that are not named
	score       int
}

func (p *problem) String() string {
	where := p.frame
	if len(p.also) > 0 {
		where = strings.TrimSpace(where + " also " + strings.Join(p.also, ", "))
	}
	if p.more > 0 {
		where = strings.TrimSpace(fmt.Sprintf("%s and %d more", where, p.more))
	}
	if where == "" {
		return p.line
	}
	return p.line + frameMark + where
}

// alsoAt names a further place or test, or counts it if the names are long enough already.
func (p *problem) alsoAt(name string) {
	length := 0
	for _, have := range p.also {
		if length += len(have) + 2; have == name {
			return
		}
	}
	if p.more > 0 || length+len(name) > problemAlso {
		p.more++
	} else {
		p.also = append(p.also, name)
	}
}

// frameMark separates an error from its place.
const frameMark = " @ "

const (
	problemLine  = 260     // bytes of an error's line
	problemFrame = 160     // bytes of a frame
	problemAlso  = 200     // bytes of further places and tests
	problemScan  = 1 << 20 // bytes of a text that are searched
)

// problems returns the errors that a text reports, in order, one for each shape of a line. most is how many lines may be examined, and is lowered by those that
// were.
func problems(text string, most *int) []problem {
	text = headTail(text, problemScan/2, problemScan/2)
	p := parser{most: most, seen: map[string]int{}, looked: map[string]bool{}, rows: map[string]*row{}, failed: map[string]bool{}}
	lower := newText(text).lower
	stack := 0
	for from := 0; from < len(text); {
		to := len(text)
		if at := strings.IndexByte(text[from:], '\n'); at >= 0 {
			to = from + at
		}
		switch raw := text[from:to]; {
		case mayReport(raw, lower[from:to]):
			p.line(raw)
			stack = stackLines
		case stack > 0 || strings.HasPrefix(raw, "  File \""):
			stack--
			if p.line(raw) {
				stack = stackLines
			}
		default:
			p.python = ""
		}
		from = to + 1
	}
	return p.found
}

// stackLines is how many lines after an error, and after each frame, may belong to its stack.
const stackLines = 6

// parser reads lines one by one and keeps the errors, each with its place.
type parser struct {
	found  []problem
	seen   map[string]int // the index of the problem of each shape
	looked map[string]bool
	rows   map[string]*row
	failed map[string]bool // tests
	most   *int
	last   int    // the index + 1 of the error whose stack may follow
	next   bool   // the error's words are on the next line
	python string // the innermost frame so far of a Python stack, which comes before its error
	pyOwn  bool
	goFunc string // the function of a Go or Rust frame, whose file is on the next line
}

// line reads a line and reports whether it belongs to a stack.
func (p *parser) line(raw string) bool {
	line := strings.TrimRight(withoutColour(raw), "\r ")
	if p.frame(line) {
		return true
	}
	if p.next {
		p.next = false
		if words := strings.TrimSpace(line); words != "" && p.last > 0 {
			e := &p.found[p.last-1]
			e.line = around(e.line+" "+words, problemLine)
			return true
		}
	}
	shape := shapeOf(line)
	test, name := p.rowOf(line)
	if test != nil && test.whole > 0 && (test.whole >= rowWhole || p.looked[shape]) {
		if !p.failed[name] {
			p.failed[name] = true
			p.found[test.at].alsoAt(strings.TrimPrefix(name, test.group))
		}
		return false
	}
	if p.looked[shape] { // lines of one shape report the same: examining each would take long
		return false
	}
	p.looked[shape] = true
	if *p.most--; *p.most < 0 {
		return false
	}
	score := errorScore(line)
	if score == noError {
		return false
	}
	text := around(strings.TrimSpace(line), problemLine)
	if p.again(text) {
		p.python, p.last = "", 0
		return false
	}
	e := problem{line: text, score: score}
	if p.python != "" && score >= plainError && line[0] != ' ' {
		e.frame, e.own, p.python = p.python, p.pyOwn, ""
	}
	if p.failed[name] = true; test != nil {
		test.whole, test.at = test.whole+1, len(p.found)
	}
	p.found = append(p.found, e)
	if score >= plainError {
		p.last, p.goFunc = len(p.found), ""
		p.next = strings.Contains(line, "panicked at ") && strings.HasSuffix(line, ":")
	}
	return false
}

// atPlace matches the place that a compiler writes before an error.
var atPlace = compiled(`^[\w./\\@-]+\.\w{1,5}(?:\(\d+(?:,\d+)?\)|:\d+(?::\d+)?)(?:: | : | - )`)

// again reports whether an earlier line said the same. If it names another place, that is added to the earlier error.
func (p *parser) again(text string) bool {
	at := atPlace().FindString(text)
	if _, ok := p.seen[shapeOf(text)]; ok {
		return true
	}
	p.seen[shapeOf(text)] = len(p.found)
	if at == "" || len(text)-len(at) < 12 {
		return false
	}
	words := shapeOf(text[len(at):])
	first, ok := p.seen[words]
	if !ok {
		p.seen[words] = len(p.found)
		return false
	}
	p.found[first].alsoAt(strings.TrimRight(at, ": -"))
	return true
}

// row is a group of a test runner's lines that each name a failed test.
type row struct {
	whole int    // how many lines are kept as they are
	at    int    // the index of the last of them
	group string // the beginning of the first name, which the others need not repeat
}

// rowWhole is how many lines of a row are kept; the last of these gets the names of further ones.
const rowWhole = 3

// failedMark matches the name of a failed test, with the mark before or after it.
var failedMark = compiled(`^\s*(FAILED|FAIL:?|--- FAIL:|not ok|\[ +FAILED +\]|[✗✖✕×●]|rspec)\s+(?:\d+ (?:- )?)?(\S+)|^\s*(?:test )?(\S.*?)(?: \.\.\.)? (FAILED)\b`)

var failedWords = []string{"FAIL", "not ok", "✗", "✖", "✕", "×", "●", "rspec"}

// rowOf returns the row to which a line belongs, nil for none, and the name of its test.
func (p *parser) rowOf(line string) (*row, string) {
	if !containsAny(line, failedWords) {
		return nil, ""
	}
	m := failedMark().FindStringSubmatch(line)
	if m == nil {
		return nil, ""
	}
	mark, name := m[1]+" "+m[4], m[2]+m[3]
	r := p.rows[mark]
	if r == nil {
		r = &row{group: name[:strings.LastIndexAny(name, ":/.#")+1]}
		p.rows[mark] = r
	}
	return r, name
}

var (
	pythonFrame = compiled(`^\s+File "([^"]+)", line \d+`)
	atFrame     = compiled(`^\s+at \S`)
	numberFrame = compiled(`^\s*#\d+ +\S`)
	fromFrame   = compiled(`^\s+(?:from|\d+: from) \S+:\d+`)
	goFile      = compiled(`^\t\S+\.go:\d+`)
	goFunction  = compiled(`^(?:created by )?[\w./*()\[\]·-]+\(.*\)$`)
	rustFrame   = compiled(`^\s+\d+: +\S`)
	arrowFrame  = compiled(`^\s*(?:-->|┌─) \S+:\d+:\d+`)
	// foreign matches frames of a language's library or of a package manager's folder.
	foreign = compiled(`site-packages|dist-packages|/lib/python|<frozen |node:|node_modules|internal/|/usr/local/go/|/go/src/|/pkg/mod/|\bruntime[./]|/rustc/|\.cargo/|\bcore::|\bstd::|rust_begin_unwind|/vendor/|/gems/|` +
		`\bat (?:async )?(?:java|javax|jdk|sun|com\.sun|kotlin|scala|org\.(?:spring|junit|apache|hibernate|eclipse|gradle)|io\.netty|System|Microsoft|Newtonsoft|Xunit|NUnit)\.|__libc|/libc\.|testing\.|\[internal function\]|<anonymous>$`)
)

// frame reads a line of a stack and reports whether it is one. It keeps the innermost frame of the user's code for each error, or the innermost one if all are
// foreign.
func (p *parser) frame(line string) bool {
	if pythonFrame().MatchString(line) {
		if own := !foreign().MatchString(line); own || !p.pyOwn {
			p.python, p.pyOwn = clipFrame(line), own
		}
		return true
	}
	if p.python != "" && strings.HasPrefix(line, "    ") {
		return true // the code of a Python frame
	}
	switch {
	case p.last == 0:
		return false
	case goFile().MatchString(line) && p.goFunc != "":
		p.where(p.goFunc+" "+strings.TrimSpace(line), foreign().MatchString(p.goFunc) || foreign().MatchString(line) || strings.HasPrefix(p.goFunc, "panic("))
	case atFrame().MatchString(line) && p.goFunc != "":
		p.where(p.goFunc+" "+strings.TrimSpace(line), foreign().MatchString(p.goFunc) || foreign().MatchString(line))
	case atFrame().MatchString(line), numberFrame().MatchString(line), fromFrame().MatchString(line), arrowFrame().MatchString(line):
		p.where(line, foreign().MatchString(line))
	case goFunction().MatchString(line), rustFrame().MatchString(line):
		p.goFunc = strings.TrimSpace(line)
		return true
	default:
		return strings.HasPrefix(line, "goroutine ") || strings.HasPrefix(line, "stack backtrace:") || strings.HasPrefix(line, "[signal ") || strings.HasPrefix(line, "note: run with") ||
			strings.HasPrefix(line, "Stack trace:")
	}
	p.goFunc = ""
	return true
}

// where sets the place of the last error, unless a nearer frame has set it.
func (p *parser) where(frame string, foreign bool) {
	if e := &p.found[p.last-1]; e.frame == "" || !foreign && !e.own {
		e.frame, e.own = clipFrame(frame), !foreign
	}
}

func clipFrame(line string) string {
	line = strings.TrimSpace(line)
	return line[:runeStart(line, min(len(line), problemFrame))]
}

// around returns a line, cut to most bytes: the beginning and the end, or the surroundings of its error if that is in neither.
func around(line string, most int) string {
	line = strings.ToValidUTF8(line, "")
	if len(line) <= most {
		return line
	}
	if at := anywhere(line, newText(line).lower); at > most*2/3 {
		from := runeStart(line, at-most/3)
		return "…" + line[from:runeStart(line, min(len(line), from+most))] + "…"
	}
	tail := most / 4
	return line[:runeStart(line, most-tail)] + "…" + line[runeStart(line, len(line)-tail):]
}

// shapeOf returns a line with each number as 0: lines of one shape report the same.
func shapeOf(line string) string {
	b := make([]byte, 0, len(line))
	for i := range len(line) {
		switch c := line[i]; {
		case '0' <= c && c <= '9':
			if n := len(b); n == 0 || b[n-1] != '0' {
				b = append(b, '0')
			}
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// outputText returns a result's text to look for facts in: for JSON, its texts and small values, one on each line.
func outputText(content string) string {
	if len(content) > 4<<20 || !isJSON(content) {
		return content
	}
	dec := json.NewDecoder(strings.NewReader(content))
	dec.UseNumber()
	var b strings.Builder
	flatten(dec, "", &b)
	return b.String()
}

var errorKey = compiled(`(?i)^(?:\w*error\w*|exception|failure|fault|reason|problem)$`)

// flatten writes the next JSON value as lines. An object under a key that means an error stays on one line.
func flatten(dec *json.Decoder, key string, b *strings.Builder) {
	token, err := dec.Token()
	if err != nil {
		return
	}
	switch v := token.(type) {
	case json.Delim:
		before := b.Len()
		for dec.More() {
			name := key
			if v == '{' {
				k, err := dec.Token()
				if err != nil {
					return
				}
				name, _ = k.(string)
			}
			flatten(dec, name, b)
		}
		_, _ = dec.Token() // the closing delimiter
		if v == '{' && errorKey().MatchString(key) && b.Len()-before < 2*problemLine {
			all := b.String()
			inner := strings.Join(strings.Fields(strings.ReplaceAll(all[before:], "\n", ", ")), " ")
			b.Reset()
			b.WriteString(all[:before] + key + ": " + strings.TrimSuffix(inner, ",") + "\n")
		}
	case string:
		if strings.Contains(v, "\n") {
			b.WriteString(v + "\n")
		} else if v != "" {
			b.WriteString(key + ": " + v + "\n")
		}
	case nil:
	default:
		var out bytes.Buffer
		writeJSON(&out, v)
		b.WriteString(key + ": " + out.String() + "\n")
	}
}
