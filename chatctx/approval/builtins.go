package approval

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// shellCommand reads a command that is part of the shell and runs or sets something by some of its words only. It reports whether the name is one of those.
func (s *reader) shellCommand(name string, cmd *simple) bool {
	words := cmd.words[1:]
	told := false
	switch name {
	case "test", "[":
		told = s.testWords(name, words)
	case "printf":
		told = s.printfWords(words)
	case "set":
		told = setWords(words)
	case "exit", "return", "break", "continue", "shift":
		told = len(words) == 0 || len(words) == 1 && words[0].isNumber()
	case "wait":
		told = !slices.ContainsFunc(words, func(w word) bool { return !w.isNumber() })
	case "read":
		told = s.readWords(words)
	case "unset":
		told = s.plainNames(words)
	case "cd", "pushd", "popd":
		s.moves = true
		return true
	default:
		return false
	}
	if !told {
		s.cannot("what " + name + " does with its words")
	}
	return true
}

// Tests of files and texts, which run and compute nothing, and comparisons of numbers, which some shells compute.
var (
	testsOfOne = []string{"-n", "-z", "-f", "-d", "-e", "-x", "-r", "-w", "-s", "-L", "-h", "-p", "-S", "-b", "-c", "-g", "-u", "-k", "-O", "-G"}
	testsOfTwo = []string{"=", "==", "!=", "-nt", "-ot", "-ef"}
	ofCounts   = []string{"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}
)

// testWords accepts a test of one form: what is put in must not become an operator.
func (s *reader) testWords(name string, words []word) bool {
	if name == "[" {
		if len(words) == 0 || !words[len(words)-1].is("]") {
			return false
		}
		words = words[:len(words)-1]
	}
	if len(words) > 0 && words[0].is("!") {
		words = words[1:]
	}
	if slices.ContainsFunc(words, func(w word) bool { return !w.single }) {
		return false
	}
	switch len(words) {
	case 0, 1:
		return true
	case 2:
		return words[0].literal && slices.Contains(testsOfOne, words[0].text)
	case 3:
		op := words[1]
		switch {
		case !op.literal:
		case slices.Contains(testsOfTwo, op.text):
			return true
		case slices.Contains(ofCounts, op.text):
			return s.shells&^sh == 0 || words[0].isNumber() && words[2].isNumber()
		}
	}
	return false
}

// printfWords: %n sets a variable, and some shells compute the arguments for numbers.
func (s *reader) printfWords(words []word) bool {
	switch {
	case len(words) == 0:
		return true
	case !words[0].literal || strings.HasPrefix(words[0].text, "-"):
		return false
	case s.shells&(mksh|zsh) != 0:
		return textFormat().MatchString(words[0].text)
	}
	return plainFormat().MatchString(words[0].text)
}

// textFormat matches formats of printf that print nothing but texts, plainFormat those that print texts and numbers.
var (
	textFormat  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?s)([^%]|%%|%-?[0-9]*[sbq])*$`) })
	plainFormat = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?s)([^%]|%%|%[-+ #0]*[0-9]*(\.[0-9]*)?[sbqcdiouxXeEfFgGaA])*$`)
	})
)

// setWords accepts set -e and the like.
func setWords(words []word) bool {
	for i := 0; i < len(words); i++ {
		w := words[i]
		if !w.literal || !setFlags().MatchString(w.text) {
			return false
		}
		if strings.HasSuffix(w.text, "o") {
			if i++; i == len(words) || !words[i].literal || !slices.Contains(shellOptions, words[i].text) {
				return false
			}
		}
	}
	return len(words) > 0
}

var setFlags = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[-+]([eux]+o?|o)$`) })

// readWords accepts read NAME… with -r.
func (s *reader) readWords(words []word) bool {
	for len(words) > 0 && words[0].is("-r") {
		words = words[1:]
	}
	return s.plainNames(words)
}

// plainNames records variables that a command is given by name.
func (s *reader) plainNames(words []word) bool {
	for _, w := range words {
		if !w.literal || !isName(w.text) {
			return false
		}
		s.alone(w.text)
	}
	return len(words) > 0
}

// plainTest reports whether an operator of [[ computes nothing.
func plainTest(op string) bool {
	return slices.Contains(testsOfOne, op) || slices.Contains(testsOfTwo, op)
}
