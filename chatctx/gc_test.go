package chatctx

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/chatctx/chatctx/pool"
)

// TestGCTakesWhatNothingNeeds forgets the journal: only what branches hold stays.
func TestGCTakesWhatNothingNeeds(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		s.at().Clock = func() time.Time { return now }
		c := newContext(t, s, "a", ">b", "c", ">d")
		if _, err := c.Append(t.Context(), "", &Message{Role: pool.User, Content: []pool.Part{{Type: pool.ImagePart, MediaType: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}}}); err != nil {
			t.Fatal(err)
		}
		b := c.Begin("")
		b.Fork("f", ForkOptions{At: "@3", Stay: true})
		commit(t, b)
		b = c.Begin("")
		b.Rewind("@2")
		b.Append(says("x")...)
		commit(t, b)
		other := newContext(t, s, "gone")
		if _, err := s.Trash(t.Context(), other.ID.String()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(48 * time.Hour)
		o := record.GCOptions{OlderThan: 24 * time.Hour, DryRun: true}
		dry, err := s.Maintenance().GC(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		o.DryRun = false
		took, err := s.Maintenance().GC(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(dry) != fmt.Sprint(took) {
			t.Errorf("the dry run said %+v, it took %+v", dry, took)
		}
		if took.Contexts != 1 || took.Messages != 3 || took.Artifacts != 1 {
			t.Errorf("took %+v, want a context, its message and two of the other's, an artifact", took)
		}
		want(t, texts(t, c, "main"), "a >b x")
		want(t, texts(t, c, "f"), "a >b c")
		if _, err := c.Append(t.Context(), "", says("y")...); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Undo(t.Context(), c.ID.String(), "", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Context(t.Context(), other.ID.String()); !errors.Is(err, ErrNotFound) {
			t.Errorf("the context in the trash: %v", err)
		}
	})
}

// TestGCAimsAtASize: a store that is small enough keeps all, whatever its age, and of a larger one the oldest goes first.
func TestGCAimsAtASize(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "s.db"))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s.at().Clock = func() time.Time { return now }
	for _, title := range []string{"old", "new"} {
		c := newContext(t, s, strings.Repeat(title+" words ", 100_000))
		if _, err := s.Trash(t.Context(), c.ID.String()); err != nil {
			t.Fatal(err)
		}
		now = now.Add(48 * time.Hour)
	}
	stats, err := s.Maintenance().Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []struct {
		max  int64
		took int
	}{{stats.Used, 0}, {stats.Used - 1, 1}, {stats.Used, 0}, {1, 1}, {1, 0}} {
		took, err := s.Maintenance().GC(t.Context(), record.GCOptions{MaxSize: o.max})
		if err != nil || took.Contexts != o.took {
			t.Errorf("at most %d of %d bytes: took %+v, want %d contexts: %v", o.max, stats.Used, took, o.took, err)
		}
	}
}

// TestPurgeLeavesNoByte plants strings in everything that can hold one and looks for them in the file and beside it.
func TestPurgeLeavesNoByte(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "chats.db"))
	keep := newContext(t, s, "this stays", ">so does this")
	secret := func(what string, i int) string { return fmt.Sprintf("planted-%s-%d-planted", what, i) }
	c, err := s.New(t.Context(), record.NewContext{Title: secret("title", 0), System: secret("system", 0)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 400 {
		big := bytes.Repeat([]byte(secret("output", i)), 500)
		asks := &Message{Role: pool.Assistant, Content: []pool.Part{{Type: pool.ThinkingPart, Text: secret("thinking", i)}},
			Calls: []pool.Call{{ID: secret("call", i), Tool: "t", Arguments: json.RawMessage(`"` + secret("arguments", i) + `"`)}}}
		answer := answers(secret("call", i), string(big))
		if _, err := c.Append(t.Context(), "", says(secret("text", i))[0], asks, answer); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Maintenance().Index(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	in := &record.Incoming{Format: "test", Conversation: secret("conversation", 0), Title: secret("imported", 0), Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}},
		Nodes: []record.Node{{ID: secret("node", 0), Message: says(secret("imported text", 0))[0]}}}
	done, err := s.Import(t.Context(), []*record.Incoming{in})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Maintenance().PurgeContext(t.Context(), done[0].Context.String(), PurgeOptions{}); err != nil {
		t.Fatal(err)
	}
	b := c.Begin("")
	b.Tag(secret("tag", 0), "@1")
	b.Fork(secret("branch", 0), ForkOptions{At: "@5", Stay: true})
	b.SetContextData("x", json.RawMessage(`"`+secret("data", 0)+`"`))
	b.SetCompactSummary("@3", secret("summary", 0))
	b.Rewind("@50")
	commit(t, b)
	if _, err := s.Maintenance().PurgeContext(t.Context(), c.ID.String(), PurgeOptions{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	if n := planted(t, dir); n < 2000 {
		t.Fatalf("only %d were planted", n)
	}
	gone, err := s.Maintenance().PurgeContext(t.Context(), c.ID.String(), PurgeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if gone.Collected.Messages != 1201 || // one is a fork's copy, whose result stayed behind
		gone.Collected.Artifacts != 400 {
		t.Errorf("purged %+v", gone)
	}
	if n := planted(t, dir); n != 0 {
		t.Errorf("%d planted strings are still there", n)
	}
	want(t, texts(t, keep, ""), "this stays >so does this")
}

func planted(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(raw, []byte("planted-"))
	}
	return n
}

func TestPurgeOfMessagesTakesTheirCopies(t *testing.T) {
	dir := t.TempDir()
	s := open(t, filepath.Join(dir, "chats.db"))
	c := newContext(t, s, "a", ">planted-one", "c")
	b := c.Begin("")
	b.Fork("f", ForkOptions{Stay: true})
	b.Edit("@3", "d", record.EditOptions{Stay: true})
	b.Pick("main", "@2") // a copy
	commit(t, b)
	other, err := s.Copy(t.Context(), c.ID.String(), "copy", false)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := s.Maintenance().PurgeMessages(t.Context(), c.ID.String(), "main", []record.Ref{"@2"}, PurgeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if gone.Copies != 3 {
		t.Errorf("purged %+v, want three copies", gone)
	}
	for _, c := range []*ChatContext{c, other} {
		want(t, texts(t, c, "main"), "a c")
		want(t, texts(t, c, "f"), "a c")
		want(t, texts(t, c, "main.2"), "a d")
	}
	if n := planted(t, dir); n != 0 {
		t.Errorf("%d planted strings are still there", n)
	}
}

func TestPurgeOfABranchKeepsWhatOthersHold(t *testing.T) {
	engines(t, func(t *testing.T, s *Store) {
		c := newContext(t, s, "a", ">b")
		b := c.Begin("")
		b.Fork("f", ForkOptions{At: "@1"})
		b.Append(says(">only here")...)
		commit(t, b)
		if _, err := s.Maintenance().PurgeBranch(t.Context(), "", "f", PurgeOptions{}); !errors.Is(err, ErrConflict) {
			t.Errorf("the active branch: %v", err)
		}
		gone, err := s.Maintenance().PurgeBranch(t.Context(), "", "main", PurgeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if gone.Collected.Messages != 1 {
			t.Errorf("purged %+v, want the message that no other branch holds", gone)
		}
		want(t, texts(t, c, "f"), "a >only here")
		if _, err := s.Undo(t.Context(), "", "", ""); !errors.Is(err, ErrNotFound) {
			t.Errorf("undo after a purge: %v", err)
		}
	})
}

// TestAPurgeThatCannotEnd has no way to write the file anew: what was to go cannot be read, everybody is told, no copy has it, others go on, and the next one who can finishes it.
func TestAPurgeThatCannotEnd(t *testing.T) {
	for name, purge := range map[string]func(s *Store, c *ChatContext) error{
		"purge": func(s *Store, c *ChatContext) error {
			_, err := s.Maintenance().PurgeContext(t.Context(), c.ID.String(), PurgeOptions{})
			return err
		},
		"redact": func(s *Store, _ *ChatContext) error {
			_, err := s.Maintenance().Redact(t.Context(), record.RedactOptions{Find: finder("planted-[a-z]+")})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "chats.db")
			s, err := Open(file, Options{Create: true})
			if err != nil {
				t.Fatal(err)
			}
			keep := newContext(t, s, "stays")
			c := newContext(t, s, "planted-a", strings.Repeat("planted-b", 5000))
			block := leftover.Path(dir, "rewrite-chats.db") // a folder that is not empty cannot be made way for
			if err := os.MkdirAll(filepath.Join(block, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := purge(s, c); err == nil || !strings.Contains(err.Error(), "still in the file") || strings.Contains(err.Error(), "stays as it was") {
				t.Errorf("it says %v", err)
			}
			due := func(s *Store, want bool) {
				t.Helper()
				got, err := care.PurgeDue(t.Context(), base.Of(s))
				if got != want || err != nil {
					t.Errorf("due: %v, %v", got, err)
				}
				var found []string
				err = s.Maintenance().Check(t.Context(), CheckOptions{}, func(p record.Problem) { found = append(found, p.Where) })
				if err != nil || (fmt.Sprint(found) == "[purge]") != want || !want && len(found) > 0 {
					t.Errorf("check: %v, %v", found, err)
				}
			}
			for range 2 { // the handle that began it, and another
				due(s, true)
				if _, err := keep.Append(t.Context(), "", says("goes on")...); err != nil {
					t.Error(err)
				}
				if err := s.Maintenance().Backup(t.Context(), io.Discard); !errors.Is(err, ErrConflict) {
					t.Errorf("the backup: %v", err)
				}
				if err := s.at().Close(); err != nil {
					t.Fatal(err)
				}
				s = opened(t, file)
				keep.store = s
			}
			reader, err := Open(file, Options{ReadOnly: true})
			if err != nil {
				t.Fatal(err)
			}
			due(reader, true)
			if err := errors.Join(reader.Close(), s.at().Close(), os.RemoveAll(block)); err != nil {
				t.Fatal(err)
			}
			s = open(t, file)
			due(s, false)
			if n := planted(t, dir); n != 0 {
				t.Errorf("%d planted strings are still there", n)
			}
			if err := s.Maintenance().Backup(t.Context(), io.Discard); err != nil {
				t.Error(err)
			}
		})
	}
}
