package exchange

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// splitter cuts a stream of JSON into values, only by brackets and quotes, so that one value at a time is in memory and a damaged one does not spoil the next.
// Its results are valid until the next call.
type splitter struct {
	r   *bufio.Reader
	max int // the largest value, in bytes
	// size is that of the whole stream, 0 if unknown: a buffer need not be larger.
	size   int
	buf    []byte
	beside []string // members of an object around the list that were ignored
	// large reads the members of an item that is an object of more than inMemory bytes; nil if there are no such objects. The stream is then at the object's
	// beginning.
	large    func(i int) error
	inMemory int
}

// maxBeside is how many of them are named.
const maxBeside = 20

// errTooLarge means that the value is over the limit; the stream is after it.
var errTooLarge = errors.New("too large")

// errLarge means that the value is an object to be read by its members; the stream is at its beginning.
var errLarge = errors.New("large")

// peek returns the next byte that is not white space or NUL, without reading it.
func (s *splitter) peek() (byte, error) {
	for {
		b, err := s.r.ReadByte()
		if err != nil {
			return 0, err
		}
		if b != ' ' && b != '\n' && b != '\r' && b != '\t' && b != 0 {
			return b, s.r.UnreadByte()
		}
	}
}

// value reads the next value. It returns io.ErrUnexpectedEOF if the stream ends inside it.
func (s *splitter) value() ([]byte, error) { return s.valueUpTo(s.max) }

// item is value, but returns errLarge for an object for large.
func (s *splitter) item() ([]byte, error) {
	if s.large == nil {
		return s.value()
	}
	text, err := s.valueUpTo(-s.inMemory)
	if err == errLarge {
		s.r = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(text), s.r), headSize)
		s.buf = nil
	}
	return text, err
}

// valueUpTo is value with a limit. For an object over a negative limit it returns the beginning, with errLarge.
func (s *splitter) valueUpTo(limit int) ([]byte, error) {
	s.buf = s.buf[:0]
	var c cutter
	large, most := false, s.max
	if s.size > 0 {
		most = min(s.size, s.max)
	}
	for {
		if _, err := s.r.Peek(1); err != nil {
			if c.started && c.depth == 0 && !c.inString {
				return s.buf, nil
			}
			return s.buf, unexpected(err)
		}
		chunk, _ := s.r.Peek(s.r.Buffered())
		n, done := c.feed(chunk)
		if limit < 0 && len(s.buf)+n > -limit && len(s.buf) > 0 && s.buf[0] == '{' {
			return s.buf, errLarge
		}
		if len(s.buf)+n > s.max {
			large, s.buf = true, nil
		}
		if !large {
			s.buf = append(room(s.buf, n, most), chunk[:n]...)
		}
		s.r.Discard(n)
		if done && large {
			return nil, errTooLarge
		}
		if done {
			return s.buf, nil
		}
	}
}

// room returns a buffer with space for n more bytes. It doubles the buffer, to leave little garbage, but goes straight to most, its largest size, once that is
// near.
func room(buf []byte, n, most int) []byte {
	need := len(buf) + n
	if need <= cap(buf) {
		return buf
	}
	size := max(2*cap(buf), need)
	if size > most/4 {
		size = max(most, need)
	}
	return append(make([]byte, 0, size), buf...)
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// cutter finds the end of a value that arrives in chunks.
type cutter struct {
	depth                      int
	started, inString, escaped bool
}

// feed reads a chunk; n is how much of it belongs to the value, and done reports whether the value is complete.
func (c *cutter) feed(b []byte) (n int, done bool) {
	for i := 0; i < len(b); i++ {
		if c.inString {
			if i += c.stringRun(b[i:]); c.inString {
				return len(b), false
			}
			if c.depth == 0 {
				return i + 1, true
			}
			continue
		}
		switch b[i] {
		case '"':
			c.inString, c.started = true, true
		case '{', '[':
			c.depth, c.started = c.depth+1, true
		case '}', ']':
			if c.depth == 0 { // the container's end, after a scalar
				return i, true
			}
			if c.depth--; c.depth == 0 {
				return i + 1, true
			}
		case ',', ' ', '\n', '\r', '\t':
			if c.depth == 0 && (c.started || b[i] == ',') {
				return i, true
			}
		default:
			c.started = true
		}
	}
	return len(b), false
}

// stringRun reads on in a string; it returns the offset of the closing quote, or leaves inString set.
func (c *cutter) stringRun(b []byte) int {
	quote := -1 // the next quote, searched for again only after it is passed
	for i := 0; i < len(b); {
		if c.escaped {
			c.escaped = false
			i++
			continue
		}
		if quote < i {
			if quote = bytes.IndexByte(b[i:], '"'); quote < 0 {
				quote = len(b)
			} else {
				quote += i
			}
		}
		if slash := bytes.IndexByte(b[i:quote], '\\'); slash >= 0 {
			c.escaped = true
			i += slash + 1
			continue
		}
		c.inString = quote == len(b)
		return quote
	}
	return len(b)
}

// each calls f for the items of the array in the stream, or for its values if there is no array, counted from 0. For an object with the key descend, it uses
// the items of the array there. err is errTooLarge or io.ErrUnexpectedEOF for an incomplete item.
func (s *splitter) each(descend string, f func(i int, text []byte, err error) error) error {
	n := 0
	for {
		b, err := s.peek()
		if err == io.EOF {
			return nil
		}
		switch {
		case err != nil:
			return err
		case b == '[':
			err = s.array(&n, f)
		case b == '{' && descend != "":
			err = s.object(descend, &n, f)
		case b == ',' || b == ']' || b == '}':
			_, err = s.r.Discard(1) // left over from damaged input
		default:
			err = s.one(&n, f)
		}
		if err != nil {
			return err
		}
	}
}

func (s *splitter) one(n *int, f func(int, []byte, error) error) error {
	text, err := s.item()
	if err == errLarge {
		*n++
		return s.large(*n - 1)
	}
	if err != nil && err != errTooLarge && err != io.ErrUnexpectedEOF {
		return err
	}
	*n++
	return f(*n-1, text, err)
}

func (s *splitter) array(n *int, f func(int, []byte, error) error) error {
	s.r.Discard(1)
	for {
		b, err := s.peek()
		if err != nil {
			return unexpected(err)
		}
		switch b {
		case ']':
			_, err = s.r.Discard(1)
			return err
		case ',', '}':
			_, err = s.r.Discard(1)
		default:
			err = s.one(n, f)
		}
		if err != nil {
			return err
		}
	}
}

// members calls f for each member of the next object, with its raw key; f must read the value.
func (s *splitter) members(f func(key []byte) error) error {
	s.r.Discard(1)
	var key []byte
	for {
		b, err := s.peek()
		if err != nil {
			return unexpected(err)
		}
		switch {
		case b == '}':
			_, err = s.r.Discard(1)
			return err
		case b == ',' || b == ':' || b == ']':
			_, err = s.r.Discard(1)
		case key == nil:
			var text []byte
			text, err = s.value()
			key = bytes.Clone(text)
		default:
			err = f(key)
			key = nil
		}
		if err != nil {
			return err
		}
	}
}

// object finds the member descend and skips the others.
func (s *splitter) object(descend string, n *int, f func(int, []byte, error) error) error {
	s.r.Discard(1)
	key, atKey := "", true
	for {
		b, err := s.peek()
		if err != nil {
			return unexpected(err)
		}
		switch {
		case b == '}':
			_, err = s.r.Discard(1)
			return err
		case b == ',' || b == ']':
			atKey = true
			_, err = s.r.Discard(1)
		case b == ':':
			atKey = false
			_, err = s.r.Discard(1)
		case b == '[' && !atKey && key == descend:
			err = s.array(n, f)
		default:
			var text []byte
			if text, err = s.value(); err == nil && atKey {
				key = string(bytes.Trim(text, `"`))
			} else if !atKey && len(s.beside) < maxBeside {
				s.beside = append(s.beside, key)
			}
		}
		if err != nil && err != errTooLarge {
			return err
		}
	}
}

// liner reads lines of any length up to a limit.
type liner struct {
	r    *bufio.Reader
	max  int
	buf  []byte
	line int // number of the line last read, from 1
}

// next returns the next line without its end, or errTooLarge for one over the limit, which it skips. The result is valid until the next call.
func (l *liner) next() ([]byte, error) {
	l.line++
	l.buf = l.buf[:0]
	size := 0
	for {
		b, err := l.r.ReadSlice('\n')
		if size += len(b); size <= l.max {
			l.buf = append(room(l.buf, len(b), l.max), b...)
		} else {
			l.buf = nil
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && (err != io.EOF || size == 0) {
			return nil, err
		}
		if size > l.max {
			return nil, fmt.Errorf("%w: a line of %d MB, the limit is %d MB", errTooLarge, size>>20, l.max>>20)
		}
		return bytes.TrimRight(l.buf, "\r\n"), nil
	}
}
