package ui

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/vt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/internal/storetest"
)

var update = flag.Bool("update", false, "write the golden screens anew")

func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

// terminal is the program in a virtual terminal.
type terminal struct {
	t     *testing.T
	keys  *io.PipeWriter
	send  func(tea.Msg)
	mu    sync.Mutex
	em    *vt.Emulator
	wrote chan struct{} // closed and replaced with each write
	raw   strings.Builder
	ended chan error
}

// Write receives what the program draws.
func (x *terminal) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.raw.Write(p)
	// The program has no terminal to put into raw mode, so it leaves line ends to the terminal's driver.
	_, err := x.em.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")))
	close(x.wrote)
	x.wrote = make(chan struct{})
	return len(p), err
}

// start runs the program on a store in a terminal of a size.
func start(t *testing.T, o Options, w, h int) *terminal {
	t.Helper()
	in, keys := io.Pipe()
	x := &terminal{t: t, keys: keys, em: vt.NewEmulator(w, h), wrote: make(chan struct{}), ended: make(chan error, 1)}
	go io.Copy(io.Discard, x.em) // its answers to the program's queries
	o.In, o.Out, o.Env = in, x, []string{"TERM=xterm-256color", "LANG=C.UTF-8", "HOME=" + t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	m := newModel(ctx, o)
	go func() { x.ended <- run(ctx, cancel, m, tea.WithWindowSize(w, h)) }()
	x.send = func(msg tea.Msg) { m.send(msg) }
	t.Cleanup(func() {
		cancel()
		<-x.ended
		keys.Close()
		x.em.InputPipe().(io.Closer).Close()
	})
	return x
}

// Parts that differ from run to run: ids, and the times of the test's own changes.
var (
	anID  = regexp.MustCompile(`\b[0-9a-f]{8}\b`)
	aTime = regexp.MustCompile(`\b20\d\d-\d\d-\d\d \d\d:\d\d\b`)
)

// screen returns the terminal's content, with all ids and times alike and without spaces at the ends of lines.
func (x *terminal) screen() string {
	lines := strings.Split(aTime.ReplaceAllString(anID.ReplaceAllString(x.em.String(), "xxxxxxxx"), "yyyy-mm-dd hh:mm"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \r")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}

// until waits for a screen that contains all the words.
func (x *terminal) until(words ...string) string {
	x.t.Helper()
	return x.wait(fmt.Sprintf("%q", words), func(s string) bool {
		for _, w := range words {
			if negated, is := strings.CutPrefix(w, "not "); strings.Contains(s, negated) == is {
				return false
			}
		}
		return true
	})
}

// wait waits for a screen that is right: it looks each time something is drawn.
func (x *terminal) wait(what string, right func(string) bool) string {
	x.t.Helper()
	hangs := time.After(time.Minute)
	for {
		x.mu.Lock()
		s, wrote := x.screen(), x.wrote
		x.mu.Unlock()
		if right(s) {
			return s
		}
		select {
		case <-wrote:
		case err := <-x.ended:
			x.ended <- err
			x.t.Fatalf("the program ended (%v) with this on the screen:\n%s\nIt waited for %s", err, s, what)
		case <-hangs:
			x.t.Fatalf("on the screen is\n%s\nnot %s", s, what)
		}
	}
}

// golden waits for the recorded screen.
func (x *terminal) golden(name string) {
	x.t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(x.settled()), 0o644); err != nil {
			x.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		x.t.Fatal(err)
	}
	x.wait(name+":\n"+string(want), func(s string) bool { return s == string(want) })
}

// settled returns the screen once nothing more is drawn, as far as one can see. It is only used to record new screens.
func (x *terminal) settled() string {
	for {
		x.mu.Lock()
		s, wrote := x.screen(), x.wrote
		x.mu.Unlock()
		select {
		case <-wrote:
		case <-time.After(2 * time.Second):
			return s
		}
	}
}

// press types keys as a terminal sends them.
func (x *terminal) press(keys ...string) {
	x.t.Helper()
	for _, k := range keys {
		if code, ok := map[string]string{"enter": "\r", "esc": "\x1b[27u", "tab": "\t", "up": "\x1b[A", "down": "\x1b[B", "ctrl+c": "\x03", "ctrl+x": "\x18"}[k]; ok {
			k = code
		}
		if _, err := io.WriteString(x.keys, k); err != nil {
			x.t.Fatal(err)
		}
	}
}

func (x *terminal) resize(w, h int) {
	x.mu.Lock()
	x.em.Resize(w, h)
	x.mu.Unlock()
	x.send(tea.WindowSizeMsg{Width: w, Height: h})
}

// newStore returns a store in memory that is checked at the end.
func newStore(t testing.TB) *chatctx.Store {
	t.Helper()
	return storetest.Open(t, "", chatctx.Options{Program: "test", Judge: approval.Rules{}})
}

// bread returns a store with the conversation of the README's first line.
func bread(t *testing.T) *chatctx.Store {
	t.Helper()
	st := newStore(t)
	if _, err := exchange.Import(t.Context(), st, []string{"../../testdata/chatgpt-export.json"}, exchange.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Use(t.Context(), "Bread for eight"); err != nil {
		t.Fatal(err)
	}
	return st
}
