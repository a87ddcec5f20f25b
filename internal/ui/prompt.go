package ui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/chatctx/chatctx/internal/screen"
)

// PromptOptions are options of a Prompt. In and Out are required.
type PromptOptions struct {
	In      io.Reader
	Out     io.Writer
	Env     []string // nil means the process's own
	Color   bool
	Label   string   // the text before the line
	History []string // earlier lines, the oldest first
	// Complete returns what can replace the end of a text, from a byte offset on. It runs beside the loop that handles keys.
	Complete func(before string) (from int, list []Completion)
	// Stop stops what is running on Ctrl-C; it returns false if nothing is, and then the line is cleared.
	Stop func() bool
	// Editor returns the command with which the person edits a file.
	Editor func(file string) (*exec.Cmd, error)
}

// Completion is a word that can be typed, with a hint.
type Completion struct{ Word, Hint string }

// Prompt reads lines at the bottom of a terminal while text is printed above. That text stays in the terminal as if a program without a prompt had printed it.
type Prompt struct {
	program *tea.Program
	lines   chan Line
	ended   chan struct{}
	err     error

	mu     sync.Mutex // guards the following fields
	w, h   int
	method ansi.Method

	printing sync.Mutex // keeps text together that is printed at once, and arriving words in order
	pen      screen.Pen
	come     screen.Stream
	coming   bool
	midway   bool     // the block of words that is arriving has not ended
	between  []func() // what is printed when it has
}

// Line is a line that was entered. Message means that it begins with a paste of several lines: it is text, even if the text looks like a command.
type Line struct {
	Text    string
	Message bool
	shown   string // its form in the terminal
}

// mostWaiting is how many lines can be typed before the first is read.
const mostWaiting = 100

// StartPrompt shows a prompt until Close, or until ctx ends.
func StartPrompt(ctx context.Context, o PromptOptions) *Prompt { return startPrompt(ctx, o) }

// startPrompt is StartPrompt with options for tests.
func startPrompt(ctx context.Context, o PromptOptions, more ...tea.ProgramOption) *Prompt {
	p := &Prompt{lines: make(chan Line, mostWaiting), ended: make(chan struct{}), pen: screen.Pen{Styles: true, Color: o.Color}}
	m := &prompt{o: o, p: p, label: o.Label, past: newPast(o.History)}
	m.field.lines = true
	drawn := make(chan struct{})
	out := whenDrawn(o.Out, sync.OnceFunc(func() { close(drawn) }))
	options := []tea.ProgramOption{tea.WithContext(ctx), tea.WithInput(ofTerminal(o.In)), tea.WithOutput(out), tea.WithoutSignalHandler()}
	if o.Env != nil {
		options = append(options, tea.WithEnvironment(o.Env))
	}
	p.program = tea.NewProgram(m, append(options, more...)...)
	m.send = p.program.Send
	sized := make(chan struct{})
	m.sized = sync.OnceFunc(func() { close(sized) })
	go func() {
		defer close(p.ended)
		_, err := p.program.Run()
		if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		p.err = err
	}()
	for _, begun := range []chan struct{}{sized, drawn} { // printing needs the width of the terminal, and a prompt below
		select {
		case <-begun:
		case <-p.ended:
		}
	}
	return p
}

// whenDrawn returns a writer that calls drawn with the first frame, which also enables bracketed paste.
func whenDrawn(out io.Writer, drawn func()) io.Writer {
	if f, ok := out.(*os.File); ok { // whose type tells which terminal it is
		return frameFile{f, drawn}
	}
	return frameWriter{out, drawn}
}

type frameWriter struct {
	io.Writer
	drawn func()
}

func (w frameWriter) Write(p []byte) (int, error) { return writeFrame(w.Writer, p, w.drawn) }

type frameFile struct {
	*os.File
	drawn func()
}

func (w frameFile) Write(p []byte) (int, error) { return writeFrame(w.File, p, w.drawn) }

// WriteString hides the file's own method.
func (w frameFile) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

func writeFrame(out io.Writer, p []byte, drawn func()) (int, error) {
	n, err := out.Write(p)
	if bytes.Contains(p, []byte(ansi.SetModeBracketedPaste)) {
		drawn()
	}
	return n, err
}

// Line waits for a line. Show prints it. The error is io.EOF if the person pressed Ctrl-D or the terminal is gone.
func (p *Prompt) Line() (Line, error) {
	select {
	case line, ok := <-p.lines:
		if !ok {
			return Line{}, io.EOF
		}
		return line, nil
	case <-p.ended:
		if p.err != nil {
			return Line{}, p.err
		}
		return Line{}, io.EOF
	}
}

// Show prints a line that Line returned: at once, or between two blocks of an answer that is arriving.
func (p *Prompt) Show(line Line, between bool) {
	p.printing.Lock()
	defer p.printing.Unlock()
	show := func() {
		p.program.Send(takenMsg{})
		p.print(strings.Split(line.shown, "\n"))
	}
	if between {
		p.inBetween(show)
		return
	}
	p.catchUp() // lines are shown in their order
	show()
}

// Close removes the prompt, and waits until everything is printed.
func (p *Prompt) Close() error {
	p.printing.Lock()
	p.catchUp()
	p.printing.Unlock()
	p.program.Send(closeMsg{})
	<-p.ended
	return p.err
}

// SetLabel changes the text before the line.
func (p *Prompt) SetLabel(label string) { p.program.Send(labelMsg(label)) }

// Columns returns the width of the terminal.
func (p *Prompt) Columns() int {
	w, _, _ := p.size()
	return w
}

func (p *Prompt) size() (columns, lines int, method ansi.Method) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.w, 2), max(p.h, 2), p.method
}

func (p *Prompt) resized(w, h int, method ansi.Method) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.w, p.h, p.method = w, h, method
}

// Print prints whole lines above the prompt. They may have styles; they are wrapped at words.
func (p *Prompt) Print(text string) {
	p.printing.Lock()
	defer p.printing.Unlock()
	p.print(strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
}

// PrintBetween is Print between two blocks of an answer that is arriving, so that none of its sentences is split.
func (p *Prompt) PrintBetween(text string) {
	p.printing.Lock()
	defer p.printing.Unlock()
	p.inBetween(func() { p.print(strings.Split(strings.TrimSuffix(text, "\n"), "\n")) })
}

func (p *Prompt) inBetween(print func()) {
	if p.between = append(p.between, print); !p.midway {
		p.catchUp()
	}
}

// catchUp prints what waited for the end of a block.
func (p *Prompt) catchUp() {
	for _, print := range p.between {
		print()
	}
	p.between = nil
}

func (p *Prompt) print(lines []string) {
	columns, high, method := p.size()
	wrap := ansi.Wrap
	if method == ansi.WcWidth {
		wrap = ansi.WrapWc
	}
	var all []string
	for _, l := range lines { // a line that fills the last column would lose its last character, because the rest of each line is erased
		all = append(all, strings.Split(wrap(strings.ReplaceAll(l, "\t", "    "), max(columns-1, 1), " "), "\n")...)
	}
	// No more at once than the terminal has room for above the prompt, since the rest would be lost.
	for most := max(high-mostTall(high)-1, 1); len(all) > 0; {
		n := min(most, len(all))
		text := strings.Join(all[:n], "\n")
		if text == "" { // an empty text would not be printed
			text = " "
		}
		p.program.Send(tea.Println(text)())
		all = all[n:]
	}
}

// Say shows words of an answer as they arrive, as Markdown. It prints what cannot change any more; the rest is above the line that is being typed.
func (p *Prompt) Say(words string) {
	p.printing.Lock()
	defer p.printing.Unlock()
	columns, _, method := p.size()
	whole := p.come.Add(words, columns-1, method.StringWidth)
	p.coming = true
	rest := p.come.Rest(columns-1, method.StringWidth)
	p.rest(rest)
	p.printLines(whole)
	if p.midway = len(rest) > 0; !p.midway {
		p.catchUp()
	}
}

// Said ends an answer and prints all of it.
func (p *Prompt) Said() {
	p.printing.Lock()
	defer p.printing.Unlock()
	if !p.coming {
		return
	}
	columns, _, method := p.size()
	rest := p.come.Rest(columns-1, method.StringWidth)
	p.come, p.coming, p.midway = screen.Stream{}, false, false
	p.rest(nil)
	p.printLines(rest)
	p.catchUp()
}

// Doing shows what is being done; "" means nothing.
func (p *Prompt) Doing(what string) { p.program.Send(doingMsg(what)) }

func (p *Prompt) rest(lines []screen.Line) {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.Paint(p.pen)
	}
	p.program.Send(restMsg(out))
}

func (p *Prompt) printLines(lines []screen.Line) {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = l.Paint(p.pen)
	}
	if len(out) > 0 {
		p.print(out)
	}
}

// Aside gives the terminal to run until it returns.
func (p *Prompt) Aside(run func() error) error {
	done := make(chan error, 1)
	p.program.Send(aside(function(run), func(err error) tea.Msg { done <- err; return nil })())
	select {
	case err := <-done:
		return err
	case <-p.ended:
		return io.EOF
	}
}

// The messages to the loop that draws.
type (
	labelMsg      string
	doingMsg      string
	restMsg       []string
	takenMsg      struct{}
	closeMsg      struct{}
	completionMsg struct {
		before string
		from   int
		list   []Completion
	}
)
