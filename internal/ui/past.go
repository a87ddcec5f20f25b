package ui

import "strings"

// past is what was typed before, and where in it the person is.
type past struct {
	lines []string
	at    int    // len(lines): in what is being typed
	draft string // that, while an earlier line is shown
}

func newPast(lines []string) past { return past{lines: lines, at: len(lines)} }

// add puts a line at the end, once where it is repeated.
func (p *past) add(line string) {
	if n := len(p.lines); line != "" && (n == 0 || p.lines[n-1] != line) {
		p.lines = append(p.lines, line)
	}
	p.at, p.draft = len(p.lines), ""
}

// step goes a line back or forth; text is what is shown now. false: there is none.
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

// seek finds the newest line before a place that has some words in it, without regard to case; -1 for none.
func (p *past) seek(words string, before int) int {
	words = strings.ToLower(words)
	for i := min(before, len(p.lines)) - 1; i >= 0; i-- {
		if strings.Contains(strings.ToLower(p.lines[i]), words) {
			return i
		}
	}
	return -1
}
