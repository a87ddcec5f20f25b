package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/input"
	"github.com/chatctx/chatctx/internal/screen"
)

// Limits of what is read into memory at once: a text or a line of JSON, and a file that becomes a part of a message.
const (
	maxText = 64 << 20
	maxFile = 256 << 20
)

// text returns an argument that may be "-": standard input without its last line end (with it under --raw). The setting input.piped may add that to another text.
func (r *run) text(arg string, in rawFlag) (string, error) {
	read := r.beside
	if arg == "-" {
		read = r.standardInput
	}
	s, err := read(arg, in)
	if err != nil {
		return "", err
	}
	return s, validText(s)
}

// systemText reads a system prompt that may be "-", beside a text that may be that too.
func (r *run) systemText(system, beside string, in rawFlag) (string, error) {
	if system == "-" && beside == "-" {
		return "", usagef("%s: standard input has one text: the system prompt or the other one", r.name)
	}
	if system != "-" {
		return system, validText(system)
	}
	return r.text(system, in)
}

func (r *run) standardInput(_ string, in rawFlag) (string, error) {
	if r.con.inTTY {
		r.note("type the text, end it with Ctrl-D")
	}
	b, err := readLimited(r.con.in, maxText)
	if err != nil {
		return "", fmt.Errorf("standard input: %w", err)
	}
	if in.Raw {
		return string(b), nil
	}
	return withoutLineEnd(string(b)), nil
}

// withoutLineEnd removes the last line end, LF or CRLF.
func withoutLineEnd(s string) string {
	if line, ok := strings.CutSuffix(s, "\n"); ok {
		return strings.TrimSuffix(line, "\r")
	}
	return s
}

// validText refuses text that is not UTF-8.
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
		return nil, usagef("it is longer than %s, the most for one text", size(limit))
	}
	return b, nil
}

// readFile reads a file that becomes part of a message.
func readFile(ctx context.Context, path string) ([]byte, error) {
	f, err := input.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := readLimited(f, maxFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// What all rooms that print share, under the short names of this one.
var (
	clean, plainly, oneLine = screen.Clean, screen.Plainly, screen.OneLine
	cut, pad                = screen.Cut, screen.Pad
	short, titled           = record.Short, screen.Titled
	count, size, moment     = screen.Count, screen.Size, screen.Moment
	body, preview, callLine = screen.Body, screen.Preview, screen.CallLine
	compact, pretty         = screen.Compact, screen.Pretty
)

// named is a context's title with its id, or the id alone where it has none.
func named(title string, id chatctx.ID) string {
	if title == "" {
		return short(id)
	}
	return titled(title, id) + " " + short(id)
}

// heading is named, as the head of a list.
func (r *run) heading(title string, id chatctx.ID) string {
	if title == "" {
		return r.paint(yellow, short(id))
	}
	return r.paint(bold, titled(title, id)) + " " + r.paint(yellow, short(id))
}

// placed names a branch of a context in text: main of “Holiday plans”.
func placed(c *record.Committed) string {
	return clean(c.Branch) + " of " + titled(c.Title, c.Context)
}

// are returns "is" for one thing, else "are".
func are(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

var plainWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`) })

// quote returns a word that the present shell takes unchanged.
func quote(s string) string { return quoteFor(s, runtime.GOOS == "windows") }

// quoteFor puts a word in double quotes, which cmd, PowerShell and POSIX shells know, unless it has a character with a meaning for a POSIX shell within
// double quotes. No quotes keep cmd from a percent sign and PowerShell from a dollar.
func quoteFor(s string, windows bool) string {
	switch {
	case plainWord().MatchString(s), windows && plainWord().MatchString(strings.ReplaceAll(s, `\`, "/")):
		return s
	case windows:
		return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
	case !strings.ContainsAny(s, "$`\"\\!"):
		return `"` + s + `"`
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// contextHint says what to do if no context was named and none is current.
func contextHint(err error) error {
	if errors.Is(err, chatctx.ErrNoCurrent) {
		return &hinted{base.Says(chatctx.ErrNoCurrent, "no conversation is current"), firstSteps + "\nor choose one:        chatctx use CTX"}
	}
	return err
}
