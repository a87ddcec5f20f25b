package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx/compare"
	"github.com/chatctx/chatctx/internal/operation"
)

func TestWhen(t *testing.T) {
	now := time.Date(2025, 6, 15, 12, 0, 0, 0, time.UTC)
	for s, want := range map[string]string{
		"2025-01-31":                "2025-01-31T00:00:00Z",
		"2025-01-31 10:20:30":       "2025-01-31T10:20:30Z",
		"2025-01-31T10:20":          "2025-01-31T10:20:00Z",
		"2025-01-31T10:00:00+02:00": "2025-01-31T08:00:00Z",
		"12h":                       "2025-06-15T00:00:00Z",
		"7d":                        "2025-06-08T12:00:00Z",
		"2w":                        "2025-06-01T12:00:00Z",
	} {
		got, err := operation.When(s, now)
		if err != nil || got.Time().Format(time.RFC3339) != want {
			t.Errorf("%s is %v (%v), not %s", s, got.Time(), err, want)
		}
	}
	for _, s := range []string{"x", "-3d", "-1h", "3", "d", "2025-13-01", "5y", "99999999999999999999d"} {
		if got, err := operation.When(s, now); err == nil {
			t.Errorf("%q is taken as %v", s, got.Time())
		}
	}
}

func TestFileName(t *testing.T) {
	for in, want := range map[string]string{
		"photo.png":             "photo.png",
		"../../etc/passwd":      "passwd",
		`C:\Windows\system.ini`: "system.ini",
		"/":                     "part-3.png",
		"..":                    "part-3.png",
		".bashrc":               "bashrc",
		"-rf":                   "rf",
		"a\x00b\nc":             "a_b_c",
		"CON.txt":               "_CON.txt",
		"com1":                  "_com1",
		"COM¹.txt":              "_COM¹.txt",
		"lpt³":                  "_lpt³",
		"CONIN$":                "_CONIN$",
		"conout$.log":           "_conout$.log",
		"NUL .txt":              "_NUL .txt",
		"console.txt":           "console.txt",
		"com12":                 "com12",
		"what?<>|*.md":          "what_____.md",
		"ünï 漢字.pdf":            "ünï 漢字.pdf",
		"trailing. . ":          "trailing",
		"":                      "part-3.png",
		"\xff\xfe":              "_",
	} {
		if got := fileName(in, "image/png", 3); got != want {
			t.Errorf("fileName(%q) is %q, not %q", in, got, want)
		}
	}
	if got := fileName(strings.Repeat("漢", 300)+".png", "image/png", 1); len(got) > 120 || !strings.HasSuffix(got, ".png") || !utf8.ValidString(got) {
		t.Errorf("a long name became %q", got)
	}
}

func TestMediaType(t *testing.T) {
	for _, c := range []struct{ content, name, want string }{
		{"\x89PNG\r\n\x1a\n...", "x.txt", "image/png"},
		{"\xff\xd8\xff\xe0", "x", "image/jpeg"},
		{"RIFF0000WEBPVP8 ", "x", "image/webp"},
		{"plain words", "x.png", "text/plain"},
		{"%PDF-1.7", "x", "application/pdf"},
		{"\x00\x01\x02\xff", "x", "application/octet-stream"},
		{"{}", "x.json", "application/json"},
		{"<svg/>", "x.svg", "image/svg+xml"},
		{"", "x", "text/plain"},
	} {
		if got := mediaType([]byte(c.content), c.name); got != c.want {
			t.Errorf("%s with %q is %s, not %s", c.name, c.content, got, c.want)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, c := range []struct{ in, posix, windows string }{
		{"plain", "plain", "plain"}, {"@-2", "@-2", "@-2"}, {"", `""`, `""`}, {"two words", `"two words"`, `"two words"`}, {"it's", `"it's"`, `"it's"`},
		{"$x", "'$x'", `"$x"`}, {"`x`'s", "'`x`'\\''s'", "\"`x`'s\""}, {`a "b"`, `'a "b"'`, `"a ""b"""`}, {`C:\chats\s.db`, `'C:\chats\s.db'`, `C:\chats\s.db`}, {"!", "'!'", `"!"`},
	} {
		if got := quoteFor(c.in, false); got != c.posix {
			t.Errorf("%q is %s, want %s", c.in, got, c.posix)
		}
		if got := quoteFor(c.in, true); got != c.windows {
			t.Errorf("%q is %s on Windows, want %s", c.in, got, c.windows)
		}
	}
}

func TestWithoutLineEnd(t *testing.T) {
	for in, want := range map[string]string{"": "", "a": "a", "a\n": "a", "a\r\n": "a", "a\n\n": "a\n", "a\r\n\r\n": "a\r\n", "a\r": "a\r", "\r\n": "", "a\nb": "a\nb"} {
		if got := withoutLineEnd(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func TestDiffWords(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"a fine answer", "a good answer", "a [-fine-]{+good+} answer"},
		{"same", "same", "same"},
		{"", "new", "{+new+}"},
		{"one two", "one two three", "one two{+ three+}"},
		{"line\nnext", "line\nlast", "line\n[-next-]{+last+}"},
		{"今日は雨です", "今日は雪です", "今日は[-雨-]{+雪+}です"},
		{"call(1)", "call(2)", "call([-1-]{+2+})"},
	} {
		r, _ := testRun(t.Context())
		if got := r.markWords(compare.Words(c.a, c.b)); got != c.want {
			t.Errorf("%q to %q is %q, not %q", c.a, c.b, got, c.want)
		}
	}
}

func TestLines(t *testing.T) {
	in := "\xef\xbb\xbf{\"role\":\"user\",\"content\":\"one\"}\n\n  \n{\"role\":\"user\",\"content\":\"two\"}\r\n{\"role\":\"user\",\"content\":\"three\"}"
	l := newLines(strings.NewReader(in), 1000, 100)
	batch, numbers, err := l.batch()
	if len(batch) != 2 || err != nil || batch[0].Text() != "one" {
		t.Fatalf("the first batch is %v %v: the last line may still go on", numbers, err)
	}
	batch, numbers, err = l.batch()
	if len(batch) != 1 || numbers[0] != 5 || batch[0].Text() != "three" || err != io.EOF && err != nil {
		t.Fatalf("the second batch is %v %v", numbers, err)
	}
	if _, _, err := l.batch(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	for _, bad := range []string{"{", "[]", "null", "x", `{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}`, "{\"role\":\"\xff\"}", `{"role":5}`} {
		batch, _, err := newLines(strings.NewReader(bad), 500, 10).batch()
		if err == nil || err == io.EOF || len(batch) > 0 || !strings.HasPrefix(err.Error(), "line 1") {
			t.Errorf("%q gives %d messages and %v", cut(bad, 40), len(batch), err)
		}
	}
}

// TestLinesDoNotWait: a batch ends where the next line has not come yet.
func TestLinesDoNotWait(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		for i := range 3 {
			fmt.Fprintf(w, "{\"role\":\"user\",\"content\":\"%d\"}\n{\"role\":\"us", i)
			fmt.Fprintf(w, "er\",\"content\":\"rest\"}\n")
		}
		w.CloseWithError(errors.New("broken"))
	}()
	l := newLines(r, 1000, 100)
	n := 0
	for {
		batch, _, err := l.batch()
		n += len(batch)
		if err != nil {
			if err.Error() != "broken" {
				t.Error(err)
			}
			break
		}
	}
	if n != 6 {
		t.Errorf("%d messages before the input broke, not 6", n)
	}
}
