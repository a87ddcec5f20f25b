package cli

import (
	"fmt"
	"os/exec"
	"strings"
)

// commandOf parses the command in an environment variable: words separated by blanks, where quotes hold a word together. The path of a program may have
// blanks without quotes if the program exists.
func commandOf(variable, line string) ([]string, error) {
	line = strings.TrimSpace(line)
	program := leadingProgram(line)
	words, err := commandWords(line[len(program):])
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", variable, err, line)
	}
	if program != "" {
		words = append([]string{program}, words...)
	}
	return words, nil
}

// leadingProgram returns the shortest beginning of a line, up to a blank or the end, that names an existing program.
func leadingProgram(line string) string {
	for i, c := range line + " " {
		if !isBlank(c) {
			continue
		}
		if _, err := exec.LookPath(line[:i]); err == nil {
			return line[:i]
		}
	}
	return ""
}

func isBlank(c rune) bool { return c == ' ' || c == '\t' }

// commandWords splits a line at blanks. Text in double quotes is one word or a part of one; so is text in single quotes if these begin a word or follow a
// "=", since they may also stand in names. No other character is special.
func commandWords(line string) (words []string, err error) {
	var word strings.Builder
	var quote, before rune
	begun, escaped := false, false
	for _, c := range line {
		switch {
		case escaped:
			word.WriteRune(c)
			escaped = false
		case c == '\\' && backslashQuotes && quote != '\'':
			begun, escaped = true, true
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"', c == '\'' && (!begun || before == '='):
			quote, begun = c, true
		case isBlank(c):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(c)
			begun = true
		}
		before = c
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
