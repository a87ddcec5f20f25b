//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	_ "github.com/chatctx/chatctx/chatctx/kv/pgkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// url leads to whichever node takes writes.
func (c *cluster) url() string {
	var hosts []string
	for _, n := range c.nodes {
		hosts = append(hosts, fmt.Sprintf("127.0.0.1:%d", n.port))
	}
	return "postgres://postgres@" + strings.Join(hosts, ",") + "/postgres?target_session_attrs=read-write&connect_timeout=2&statement_timeout=5s&search_path=trial"
}

// makeStore makes the store with a conversation for each program.
func (c *cluster) makeStore(ctx context.Context, programs int) (names []string, err error) {
	s, err := chatctx.Open(c.url(), chatctx.Options{Create: true})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for i := range programs {
		names = append(names, fmt.Sprintf("program%d", i+1))
		if _, err := s.New(ctx, record.NewContext{Title: names[i]}); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// startPrograms has programs write. end waits until each has ended in good order.
func (c *cluster) startPrograms(names []string, t *tally) (end func(), err error) {
	var leashes []io.Closer
	var reading sync.WaitGroup
	for _, name := range names {
		cmd := exec.Command("/proc/self/exe", "write", c.url(), name)
		cmd.Dir, cmd.Stderr = c.dir, os.Stderr
		in, inErr := cmd.StdinPipe()
		out, outErr := cmd.StdoutPipe()
		if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
			return nil, err
		}
		leashes = append(leashes, in)
		reading.Go(func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				t.hear(lines.Text())
			}
			if err := cmd.Wait(); err != nil {
				t.hear("failed " + name + ": " + err.Error())
			}
		})
	}
	return func() {
		for _, leash := range leashes {
			_ = leash.Close()
		}
		reading.Wait()
	}, nil
}

// write is a program: it appends and decides until its standard input ends, and says of each change what it was told: "stored program1 3", "unknown program1-4 denied by program2".
func write(url, name string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var ended atomic.Bool
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		ended.Store(true)
	}()
	s, err := chatctx.Open(url, chatctx.Options{Program: name})
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := s.Context(ctx, name)
	for n := 1; err == nil && !ended.Load(); n++ {
		text := fmt.Sprint(name, " ", n)
		err = try(text, func() error { // a message gets a new id each time, so that one that is stored twice shows
			m := pool.NewText(pool.Assistant, text)
			if n%4 == 0 {
				m.Calls = []pool.Call{{ID: fmt.Sprintf("%s-%d", name, n), Tool: "look", Arguments: json.RawMessage(`{}`)}}
			}
			_, err := c.Append(ctx, "main", m)
			return err
		})
		if err == nil && n%4 == 0 {
			err = denySome(ctx, s, name)
		}
	}
	return err
}

// denySome denies the oldest calls that wait, as the others try too. Who comes late gets a conflict.
func denySome(ctx context.Context, s *chatctx.Store, name string) error {
	var calls []*record.Call
	for call, err := range s.Calls(ctx, record.CallFilter{}) {
		if len(calls) == 2 || again(err) {
			break
		}
		if err != nil {
			return err
		}
		calls = append(calls, call)
	}
	for _, call := range calls {
		err := try(call.ID+" denied by "+name, func() error {
			b := s.Begin(call.Context.String(), call.Branch)
			b.Decide(call.Ref(), record.Verdict{Status: pool.Denied, Name: name})
			_, err := b.Commit(ctx)
			return err
		})
		if err != nil && !errors.Is(err, chatctx.ErrConflict) {
			return err
		}
	}
	return nil
}

// again: the change was not made and may be tried again.
func again(err error) bool {
	return errors.Is(err, kv.ErrAway) || errors.Is(err, chatctx.ErrLocked) || errors.Is(err, chatctx.ErrReadOnly)
}

// try makes a change until it is stored, may be, or cannot be.
func try(what string, change func() error) error {
	for {
		err := change()
		switch {
		case err == nil:
			fmt.Println("stored", what)
			return nil
		case errors.Is(err, kv.ErrUnknownOutcome):
			fmt.Println("unknown", what)
			return nil
		case !again(err):
			return err
		}
		fmt.Println("again", what)
		time.Sleep(100 * time.Millisecond)
	}
}

// tally is what the programs said.
type tally struct {
	mu      sync.Mutex
	stored  map[string]int // how often it was told that a change is stored
	unknown map[string]bool
	again   int
	wrong   []string
	stores  int
	last    time.Time // when it was told of one last
	gap     time.Duration
}

// hear takes a line of a program.
func (t *tally) hear(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch outcome, change, _ := strings.Cut(line, " "); outcome {
	case "stored":
		now := time.Now()
		t.gap, t.last = max(t.gap, now.Sub(t.last)), now
		t.stored[change]++
		t.stores++
	case "unknown":
		t.unknown[change] = true
	case "again":
		t.again++
	default:
		t.wrong = append(t.wrong, line)
	}
}

func (t *tally) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stores
}

// beginGap begins to look for the longest time in which nobody was told that a change is stored.
func (t *tally) beginGap() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gap, t.last = 0, time.Now()
}

func (t *tally) endGap() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return max(t.gap, time.Since(t.last))
}

// compare holds what the programs were told against what is there.
func (c *cluster) compare(ctx context.Context, names []string, t *tally) error {
	s, err := chatctx.Open(c.url(), chatctx.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	there := map[string]int{}
	for _, name := range names {
		if err := t.read(ctx, s, name, there); err != nil {
			return err
		}
	}
	found := map[string]int{}
	note := func(kind, what string) {
		found[kind]++
		t.wrong = append(t.wrong, kind+": "+what)
	}
	for change, told := range t.stored {
		if there[change] == 0 {
			note("lost", change)
		}
		if told > 1 {
			note("told twice", change)
		}
	}
	for change, n := range there {
		if n > 1 {
			note("doubled", change)
		}
		if t.unknown[change] {
			found["unknown and there"]++
		} else if t.stored[change] == 0 {
			note("there, and nobody was told", change)
		}
	}
	err = s.Maintenance().Check(ctx, chatctx.CheckOptions{Full: true}, func(p record.Problem) { note("check", p.Where+" "+p.Text) })
	fmt.Printf("%d changes acknowledged (%d denials); %d of unknown outcome; %d errors after which it was tried again; found: %v\n", t.stores, denials(t.stored), len(t.unknown), t.again, found)
	if len(t.wrong) > 0 {
		err = errors.Join(err, errors.New(strings.Join(t.wrong[:min(len(t.wrong), 20)], "\n")))
	}
	return err
}

func denials(changes map[string]int) (n int) {
	return len(slices.DeleteFunc(slices.Collect(maps.Keys(changes)), func(c string) bool { return !strings.Contains(c, " denied by ") }))
}

// read counts the changes in a program's conversation, and notes where they are out of order.
func (t *tally) read(ctx context.Context, s *chatctx.Store, name string, there map[string]int) error {
	c, err := s.Context(ctx, name)
	if err != nil {
		return err
	}
	snap, err := c.Snapshot(ctx, "main")
	if err != nil {
		return err
	}
	last, n := 0, 0
	for e, err := range snap.Entries(ctx, 1, 0) {
		if err != nil {
			return err
		}
		if _, err := fmt.Sscanf(e.Text(), name+" %d", &n); err != nil {
			continue // what a denial says
		}
		if there[e.Text()]++; n < last {
			t.wrong = append(t.wrong, fmt.Sprintf("%s: %d stands after %d", name, n, last))
		}
		last = n
	}
	steps, err := toolcall.CallLog(ctx, base.Of(s), c.ID)
	for _, step := range steps {
		if step.From != "" {
			there[step.ID+" denied by "+step.Claimed]++
		}
	}
	return err
}
