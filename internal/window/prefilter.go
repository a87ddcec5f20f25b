package window

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// prefiltered is a regular expression that ignores case. It is run only on texts that hold one of
// its literals: most sentences hold none, and looking for them costs little beside the expression.
type prefiltered struct {
	literals []literal // each match holds one of them; none means that the expression is always run
	compiled func() *regexp.Regexp
}

// prefilter returns a valid expression with its literals. It compiles the expression at first use.
func prefilter(expression string) prefiltered {
	expression = "(?i)" + expression
	p := prefiltered{compiled: sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
	if tree, err := syntax.Parse(expression, syntax.Perl); err == nil {
		p.literals = literalsOf(tree, false, false)
	}
	return p
}

func (p prefiltered) mayMatch(t foldedText) bool {
	return len(p.literals) == 0 || slices.ContainsFunc(p.literals, func(l literal) bool { return l.isIn(t.folded) })
}

func (p prefiltered) matches(t foldedText) bool {
	return p.mayMatch(t) && p.compiled().MatchString(t.text)
}

// find returns where the expression matches, at most n times, or always with -1.
func (p prefiltered) find(t foldedText, n int) [][]int {
	if !p.mayMatch(t) {
		return nil
	}
	return p.compiled().FindAllStringIndex(t.text, n)
}

// foldedText is a text with its folded form, in which literals are looked for.
type foldedText struct{ text, folded string }

func folded(text string) foldedText { return foldedText{text, strings.Map(fold, text)} }

// fold returns the same rune for all that differ only in case.
func fold(r rune) rune {
	if r < utf8.RuneSelf {
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// literal is a folded text. A word starts at its beginning, and one ends at its end, if those are set.
type literal struct {
	text         string
	starts, ends bool
}

func (l literal) isIn(text string) bool {
	for from := 0; ; from++ {
		i := strings.Index(text[from:], l.text)
		if i < 0 {
			return false
		}
		from += i
		to := from + len(l.text)
		if (!l.starts || from == 0 || !isWord(text[from-1])) && (!l.ends || to == len(text) || !isWord(text[to])) {
			return true
		}
	}
}

// isWord reports whether a folded byte belongs to a word, as \b sees words.
func isWord(b byte) bool { return 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '_' }

// literalsOf returns literals of which each match of an expression holds one; none if there are no
// such literals. starts and ends say whether the expression is between the boundaries of words.
func literalsOf(e *syntax.Regexp, starts, ends bool) []literal {
	switch e.Op {
	case syntax.OpLiteral:
		text := strings.Map(fold, string(e.Rune))
		return []literal{{text, starts && isWord(text[0]), ends && isWord(text[len(text)-1])}}
	case syntax.OpCapture:
		return literalsOf(e.Sub[0], starts, ends)
	case syntax.OpPlus:
		return literalsOf(e.Sub[0], false, false)
	case syntax.OpAlternate:
		var all []literal
		for _, sub := range e.Sub {
			some := literalsOf(sub, starts, ends)
			if len(some) == 0 {
				return nil
			}
			all = append(all, some...)
		}
		return all
	case syntax.OpConcat:
		var best []literal
		for i, sub := range e.Sub {
			before, after := starts, ends
			if i > 0 {
				before = isBoundary(e.Sub[i-1])
			}
			if i < len(e.Sub)-1 {
				after = isBoundary(e.Sub[i+1])
			}
			if some := literalsOf(sub, before, after); rarity(some) > rarity(best) {
				best = some
			}
		}
		return best
	}
	return nil
}

// isBoundary reports whether a word beside an expression ends there: it is \b or \s+.
func isBoundary(e *syntax.Regexp) bool {
	return e.Op == syntax.OpWordBoundary ||
		e.Op == syntax.OpPlus && e.Sub[0].Op == syntax.OpCharClass && slices.Equal(e.Sub[0].Rune, spaces)
}

var spaces = []rune{'\t', '\n', '\f', '\r', ' ', ' '} // the ranges of \s

// rarity is the length of the shortest literal, with its boundaries; 0 if there is none.
func rarity(all []literal) int {
	length := func(l literal) int {
		n := len(l.text)
		if l.starts {
			n++
		}
		if l.ends {
			n++
		}
		return n
	}
	if len(all) == 0 {
		return 0
	}
	return length(slices.MinFunc(all, func(a, b literal) int { return length(a) - length(b) }))
}

// alternatives returns the parts of an expression between its outermost bars.
func alternatives(expression string) []string {
	var out []string
	from, depth, class := 0, 0, false
	for i := 0; i < len(expression); i++ {
		switch c := expression[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			out, from = append(out, expression[from:i]), i+1
		}
	}
	return append(out, expression[from:])
}
