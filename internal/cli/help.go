package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// flagText returns a flag as the help shows it: its name with the word for its value, and its usage.
func flagText(f *flag) (name, usage string) {
	name = f.dashed()
	if p := valueWord(f); p != "" {
		name += " " + p
	}
	return name, strings.ReplaceAll(f.usage, "`", "")
}

// upper makes the first letter a capital.
func upper(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(c)) + s[n:]
}

// The width of help texts, and the columns where the descriptions of commands and flags begin.
const (
	helpWidth     = 80
	commandColumn = 32
	flagColumn    = 22
)

// filled breaks text between words into lines of at most helpWidth. The first line begins with first and the others with rest.
func filled(text, first, rest string) string {
	var b strings.Builder
	line, empty := first, true
	for _, word := range strings.Fields(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > helpWidth {
			b.WriteString(line + "\n")
			line, empty = rest, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return b.String() + line + "\n"
}

// listed returns a name with its description, which begins at a column, or on the next line if the name is too long.
func listed(name, text string, column int) string {
	name = "  " + name
	rest := strings.Repeat(" ", column)
	n := utf8.RuneCountInString(name)
	if n+2 > column {
		return "  " + strings.TrimLeft(filled(name, "", "      "), " ") + filled(text, rest, rest)
	}
	return filled(text, name+rest[n:], rest)
}

// indent puts something before each line.
func indent(s, with string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(with + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

// welcome is the output of chatctx without a command: where the person is, or what to type first.
func welcome(ctx context.Context, con *console, p *parsed) error {
	path := storeOf(p)
	if path != "" {
		if _, err := os.Stat(path); err == nil {
			given := slices.DeleteFunc(slices.Clone(p.shared), func(f string) bool { return strings.HasSuffix(f, "=") })
			if err := execute(ctx, con, append(given, "status")); err == nil {
				fmt.Fprintf(con.out, "\nchatctx help lists the commands\n")
				return nil
			}
		}
	}
	fmt.Fprintf(con.out, "chatctx keeps conversations with language models in one file, with all their branches.\n\n%s\nall commands:          chatctx help\n", firstSteps)
	return nil
}

// storeOf returns the store that a command line without a command names.
func storeOf(p *parsed) string {
	if p.common.Store != "" {
		return p.common.Store
	}
	path, _ := defaultStore()
	return path
}
