package exchange

import (
	"bytes"
	"io"
	"strings"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// aider's .aider.chat.history.md is one Markdown file for all runs in a folder. A run begins with a heading that contains its time. Prompts are lines after
// ####, notices lines after >, both with two spaces at their end; everything else is the model's answer. Lines inside a code fence belong to the answer,
// whatever they begin with, unless the answer was broken off and left the fence open: aider's own reader knows no fences.

const (
	aiderName   = "aider"
	aiderStart  = "# aider chat started at "
	aiderPrompt = "#### "
	aiderNotice = "> "
)

func detectAider(h *head) bool {
	return bytes.HasPrefix(h.text, []byte(aiderStart)) || bytes.Contains(h.text, []byte("\n"+aiderStart))
}

type aider struct {
	r      *reading
	t      *thread // nil before the first run
	in     *record.Incoming
	ids    map[string]int
	spaced bool // prompts end with two spaces: so a #### line without them is a heading of the answer
	kind   string
	lines  []string // of the message being read
	fence  string   // the code fence that is open in an answer
	apart  bool     // the last line was blank or a notice
	held   []heldLine
	at     place
}

// heldLine is a line from one on that may be a prompt, or text inside a fence: what follows it decides.
type heldLine struct {
	at   place
	text string
}

func readAider(r *reading) error {
	a := &aider{r: r, ids: map[string]int{}, spaced: aiderSpaced(r.head.text)}
	l := liner{r: r.buf, max: r.limits.Line}
	for {
		line, err := l.next()
		switch {
		case err == io.EOF:
			return a.emit()
		case err == errTooLarge:
			r.skip(1, atLine(l.line), "a line of more than %d MB is left out", r.limits.Line>>20)
			continue
		case err != nil:
			return r.atEnd(err, a.emit)
		}
		text, changed := repairUTF8(bytes.TrimSuffix(line, []byte{'\r'}))
		if changed {
			r.repaired(atLine(l.line), "bytes that are not UTF-8 are replaced")
		}
		if err := a.line(atLine(l.line), text); err != nil {
			return err
		}
	}
}

// aiderSpaced reports whether prompts end with spaces, as aider writes them; an edited file may have lost them.
func aiderSpaced(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimRight(line, "\r\n"); bytes.HasPrefix(line, []byte(aiderPrompt)) && bytes.HasSuffix(line, []byte("  ")) {
			return true
		}
	}
	return false
}

// line takes a line, or holds it while nobody can tell what it is.
func (a *aider) line(at place, text string) error {
	started, isStart := strings.CutPrefix(text, aiderStart)
	isStart = isStart && parseTime(strings.TrimSpace(started)) != 0
	holds := a.fence != "" && a.isPrompt(text)
	if n := len(a.held); n > 0 {
		holds = !isStart && (!a.isPrompt(text) || a.isPrompt(a.held[n-1].text))
	}
	if holds {
		a.held = append(a.held, heldLine{at, text})
		return nil
	}
	if err := a.release(); err != nil {
		return err
	}
	return a.take(at, text)
}

func (a *aider) isPrompt(text string) bool {
	return strings.HasPrefix(text, aiderPrompt) && (!a.spaced || strings.HasSuffix(text, "  "))
}

// release takes the held lines: as text inside the fence if the fence is closed before the next prompt, else as a prompt and what follows it.
func (a *aider) release() error {
	held := a.held
	a.held = nil
	inside, outside := a.fence, ""
	for _, l := range held {
		if inside = fenceAfter(inside, l.text); !a.isPrompt(l.text) {
			outside = fenceAfter(outside, l.text)
		}
	}
	if broken := outside == ""; len(held) > 0 && broken && (inside != "" || a.apart) {
		a.fence = ""
	}
	for _, l := range held {
		if err := a.take(l.at, l.text); err != nil {
			return err
		}
	}
	return nil
}

func (a *aider) take(at place, text string) error {
	kind := "answer"
	body := text
	started, isStart := strings.CutPrefix(text, aiderStart)
	isNotice := strings.HasPrefix(text, aiderNotice) && (!a.spaced || strings.HasSuffix(text, "  "))
	a.apart = strings.TrimSpace(text) == "" || isNotice
	switch {
	case isStart && parseTime(strings.TrimSpace(started)) != 0:
		if err := a.emit(); err != nil {
			return err
		}
		a.begin(at, strings.TrimSpace(started))
		return nil
	case a.fence != "":
	case a.isPrompt(text):
		kind, body = "prompt", strings.TrimSuffix(strings.TrimPrefix(text, aiderPrompt), "  ")
	case isNotice:
		kind, body = notice, strings.TrimSuffix(strings.TrimPrefix(text, aiderNotice), "  ")
	case strings.TrimSpace(text) == "" && a.kind != "answer": // blank lines separate messages
		a.flush()
		return nil
	}
	if a.t == nil {
		a.begin(at, "")
	}
	if kind != a.kind {
		a.flush()
		a.kind, a.at = kind, at
	}
	if kind == "answer" {
		a.fence = fenceAfter(a.fence, text)
	}
	a.lines = append(a.lines, body)
	return nil
}

// fenceAfter returns the code fence that is open after a line, "" for none.
func fenceAfter(open, line string) string {
	line = strings.TrimLeft(line, " ")
	if open != "" {
		if strings.HasPrefix(line, open) && strings.Trim(line, open[:1]+" ") == "" {
			return ""
		}
		return open
	}
	for _, c := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, c)); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

func (a *aider) begin(at place, started string) {
	id := firstOf(started, "before the first run")
	if a.ids[id]++; a.ids[id] > 1 {
		id += "~" + itoa(a.ids[id])
	}
	a.t, a.in, a.fence = a.r.thread(at), &record.Incoming{Conversation: id, Created: parseTime(started)}, ""
}

// flush ends the message being read.
func (a *aider) flush() {
	text := strings.Join(a.lines, "\n")
	if a.kind == "answer" {
		text = strings.Trim(text, "\n")
	}
	if strings.TrimSpace(text) != "" {
		m := pool.NewText(pool.User, text)
		switch a.kind {
		case "answer":
			m.Role = pool.Assistant
		case notice:
			m.Kind, m.Unsent = notice, true
		}
		a.t.next(a.at, itoa(len(a.t.records)+1), m)
	}
	a.kind, a.lines = "", nil
}

func (a *aider) emit() error {
	if err := a.release(); err != nil {
		return err
	}
	if a.t == nil {
		return nil
	}
	a.flush()
	return a.t.emit(a.in, a.t.last())
}
