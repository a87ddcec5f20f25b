package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/poolstore"
)

// A batch of append ends at so many messages or bytes, or if the next line has not arrived yet.
const (
	batchMessages = 1000
	batchBytes    = 4 << 20
)

// appender stores lines as messages, a transaction for each batch.
type appender struct {
	r      *run
	lines  *lines
	key    string // of the line that has the number after it; "": none
	expect *uint64
	stored int            // messages added
	known  int            // messages that were there, or whose key was known
	mended int            // half characters in their JSON that were replaced
	line   int            // the last stored line
	first  *chatctx.Batch // the others join its operation
	newest string         // the newest of their operations: undoing it undoes all
	last   *record.Committed
}

// all reads batch after batch. What was stored before an error stays.
func (a *appender) all() error {
	for {
		batch, numbers, err := a.lines.batch()
		if len(batch) > 0 {
			if storeErr := a.store(batch, numbers); storeErr != nil {
				return storeErr
			}
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil && a.last == nil:
			return &hinted{err, "nothing was stored"}
		case err != nil:
			return err
		}
	}
}

// store puts a batch on the branch and prints its lines once it is durable.
func (a *appender) store(batch []*chatctx.Message, numbers []int) error {
	for _, m := range batch {
		for i := range m.Calls { // an object that came as a string has escapes of its own
			m.Calls[i].Arguments = jsontree.Unwrapped(m.Calls[i].Arguments)
		}
		a.mended += poolstore.MakeWhole(m)
	}
	ref, name := a.r.contextRef(), a.r.branchName()
	if a.last != nil { // the same branch to the end, even if others switch meanwhile
		ref, name = a.last.Context.String(), a.last.Branch
	}
	o := chatctx.AppendOptions{Expect: a.expect, Copies: true}
	if a.key != "" {
		o.Key = fmt.Sprintf("%s:%d", a.key, numbers[0])
	}
	if a.last == nil {
		if err := a.r.somewhere(a.r.empty(o)); err != nil {
			return err
		}
	}
	b := a.r.st.Begin(ref, name)
	if a.first == nil {
		a.first = b
	}
	b.Together(a.first).AppendWith(o, batch...)
	c, err := b.Commit(a.r.ctx)
	if err != nil {
		return contextHint(err)
	}
	a.last, a.line = c, numbers[len(numbers)-1]
	if c.Operation != "" {
		a.newest = c.Operation
	}
	if a.expect != nil {
		a.expect = &c.Revision
	}
	a.report(c)
	return nil
}

func (a *appender) report(c *record.Committed) {
	added := c.Last()
	for _, p := range added.Placed {
		if added.Again || p.Known {
			a.known++
		} else {
			a.stored++
		}
	}
	if a.r.json() {
		for _, p := range placedToJSON(c) {
			a.r.printJSON(p)
		}
	}
	a.r.con.out.flush() // if nobody reads the output any more, storing goes on
}

// lines reads messages from JSON lines.
type lines struct {
	in    *bufio.Reader
	limit int // bytes in a line
	most  int // messages in a batch
	n     int // the number of the line read last
	// mended counts the half characters that were replaced.
	mended int
}

func newLines(in io.Reader, limit, most int) *lines {
	return &lines{in: bufio.NewReaderSize(in, 1<<20), limit: limit, most: most}
}

// batch reads messages until one of the limits is reached, or the next line has not arrived yet. With an error it returns the messages before it; io.EOF is
// the end.
func (l *lines) batch() (batch []*chatctx.Message, numbers []int, err error) {
	bytesRead := 0
	for len(batch) < l.most && bytesRead < batchBytes {
		if len(batch) > 0 && !l.ready() {
			return batch, numbers, nil
		}
		line, err := l.next()
		if err != nil {
			return batch, numbers, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		m := new(chatctx.Message)
		if utf8.Valid(line) { // half characters are replaced, as in an import; other invalid bytes are refused
			whole, mended := jsontree.Whole(line)
			line, l.mended = whole, l.mended+mended
		}
		if err := decodeMessage(line, m); err != nil {
			return batch, numbers, fmt.Errorf("line %d: %w", l.n, err)
		}
		batch, numbers, bytesRead = append(batch, m), append(numbers, l.n), bytesRead+len(line)
	}
	return batch, numbers, nil
}

// ready reports whether a whole line can be read without waiting.
func (l *lines) ready() bool {
	have, _ := l.in.Peek(l.in.Buffered())
	return bytes.IndexByte(have, '\n') >= 0
}

// next reads a line up to the limit, without its end. The last line may lack the newline.
func (l *lines) next() ([]byte, error) {
	var line []byte
	l.n++
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > l.limit {
			return nil, fmt.Errorf("line %d is longer than %s", l.n, size(int64(l.limit)))
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == io.EOF && len(line) > 0, err == nil:
			if l.n == 1 {
				line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
			}
			return line, nil
		}
		return nil, err
	}
}

// decodeMessage reads a message in the JSON of docs/cli.md.
func decodeMessage(line []byte, m *chatctx.Message) error {
	if err := validText(string(line)); err != nil {
		return err
	}
	if t := bytes.TrimSpace(line); t[0] != '{' {
		return fmt.Errorf("this is not a JSON object: %s", cut(oneLine(string(t)), 40))
	}
	err := json.Unmarshal(line, m)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return errors.New(jsontree.Fault(err))
	}
	return err
}
