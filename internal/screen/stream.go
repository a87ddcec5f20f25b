package screen

import (
	"strings"

	"github.com/yuin/goldmark/text"
)

// Stream renders Markdown as it arrives. A block is complete once another one begins on a line of its own; then it is rendered once, and lines that were
// returned never change. The lines do not depend on how the text was cut, except for links that are defined after the block that uses them.
type Stream struct {
	rest  string // from the beginning of the block that may still change
	held  string // a carriage return, which may be half of a line end
	begun bool   // lines were returned
}

// Add adds text and returns the lines of the blocks that are complete now.
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

// Rest returns the lines of the part that may still change.
func (s *Stream) Rest(columns int, width Width) []Line {
	if strings.TrimSpace(s.rest) == "" {
		return nil
	}
	return s.lines(s.rest, columns, width)
}

// lines returns the lines of blocks, after an empty one if there were blocks before.
func (s *Stream) lines(source string, columns int, width Width) []Line {
	lines := Markdown(source, columns, width)
	if s.begun && len(lines) > 0 {
		lines = append([]Line{nil}, lines...)
	}
	return lines
}

// lastBlock returns where the last block of a text begins, 0 if it is the only one.
func lastBlock(source string) int {
	last := markdown().Parse(text.NewReader([]byte(source))).LastChild()
	if last == nil || last.PreviousSibling() == nil || last.Pos() <= 0 {
		return 0
	}
	return strings.LastIndexByte(source[:last.Pos()], '\n') + 1
}
