package words

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Phrase is one or more words that stand next to each other. With Prefix the last one is the beginning of a word.
type Phrase struct {
	Words  []string
	Prefix bool
}

// Query asks for texts that have all of its phrases.
type Query []Phrase

// Parse reads what somebody typed: words, "phrases in quotes", and beginnings* . What is one word there and several here (os.path, 東京) is a phrase.
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

// AsVersion is a query in which each phrase of numbers begins with the letter v: 1.2.3 as v1.2.3. ok is false where it has none.
func (q Query) AsVersion() (out Query, ok bool) {
	for _, p := range q {
		if len(p.Words) > 1 && strings.Trim(strings.Join(p.Words, ""), "0123456789") == "" {
			p.Words, ok = append([]string{"v" + p.Words[0]}, p.Words[1:]...), true
		}
		out = append(out, p)
	}
	return out, ok
}

// AsBeginnings is a query in which each phrase may end with the beginning of a word: parse as parse*. ok is false where it asks for that already.
func (q Query) AsBeginnings() (out Query, ok bool) {
	for _, p := range q {
		ok = ok || !p.Prefix
		p.Prefix = true
		out = append(out, p)
	}
	return out, ok
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

// Match is where something was found in a text, in bytes.
type Match struct{ From, To int }

// Finder looks for a query in the texts of one message after the other. It is for one goroutine.
type Finder struct {
	query   Query
	segment *Segmenter
	found   []bool
	left    int
	window  []place
}

// place is a word of the text with where it stands.
type place struct {
	bytes    []byte
	from, to int
}

// NewFinder makes a Finder.
func NewFinder(q Query) *Finder { return newFinder(q, NewSegmenter()) }

// NewExactFinder makes a Finder of what somebody typed, accents and vowel marks as they are: café is not cafe.
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

// Plain reports whether what is looked for is ASCII, as which it stands exactly in every text of ASCII that has it.
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

// ASCII reports whether text is that.
func ASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Begin forgets what was found: another message comes.
func (f *Finder) Begin() {
	clear(f.found)
	f.left = len(f.query)
}

// All reports whether every phrase was found since Begin.
func (f *Finder) All() bool { return f.left == 0 }

// Text looks in one text of the message and gives the first place where a phrase stands, if any does.
func (f *Finder) Text(text string) (first Match, ok bool) {
	n := 0
	f.segment.Each(text, func(w []byte, from, to int) bool {
		at := &f.window[n%len(f.window)]
		at.bytes, at.from, at.to = append(at.bytes[:0], w...), from, to
		n++
		for i := range f.query {
			if start, hit := f.ends(&f.query[i], n); hit {
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

// ends reports whether a phrase ends with the word number n, and where it begins.
func (f *Finder) ends(p *Phrase, n int) (int, bool) {
	k := len(p.Words)
	if n < k {
		return 0, false
	}
	for j := range k {
		at := &f.window[(n-k+j)%len(f.window)]
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
