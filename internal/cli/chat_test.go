package cli

import (
	"slices"
	"testing"
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
