package screen

import (
	"strings"
	"testing"

	"github.com/rivo/uniseg"
)

// shownAs returns Markdown as text, one line each.
func shownAs(source string, columns int) string {
	var b strings.Builder
	for _, l := range Markdown(source, columns, uniseg.StringWidth) {
		b.WriteString(l.Text() + "\n")
	}
	return b.String()
}

func TestMarkdown(t *testing.T) {
	for _, c := range []struct {
		name, source string
		columns      int
		want         string
	}{
		{"words", "A paragraph that is **wrapped** at its words,\nalso over a line.", 20, "A paragraph that is\nwrapped at its\nwords, also over a\nline.\n"},
		{"heading", "## Bread for eight\ntext", 12, "## Bread for\n   eight\n\ntext\n"},
		{"list", "- one\n- two words here\n  1. inner\n  2. more\n", 12, "• one\n• two words\n  here\n  1. inner\n  2. more\n"},
		{"loose", "- one\n\n- two\n", 12, "• one\n\n• two\n"},
		{"tasks", "- [x] done\n- [ ] open", 20, "• [x] done\n• [ ] open\n"},
		{"code", "Run:\n\n```go\nfunc main() {\n\tfmt.Println(1)\n}\n```\n", 14, "Run:\n\n▏ go\n▏ func main()\n▏ {\n▏     fmt.Prin\n▏ tln(1)\n▏ }\n"},
		{"code in a list", "1. x\n\n   ```\n   y\n   ```\n", 20, "1. x\n\n   ▏ y\n"},
		{"quote", "> said\n> twice", 20, "│ said twice\n"},
		{"link", "[here](http://x.y) and <http://z.w>", 60, "here (http://x.y) and http://z.w\n"},
		{"image", "![alt](a.png)", 60, "[image alt (a.png)]\n"},
		{"table", "| a | bcd |\n| - | - |\n| long | x |\n", 40, "a    │ bcd\nlong │ x\n"},
		{"rule", "a\n\n---\n\nb", 6, "a\n\n──────\n\nb\n"},
		{"hard break", "a  \nb", 20, "a\nb\n"},
		{"escapes", `\*no\* &amp; &#65;`, 20, "*no* & A\n"},
		{"html", "<b>x</b>\n\n<div>\ny\n</div>", 20, "<b>x</b>\n\n▏ <div>\n▏ y\n▏ </div>\n"},
		{"wide", "漢字漢字漢字", 5, "漢字\n漢字\n漢字\n"},
		{"a long word", "supercalifragilistic x", 10, "supercalif\nragilistic\nx\n"},
		{"nothing", "", 10, ""},
	} {
		if got := shownAs(c.source, c.columns); got != c.want {
			t.Errorf("%s:\n%s\nnot\n%s", c.name, got, c.want)
		}
	}
}

// TestMarkdownDrivesNothing: whatever a model writes, no control character is shown, even if Markdown itself would make one.
func TestMarkdownDrivesNothing(t *testing.T) {
	for _, s := range []string{"\x1b[2J", "&#27;[2J", "&#x9b;31m", "`\x1b]52;c;x\x07`", "[a](\x1b[H)", "<\x1b[1m>", "```\x1b]0;t\x07\nx\n```", "# \u202eabc", "| \x1b[2J |\n| - |\n", "&NewLine;&Tab;"} {
		for _, l := range Markdown(s, 20, uniseg.StringWidth) {
			if text := l.Text(); strings.ContainsFunc(text, unsafeRune) || strings.ContainsAny(text, "\n\t\r") {
				t.Errorf("%q gives %q", s, text)
			}
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("# a\n\n- b\n\n```\nc\n```\n| d | e |\n| - | - |\n| f |", 9)
	f.Add("&#27;\x1b>1. [x](y)", 4)
	f.Fuzz(func(t *testing.T, s string, columns int) {
		columns = 4 + (columns&0xff)%60
		for _, l := range Markdown(s, columns, uniseg.StringWidth) {
			if text := l.Text(); strings.ContainsFunc(text, unsafeRune) || strings.Contains(text, "\n") {
				t.Errorf("%q gives %q", s, text)
			}
		}
	})
}

func TestPen(t *testing.T) {
	for _, c := range []struct {
		pen   Pen
		style Style
		want  string
	}{
		{Pen{true, true}, Bold | Green, "\x1b[1;32mx\x1b[0m"}, {Pen{true, false}, Bold | Green, "\x1b[1mx\x1b[0m"}, {Pen{true, false}, Green, "x"}, {Pen{}, Reverse, "x"}, {Pen{true, true}, 0, "x"},
	} {
		if got := c.pen.Paint(c.style, "x"); got != c.want {
			t.Errorf("%v with %b is %q, want %q", c.pen, c.style, got, c.want)
		}
	}
}

// TestTypedKeepsLineBreaks: a line break that a person typed stays; the lines of a model are joined.
func TestTypedKeepsLineBreaks(t *testing.T) {
	const source = "first line\nsecond **line**\n\n- one\n  more"
	for _, test := range []struct {
		render func(string, int, Width) []Line
		want   string
	}{
		{Typed, "first line\nsecond line\n\n• one\n  more"},
		{Markdown, "first line second line\n\n• one more"},
	} {
		var got []string
		for _, l := range test.render(source, 40, Widest) {
			got = append(got, strings.TrimRight(l.Paint(Pen{}), " "))
		}
		if text := strings.Join(got, "\n"); text != test.want {
			t.Errorf("got\n%s\nwant\n%s", text, test.want)
		}
	}
}
