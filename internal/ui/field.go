package ui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/internal/screen"
)

// field is a text that is being typed. Keys move over and delete whole characters as readers see them, however many code points these have.
type field struct {
	text  string
	at    int  // the cursor, as a byte offset
	lines bool // line ends are allowed
	width int  // of the last drawing, to move up and down
}

// insert inserts text at the cursor. In a field of one line a line end becomes a space.
func (f *field) insert(s string) {
	s = strings.ToValidUTF8(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n"), "\ufffd")
	if !f.lines {
		s = strings.ReplaceAll(s, "\n", " ")
	}
	f.text = f.text[:f.at] + s + f.text[f.at:]
	f.at += len(s)
}

// set replaces the whole text, with the cursor at its end.
func (f *field) set(s string) { f.text, f.at = s, len(s) }

// before returns where the character before the cursor begins.
func (f *field) before() int {
	last := 0
	for g := uniseg.NewGraphemes(f.text[:f.at]); g.Next(); {
		last, _ = g.Positions()
	}
	return last
}

// after returns where the character at the cursor ends.
func (f *field) after() int {
	if f.at == len(f.text) {
		return f.at
	}
	c, _, _, _ := uniseg.FirstGraphemeClusterInString(f.text[f.at:], -1)
	return f.at + len(c)
}

// wordBefore and wordAfter return where the word before the cursor begins, and where the one after it ends.
func (f *field) wordBefore() int {
	s := strings.TrimRight(f.text[:f.at], " \t\n")
	return strings.LastIndexAny(s, " \t\n") + 1
}

func (f *field) wordAfter() int {
	rest := f.text[f.at:]
	word := strings.TrimLeft(rest, " \t\n")
	if i := strings.IndexAny(word, " \t\n"); i >= 0 {
		return f.at + len(rest) - len(word) + i
	}
	return len(f.text)
}

func (f *field) lineBegin() int { return strings.LastIndexByte(f.text[:f.at], '\n') + 1 }

func (f *field) lineEnd() int {
	if i := strings.IndexByte(f.text[f.at:], '\n'); i >= 0 {
		return f.at + i
	}
	return len(f.text)
}

func (f *field) cut(from, to int) {
	f.text = f.text[:from] + f.text[to:]
	f.at = from
}

// take handles a key for text, and reports whether it is one.
func (f *field) take(k tea.KeyPressMsg) bool {
	switch k.Keystroke() {
	case "left", "ctrl+b":
		f.at = f.before()
	case "right", "ctrl+f":
		f.at = f.after()
	case "alt+left", "ctrl+left", "alt+b":
		f.at = f.wordBefore()
	case "alt+right", "ctrl+right", "alt+f":
		f.at = f.wordAfter()
	case "home", "ctrl+a":
		f.at = f.lineBegin()
	case "end", "ctrl+e":
		f.at = f.lineEnd()
	case "up", "ctrl+p":
		return f.vertically(-1)
	case "down", "ctrl+n":
		return f.vertically(1)
	case "backspace", "ctrl+h":
		f.cut(f.before(), f.at)
	case "delete", "ctrl+d":
		f.cut(f.at, f.after())
	case "ctrl+w", "alt+backspace":
		f.cut(f.wordBefore(), f.at)
	case "alt+d":
		f.cut(f.at, f.wordAfter())
	case "ctrl+u":
		f.cut(f.lineBegin(), f.at)
	case "ctrl+k":
		f.cut(f.at, f.lineEnd())
	case "ctrl+j", "alt+enter", "shift+enter":
		if !f.lines {
			return false
		}
		f.insert("\n")
	default:
		if k.Text == "" {
			return false
		}
		f.insert(k.Text)
	}
	return true
}

// place is the place of a character of the text on the screen.
type place struct{ at, x, y int }

// lay cuts the text into lines of a width, at words where that is possible, and returns the place of each character, and of the end. A space after the last word
// of a line may stand beside the line.
func (f *field) lay(columns int, width screen.Width) (lines []string, places []place) {
	f.width = columns
	var line []string    // the characters of the line
	x, word := 0, 0      // where the next character comes, and how many of the line's characters are before its last word
	end := func(n int) { // ends the line after n of its characters
		lines = append(lines, strings.Join(line[:n], ""))
		line, x, word = slices.Clone(line[n:]), 0, 0
		for i, s := range line {
			p := &places[len(places)-len(line)+i]
			p.x, p.y = x, len(lines)
			x += width(s)
		}
	}
	for g := uniseg.NewGraphemes(f.text); g.Next(); {
		from, _ := g.Positions()
		s := strings.ReplaceAll(screen.Clean(g.Str()), "\t", "    ")
		w := width(s)
		for s != "\n" && x > 0 && x+w > columns && (s != " " || x > columns) {
			if word == 0 || w > 1 { // between wide characters a line may end anywhere
				word = len(line)
			}
			end(word)
		}
		places = append(places, place{from, x, len(lines)})
		if s == "\n" {
			end(len(line))
			continue
		}
		line = append(line, s)
		if x += w; w > 1 || s == " " {
			word = len(line)
		}
	}
	if x >= columns {
		end(len(line))
	}
	places = append(places, place{len(f.text), x, len(lines)})
	return append(lines, strings.Join(line, "")), places
}

// cursor returns the place of the cursor.
func (f *field) cursor(places []place) place {
	for _, p := range places {
		if p.at >= f.at {
			return p
		}
	}
	return places[len(places)-1]
}

// vertically moves the cursor some lines down (up if negative), as near to its column as possible.
func (f *field) vertically(lines int) bool {
	if !f.lines || f.width == 0 {
		return false
	}
	_, places := f.lay(f.width, uniseg.StringWidth)
	now := f.cursor(places)
	best := -1
	for i, p := range places {
		if p.y == now.y+lines && (best < 0 || p.x <= now.x) {
			best = i
		}
	}
	if best < 0 {
		return false
	}
	f.at = places[best].at
	return true
}
