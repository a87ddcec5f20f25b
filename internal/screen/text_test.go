package screen

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// TestSafeWriter writes every text in two pieces, cut anywhere.
func TestSafeWriter(t *testing.T) {
	const in = "a\x1b[2J\u009b31m\u202eé漢🙂\r\n\tz\x07"
	for format, want := range map[string]string{
		textEscape: "a\\x1b[2J\\x9b31m\\x202eé漢🙂\\x0d\n\tz\\x07",
		jsonEscape: "a\\u001b[2J\\u009b31m\\u202eé漢🙂\\u000d\n\tz\\u0007",
	} {
		for cut := range len(in) {
			var b strings.Builder
			w := &safeWriter{w: &b, format: format}
			for _, piece := range []string{in[:cut], in[cut:]} {
				if n, err := io.WriteString(w, piece); n != len(piece) || err != nil {
					t.Fatalf("wrote %d of %d: %v", n, len(piece), err)
				}
			}
			if b.String() != want {
				t.Errorf("cut at %d: %q, want %q", cut, b.String(), want)
			}
		}
	}
}

func TestCutAndPad(t *testing.T) {
	for _, s := range []string{"", "a", "hello world", "漢字と🙂漢字", "e\u0301e\u0301e\u0301", "👩‍👩‍👧‍👦👩‍👩‍👧‍👦", "\u200b"} {
		for width := range 14 {
			c := Cut(s, width)
			if w := uniseg.StringWidth(c); w > width {
				t.Errorf("cut(%q, %d) is %q, %d wide", s, width, c, w)
			}
			if uniseg.StringWidth(s) <= width && width > 0 && c != s {
				t.Errorf("cut(%q, %d) is %q though it had room", s, width, c)
			}
			if w := uniseg.StringWidth(Pad(c, width)); w != width {
				t.Errorf("pad(%q, %d) is %d wide", c, width, w)
			}
		}
	}
}

func TestCleanIsSafe(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":       "plain\ttext\n",
		"\x1b[31mred\x07":     `\x1b[31mred\x07`,
		"a\rb":                `a\x0db`,
		"\u009bx":             `\x9bx`,
		"abc\u202edef":        `abc\x202edef`,
		"bad \xff byte":       "bad \ufffd byte",
		"zero\x00":            `zero\x00`,
		"ümläut 漢字 🙂 e\u0301": "ümläut 漢字 🙂 e\u0301",
	} {
		if got := Clean(in); got != want {
			t.Errorf("clean(%q) is %q, not %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[0m")
	f.Fuzz(func(t *testing.T, s string) {
		c := Clean(s)
		if !utf8.ValidString(c) || strings.ContainsFunc(c, unsafeRune) {
			t.Errorf("clean(%q) is %q", s, c)
		}
		if o := OneLine(s); strings.ContainsAny(o, "\n\t") {
			t.Errorf("oneLine(%q) is %q", s, o)
		}
	})
}

func TestBody(t *testing.T) {
	m := &chatctx.Message{Role: pool.Assistant, Content: []pool.Part{
		{Type: pool.ThinkingPart, Text: "let me\nsee"},
		{Type: pool.TextPart, Text: "Before\x1b[2J"},
		{Type: pool.CallPart, CallID: "b"},
		{Type: pool.TextPart, Text: "after"},
		{Type: pool.ImagePart, MediaType: "image/png", Name: "a.png", Size: 2048},
		{Type: "strange", Raw: []byte(`{"type":"strange","x":1}`)},
	}, Calls: []pool.Call{
		{ID: "a", Tool: "first", Arguments: []byte(`{ "x": 1 }`), Status: pool.Pending},
		{ID: "b", Tool: "second", Status: pool.Denied, Reason: "no"},
	}}
	got := Body(m, false)
	want := `[thinking, 10 characters: let me see]
Before\x1b[2J
→ second()  call 00000000:2, denied: no
after
[image a.png image/png 2.0 KiB]
[strange {"type":"strange","x":1}]
→ first({"x":1})  call 00000000:1, pending`
	if got != want {
		t.Errorf("body is\n%s\nnot\n%s", got, want)
	}
}

func TestUnjoined(t *testing.T) {
	for in, want := range map[string]string{
		"plain é שלום 漢字 🇩🇪":                                 "plain é שלום 漢字 🇩🇪",
		"👩\u200d👩\u200d👧 👩🏽\u200d🚀 👍🏽 ❤\ufe0f 1\ufe0f\u20e3": "👩👩👧 👩🚀 👍 ❤ 1\u20e3",
		"क्\u200dष ම්\u200dම":                                "क्\u200dष ම්\u200dම", // joiners between letters shape them
		"🏽\u200d":                                            "🏽\u200d",
	} {
		if got := Unjoined(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
}
