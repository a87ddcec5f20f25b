package ui

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// folded returns a text as the filter compares it: without case, accents and vowel marks.
func folded(s string) []rune {
	var out []rune
	for _, c := range norm.NFKD.String(strings.ToLower(s)) {
		if !unicode.Is(unicode.Mn, c) {
			out = append(out, c)
		}
	}
	return out
}

// fits scores how well a text has all characters of a query in order; ok is false if it lacks any. Consecutive characters, beginnings of words and a short text
// score higher.
func fits(query, text []rune) (score int, ok bool) {
	latest, ok := latestPlaces(query, text)
	if !ok || len(query) == 0 {
		return 0, ok
	}
	from, last := 0, -2
	for n, q := range query {
		best, at := 0, 0
		for i := from; i <= latest[n]; i++ {
			if text[i] != q {
				continue
			}
			points := 1
			switch {
			case i == last+1:
				points = 8
			case i == 0 || !unicode.IsLetter(text[i-1]) && !unicode.IsNumber(text[i-1]):
				points = 6
			}
			if points > best {
				best, at = points, i
			}
		}
		score, last, from = score+best*16, at, at+1
	}
	return score - len(text)/4, true
}

// latestPlaces returns for each character of a query the last index in the text at which the rest still fits after it.
func latestPlaces(query, text []rune) ([]int, bool) {
	latest := make([]int, len(query))
	i := len(text) - 1
	for n := len(query) - 1; n >= 0; n-- {
		for i >= 0 && text[i] != query[n] {
			i--
		}
		if i < 0 {
			return nil, false
		}
		latest[n] = i
		i--
	}
	return latest, true
}

// filter returns the indexes of the texts that fit, the best first, and the earlier of equal ones first.
func filter(query string, texts [][]rune) []int {
	q := slices.DeleteFunc(folded(query), unicode.IsSpace)
	type found struct{ i, score int }
	var all []found
	for i, text := range texts {
		if score, ok := fits(q, text); ok {
			all = append(all, found{i, score})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.score, a.score) })
	out := make([]int, len(all))
	for i, f := range all {
		out[i] = f.i
	}
	return out
}
