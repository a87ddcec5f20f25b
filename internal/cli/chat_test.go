package cli

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestChatWords(t *testing.T) {
	for line, want := range map[string][]string{
		"undo":                       {"undo"},
		"":                           {""},
		"model gpt-5":                {"config", "model=gpt-5"},
		"fork  aside --at  @2":       {"fork", "aside", "--at", "@2"},
		"fork 'with a space'":        {"fork", "with a space"},
		"branch ls":                  {"branch", "ls"},
		"edit @2 don't   do \"it\" ": {"edit", "@2", "--", "don't   do \"it\" "},
		"edit @2 'one text' --as b":  {"edit", "@2", "one text", "--as", "b"},
		"system Be\nkind":            {"system", "--", "Be\nkind"},
		"system":                     {"system"},
		"system \"quoted\"":          {"system", "quoted"},
		"nonsense words here":        {"nonsense", "words", "here"},
		"send 'unclosed":             {"send", "'unclosed"},
	} {
		if got := chatWords(line); !slices.Equal(got, want) {
			t.Errorf("%q became %q, want %q", line, got, want)
		}
	}
}

// What is typed and pasted is the same however it is cut into reads.
func TestKeyboard(t *testing.T) {
	long := strings.Repeat("x", longPaste)
	tests := []struct {
		name, in, ready, unfolded string
		running                   bool
		stops                     int
	}{
		{"typing", "hello\r", "hello\r", "hello\r", false, 0},
		{"arrows", "a\x1b[D\x1b[2~\r", "a\x1b[D\x1b[2~\r", "a\x1b[D\x1b[2~\r", false, 0},
		{"a word pasted", "a\x1b[200~word\x1b[201~b\r", "awordb\r", "awordb\r", false, 0},
		{"lines pasted", "a \x1b[200~1\r\n2\n\x1b[201~ b\r", "a [paste 1: 2 lines] b\r", "a 1\n2 b\r", false, 0},
		{"a long line pasted", "\x1b[200~" + long + "\x1b[201~\r", "[paste 1: 1 line]\r", long + "\r", false, 0},
		{"two pastes", "\x1b[200~1\n2\x1b[201~\x1b[200~3\n4\x1b[201~\r", "[paste 1: 2 lines][paste 2: 2 lines]\r", "1\n23\n4\r", false, 0},
		{"Ctrl-C in a paste is text", "\x1b[200~a\x03b\x1b[201~\r", "a\x03b\r", "a\x03b\r", false, 0},
		{"Ctrl-C while an answer comes", "ab\x03c\r", "abc\r", "abc\r", true, 1},
		{"Ctrl-C clears the line", "ab\x03c\r", "ab\x15c\r", "ab\x15c\r", false, 1},
	}
	for _, test := range tests {
		for name, cut := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "in halves": iotest.HalfReader,
		} {
			stops := 0
			k := &keyboard{in: cut(strings.NewReader(test.in)), stop: func() bool { stops++; return test.running }}
			got, err := io.ReadAll(k)
			if err != nil || string(got) != test.ready || k.unfold(string(got)) != test.unfolded || stops != test.stops {
				t.Errorf("%s, %s: %.100q unfolded %.100q, %d stops, %v", test.name, name, got, k.unfold(string(got)), stops, err)
			}
		}
	}
}
