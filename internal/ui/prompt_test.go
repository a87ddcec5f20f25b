package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/vt"
)

// prompting starts a Prompt in a virtual terminal.
func prompting(t *testing.T, o PromptOptions, w, h int) (*terminal, *Prompt) {
	t.Helper()
	in, keys := io.Pipe()
	x := &terminal{t: t, keys: keys, em: vt.NewEmulator(w, h), wrote: make(chan struct{}), ended: make(chan error, 1)}
	go io.Copy(io.Discard, x.em)
	o.In, o.Out, o.Env = in, x, []string{"TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	p := startPrompt(ctx, o, tea.WithWindowSize(w, h))
	x.send = p.program.Send
	t.Cleanup(func() {
		cancel()
		<-p.ended
		keys.Close()
		x.em.InputPipe().(io.Closer).Close()
	})
	return x, p
}

// TestFieldLines: typed text is cut at words; what does not fit on a line of its own is cut anywhere.
func TestFieldLines(t *testing.T) {
	for _, tt := range []struct {
		text    string
		columns int
		want    []string
	}{
		{"", 5, []string{""}},
		{"one two three", 9, []string{"one two ", "three"}},
		{"one two three", 7, []string{"one two ", "three"}},
		{"one  two", 3, []string{"one ", " ", "two", ""}},
		{"one", 3, []string{"one", ""}},
		{"abcdefgh ij", 3, []string{"abc", "def", "gh ", "ij"}},
		{"a abcdefgh", 4, []string{"a ", "abcd", "efgh", ""}},
		{"one\ntwo\n", 5, []string{"one", "two", ""}},
		{"ab 漢字かな", 6, []string{"ab 漢", "字かな", ""}},
		{" abc漢", 4, []string{" abc", "漢"}},
		{"e\u0301e\u0301 e\u0301e\u0301", 3, []string{"e\u0301e\u0301 ", "e\u0301e\u0301"}},
	} {
		f := field{lines: true}
		f.set(tt.text)
		lines, places := f.lay(tt.columns, ansi.GraphemeWidth.StringWidth)
		if !slices.Equal(lines, tt.want) {
			t.Errorf("%q in %d columns is %q, not %q", tt.text, tt.columns, lines, tt.want)
		}
		for _, p := range places {
			if at := lines[p.y]; p.x > ansi.GraphemeWidth.StringWidth(at) || p.at < len(tt.text) && tt.text[p.at] != '\n' && !strings.HasPrefix(ansi.Cut(at, p.x, p.x+2), string([]rune(tt.text[p.at:])[:1])) {
				t.Errorf("%q in %d columns: byte %d is at %d, %d of %q", tt.text, tt.columns, p.at, p.x, p.y, lines)
			}
		}
	}
}

// TestPromptBetweenWidths: printed text is complete above the line being typed, at any width, also with wide and joined characters.
func TestPromptBetweenWidths(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 12}, {200, 50}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			x, p := prompting(t, PromptOptions{Label: "main> "}, size[0], size[1])
			x.until("main>")
			x.press("typed 日本 👩\u200d👩\u200d👧!")
			for i := range 40 {
				p.Print(fmt.Sprintf("line %d", i))
			}
			p.Print(strings.Repeat("word ", 50) + "end of the words")
			p.Say("Make **focaccia**, 漢字かな交じり文が続く。\n\n- one\n")
			p.Say("- two\n\nand what is not who")
			x.until("and what is not", "typed 日本")
			p.Say("le.")
			p.Said()
			x.until("whole.", "typed 日本")
			x.press("\r")
			line, err := p.Line()
			p.Show(line, false)
			if err != nil || line.Text != "typed 日本 👩\u200d👩\u200d👧!" {
				t.Errorf("%q, %v", line.Text, err)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			x.mu.Lock()
			defer x.mu.Unlock()
			all := transcript(x.em)
			flat := strings.Join(strings.Fields(all), " ")
			for i := range 40 {
				if strings.Count(flat+" ", fmt.Sprintf("line %d ", i)) != 1 {
					t.Errorf("line %d stands not once in\n%s", i, all)
				}
			}
			for _, want := range []string{strings.Repeat("word ", 50) + "end of the words", "Make focaccia,", "• one • two and what is not whole. main> typed 日本"} {
				if !strings.Contains(flat, want) {
					t.Errorf("%q stands not in\n%s", want, all)
				}
			}
		})
	}
}

// transcript returns the lines that scrolled away and those on the screen.
func transcript(em *vt.Emulator) string {
	var b strings.Builder
	for y := range em.ScrollbackLen() {
		for x := range em.Width() {
			if c := em.ScrollbackCellAt(x, y); c != nil {
				b.WriteString(c.Content)
			}
		}
		b.WriteByte('\n')
	}
	return b.String() + em.String()
}

// TestPromptTakesNoOrders: printed and pasted text does not control the terminal.
func TestPromptTakesNoOrders(t *testing.T) {
	for _, h := range hostile {
		x, p := prompting(t, PromptOptions{Label: "main> ", Complete: func(string) (int, []Completion) { return 1, []Completion{{h, h}, {h + "2", h}} }}, 60, 14)
		p.Say(h)
		p.Said()
		p.Doing(h)
		x.press("typed")
		x.until("typed") // with all of that drawn
		x.press("\x1b[200~" + strings.NewReplacer("\x1b", "", "\x00", "").Replace(h) + "\x1b[201~pasted")
		x.until("pasted")
		x.press("\r")
		if _, err := p.Line(); err != nil {
			t.Fatal(err)
		}
		x.press("/a\t\tchosen")
		x.until("chosen")
		x.press("\x15done\r")
		if _, err := p.Line(); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		x.mu.Lock()
		raw := x.raw.String()
		x.mu.Unlock()
		for _, bad := range []string{"\x1b[2J", "\x1b]", "\u009b", "\u009d", "\u202e", "\u2066", "\x00", "\x07", "\x1b[5m"} {
			if strings.Contains(raw, bad) {
				t.Errorf("%q was written for %.40q", bad, h)
			}
		}
	}
}

// TestPromptEnds: Ctrl-D ends the input, Ctrl-C stops what runs or clears the line, and a context ends everything.
func TestPromptEnds(t *testing.T) {
	stopped := make(chan bool, 2)
	stopped <- true
	stopped <- false
	x, p := prompting(t, PromptOptions{Label: "> ", Stop: func() bool { return <-stopped }}, 60, 10)
	x.press("kept")
	x.until("> kept")
	x.press("\x03!")
	x.until("> kept!")
	x.press("\x03gone\r")
	if line, err := p.Line(); line.Text != "gone" || err != nil {
		t.Errorf("%q %v", line.Text, err)
	}
	x.press("\x04")
	if _, err := p.Line(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	p.Print("after the end")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	x.until("after the end")

	ctx, cancel := context.WithCancelCause(t.Context())
	in, _ := io.Pipe()
	q := startPrompt(ctx, PromptOptions{In: in, Out: io.Discard, Env: []string{"TERM=xterm"}}, tea.WithWindowSize(40, 10))
	because := errors.New("because")
	cancel(because)
	if _, err := q.Line(); !errors.Is(err, because) {
		t.Error(err)
	}
	q.Print("to nobody")
	q.Said()
}

// TestPast goes through typed lines.
func TestPast(t *testing.T) {
	p := newPast([]string{"one", "Two words", "three"})
	step := func(by int, text, want string, ok bool) {
		t.Helper()
		if got, is := p.step(by, text); got != want || is != ok {
			t.Errorf("%q %v, want %q %v", got, is, want, ok)
		}
	}
	step(1, "draft", "", false)
	step(-1, "draft", "three", true)
	step(-1, "three, changed", "Two words", true)
	step(-1, "", "one", true)
	step(-1, "", "", false)
	step(1, "", "Two words", true)
	step(1, "", "three", true)
	step(1, "", "draft", true)
	p.add("three")
	p.add("")
	p.add("four")
	if strings.Join(p.lines, "|") != "one|Two words|three|four" {
		t.Errorf("%q", p.lines)
	}
	for words, want := range map[string]int{"two": 1, "o": 3, "e": 2, "nothing": -1} {
		if got := p.seek(words, len(p.lines)); got != want {
			t.Errorf("%q is at %d, not %d", words, got, want)
		}
	}
	if got := p.seek("o", 3); got != 1 {
		t.Errorf("before that: %d", got)
	}
}
