package chatctx

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/testkit"
)

// The test binary plays a program beside this one when CHATCTX_PLAY says which.
func init() {
	if what := os.Getenv("CHATCTX_PLAY"); what != "" {
		if err := play(what, os.Getenv("CHATCTX_FILE")); err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// play adds, reads, or does once what is to be killed.
func play(what, file string) error {
	ctx := context.Background()
	s, err := Open(file, Options{Program: "test"})
	if err != nil {
		return err
	}
	defer s.at().Close()
	fmt.Println("ready")
	switch what {
	case "append":
		c, err := s.Context(ctx, "kept")
		for i := 0; err == nil; i++ {
			if _, err = c.Append(ctx, "", says(fmt.Sprint("beside ", i))...); err == nil {
				fmt.Println("stored", i)
			}
		}
		return err
	case "read":
		for {
			for _, err := range s.Search(ctx, record.SearchOptions{Text: "beside"}) {
				if err != nil {
					return err
				}
			}
		}
	case "gc":
		_, err = s.Maintenance().GC(ctx, record.GCOptions{OlderThan: 1})
	case "purge":
		_, err = s.Maintenance().PurgeContext(ctx, "secret", PurgeOptions{})
	case "vacuum":
		err = s.Maintenance().Vacuum(ctx)
	case "repair":
		_, err = s.Maintenance().Repair(ctx, record.RepairOptions{Path: file})
	case "redact":
		_, err = s.Maintenance().Redact(ctx, record.RedactOptions{Find: finder("planted-[a-z]+")})
	case "backup":
		_, err = care.BackupBeside(ctx, s.at(), file, "copy")
	}
	if err == nil {
		fmt.Println("done")
	}
	return err
}

// player is a program beside this one.
type player struct {
	cmd   *exec.Cmd
	lines chan string
}

func startPlayer(t *testing.T, what, file string) *player {
	t.Helper()
	p := &player{cmd: exec.Command(os.Args[0]), lines: make(chan string, 1<<16)}
	p.cmd.Env = append(os.Environ(), "CHATCTX_PLAY="+what, "CHATCTX_FILE="+file)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for sc := bufio.NewScanner(out); sc.Scan(); {
			p.lines <- sc.Text()
		}
		close(p.lines)
	}()
	if line := <-p.lines; line != "ready" {
		t.Fatalf("%s says %q", what, line)
	}
	return p
}

// end kills the program and gives what it said.
func (p *player) end() []string {
	_ = p.cmd.Process.Kill()
	var said []string
	for line := range p.lines {
		said = append(said, line)
	}
	_ = p.cmd.Wait() // it was killed
	return said
}

// TestKilled kills programs at any moment of what they do to the whole file, while another one adds and a third one searches: what was stored stays, and what was asked for
// is done or not begun.
func TestKilled(t *testing.T) {
	for seed := range testkit.Seeds(t, 2) {
		for _, what := range []string{"gc", "purge", "vacuum", "repair", "redact", "backup"} {
			t.Run(fmt.Sprint(what, seed), func(t *testing.T) { killed(t, what, seed) })
		}
	}
}

func killed(t *testing.T, what string, seed uint64) {
	dir := t.TempDir()
	file := filepath.Join(dir, "chats.db")
	s, err := Open(file, Options{Create: true, Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{"secret", "kept", "trash"} {
		c, err := s.New(t.Context(), record.NewContext{Title: title, Messages: says("first " + title)})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			text := strings.Repeat(fmt.Sprintf("%s words %d ", title, n), 500)
			if title == "secret" {
				text = "planted-secret " + text
			}
			if _, err := c.Append(t.Context(), "", says(text)...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Trash(t.Context(), "trash"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Maintenance().Index(t.Context(), nil), s.at().Close()); err != nil {
		t.Fatal(err)
	}
	if what == "repair" {
		inRecord(t, file, base.RecentBucket, 0, func(tx kv.RwTx, key, _ []byte) error { return tx.Put(base.RecentBucket, key, []byte{1}) })
	}
	adds, reads := startPlayer(t, "append", file), startPlayer(t, "read", file)
	doing := startPlayer(t, what, file)
	// How long it may go on is a place in its work, not a time that is tested.
	moment := time.NewTimer(time.Duration(rand.New(rand.NewPCG(seed, 3)).IntN(60)) * time.Millisecond)
	<-moment.C
	finished := strings.Contains(strings.Join(doing.end(), "\n"), "done")
	added := adds.end()
	for _, line := range append(added, reads.end()...) {
		if strings.HasPrefix(line, "failed") {
			t.Errorf("a program beside it: %s", line)
		}
	}
	afterKill(t, what, dir, file, finished, len(added))
}

func afterKill(t *testing.T, what, dir, file string, finished bool, added int) {
	s, err := Open(file, Options{Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.at().Close()
	kept, err := s.Context(t.Context(), "kept")
	if err != nil {
		t.Fatal(err)
	}
	snap, err := kept.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if snap.Len() < 21+added {
		t.Errorf("%d messages are there, %d were stored", snap.Len(), 21+added)
	}
	_, err = s.Context(t.Context(), "secret")
	gone := errors.Is(err, ErrNotFound)
	if what == "purge" && finished && !gone {
		t.Error("the purge was done, and the context is there")
	}
	if gone || what == "redact" && len(found(t, s, record.SearchOptions{Text: "redacted"})) > 0 {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(raw, []byte("planted-")); n != 0 {
			t.Errorf("%d planted strings are in the file", n)
		}
	}
	if what == "repair" && !finished {
		if _, err := s.Maintenance().Repair(t.Context(), record.RepairOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if copies, _ := filepath.Glob(file + ".copy"); what == "backup" && finished && len(copies) == 1 {
		c, err := Open(copies[0], Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.at().Close()
		if err := care.Sound(t.Context(), c.at()); err != nil {
			t.Error(err)
		}
	}
	if err := s.Maintenance().Vacuum(t.Context()); err != nil { // takes away what a killed one has left
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".chatctx-tmp-*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	checkStore(t, s)
}
