package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// The most that is read into memory at once: a text or a line of JSON, and a file that becomes a part of a message.
const (
	maxText = 64 << 20
	maxFile = 256 << 20
)

// text is an argument that may be "-": standard input without its last line end (with it under --raw).
func (r *run) text(arg string) (string, error) {
	s := arg
	if arg == "-" {
		if r.con.inTTY {
			r.note("type the text, end it with Ctrl-D")
		}
		b, err := readLimited(r.con.in, maxText)
		if err != nil {
			return "", fmt.Errorf("standard input: %w", err)
		}
		s = string(b)
		if !r.is("raw") {
			s = withoutLineEnd(s)
		}
	}
	return s, validText(s)
}

// withoutLineEnd takes the last line end off, one of Windows too.
func withoutLineEnd(s string) string {
	if line, ok := strings.CutSuffix(s, "\n"); ok {
		return strings.TrimSuffix(line, "\r")
	}
	return s
}

// validText refuses what is not UTF-8.
func validText(s string) error {
	for i, c := range s {
		if c == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return usagef("the text is not valid UTF-8 at byte %d", i+1)
			}
		}
	}
	return nil
}

// readLimited reads all of in, and refuses more than limit bytes.
func readLimited(in io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("more than %s, which is the most for one piece", size(limit))
	}
	return b, nil
}

// readFile reads a file that becomes part of a message.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return nil, fmt.Errorf("%s is a folder", path)
	}
	b, err := readLimited(f, maxFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// clean makes text safe for a terminal: control characters, which could move the cursor or worse, are shown as escapes.
func clean(s string) string { return escape(s, textEscape) }

// plainly is clean for what somebody decides about: characters that take no room, or turn the direction of a text, are shown as escapes too.
func plainly(s string) string {
	if strings.IndexFunc(s, hiddenRune) < 0 {
		return clean(s)
	}
	var b strings.Builder
	for _, c := range s {
		if hiddenRune(c) {
			fmt.Fprintf(&b, textEscape, c)
			continue
		}
		b.WriteRune(c)
	}
	return clean(b.String())
}

// hiddenRune tells the characters that nobody sees.
func hiddenRune(c rune) bool {
	return unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// escape writes the characters of s that are not safe for a terminal as format says.
func escape(s, format string) string {
	if strings.IndexFunc(s, unsafeRune) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if unsafeRune(c) {
			fmt.Fprintf(&b, format, c)
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}

// How escape writes a character: in text, and inside JSON, which stays the same JSON.
const (
	textEscape = `\x%02x`
	jsonEscape = `\u%04x`
)

// safeWriter passes text on to a terminal, escaped. A character may come in two writes.
type safeWriter struct {
	w      io.Writer
	format string
	rest   []byte // the beginning of a character
}

func (s *safeWriter) Write(p []byte) (int, error) {
	b := append(s.rest, p...)
	whole := len(b)
	for i := len(b) - 1; i >= max(len(b)-utf8.UTFMax+1, 0); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				whole = i
			}
			break
		}
	}
	_, err := io.WriteString(s.w, escape(string(b[:whole]), s.format))
	s.rest = append([]byte(nil), b[whole:]...)
	return len(p), err
}

func unsafeRune(c rune) bool {
	return unicode.IsControl(c) && c != '\n' && c != '\t' || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069
}

// oneLine is clean text with every run of white space as one space.
func oneLine(s string) string {
	const enough = 4096 // longer than any line of a terminal
	if len(s) > enough {
		s = strings.ToValidUTF8(s[:enough], "")
	}
	return clean(strings.Join(strings.Fields(s), " "))
}

// cut shortens s to width columns, with an ellipsis where something is left out.
func cut(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if uniseg.StringWidth(s) <= width {
		return s
	}
	var b strings.Builder
	used := 0
	for g := uniseg.NewGraphemes(s); g.Next(); {
		if used+g.Width() > width-1 {
			break
		}
		used += g.Width()
		b.WriteString(g.Str())
	}
	return strings.TrimRight(b.String(), " ") + "…"
}

// pad fills s with spaces up to width columns.
func pad(s string, width int) string {
	if n := width - uniseg.StringWidth(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// short is how an id is shown: its last 8 digits. Ids made within a second share their beginning.
func short(id chatctx.ID) string {
	s := id.String()
	return s[len(s)-8:]
}

// titled is how text names a context.
func titled(title string, id chatctx.ID) string {
	if title == "" {
		return short(id)
	}
	return fmt.Sprintf("“%s”", cut(oneLine(title), 60))
}

// placed is how text names a branch of a context: main of “Holiday plans”.
func placed(c *chatctx.Committed) string {
	return clean(c.Branch) + " of " + titled(c.Title, c.Context)
}

// count is "1 message", "3 messages".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if strings.HasSuffix(what, "ch") {
		return fmt.Sprintf("%d %ses", n, what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// are is "is" for one thing.
func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// moment is a time for people, in their zone; "" for one that is not known.
func moment(t pool.Time) string {
	if t == 0 {
		return ""
	}
	return t.Time().Local().Format("2006-01-02 15:04")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// quote makes a word that the shell at hand takes as it is.
func quote(s string) string { return quoteFor(s, runtime.GOOS == "windows") }

// quoteFor puts a word in double quotes, which cmd, PowerShell and POSIX shells know, but where something in it means something to a POSIX shell there too.
// No quotes keep cmd from a percent sign and PowerShell from a dollar.
func quoteFor(s string, windows bool) string {
	switch {
	case plainWord.MatchString(s), windows && plainWord.MatchString(strings.ReplaceAll(s, `\`, "/")):
		return s
	case windows:
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	case !strings.ContainsAny(s, "$`\"\\!"):
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// contextHint says what to do where no context was named and there is none.
func contextHint(err error) error {
	var ref *chatctx.RefError
	if errors.As(err, &ref) && strings.HasPrefix(ref.Kind, "current context") {
		return &hinted{fmt.Errorf("no context is current: %w", chatctx.ErrNotFound), firstSteps + "\nor choose one:        chatctx use CTX"}
	}
	return err
}
