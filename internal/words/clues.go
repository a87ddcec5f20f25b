package words

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// Clues returns what a question's answer may be known by, of which one is enough: the words of the question; the beginnings of the longer ones, since
// languages change the ends of words; and of words without spaces (東京都) each two neighbours. Each comes once.
func Clues(text string) (out []Phrase) {
	add := func(p Phrase) {
		same := func(o Phrase) bool { return o.Prefix == p.Prefix && slices.Equal(o.Words, p.Words) }
		if !slices.ContainsFunc(out, same) {
			out = append(out, p)
		}
	}
	for _, p := range Parse(text) {
		for i, w := range p.Words {
			single := len(p.Words) == 1
			if !single && i > 0 {
				add(Phrase{Words: p.Words[i-1 : i+1]})
			}
			if n := utf8.RuneCountInString(w); single || n > 1 {
				add(Phrase{Words: []string{w}, Prefix: p.Prefix && single})
				if stem := beginning(w, n); stem != "" {
					add(Phrase{Words: []string{stem}, Prefix: true})
				}
			}
		}
	}
	return out
}

// shortest is the least number of letters of a word of which the beginning is a clue.
const shortest = 5

// beginning returns the first two thirds of a word of n letters, at least four, and "" for a short one.
func beginning(w string, n int) string {
	if n < shortest {
		return ""
	}
	keep := max(n*2/3, shortest-1)
	for i := range w {
		if keep == 0 {
			return w[:i]
		}
		keep--
	}
	return w
}

// Passages finds the passage of a text that has most of some clues. It is for one goroutine.
type Passages struct {
	clues   []Phrase
	weights []float64
	segment *Segmenter
	last    map[string][]int // the clues that end with a word
	begins  []int            // those that are a beginning
	found   []sighting
}

// sighting is a clue at a place of a text.
type sighting struct{ clue, word, from, to int }

// NewPassages returns a Passages for clues of one or two words and what each weighs.
func NewPassages(clues []Phrase, weights []float64) *Passages {
	p := &Passages{clues: clues, weights: weights, segment: NewSegmenter(), last: map[string][]int{}}
	for i, c := range clues {
		if c.Prefix {
			p.begins = append(p.begins, i)
		} else {
			w := c.Words[len(c.Words)-1]
			p.last[w] = append(p.last[w], i)
		}
	}
	return p
}

// passageWords is how many words of a text count as one passage.
const passageWords = 60

// Best returns the place of the passage whose clues weigh most together, each counted once, and their weight: 0 if the text has none. It sets has for each clue
// that the text has anywhere.
func (p *Passages) Best(text string, has []bool) (at Match, weight float64) {
	p.look(text)
	count, sum, first := make([]int, len(p.clues)), 0.0, 0
	for _, s := range p.found {
		has[s.clue] = true
		if count[s.clue]++; count[s.clue] == 1 {
			sum += p.weights[s.clue]
		}
		for p.found[first].word <= s.word-passageWords {
			gone := p.found[first].clue
			if count[gone]--; count[gone] == 0 {
				sum -= p.weights[gone]
			}
			first++
		}
		if sum > weight+1e-9 {
			at, weight = Match{p.found[first].from, s.to}, sum
		}
	}
	return at, weight
}

// look notes where a text has the clues.
func (p *Passages) look(text string) {
	p.found = p.found[:0]
	n, before, begins := 0, "", 0
	p.segment.Each(text, func(w []byte, from, to int) bool {
		for _, i := range p.last[string(w)] {
			if c := p.clues[i]; len(c.Words) == 1 {
				p.found = append(p.found, sighting{i, n, from, to})
			} else if c.Words[0] == before {
				p.found = append(p.found, sighting{i, n, begins, to})
			}
		}
		for _, i := range p.begins {
			if bytes.HasPrefix(w, []byte(p.clues[i].Words[0])) {
				p.found = append(p.found, sighting{i, n, from, to})
			}
		}
		n, before, begins = n+1, string(w), from
		return true
	})
}
