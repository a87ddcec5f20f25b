package chatctx

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/testkit"
)

// TestKilledWritersLoseNothing kills three writers at once, again and again: every message whose append had returned is there, in its writer's order, and check finds
// nothing. Between appends the writers fork, edit, rewind and undo on branches of their own.
func TestKilledWritersLoseNothing(t *testing.T) {
	if os.Getenv("CHATCTX_WRITE_TO") != "" {
		writeUntilKilled(t)
		return
	}
	file := filepath.Join(t.TempDir(), "chats.db")
	s := open(t, file)
	newContext(t, s)
	acked := map[string]int{}
	for seed := range testkit.Seeds(t, 12) {
		rng := rand.New(rand.NewSource(int64(seed)))
		var wg sync.WaitGroup
		var mu sync.Mutex
		for w := range 3 {
			name, after := fmt.Sprintf("%d.%d", seed, w), 1+rng.Intn(25)
			wg.Go(func() {
				n := killAfter(t, file, name, after)
				mu.Lock()
				acked[name] = n
				mu.Unlock()
			})
		}
		wg.Wait()
		checkStore(t, s)
	}
	c, err := s.Context(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for name, n := range acked {
		total += n
		next := map[string]int{}
		for _, text := range strings.Fields(texts(t, c, "main")) {
			who, i, _ := strings.Cut(text, ":")
			if who != name {
				continue
			}
			if i != fmt.Sprint(next[who]) {
				t.Fatalf("writer %s: message %s came where %d should", who, i, next[who])
			}
			next[who]++
		}
		if next[name] < n {
			t.Errorf("writer %s: %d messages are there, %d were acknowledged", name, next[name], n)
		}
	}
	t.Logf("%d kills, %d acknowledged appends", len(acked), total)
}

// killAfter starts a writer, kills it once so many appends were acknowledged, and gives how many were in the end.
func killAfter(t *testing.T, file, name string, after int) int {
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledWritersLoseNothing$")
	cmd.Env = append(os.Environ(), "CHATCTX_WRITE_TO="+file, "CHATCTX_WRITER="+name)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return 0
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return 0
	}
	n := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() != "stored" {
			t.Errorf("writer %s: %s", name, lines.Text())
			continue
		}
		if n++; n == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Errorf("writer %s ended before it was killed", name)
	}
	return n
}

func writeUntilKilled(t *testing.T) {
	s, err := Open(os.Getenv("CHATCTX_WRITE_TO"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Context(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	name := os.Getenv("CHATCTX_WRITER")
	for i := 0; ; i++ {
		if _, err := c.Append(t.Context(), "main", says(fmt.Sprintf("%s:%d", name, i))...); err != nil {
			t.Fatal(err)
		}
		fmt.Println("stored")
		b := c.Begin("main")
		b.Fork(fmt.Sprintf("%s-%d", name, i), ForkOptions{Stay: true})
		b.Switch(fmt.Sprintf("%s-%d", name, i))
		b.Edit("@", "other", record.EditOptions{Stay: true})
		b.Rewind("@1")
		if _, err := b.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Switching is on the context, so another writer's undo may have come first.
		_, err := s.Undo(t.Context(), "", fmt.Sprintf("%s-%d", name, i), "")
		if err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
	}
}

// failing is an engine whose writes fail from some moment on, as on a full disk.
type failing struct {
	kv.DB
	after int
}

type failingTx struct {
	kv.RwTx
	left *int
}

func (f *failing) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	return f.DB.Update(ctx, func(tx kv.RwTx) error { return fn(failingTx{tx, &f.after}) })
}

func (t failingTx) Put(bucket string, key, value []byte) error {
	if *t.left--; *t.left < 0 {
		return fmt.Errorf("write %s: no space left on device", bucket)
	}
	return t.RwTx.Put(bucket, key, value)
}

// TestAWriteThatFailsAnywhereLeavesNothing lets each write of each kind of change fail in turn: the store is as before, and the same change works when there is room.
func TestAWriteThatFailsAnywhereLeavesNothing(t *testing.T) {
	s := open(t, "")
	db := &failing{DB: s.at().DB, after: 1 << 30}
	s.at().DB = db
	c := newContext(t, s, "a", ">b", "c")
	if _, err := c.Append(t.Context(), "", asks("x")); err != nil {
		t.Fatal(err)
	}
	steps := map[string]func(*Batch){
		"append": func(b *Batch) { b.AppendWith(AppendOptions{Key: "k"}, says("d")...) },
		"fork":   func(b *Batch) { b.Fork("f", ForkOptions{}) },
		"edit":   func(b *Batch) { b.Edit("@2", "B", record.EditOptions{KeepRest: true, Name: "e"}) },
		"drop":   func(b *Batch) { b.Drop("@1") },
		"tokens": func(b *Batch) { b.SetTokens(branch.Tokens{Input: 1}) },
	}
	for what, step := range steps {
		before := texts(t, c, "main")
		for n := 0; ; n++ {
			db.after = n
			b := c.Begin("main")
			step(b)
			_, err := b.Commit(t.Context())
			db.after = 1 << 30
			if err == nil {
				break
			}
			if !strings.Contains(err.Error(), "no space left") {
				t.Fatalf("%s: %v", what, err)
			}
			want(t, texts(t, c, "main"), before)
			checkStore(t, s)
			if n > 100 {
				t.Fatalf("%s still fails", what)
			}
		}
		checkStore(t, s)
	}
}
