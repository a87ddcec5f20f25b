package screen

import (
	"strings"

	"github.com/yuin/goldmark/text"
)

// Stream renders Markdown while it comes. A block is whole once another one begins on a line of its own; it is rendered once then, and nothing that was given is
// changed later. The lines of a text are the same however it was cut, but for links that are defined after the block that uses them.
type Stream struct {
	rest  string // from the beginning of the block that may still change
	held  string // a carriage return, which may be half of a line end
	begun bool   // lines were given
}

// Add takes more of the text and gives the lines of the blocks that are whole with it.
func (s *Stream) Add(more string, columns int, width Width) []Line {
	more, s.held = s.held+more, ""
	if whole, ok := strings.CutSuffix(more, "\r"); ok {
		more, s.held = whole, "\r"
	}
	s.rest += readable(more)
	if !strings.Contains(more, "\n") {
		return nil
	}
	end := lastBlock(s.rest[:strings.LastIndexByte(s.rest, '\n')+1])
	if end == 0 {
		return nil
	}
	lines := s.lines(s.rest[:end], columns, width)
	s.rest, s.begun = s.rest[end:], s.begun || len(lines) > 0
	return lines
}

// Rest are the lines of what may still change.
func (s *Stream) Rest(columns int, width Width) []Line {
	if strings.TrimSpace(s.rest) == "" {
		return nil
	}
	return s.lines(s.rest, columns, width)
}

// lines are those of blocks, after an empty one where some were given before.
func (s *Stream) lines(source string, columns int, width Width) []Line {
	lines := Markdown(source, columns, width)
	if s.begun && len(lines) > 0 {
		lines = append([]Line{nil}, lines...)
	}
	return lines
}

// lastBlock is where the last block of a text begins, 0 where there is no other before it.
func lastBlock(source string) int {
	last := markdown().Parse(text.NewReader([]byte(source))).LastChild()
	if last == nil || last.PreviousSibling() == nil || last.Pos() <= 0 {
		return 0
	}
	return strings.LastIndexByte(source[:last.Pos()], '\n') + 1
}
