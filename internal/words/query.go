package words

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Phrase is one or more adjacent words. With Prefix the last one is the beginning of a word. With Part the only one is the beginning of a word, or of a part of
// an identifier: http of parseHTTPRequest.
type Phrase struct {
	Words        []string
	Prefix, Part bool
}

// Query matches texts that have all of its phrases.
type Query []Phrase

// Parse parses a search: words, "phrases in quotes", and beginnings*. A word of the search that is several words here (os.path, 東京) becomes a phrase.
func Parse(text string) Query { return parse(text, NewSegmenter()) }

func parse(text string, s *Segmenter) Query {
	var q Query
	for text != "" {
		var piece string
		if text[0] == '"' {
			piece, text, _ = strings.Cut(text[1:], `"`)
			if rest, ok := strings.CutPrefix(text, "*"); ok {
				piece, text = piece+"*", rest
			}
		} else if end := strings.IndexAny(text, " \t\r\n\""); end == 0 {
			text = text[1:]
			continue
		} else if end > 0 {
			piece, text = text[:end], text[end:]
		} else {
			piece, text = text, ""
		}
		if p := phrase(piece, s); len(p.Words) > 0 {
			q = append(q, p)
		}
	}
	return q
}

// AsVersion returns a query in which each phrase of numbers begins with the letter v: 1.2.3 becomes v1.2.3. ok is false if there is no such phrase.
func (q Query) AsVersion() (out Query, ok bool) {
	for _, p := range q {
		if len(p.Words) > 1 && strings.Trim(strings.Join(p.Words, ""), "0123456789") == "" {
			p.Words, ok = append([]string{"v" + p.Words[0]}, p.Words[1:]...), true
		}
		out = append(out, p)
	}
	return out, ok
}

// AsBeginnings returns a query in which the last word of each phrase may be a beginning: parse becomes parse*. ok is false if that changes nothing.
func (q Query) AsBeginnings() (out Query, ok bool) {
	for _, p := range q {
		ok = ok || !p.Prefix
		p.Prefix = true
		out = append(out, p)
	}
	return out, ok
}

// AsParts is AsBeginnings in which each single word may also be the beginning of a part of an identifier.
func (q Query) AsParts() Query {
	out, _ := q.AsBeginnings()
	for i := range out {
		out[i].Part = len(out[i].Words) == 1
	}
	return out
}

func phrase(text string, s *Segmenter) Phrase {
	bare := strings.TrimRight(text, "*")
	p := Phrase{Prefix: bare != text}
	end := 0
	s.Each(bare, func(w []byte, _, to int) bool {
		p.Words = append(p.Words, string(w))
		end = to
		return true
	})
	p.Prefix = p.Prefix && end == len(bare)
	return p
}

// Match is the place of a match in a text, in bytes.
type Match struct{ From, To int }

// Finder looks for a query in the texts of one message after the other. It is for one goroutine.
type Finder struct {
	query   Query
	segment *Segmenter
	found   []bool
	left    int
	window  []place
}

// place is a word of the text and its place.
type place struct {
	bytes    []byte
	from, to int
}

// NewFinder returns a Finder for q.
func NewFinder(q Query) *Finder { return newFinder(q, NewSegmenter()) }

// NewExactFinder returns a Finder for a search with accents and vowel marks: café does not match cafe.
func NewExactFinder(text string) *Finder { return newFinder(parse(text, newMarked()), newMarked()) }

func newFinder(q Query, s *Segmenter) *Finder {
	f := &Finder{query: q, segment: s, found: make([]bool, len(q))}
	longest := 1
	for _, p := range q {
		longest = max(longest, len(p.Words))
	}
	f.window = make([]place, longest)
	return f
}

// Plain reports whether the query is ASCII. If so, every ASCII text that matches does so exactly.
func (f *Finder) Plain() bool {
	for _, p := range f.query {
		for _, w := range p.Words {
			if !ASCII(w) {
				return false
			}
		}
	}
	return true
}

// ASCII reports whether text is ASCII.
func ASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Begin starts a new message.
func (f *Finder) Begin() {
	clear(f.found)
	f.left = len(f.query)
}

// All reports whether every phrase was found since Begin.
func (f *Finder) All() bool { return f.left == 0 }

// Text searches one text of the message and returns the first match of any phrase in it.
func (f *Finder) Text(text string) (first Match, ok bool) {
	n := 0
	f.segment.Each(text, func(w []byte, from, to int) bool {
		at := &f.window[n%len(f.window)]
		at.bytes, at.from, at.to = append(at.bytes[:0], w...), from, to
		n++
		for i := range f.query {
			if start, hit := f.ends(&f.query[i], n, text); hit {
				if !f.found[i] {
					f.found[i] = true
					f.left--
				}
				if !ok {
					first, ok = Match{start, to}, true
				}
			}
		}
		return true
	})
	return first, ok
}

// ends reports whether a phrase ends with word number n, and where it begins.
func (f *Finder) ends(p *Phrase, n int, text string) (int, bool) {
	k := len(p.Words)
	if n < k {
		return 0, false
	}
	for j := range k {
		at := &f.window[(n-k+j)%len(f.window)]
		if p.Part {
			i := part(text[at.from:at.to], at.bytes, p.Words[j])
			return at.from + i, i >= 0
		}
		same := string(at.bytes) == p.Words[j]
		if p.Prefix && j == k-1 {
			same = bytes.HasPrefix(at.bytes, []byte(p.Words[j]))
		}
		if !same {
			return 0, false
		}
	}
	return f.window[(n-k)%len(f.window)].from, true
}

// part returns where in a text a part begins with a word, -1 for nowhere. The text is one word, and folded is its folded form: parts begin at its start, at a
// capital after another letter, at the last of several capitals, and between letters and digits.
func part(text string, folded []byte, word string) int {
	if bytes.HasPrefix(folded, []byte(word)) {
		return 0
	}
	if len(text) != len(folded) || !ASCII(text) {
		return -1
	}
	kind := func(i int) (capital, digit bool) {
		return class[text[i]] == upper, text[i] <= '9'
	}
	for i := 1; i < len(text); i++ {
		wasCapital, wasDigit := kind(i - 1)
		capital, digit := kind(i)
		begins := digit != wasDigit || capital && !wasCapital
		if capital && wasCapital && i+1 < len(text) {
			nextCapital, nextDigit := kind(i + 1)
			begins = !nextCapital && !nextDigit
		}
		if begins && bytes.HasPrefix(folded[i:], []byte(word)) {
			return i
		}
	}
	return -1
}
