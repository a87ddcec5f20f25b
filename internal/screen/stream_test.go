package screen

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// streamed are texts with different sequences of Markdown's blocks.
var streamed = []string{
	"",
	"One line",
	"A paragraph\nof two lines.\n\nAnother.\n",
	"# Title\nText at once.\n## Second\n\n- a\n- b\n  more of b\n\n  a paragraph of b\n- c\n\nAfter the list.\n",
	"1. one\n\n2. two\n\n   still two\n\n10. ten\n\ntext\n\n3) other\n",
	"Before\n```go\nfunc f() {\n\n\treturn\n}\n```\nAfter\n\n    indented code\n\n    goes on\n\nend",
	"~~~\nopen\n\nand never closed\n# no title\n",
	"> quote\ngoes on lazily\n\n> another\n> - list\n>\n> end\n\n---\n***\ntext\n___\n",
	"| a | b |\n| - | - |\n| 1 | 2 |\n\nno table | here\n\nSetext\n===\nand\n---\n",
	"<div>\nraw\n</div>\n\ntext <b>bold</b>\n<!-- comment\n\nover lines -->\nend\n",
	"* * *\n* a\n* * b\n\n*\n\n-\n\n+ c\n",
	"wide 東京 👩‍👩‍👧 é\r\n\r\n\tcode\x1b[31m\n\n\u202e turned\n",
	"- [x] done\n- [ ] open\n\n\n\n\n1. a\n2. b\n- c\n",
}

// TestStream: a text gives the same lines as in one piece, however it is cut, and lines that were returned do not change.
func TestStream(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, text := range append(streamed, strings.Join(streamed[2:], "\n\n")) {
		for round := range 40 {
			columns := 8 + rng.IntN(60)
			want := Markdown(text, columns, uniseg.StringWidth)
			var s Stream
			var got []Line
			for rest := text; rest != ""; {
				n := 1 + rng.IntN(1+round)
				if n = min(n, len(rest)); round == 0 {
					n = len(rest)
				}
				for n < len(rest) && !utf8.RuneStart(rest[n]) {
					n++
				}
				got = append(got, s.Add(rest[:n], columns, uniseg.StringWidth)...)
				rest = rest[n:]
			}
			got = append(got, s.Rest(columns, uniseg.StringWidth)...)
			if a, b := painted(got), painted(want); a != b {
				t.Fatalf("%q in %d columns is\n%s\nnot\n%s", text, columns, a, b)
			}
		}
	}
}

// TestStreamGivesWhatIsWhole: a block is returned when the next one begins, and not before.
func TestStreamGivesWhatIsWhole(t *testing.T) {
	var s Stream
	for _, step := range []struct{ add, given, rest string }{
		{"One **bold", "", "One **bold\n"},
		{"** word.\n", "", "One bold word.\n"},
		{"\n- a\n", "One bold word.\n", "\n• a\n"},
		{"\n2", "", "\n• a\n\n2\n"},
		{". b\n", "\n• a\n", "\n2. b\n"},
		{"```\n# x\n\n", "\n2. b\n", "\n▏ # x\n▏\n"},
		{"```\nend\n", "\n▏ # x\n▏\n", "\nend\n"},
	} {
		given := painted(s.Add(step.add, 40, uniseg.StringWidth))
		if rest := painted(s.Rest(40, uniseg.StringWidth)); given != step.given || rest != step.rest {
			t.Errorf("after %q: given %q, not %q; rest %q, not %q", step.add, given, step.given, rest, step.rest)
		}
	}
}

// painted returns the text of lines, with marks for their styles.
func painted(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(l.Text(), " ") + "\n")
	}
	return b.String()
}
