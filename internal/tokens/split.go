package tokens

import (
	"sync"
	"unicode"
	"unicode/utf8"
)

// The encodings cut a text into pieces by a regular expression before they merge bytes. The three expressions are written as scanners here, since a backtracking
// matcher takes seconds for some texts of 100 KB. Tests compare them with the expressions.

// class is a class of runes that the expressions distinguish.
type class uint8

const (
	other     class = iota // neither letter, number nor space
	upper                  // Lu, Lt
	lower                  // Ll
	bothCases              // Lm, Lo: a letter that counts as upper and as lower
	mark                   // M: upper and lower in o200k, no letter in cl100k
	number
	space
	newline // \r \n, which are spaces too
)

func (c class) letter() bool  { return c == upper || c == lower || c == bothCases }
func (c class) number() bool  { return c == number }
func (c class) isSpace() bool { return c == space || c == newline }

// capital and small are the two parts of o200k's words.
func (c class) capital() bool { return c == upper || c == bothCases || c == mark }
func (c class) small() bool   { return c == lower || c == bothCases || c == mark }

// symbol reports whether c is neither a letter, a number nor a space in the expressions.
func (c class) symbol() bool { return c == other || c == mark }

// basicPlane has the class of each rune below 0x10000.
var basicPlane = sync.OnceValue(func() *[1 << 16]class {
	var t [1 << 16]class
	for r := range t {
		t[r] = lookUp(rune(r))
	}
	return &t
})

func lookUp(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsSpace(r):
		return space
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return upper
	case unicode.Is(unicode.Ll, r):
		return lower
	case unicode.Is(unicode.L, r):
		return bothCases
	case unicode.Is(unicode.N, r):
		return number
	case unicode.Is(unicode.M, r):
		return mark
	}
	return other
}

// scanner cuts pieces off a text, which must be valid UTF-8.
type scanner struct {
	text  string
	table *[1 << 16]class
}

// at returns the class and the length of the rune at byte i; length 0 at the end.
func (s *scanner) at(i int) (class, int) {
	if i >= len(s.text) {
		return other, 0
	}
	if b := s.text[i]; b < utf8.RuneSelf {
		return s.table[b], 1
	}
	r, n := utf8.DecodeRuneInString(s.text[i:])
	if r < 1<<16 {
		return s.table[r], n
	}
	return lookUp(r), n
}

// run returns the end of the longest run from i whose classes fit.
func (s *scanner) run(i int, fits func(class) bool) int {
	for {
		c, n := s.at(i)
		if n == 0 || !fits(c) {
			return i
		}
		i += n
	}
}

// How contractions are read: a bit that makes a letter small, or none.
const (
	anyCase   byte = 0x20
	smallOnly byte = 0
)

// contraction returns the end of 's 't 're 've 'm 'll or 'd at i, or i. fold is 0x20 if capitals count too, else 0.
func (s *scanner) contraction(i int, fold byte) int {
	if i+1 >= len(s.text) || s.text[i] != '\'' {
		return i
	}
	switch s.text[i+1] | fold {
	case 's', 't', 'm', 'd':
		return i + 2
	}
	if i+2 < len(s.text) {
		switch string([]byte{s.text[i+1] | fold, s.text[i+2] | fold}) {
		case "re", "ve", "ll":
			return i + 3
		}
	}
	return i
}

// digits returns the end of one to three numbers from i.
func (s *scanner) digits(i int) int {
	for range 3 {
		c, n := s.at(i)
		if n == 0 || c != number {
			break
		}
		i += n
	}
	return i
}

// symbols returns the end of the symbols from i, perhaps after one blank, with the line ends (and, if slash is set, slashes) after them; i if there are none.
func (s *scanner) symbols(i int, slash bool) int {
	from := i
	if s.text[i] == ' ' {
		from++
	}
	end := s.run(from, class.symbol)
	if end == from {
		return i
	}
	for end < len(s.text) && (s.text[end] == '\r' || s.text[end] == '\n' || slash && s.text[end] == '/') {
		end++
	}
	return end
}

// spaces returns the end of the piece that begins with the space at i: the last line end of the run if lines is set, else all of it except the last rune, which
// goes with the next word.
func (s *scanner) spaces(i int, lines bool) int {
	last, lineEnd := i, -1
	end := i
	for {
		c, n := s.at(end)
		if n == 0 || !c.isSpace() {
			break
		}
		last = end
		end += n
		if lines && c == newline {
			lineEnd = end
		}
	}
	switch {
	case lineEnd > 0:
		return lineEnd
	case end == len(s.text) || last == i:
		return end
	}
	return last
}

// r50k returns the end of the piece at i. Runs of letters, numbers or symbols may have one blank before them.
func (s *scanner) r50k(i int) int {
	if end := s.contraction(i, smallOnly); end > i {
		return end
	}
	from := i
	if s.text[i] == ' ' {
		from++
	}
	for _, fits := range [...]func(class) bool{class.letter, class.number, class.symbol} {
		if end := s.run(from, fits); end > from {
			return end
		}
	}
	return s.spaces(i, false)
}

// cl100k returns the end of the piece at i.
func (s *scanner) cl100k(i int) int {
	if end := s.contraction(i, anyCase); end > i {
		return end
	}
	c, n := s.at(i)
	if c.letter() {
		return s.run(i, class.letter)
	}
	if c != number && c != newline {
		if end := s.run(i+n, class.letter); end > i+n {
			return end
		}
	}
	return s.rest(i, c, false)
}

// o200k returns the end of the piece at i.
func (s *scanner) o200k(i int) int {
	c, n := s.at(i)
	end := i
	switch {
	case c.letter():
		end, _ = s.word(i)
	case c != number && c != newline:
		word, small := s.word(i + n)
		switch {
		case c == mark && !small:
			end = i + n // a word by itself
		case word > i+n:
			end = word
		}
	}
	if end > i {
		return s.contraction(end, anyCase)
	}
	return s.rest(i, c, true)
}

// word returns the end of an o200k word at i, or i. A word is capitals and then small letters; if no small letter follows, the capitals up to the last one that
// is also small; if there is none, the capitals, and small is false.
func (s *scanner) word(i int) (end int, small bool) {
	both, end := i, i
	for {
		c, n := s.at(end)
		if n == 0 || !c.capital() {
			break
		}
		end += n
		if c != upper {
			both = end
		}
	}
	if to := s.run(end, class.small); to > end {
		return to, true
	}
	if both > i {
		return both, true
	}
	return end, false
}

// rest returns the end of a piece at i, of class c, that is not a word.
func (s *scanner) rest(i int, c class, slash bool) int {
	if c == number {
		return s.digits(i)
	}
	if end := s.symbols(i, slash); end > i {
		return end
	}
	return s.spaces(i, true)
}
