package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Event is one frame of a stream.
type Event struct {
	Name string // of a server-sent event; often ""
	Data []byte // valid until the next frame is read
}

// Frames returns a stream's events, one by one, and io.EOF at its end.
type Frames interface {
	Next() (Event, error)
}

// maxFrame bounds the size of one event. It is large since images come inside events.
const maxFrame = 256 << 20

var errFrameTooLarge = errors.New("an event is larger than 256 MiB")

// lines reads lines of any length. A line ends with LF or CRLF, or at the end of the stream.
type lines struct {
	r   *bufio.Reader
	buf []byte // a line that is longer than the reader's buffer
}

func newLines(r io.Reader) lines { return lines{r: bufio.NewReaderSize(r, 16<<10)} }

// next returns a line without its end, valid until the next call. io.EOF comes alone, after the last line.
func (l *lines) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		l.buf = l.buf[:0]
		for err == bufio.ErrBufferFull {
			if len(l.buf) > maxFrame {
				return nil, errFrameTooLarge
			}
			l.buf = append(l.buf, line...)
			line, err = l.r.ReadSlice('\n')
		}
		l.buf = append(l.buf, line...)
		line = l.buf
	}
	if err != nil && (err != io.EOF || len(line) == 0) {
		return nil, err
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

type sse struct {
	lines lines
	data  []byte
	begun bool
}

// SSE returns the Frames of server-sent events. It skips comments, ids and retry times. It also returns a last event without its blank line: its data show
// whether it is complete.
func SSE(r io.Reader) Frames { return &sse{lines: newLines(r)} }

func (s *sse) Next() (Event, error) {
	var name string
	s.data = s.data[:0]
	has := false
	for {
		line, err := s.lines.next()
		if err == io.EOF && has {
			return Event{name, s.data}, nil
		}
		if err != nil {
			return Event{}, err
		}
		if !s.begun {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
			s.begun = true
		}
		if len(line) == 0 {
			if has {
				return Event{name, s.data}, nil
			}
			name = ""
			continue
		}
		switch field, value := cutField(line); string(field) {
		case "event":
			name = string(value)
		case "data":
			if has {
				s.data = append(s.data, '\n')
			}
			if has = true; len(s.data)+len(value) > maxFrame {
				return Event{}, errFrameTooLarge
			}
			s.data = append(s.data, value...)
		}
	}
}

// cutField splits "name: value" and drops one space after the colon. A comment has the name "".
func cutField(line []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(line, []byte(":"))
	return name, bytes.TrimPrefix(value, []byte(" "))
}

type jsonLines struct{ lines lines }

// JSONLines returns the Frames of a stream of JSON values, one on each line. It skips blank lines.
func JSONLines(r io.Reader) Frames { return &jsonLines{newLines(r)} }

func (j *jsonLines) Next() (Event, error) {
	for {
		line, err := j.lines.next()
		if err != nil {
			return Event{}, err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			return Event{Data: line}, nil
		}
	}
}
