package ui

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// bursts marks pasted text in what a terminal sends. A terminal that does not mark a paste itself sends it as if somebody typed it. So a read that has text behind an
// Enter is one paste with its line ends: nobody types that fast, and no line of it may be sent, or taken for a command, before an Enter that stands alone.
type bursts struct {
	from   io.Reader
	reads  scanner
	rest   []byte // of a character whose end has not come
	marked []byte // the present read with its marks
}

// ofTerminal returns in with its pastes marked. On Windows the console tells keys as events, not as bytes, and in is returned as it is.
func ofTerminal(in io.Reader) io.Reader {
	f, isFile := in.(*os.File)
	switch {
	case runtime.GOOS == "windows":
		return in
	case isFile: // whose descriptor tells which terminal it is
		return &burstFile{f, bursts{from: f}}
	}
	return &bursts{from: in}
}

// burstFile is bursts of a file.
type burstFile struct {
	*os.File
	of bursts
}

func (f *burstFile) Read(p []byte) (int, error) { return f.of.Read(p) }

// Read reads once. It needs room for the marks beside the bytes, and gives up marks between which only keys stand if there is too little.
func (b *bursts) Read(p []byte) (int, error) {
	const marks = len(ansi.BracketedPasteStart) + len(ansi.BracketedPasteEnd)
	if len(p) <= marks+len(b.rest) {
		return b.from.Read(p)
	}
	read := make([]byte, len(p)-marks)
	n, err := b.from.Read(read[copy(read, b.rest):])
	if n == 0 {
		return 0, err
	}
	read = read[:n+len(b.rest)]
	kinds := b.reads.kinds(read)
	b.rest = nil
	if !burst(kinds) {
		return copy(p, read), err
	}
	if end := wholeCharacters(read); err == nil && kinds[len(kinds)-1] == typed {
		b.rest = bytes.Clone(read[end:])
		read, kinds = read[:end], kinds[:end]
	}
	if b.mark(read, kinds); len(b.marked) > len(p) {
		b.marked = append(append(append(b.marked[:0], ansi.BracketedPasteStart...), read...), ansi.BracketedPasteEnd...)
	}
	return copy(p, b.marked), err
}

// mark puts the marks of a paste around each run of text and line ends. Other keys stand between them.
func (b *bursts) mark(read []byte, kinds []kind) {
	b.marked = b.marked[:0]
	inside := false
	turn := func(in bool) {
		switch {
		case in && !inside:
			b.marked = append(b.marked, ansi.BracketedPasteStart...)
		case !in && inside:
			b.marked = append(b.marked, ansi.BracketedPasteEnd...)
		}
		inside = in
	}
	for i, c := range read {
		turn(kinds[i] != aKey)
		b.marked = append(b.marked, c)
	}
	turn(false)
}

// wholeCharacters returns where the last character begins if it is cut off, else the length.
func wholeCharacters(b []byte) int {
	for back := 1; back <= min(utf8.UTFMax-1, len(b)); back++ {
		if at := len(b) - back; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return at
			}
			break
		}
	}
	return len(b)
}

// burst tells whether text stands behind an Enter.
func burst(kinds []kind) bool {
	entered := false
	for _, k := range kinds {
		if entered && k == typed {
			return true
		}
		entered = entered || k == enter
	}
	return false
}

// kind is what a byte from a terminal belongs to.
type kind byte

const (
	aKey  kind = iota // a key that is no text, an answer of the terminal, or a paste that the terminal marks itself
	typed             // text
	enter
	blank // a tab or the key Ctrl-J, which are text where other text is pasted
)

// scanner knows where it is in the sequences of a terminal, over several reads.
type scanner struct {
	within   sequence
	sequence []byte // as far as it has come, of a CSI sequence
	pasting  bool   // between the marks of a paste
}

// sequence is a sequence of a terminal that has not ended.
type sequence byte

const (
	none    sequence = iota
	escaped          // behind ESC
	control          // CSI: up to a letter
	single           // SS3: one more byte
	text             // OSC and the like: up to BEL or ESC \
)

// kinds returns what each byte of a read belongs to.
func (r *scanner) kinds(read []byte) []kind {
	if r.within == escaped && len(read) > 0 && !bytes.ContainsRune([]byte("[O]P_^X"), rune(read[0])) {
		r.within = none // the key Esc alone
	}
	kinds := make([]kind, len(read))
	for i, c := range read {
		kinds[i] = r.kind(c)
	}
	return kinds
}

func (r *scanner) kind(c byte) kind {
	switch {
	case r.within != none:
		r.goOn(c)
		return aKey
	case c == ansi.ESC:
		r.within = escaped
		return aKey
	case r.pasting:
		return aKey
	case c == '\r':
		return enter
	case c == '\t', c == '\n':
		return blank
	case c < ' ', c == ansi.DEL:
		return aKey
	}
	return typed
}

// goOn takes a further byte of a sequence.
func (r *scanner) goOn(c byte) {
	switch r.within {
	case escaped:
		r.sequence = r.sequence[:0]
		switch c {
		case '[':
			r.within = control
		case 'O':
			r.within = single
		case ']', 'P', '_', '^', 'X':
			r.within = text
		default:
			r.within = none
		}
	case control:
		if r.sequence = append(r.sequence, c); c >= '@' && c <= '~' {
			r.within = none
			switch string(r.sequence) {
			case "200~":
				r.pasting = true
			case "201~":
				r.pasting = false
			}
		}
	case single:
		r.within = none
	case text:
		switch c {
		case ansi.BEL:
			r.within = none
		case ansi.ESC:
			r.within = escaped
		}
	}
}
