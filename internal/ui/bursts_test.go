package ui

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/internal/testkit"
)

// inReads gives one piece with each Read.
type inReads struct{ pieces []string }

func (r *inReads) Read(p []byte) (int, error) {
	if len(r.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.pieces[0])
	if r.pieces[0] = r.pieces[0][n:]; r.pieces[0] == "" {
		r.pieces = r.pieces[1:]
	}
	return n, nil
}

// TestBursts: what becomes a paste, in which reads.
func TestBursts(t *testing.T) {
	const on, off = "\x1b[200~", "\x1b[201~"
	for _, tt := range []struct {
		name  string
		reads []string
		want  []string
	}{
		{"typed", []string{"a", "b\r", "\r"}, []string{"a", "b\r", "\r"}},
		{"a line by itself", []string{"one line\r"}, []string{"one line\r"}},
		{"two lines", []string{"one\rtwo\r"}, []string{on + "one\rtwo\r" + off}},
		{"text behind an Enter", []string{"one\rtw"}, []string{on + "one\rtw" + off}},
		{"an Enter before text", []string{"\r/quit"}, []string{on + "\r/quit" + off}},
		{"a tab is text there", []string{"a\r\tb\n"}, []string{on + "a\r\tb\n" + off}},
		{"two Enters", []string{"one\r\r"}, []string{"one\r\r"}},
		{"Ctrl-D behind an Enter", []string{"one\r\x04"}, []string{"one\r\x04"}},
		{"a key within", []string{"one\rtwo\x03three"}, []string{on + "one\rtwo" + off + "\x03" + on + "three" + off}},
		{"an answer of the terminal is no text", []string{"one\r\x1b[12;1R"}, []string{"one\r\x1b[12;1R"}},
		{"nor is one that was cut", []string{"one\r\x1b[1", "2;1R"}, []string{"one\r\x1b[1", "2;1R"}},
		{"a colour that a terminal names", []string{"\r\x1b]11;rgb:0/0/0\x1b\\"}, []string{"\r\x1b]11;rgb:0/0/0\x1b\\"}},
		{"an arrow", []string{"\r\x1bOA\x1b[A"}, []string{"\r\x1bOA\x1b[A"}},
		{"Alt-Enter", []string{"one\x1b\rtwo"}, []string{"one\x1b\rtwo"}},
		{"Esc, then a line", []string{"\x1b", "\r"}, []string{"\x1b", "\r"}},
		{"marked already", []string{on + "one\rtwo" + off + "\r"}, []string{on + "one\rtwo" + off + "\r"}},
		{"marked, and cut", []string{on + "one\rt", "wo\rthree", off, "\r"}, []string{on + "one\rt", "wo\rthree", off, "\r"}},
		{"marks that are cut", []string{"\x1b[20", "0~one\rtwo\x1b[", "201~", "a\r"}, []string{"\x1b[20", "0~one\rtwo\x1b[", "201~", "a\r"}},
		{"a character that is cut", []string{"one\r\xe6\xbc", "\xa2!"}, []string{on + "one\r" + off, "\xe6\xbc\xa2!"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &bursts{from: &inReads{tt.reads}}
			var got []string
			buf := make([]byte, 4096)
			for {
				n, err := b.Read(buf)
				if err != nil {
					break
				}
				got = append(got, string(buf[:n]))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestBurstsLoseNothing: with any cutting and any room, the bytes without the marks are those that came, in their order.
func TestBurstsLoseNothing(t *testing.T) {
	words := []string{"a", "one two", "\r", "\r\n", "\n", "\t", "漢字", "👩\u200d👧", "\x03", "\x7f", "\x1b", "\x1b[A", "\x1b[1;5C", "\xff", "/quit", "\x1b]0;t\a"}
	for seed := range testkit.Seeds(t, 200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var all strings.Builder
		var pieces []string
		for range 1 + r.IntN(40) {
			piece := ""
			for range 1 + r.IntN(6) {
				piece += words[r.IntN(len(words))]
			}
			if cut := r.IntN(len(piece)); r.IntN(2) == 0 && cut > 0 {
				pieces = append(pieces, piece[:cut])
				all.WriteString(piece[:cut])
				piece = piece[cut:]
			}
			pieces = append(pieces, piece)
			all.WriteString(piece)
		}
		b := &bursts{from: &inReads{pieces}}
		var got strings.Builder
		buf := make([]byte, 16+r.IntN(64))
		for {
			n, err := b.Read(buf)
			got.Write(buf[:n])
			if err != nil {
				break
			}
		}
		got.Write(b.rest)
		if plain := strings.NewReplacer("\x1b[200~", "", "\x1b[201~", "").Replace(got.String()); plain != all.String() {
			t.Fatalf("seed %d: %q came as %q", seed, all.String(), plain)
		}
	}
}

// TestPastesByReads: a prompt sends nothing that had no Enter of its own behind it, keeps every byte and the order, and takes no line of a paste for a command. A plain
// model says what each read does.
func TestPastesByReads(t *testing.T) {
	words := []string{"a", "one two", "/quit", "漢字", "x y", "é", " "}
	for seed := range testkit.Seeds(t, 12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			x, p := prompting(t, PromptOptions{Label: "main> "}, 80, 24)
			x.until("main>")
			type sent struct {
				text    string
				message bool
			}
			var want []sent
			field, message, pasted := "", false, false
			enter := func() {
				if pasted {
					field = strings.TrimSuffix(field, "\n")
				}
				want = append(want, sent{field, message})
				field, message, pasted = "", false, false
			}
			for range 30 {
				read := ""
				for range 1 + r.IntN(5) {
					if read += words[r.IntN(len(words))]; r.IntN(3) == 0 {
						read += "\r"
					}
				}
				switch at := strings.IndexByte(read, '\r'); {
				case at < 0:
					field += read
				case strings.Trim(read[at:], "\r") != "": // text behind an Enter
					message = message || strings.TrimSpace(field) == ""
					field, pasted = field+strings.ReplaceAll(read, "\r", "\n"), true
				default:
					field += read[:at]
					for range len(read) - at {
						enter()
					}
				}
				x.press(read)
			}
			x.press("\r")
			enter()
			for i, w := range want {
				line, err := p.Line()
				if err != nil || line.Text != w.text || line.Message != w.message && w.text != "" {
					t.Fatalf("line %d is %q (message %v), %v, not %q (%v)", i, line.Text, line.Message, err, w.text, w.message)
				}
				p.Show(line, r.IntN(2) == 0)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestNoticesStandBetweenBlocks: what is printed while a sentence arrives stands before or behind the sentence, never within.
func TestNoticesStandBetweenBlocks(t *testing.T) {
	x, p := prompting(t, PromptOptions{Label: "main> "}, 60, 24)
	x.until("main>")
	p.Say("The tide is high at noon, ")
	x.until("high at noon")
	x.press("more\r")
	line, err := p.Line()
	if err != nil {
		t.Fatal(err)
	}
	p.Show(line, true)
	p.PrintBetween("the message waits")
	p.Say("and low in the evening.\n\nThe next ")
	p.Say("paragraph.")
	p.PrintBetween("another one waits")
	p.Said()
	p.PrintBetween("at once")
	x.until("at once")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	got := strings.Join(strings.Fields(transcript(x.em)), " ")
	want := "The tide is high at noon, and low in the evening. The next paragraph. main> more the message waits another one waits at once"
	if !strings.Contains(got, want) {
		t.Errorf("%q, not %q", got, want)
	}
}
