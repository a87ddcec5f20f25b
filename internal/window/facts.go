package window

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/chatctx/chatctx/pool"
)

// factPatterns say which sentences are plain facts; its head describes it.
//
//go:embed facts.txt
var factPatterns string

// idleKind is the kind of the patterns for set phrases, which are no facts.
const idleKind = -1

// factPattern is a pattern of facts.txt with its cases.
type factPattern struct {
	who, kind, expression string
	is, isNot             []string
}

// parseFacts returns the patterns of a text in the form of facts.txt.
func parseFacts(text string) []factPattern {
	var out []factPattern
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		mark, rest, _ := strings.Cut(line, " ")
		switch mark {
		case "", "#":
		case "+":
			out[len(out)-1].is = append(out[len(out)-1].is, rest)
		case "-":
			out[len(out)-1].isNot = append(out[len(out)-1].isNot, rest)
		default:
			if line[0] == '|' {
				out[len(out)-1].expression += inPattern.Replace(line)
				continue
			}
			kind, expression, _ := strings.Cut(rest, " ")
			out = append(out, factPattern{who: mark, kind: kind, expression: inPattern.Replace(expression)})
		}
	}
	return out
}

var inPattern = strings.NewReplacer("'", "['’]?", " ", `\s+`)

// sayings finds facts in what one side says.
type sayings struct {
	idle   []prefiltered // phrases that say nothing
	asking []prefiltered // questions, in which only details count
	facts  []factKind    // in the order in which they are tried
}

type factKind struct {
	kind     int
	patterns []prefiltered
}

var (
	userSays      = sync.OnceValue(func() *sayings { return newSayings("user") })
	assistantSays = sync.OnceValue(func() *sayings { return newSayings("assistant") })
)

func saysOf(role pool.Role) *sayings {
	if role == pool.Assistant {
		return assistantSays()
	}
	return userSays()
}

func newSayings(who string) *sayings {
	all := map[string][]prefiltered{}
	for _, p := range parseFacts(factPatterns) {
		if p.who == "any" || p.who == who {
			for _, e := range alternatives(p.expression) {
				all[p.kind] = append(all[p.kind], prefilter(e))
			}
		}
	}
	s := &sayings{idle: all["idle"], asking: all["asking"]}
	for _, k := range []int{decisionKind, constraintKind, outcomeKind, detailKind} {
		s.facts = append(s.facts, factKind{k, all[kinds[k].name]})
	}
	return s
}

// find calls add for each sentence of a text that is a plain fact. A long one is cut to where most
// of what makes it a fact stands.
func (s *sayings) find(text string, add func(kind int, said string)) {
	for said := range sentences(text) {
		rest := s.withoutIdle(said)
		if kind := s.kindOf(rest); kind != idleKind {
			add(kind, strings.TrimRight(s.densest(said, rest, kind), ".。"))
		}
	}
}

// kindOf returns the kind of fact that a sentence without idle phrases is, idleKind for none.
func (s *sayings) kindOf(said foldedText) int {
	asks := strings.HasSuffix(said.text, "?") && matchAny(s.asking, said)
	for _, f := range s.facts {
		if (!asks || f.kind == detailKind) && matchAny(f.patterns, said) {
			return f.kind
		}
	}
	return idleKind
}

func matchAny(patterns []prefiltered, t foldedText) bool {
	return slices.ContainsFunc(patterns, func(p prefiltered) bool { return p.matches(t) })
}

// withoutIdle returns a text with spaces in place of phrases that say nothing.
func (s *sayings) withoutIdle(text string) foldedText {
	t := folded(text)
	var rest []byte
	for _, p := range s.idle {
		for _, at := range p.find(t, -1) {
			if rest == nil {
				rest = []byte(text)
			}
			for i := at[0]; i < at[1]; i++ {
				rest[i] = ' '
			}
		}
	}
	if rest == nil {
		return t
	}
	return folded(string(rest))
}

// reports reports whether a line of words tells an error: "I can't believe it" does not.
func (s *sayings) reports(line string) bool {
	said := s.withoutIdle(line).text
	return said == line || errorScore(said) > mention
}

// densest returns a sentence, cut at its beginning if it is longer than saidBytes: from the start of
// a word before those that hold most of what speaks for a fact. What speaks for the sentence's own
// kind counts twice. rest is the sentence without idle phrases.
func (s *sayings) densest(said string, rest foldedText, kind int) string {
	if len(said) <= saidBytes {
		return said
	}
	var marks []int
	for _, f := range s.facts {
		for _, p := range f.patterns {
			for _, at := range p.find(rest, 2*mostEach) {
				if marks = append(marks, at[0]); f.kind == kind {
					marks = append(marks, at[0])
				}
			}
		}
	}
	slices.Sort(marks)
	const before, room = saidBytes / 4, saidBytes - 2*len("…")
	start, most := 0, -1
	for _, m := range append([]int{0}, marks...) {
		from := max(0, min(m-before, len(said)-room))
		to := from + room*3/4 // a fact that begins later is likely to be cut
		if from+room >= len(said) {
			to = len(said)
		}
		first, _ := slices.BinarySearch(marks, from)
		last, _ := slices.BinarySearch(marks, to)
		if last-first > most {
			start, most = from, last-first
		}
	}
	if start == 0 {
		return said
	}
	if space := strings.IndexByte(said[start:start+before], ' '); space >= 0 {
		start += space + 1
	}
	return "…" + said[runeStart(said, start):]
}

// sentences yields the sentences and lines of a text.
func sentences(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		from := 0
		for at, r := range text {
			if !endsSentence(text, at, r) {
				continue
			}
			to := at + utf8.RuneLen(r)
			if said := strings.TrimSpace(text[from:to]); said != "" && !yield(said) {
				return
			}
			from = to
		}
		if said := strings.TrimSpace(text[from:]); said != "" {
			yield(said)
		}
	}
}

// endsSentence reports whether the rune at an index ends a sentence. A period does before a space,
// unless it stands after an abbreviation or a day of the month.
func endsSentence(text string, at int, r rune) bool {
	switch r {
	case '\n', ';', '。', '！', '？', '；':
		return true
	case '!', '?', '.':
	default:
		return false
	}
	after := text[at+1:]
	if after == "" || after[0] == '\n' {
		return true
	}
	if after[0] != ' ' {
		return false
	}
	if r != '.' {
		return true
	}
	word := text[strings.LastIndexAny(text[:at], " \n(")+1 : at]
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(after, " "))
	switch {
	case slices.Contains(titles, word), len(word) <= 2 && strings.Trim(word, "0123456789") == "":
		return false
	case unicode.IsDigit(next):
		return len(word) > 4
	case unicode.IsLower(next):
		return len(word) > 2 && !strings.Contains(word, ".")
	}
	return true
}

var titles = []string{"Mr", "Mrs", "Ms", "Dr", "St", "Prof", "Sr", "Sra", "Hr", "Fr", "Nr"}
