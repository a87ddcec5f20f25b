package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"
)

// atTerminal runs the chat with line editing and a history. The terminal is in raw mode, so that a line can be edited while an answer is
// written above it.
func (s *chat) atTerminal() error {
	fd := int(os.Stdin.Fd())
	before, err := term.MakeRaw(fd)
	if err != nil {
		return s.fromPipe()
	}
	restore := func() { _ = term.Restore(fd, before) } // it was settable a moment ago
	defer restore()
	keys := &keyboard{in: s.r.con.in, stop: s.stop}
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{keys, os.Stdout}, "")
	fmt.Fprint(os.Stdout, pasteOn)
	defer fmt.Fprint(os.Stdout, pasteOff)
	s.out = t
	s.prompt = func() { fmt.Fprintf(t, "%s> ", s.r.paint(bold, clean(s.onBranch()))) }
	fmt.Fprint(t, s.r.paint(dim, s.greeting()))
	s.prompt()
	for {
		if w, h, err := term.GetSize(int(os.Stdout.Fd())); err == nil && w > 0 && h > 0 {
			_ = t.SetSize(w, h) // writes to the terminal alone
		}
		line, err := t.ReadLine()
		if err == nil && !s.take(keys.unfold(line)) {
			continue
		}
		restore() // so that Ctrl-C works while the last answer comes
		s.answers.Wait()
		fmt.Fprintln(t)
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
}

// What turns on and off that the terminal marks what is pasted.
const (
	pasteOn  = "\x1b[?2004h"
	pasteOff = "\x1b[?2004l"
)

var (
	pasteBegin = []byte("\x1b[200~")
	pasteEnd   = []byte("\x1b[201~")
)

// keyboard is what is typed, on its way to the line editor. Ctrl-C stops an answer, or clears the line. What is pasted and has more
// than one line, or is long, is kept aside; a short mark stands for it in the line.
type keyboard struct {
	in   io.Reader
	stop func() bool

	mu     sync.Mutex
	pastes []string
	raw    []byte // read and not looked at
	ready  []byte // looked at and not taken
}

// longPaste is how much of one line goes into the editor as if it were typed.
const longPaste = 500

func (k *keyboard) Read(p []byte) (int, error) {
	for len(k.ready) == 0 {
		buf := make([]byte, 4096)
		n, err := k.in.Read(buf)
		k.raw = append(k.raw, buf[:n]...)
		k.look()
		if err != nil {
			k.ready, k.raw = append(k.ready, k.raw...), nil
			if len(k.ready) == 0 {
				return 0, err
			}
		}
	}
	n := copy(p, k.ready)
	k.ready = k.ready[n:]
	return n, nil
}

// look moves what is understood from raw to ready. A paste waits until its end has come.
func (k *keyboard) look() {
	for len(k.raw) > 0 {
		if bytes.HasPrefix(k.raw, pasteBegin) {
			end := bytes.Index(k.raw, pasteEnd)
			if end < 0 {
				return
			}
			k.paste(string(k.raw[len(pasteBegin):end]))
			k.raw = k.raw[end+len(pasteEnd):]
			continue
		}
		if len(k.raw) < len(pasteBegin) && bytes.HasPrefix(pasteBegin, k.raw) {
			return // perhaps the beginning of one
		}
		c := k.raw[0]
		k.raw = k.raw[1:]
		if c == 3 { // Ctrl-C
			if k.stop() {
				continue
			}
			c = 21 // Ctrl-U: clears the line
		}
		k.ready = append(k.ready, c)
	}
}

func (k *keyboard) paste(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if !strings.Contains(strings.TrimSuffix(text, "\n"), "\n") && len(text) < longPaste {
		k.ready = append(k.ready, strings.TrimSuffix(text, "\n")...)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pastes = append(k.pastes, strings.TrimSuffix(text, "\n"))
	k.ready = append(k.ready, k.mark(len(k.pastes)-1)...)
}

// mark stands in the line for a paste.
func (k *keyboard) mark(i int) string {
	return fmt.Sprintf("[paste %d: %s]", i+1, count(strings.Count(k.pastes[i], "\n")+1, "line"))
}

// unfold puts what was pasted in the place of its marks.
func (k *keyboard) unfold(line string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.pastes {
		line = strings.Replace(line, k.mark(i), k.pastes[i], 1)
	}
	return line
}
