package ui

import "strings"

// past has the lines that were typed before, and the person's place among them.
type past struct {
	lines []string
	at    int    // len(lines) means the line that is being typed
	draft string // the line that is being typed, while an earlier one is shown
}

func newPast(lines []string) past { return past{lines: lines, at: len(lines)} }

// add appends a line, unless it repeats the last one.
func (p *past) add(line string) {
	if n := len(p.lines); line != "" && (n == 0 || p.lines[n-1] != line) {
		p.lines = append(p.lines, line)
	}
	p.at, p.draft = len(p.lines), ""
}

// step goes a line back or forth; text is the shown line. It reports false if there is no line.
func (p *past) step(by int, text string) (string, bool) {
	to := p.at + by
	if to < 0 || to > len(p.lines) {
		return "", false
	}
	if p.at == len(p.lines) {
		p.draft = text
	}
	if p.at = to; to == len(p.lines) {
		return p.draft, true
	}
	return p.lines[to], true
}

// seek returns the index of the newest line before a place that contains the words, ignoring case; -1 if there is none.
func (p *past) seek(words string, before int) int {
	words = strings.ToLower(words)
	for i := min(before, len(p.lines)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(p.lines[i]), words) {
			return i
		}
	}
	return -1
}
