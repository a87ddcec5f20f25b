package screen

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/pool"
)

// Clean makes text safe for a terminal: it shows control characters, which could move the cursor or worse, as escapes. Line ends and tabs stay.
func Clean(s string) string { return escape(s, unsafeRune, textEscape) }

// Plainly is Clean for text that a person decides about: it also shows invisible characters and those that change the direction of a text as escapes.
func Plainly(s string) string {
	return Clean(escape(s, hiddenRune, textEscape))
}

// hiddenRune reports whether a character is invisible.
func hiddenRune(c rune) bool {
	return unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// escape writes the characters of s for which is is true with format.
func escape(s string, is func(rune) bool, format string) string {
	if strings.IndexFunc(s, is) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, c := range s {
		if is(c) {
			fmt.Fprintf(&b, format, c)
			continue
		}
		b.WriteRune(c)
	}
	return b.String()
}

// The formats of escape: for text, and for JSON, which stays the same JSON.
const (
	textEscape = `\x%02x`
	jsonEscape = `\u%04x`
)

func unsafeRune(c rune) bool {
	return unicode.IsControl(c) && c != '\n' && c != '\t' || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069
}

// CleanJSON makes JSON safe for a terminal; it stays the same JSON.
func CleanJSON(s string) string { return escape(s, unsafeRune, jsonEscape) }

// JSONWriter returns a writer that passes JSON on to a terminal, with unsafe characters as JSON escapes. A character may be split between two writes.
func JSONWriter(w io.Writer) io.Writer { return &safeWriter{w: w, format: jsonEscape} }

// TextWriter returns a writer that passes text on to a terminal, made safe as by Clean. A character may be split between two writes.
func TextWriter(w io.Writer) io.Writer { return &safeWriter{w: w, format: textEscape} }

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
	_, err := io.WriteString(s.w, escape(string(b[:whole]), unsafeRune, s.format))
	s.rest = append([]byte(nil), b[whole:]...)
	return len(p), err
}

// OneLine returns clean text with each run of white space as one space. It cuts a long text, but to more than a terminal's line.
func OneLine(s string) string {
	const enough = 4096
	if len(s) > enough {
		s = strings.ToValidUTF8(s[:enough], "")
	}
	return Clean(strings.Join(strings.Fields(s), " "))
}

// Cut shortens s to width columns, with an ellipsis if anything is left out.
func Cut(s string, width int) string {
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

// Pad fills s with spaces up to width columns.
func Pad(s string, width int) string {
	if n := width - uniseg.StringWidth(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// Titled returns the name of a context for text.
func Titled(title string, id chatctx.ID) string {
	if title == "" {
		return record.Short(id)
	}
	return fmt.Sprintf("“%s”", Cut(OneLine(title), 60))
}

// Count returns a number with its noun: "1 message", "3 messages".
func Count(n int, what string) string { return plural.Count(n, what) }

// Size returns a number of bytes for people.
func Size(n int64) string {
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

// Moment returns a time for people, in their zone; "" if it is unknown.
func Moment(t pool.Time) string {
	if t == 0 {
		return ""
	}
	return t.Time().Local().Format("2006-01-02 15:04")
}

// Unjoined returns text that is equally wide on terminals that join emoji and on those that do not: without joiners, skin tones and the selector for a coloured
// look. A family is shown as its members.
func Unjoined(s string) string {
	joins := func(c rune) bool { return c == '\u200d' || c == '\ufe0f' || c >= 0x1f3fb && c <= 0x1f3ff }
	if strings.IndexFunc(s, joins) < 0 {
		return s
	}
	var b strings.Builder
	var before rune
	for _, c := range s {
		if joins(c) && (c == '\ufe0f' || unicode.Is(unicode.So, before)) {
			continue
		}
		b.WriteRune(c)
		before = c
	}
	return b.String()
}
