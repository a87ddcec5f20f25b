package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	urfave "github.com/urfave/cli/v3"
)

// flagText is a flag as the help shows it: its name with the word for its value, and what it is for.
func flagText(f urfave.Flag) (name, usage string) {
	name = f.Names()[0]
	if utf8.RuneCountInString(name) == 1 {
		name = "-" + name
	} else {
		name = "--" + name
	}
	if p := valueWord(f); p != "" {
		name += " " + p
	}
	if d, ok := f.(urfave.DocGenerationFlag); ok {
		usage = strings.ReplaceAll(d.GetUsage(), "`", "")
	}
	return name, usage
}

// upper makes the first letter a capital.
func upper(s string) string {
	c, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(c)) + s[n:]
}

// indent puts something before each line.
func indent(s, with string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		b.WriteString(with + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

// welcome is what chatctx says when no command is given: where the person is, or what to type first.
func welcome(ctx context.Context, con *console, p *parsed) error {
	status := &parsed{path: []*command{findCommand(allCommands(), "status")}, shared: p.shared}
	path := storeOf(p)
	if path != "" {
		if _, err := os.Stat(path); err == nil {
			if err := runCommand(ctx, con, status); err == nil {
				fmt.Fprintf(con.out, "\nchatctx help lists the commands\n")
				return nil
			}
		}
	}
	fmt.Fprintf(con.out, "chatctx keeps conversations with language models in one file, with all their branches.\n\n%s\nall commands:          chatctx help\n", firstSteps)
	return nil
}

// storeOf is the store that a command line without a command names.
func storeOf(p *parsed) string {
	for _, f := range p.shared {
		if path, ok := strings.CutPrefix(f, "--store="); ok {
			return path
		}
	}
	if path := os.Getenv("CHATCTX_STORE"); path != "" {
		return path
	}
	path, _ := defaultStore()
	return path
}
