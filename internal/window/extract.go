package window

import (
	"slices"
	"strings"
)

// text is a piece of a message in which facts are looked for.
type text struct {
	all   string
	lower string // with ASCII letters in lower case, at the same indexes
}

func newText(all string) *text {
	b := []byte(all)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c | 0x20
		}
	}
	return &text{all, string(b)}
}

// keywords returns a function that finds the sentences with one of the words.
func keywords(words ...string) func(t *text, add func(string)) {
	return func(t *text, add func(string)) {
		var at []int
		for _, w := range words {
			n := 0
			for i := t.word(w, 0); i >= 0 && n < mostEach; i = t.word(w, i+len(w)) {
				at = append(at, i)
				n++
			}
		}
		slices.Sort(at)
		end := -1
		for _, i := range at {
			if i < end {
				continue // the sentence was added already
			}
			from, to := t.sentence(i)
			end = to
			add(t.all[from:to])
		}
	}
}

// word returns the index of w as a whole word from i on, or -1.
func (t *text) word(w string, i int) int {
	for {
		at := strings.Index(t.lower[i:], w)
		if at < 0 {
			return -1
		}
		at += i
		if end := at + len(w); (at == 0 || !wordByte(t.lower[at-1])) && (end == len(t.lower) || !wordByte(t.lower[end])) {
			return at
		}
		i = at + len(w)
	}
}

func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c >= 0x80
}

// sentence returns the bounds of the sentence or line around i, at most 2*factBytes on each side.
func (t *text) sentence(i int) (from, to int) {
	const most = 2 * factBytes
	from = max(0, i-most)
	from += 1 + strings.LastIndexAny(t.all[from:i], ".!?\n;")
	to = min(len(t.all), i+most)
	for k := i; k < to; k++ {
		c := t.all[k]
		if c == '\n' || c == ';' || (c == '.' || c == '!' || c == '?') && (k+1 == len(t.all) || t.all[k+1] == ' ' || t.all[k+1] == '\n') {
			to = k
			break
		}
	}
	return from, to
}

// identifiers finds UUIDs, hashes, issue keys, names with numbers, and the values after id= and the like.
func (t *text) identifiers(add func(string)) {
	t.words(idByte, 8*mostEach, func(w string) bool {
		is := isIdentifier(w)
		if is {
			add(w)
		}
		return is
	})
	for _, label := range []string{"id=", "id: ", "key=", "key: ", "ref=", "ref: "} {
		for i, k := 0, 0; k < mostEach; k++ {
			at := strings.Index(t.lower[i:], label)
			if at < 0 {
				break
			}
			from := i + at + len(label)
			to := from
			for to < len(t.all) && idByte(t.all[to]) {
				to++
			}
			if to > from && strings.ContainsAny(t.all[from:to], "0123456789") {
				add(label + t.all[from:to])
			}
			i = to
		}
	}
}

// paths finds names of files: words with a slash or a backslash that begin or end as files do.
func (t *text) paths(add func(string)) {
	t.words(pathByte, 4*mostEach, func(w string) bool {
		w = strings.TrimRight(w, ".:/")
		is := isPath(w)
		if is {
			add(w)
		}
		return is
	})
}

// words calls take for the runs of bytes for which is is true, until take was true most times.
func (t *text) words(is func(byte) bool, most int, take func(string) bool) {
	for from := 0; from < len(t.all) && most > 0; {
		for from < len(t.all) && !is(t.all[from]) {
			from++
		}
		to := from
		for to < len(t.all) && is(t.all[to]) {
			to++
		}
		if take(t.all[from:to]) {
			most--
		}
		from = to
	}
}

func pathByte(c byte) bool { return wordByte(c) || strings.IndexByte("/.-~\\+@", c) >= 0 }

func isPath(w string) bool {
	if len(w) < 4 || len(w) > 120 || !strings.ContainsAny(w, "/\\") || strings.HasPrefix(w, "//") {
		return false
	}
	last := w[strings.LastIndexAny(w, "/\\")+1:]
	dot := strings.LastIndexByte(last, '.')
	ends := dot > 0 && dot < len(last)-1 && len(last)-dot <= 6 && !strings.ContainsAny(last[dot+1:], "-~+@")
	begins := strings.HasPrefix(w, "./") || strings.HasPrefix(w, "../") || strings.HasPrefix(w, "~/") || w[0] == '/' && strings.Count(w, "/") > 1
	return ends || begins && last != ""
}

// numbers finds numbers of at least four digits, with a decimal point or after #, each also with the word before it.
func (t *text) numbers(add func(number, inWords string)) {
	for from := 0; from < len(t.all); {
		c := t.all[from]
		if c < '0' || c > '9' {
			from++
			continue
		}
		to := from
		digits := 0
		for to < len(t.all) && ('0' <= t.all[to] && t.all[to] <= '9' || t.all[to] == '.' && to+1 < len(t.all) && '0' <= t.all[to+1] && t.all[to+1] <= '9') {
			if t.all[to] != '.' {
				digits++
			}
			to++
		}
		marked := from > 0 && t.all[from-1] == '#'
		alone := (from == 0 || !idByte(t.all[from-1]) && t.all[from-1] != '/') && (to == len(t.all) || !idByte(t.all[to]))
		if n := t.all[from:to]; alone && len(n) <= 20 && (digits >= 4 || marked || digits < to-from) {
			if marked {
				n = "#" + n
			}
			add(n, strings.TrimSpace(t.wordBefore(from-(len(n)-(to-from)))+" "+n))
		}
		from = to
	}
}

// wordBefore returns the word right before i, "" if there is none on its line.
func (t *text) wordBefore(i int) string {
	to := i
	for to > 0 && (t.all[to-1] == ' ' || t.all[to-1] == ':' || t.all[to-1] == '=') {
		to--
	}
	from := to
	for from > 0 && wordByte(t.all[from-1]) && to-from < 24 {
		from--
	}
	return strings.ToValidUTF8(t.all[from:to], "")
}

// mostEach is how many facts of a kind are looked for in a text.
const mostEach = 6

func idByte(c byte) bool { return c < 0x80 && wordByte(c) || c == '-' }

// isIdentifier reports whether a word has letters and digits with - or _ between them, or is a long hexadecimal number.
func isIdentifier(w string) bool {
	if len(w) < 4 || len(w) > 64 {
		return false
	}
	letters, digits, joints, hex := 0, 0, 0, 0
	for i := range len(w) {
		switch c := w[i]; {
		case '0' <= c && c <= '9':
			digits++
			hex++
		case c == '-' || c == '_':
			joints++
		default:
			letters++
			if c|0x20 <= 'f' {
				hex++
			}
		}
	}
	return digits > 0 && letters > 0 && (joints > 0 && joints < 6 || hex == len(w) && len(w) >= 12)
}

// urls finds web addresses.
func (t *text) urls(add func(string)) {
	for i, n := 0, 0; n < 2*mostEach; n++ {
		at := strings.Index(t.all[i:], "://")
		if at < 0 {
			return
		}
		at += i
		i = at + 3
		from := at
		for from > 0 && wordByte(t.all[from-1]) && at-from < 10 {
			from--
		}
		if s := t.lower[from:at]; s != "http" && s != "https" {
			continue
		}
		to := i + strings.IndexAny(t.all[i:]+" ", " \t\r\n<>\"'`)]}|")
		add(strings.TrimRight(t.all[from:to], ".,;:!?"))
		i = to
	}
}

var codeAfter = compiled(`^(?:\s*code)?[\s:=/"']{0,4}(?:\d\.\d\s+)?(-?\d{1,5})\b`)

// statusCodes finds the numbers after HTTP, status, code and exit, and the names of system errors.
func (t *text) statusCodes(add func(string)) {
	for _, w := range []string{"http", "status", "code", "exit"} {
		n := 0
		for i := t.word(w, 0); i >= 0 && n < mostEach; i = t.word(w, i+len(w)) {
			after := t.lower[i+len(w) : min(len(t.lower), i+len(w)+24)]
			if m := codeAfter().FindStringSubmatch(after); m != nil {
				add(w + " " + m[1])
				n++
			}
		}
	}
	for _, name := range []string{"ENOENT", "EACCES", "EPERM", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EEXIST", "ENOSPC", "EADDRINUSE", "ENOTFOUND", "EPIPE"} {
		if strings.Contains(t.all, name) {
			add(name)
		}
	}
}
