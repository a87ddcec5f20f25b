package main

import (
	"archive/tar"
	"errors"
	"io"
	"os/exec"
	"strings"
	"unicode/utf8"
)

const (
	lineWidth = 140 // a longer line counts as several
	tabWidth  = 4
)

// lines are the lines of some Go files.
type lines struct {
	counted  int // a line of n columns counts n/lineWidth, rounded up, an empty one 1
	written  int
	comments int // lines that hold nothing but a comment of the form //
}

// commentShare returns the comments' share of the written lines, in per cent.
func (l lines) commentShare() float64 { return 100 * float64(l.comments) / float64(max(l.written, 1)) }

// add counts the lines of a file.
func (l *lines) add(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		width := utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
		l.counted += max(1, (width+lineWidth-1)/lineWidth)
		l.written++
		if strings.HasPrefix(strings.TrimSpace(line), "//") {
			l.comments++
		}
	}
}

// linesAt counts the Go files of a revision that are no tests, of all modules.
func linesAt(revision string) (l lines, err error) {
	cmd := exec.Command("git", "archive", "--format=tar", revision, "--", ":(glob)**/*.go")
	archive, err := cmd.StdoutPipe()
	if err != nil {
		return l, err
	}
	if err := cmd.Start(); err != nil {
		return l, err
	}
	files := tar.NewReader(archive)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return l, errors.Join(err, cmd.Wait())
		}
		if h.Typeflag != tar.TypeReg || strings.HasSuffix(h.Name, "_test.go") {
			continue
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return l, errors.Join(err, cmd.Wait())
		}
		l.add(string(text))
	}
	_, _ = io.Copy(io.Discard, archive) // the rest of the last block, which git wants to be read
	return l, cmd.Wait()
}
