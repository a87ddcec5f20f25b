package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

func init() { benches = append(benches, bench{"ui", benchUI}) }

// The sizes of the measured store: its messages, those of the open branch, and the branches from its end.
const (
	uiMessages = 1_000_000
	uiBranch   = 10_000
	uiBranches = 300
)

// benchUI measures the full screen on a terminal: the first screen, a key until the screen shows it, and the memory. Each is the median of rounds, since other
// programs disturb single ones.
func benchUI(r *run) []row {
	bin, file := program(r), in(r.dir, "ui")
	forest(file, r.n(uiMessages), r.n(uiBranch), r.n(uiBranches))
	const rounds, keys = 21, 40
	var first, bare, reach []time.Duration
	var memory int64
	for range rounds {
		took, _ := call(bin, file, "version")
		bare = append(bare, took)
		s := show(bin, file)
		first = append(first, s.until("? keys", "Another way"))
		for i := range keys {
			reach = append(reach, s.key([]string{"k", "j", "pgup", "pgdown"}[i%4]))
		}
		memory = max(memory, s.resident())
		s.leave()
	}
	more, p95, mb := percentile(first, 0.5)-percentile(bare, 0.5), percentile(reach, 0.95), float64(memory)/(1<<20)
	return []row{
		{"ui: the first screen, more than version", fmt.Sprintf("%s (version %s)", more.Round(time.Millisecond), percentile(bare, 0.5).Round(time.Millisecond)), "under 150 ms", more < 150*time.Millisecond},
		{"ui: a key until the screen shows it: p95", fmt.Sprintf("%s (p50 %s)", p95.Round(100*time.Microsecond), percentile(reach, 0.5).Round(100*time.Microsecond)), "under 35 ms", p95 < 35*time.Millisecond},
		{"ui: memory", fmt.Sprintf("%.0f MB", mb), "under 64 MB", mb < 64},
	}
}

// forest makes a store of n messages, with a current conversation that has so many on main and so many branches from its end.
func forest(file string, n, main, branches int) {
	ctx := context.Background()
	s := value(chatctx.Open(file, chatctx.Options{Create: true}))
	for i := 0; n > main; i++ {
		c := value(s.New(ctx, record.NewContext{Title: fmt.Sprint("Conversation ", i)}))
		for at := 0; at < min(main, n-main); at += 1000 {
			value(c.Append(ctx, "", messages(at, min(1000, n-main-at))...))
		}
		n -= main
	}
	c := value(s.New(ctx, record.NewContext{Title: "The large one"}))
	for at := 0; at < main; at += 1000 {
		value(c.Append(ctx, "", messages(at, min(1000, main-at))...))
	}
	b := c.Begin("")
	for i := range branches {
		b.Fork(fmt.Sprint("branch-", i), chatctx.ForkOptions{At: record.Ref(fmt.Sprintf("main@%d", main-i%10)), Stay: true})
	}
	value(b.Commit(ctx))
	for i := range branches {
		m := message(0)
		m.Content[0].Text = "Another way"
		value(c.Append(ctx, fmt.Sprint("branch-", i), m))
	}
	must(s.Maintenance().Index(ctx, nil))
	must(s.Close())
}

// shown is the program on a terminal.
type shown struct {
	cmd   *exec.Cmd
	term  *os.File
	begun time.Time
	come  chan []byte
}

// show starts the program on a terminal of 160 columns and 45 lines.
func show(bin, store string) *shown {
	term := value(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))
	fd := int(term.Fd())
	must(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number := value(unix.IoctlGetInt(fd, unix.TIOCGPTN))
	tty := value(os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0))
	must(unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 45, Col: 160}))
	s := &shown{cmd: exec.Command(bin, "ui"), term: term, come: make(chan []byte, 1000)}
	s.cmd.Env = append(os.Environ(), "CHATCTX_STORE="+store, "TERM=xterm-256color")
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s.begun = time.Now()
	must(s.cmd.Start())
	must(tty.Close())
	go func() {
		defer close(s.come)
		for {
			b := make([]byte, 64<<10)
			n, err := term.Read(b)
			if err != nil { // the program has ended
				return
			}
			s.come <- b[:n]
		}
	}()
	return s
}

// patience is how long something may take to come on the screen.
const patience = time.Minute

// until waits until all words were drawn, and returns the time since the start.
func (s *shown) until(words ...string) time.Duration {
	var all bytes.Buffer
	for {
		select {
		case b := <-s.come:
			all.Write(b)
		case <-time.After(patience):
			must(fmt.Errorf("%q does not come on the screen: %q", words, all.String()))
		}
		missing := 0
		for _, w := range words {
			if !strings.Contains(all.String(), w) {
				missing++
			}
		}
		if missing == 0 {
			return time.Since(s.begun)
		}
	}
}

// quiet waits until nothing was drawn for a while.
func (s *shown) quiet() {
	for {
		select {
		case <-s.come:
		case <-time.After(60 * time.Millisecond):
			return
		}
	}
}

// key types a key, and returns the time until something was drawn.
func (s *shown) key(name string) time.Duration {
	s.quiet()
	code := map[string]string{"pgup": "\x1b[5~", "pgdown": "\x1b[6~"}[name]
	code = cmp.Or(code, name)
	begun := time.Now()
	value(s.term.WriteString(code))
	select {
	case <-s.come:
	case <-time.After(patience):
		must(fmt.Errorf("%s changes nothing on the screen", name))
	}
	return time.Since(begun)
}

// resident returns how much memory the program has, in bytes.
func (s *shown) resident() int64 {
	status := string(value(os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))))
	_, rest, _ := strings.Cut(status, "VmRSS:")
	var kb int64
	value(fmt.Sscan(rest, &kb))
	return kb << 10
}

func (s *shown) leave() {
	value(s.term.WriteString("q"))
	for range s.come {
	}
	must(s.cmd.Wait())
	must(s.term.Close())
}
