package operation

import (
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
)

// codeBlock returns the fenced code block of a text, or the one with a number from 1 on, byte for byte, and its number.
func codeBlock(text string, number *int) (string, int, error) {
	blocks := codeBlocks(text)
	switch {
	case len(blocks) == 0:
		return "", 0, base.NotFound("code block in the message", "")
	case number != nil && (*number < 1 || *number > len(blocks)):
		return "", 0, base.NotFound("code block", fmt.Sprint(*number))
	case number != nil:
		return blocks[*number-1], *number, nil
	case len(blocks) == 1:
		return blocks[0], 1, nil
	}
	candidates := make([]string, len(blocks))
	for i, b := range blocks {
		first, _, _ := strings.Cut(strings.TrimLeft(b, "\r\n"), "\n")
		candidates[i] = fmt.Sprintf("--block %d: %s", i+1, journal.FirstWords(first))
	}
	return "", 0, base.Ambiguous("code block", "--code", candidates, 0)
}

// codeBlocks returns what stands between the fences of a Markdown text: three or more backticks or tildes, closed by as many of the same or by the end.
func codeBlocks(text string) (blocks []string) {
	var fence, indent string
	var block strings.Builder
	for line := range strings.Lines(text) {
		bare := strings.TrimLeft(strings.TrimRight(line, "\r\n"), " \t")
		mark := fenceOf(bare)
		switch {
		case fence == "" && mark != "" && !(mark[0] == '`' && strings.Contains(bare[len(mark):], "`")):
			fence, indent = mark, line[:len(line)-len(strings.TrimLeft(line, " \t"))]
			block.Reset()
		case fence == "":
		case strings.HasPrefix(mark, fence) && strings.Trim(bare[len(mark):], " \t") == "":
			blocks, fence = append(blocks, block.String()), ""
		default:
			block.WriteString(withoutIndent(line, indent))
		}
	}
	if fence != "" {
		blocks = append(blocks, block.String())
	}
	return blocks
}

// fenceOf returns the backticks or tildes with which a line begins, "" if there are fewer than three.
func fenceOf(line string) string {
	for _, c := range []string{"`", "~"} {
		if mark := line[:len(line)-len(strings.TrimLeft(line, c))]; len(mark) >= 3 {
			return mark
		}
	}
	return ""
}

// withoutIndent removes as much of a line's indentation as its fence has.
func withoutIndent(line, indent string) string {
	for range indent {
		if line == "" || line[0] != ' ' && line[0] != '\t' {
			break
		}
		line = line[1:]
	}
	return line
}
