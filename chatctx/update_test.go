package chatctx

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/pool"
)

// succeeds ends the test if a change failed.
func succeeds(t *testing.T) func(done any, err error) {
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestIndexFollowsEveryDoor stores some 6,000 messages in each way by which messages come, and holds that the program puts them into the search index: each
// asks for that by chance, one in 256, so that all of 5,000 fail to ask once in 300 million runs.
func TestIndexFollowsEveryDoor(t *testing.T) {
	const n = 6000
	for name, store := range map[string]func(t *testing.T, s *Store, c *ChatContext){
		"append": func(t *testing.T, s *Store, c *ChatContext) {
			for i := range n {
				succeeds(t)(c.Append(t.Context(), "", says(fmt.Sprint("said ", i))...))
			}
		},
		"reply": func(t *testing.T, s *Store, c *ChatContext) {
			for i := range n / 2 {
				b, err := c.BeginReply(t.Context(), "", AppendOptions{}, pool.NewText(pool.User, fmt.Sprint("question ", i)))
				if err != nil {
					t.Fatal(err)
				}
				succeeds(t)(b.Reply.Finish(t.Context(), Ending{Messages: []*Message{pool.NewText(pool.Assistant, fmt.Sprint("answer ", i))}}))
			}
		},
		"settled reply": func(t *testing.T, s *Store, c *ChatContext) {
			for i := range n / 2 {
				b, err := c.BeginReply(t.Context(), "", AppendOptions{}, pool.NewText(pool.User, fmt.Sprint("question ", i)))
				if err == nil {
					err = b.Reply.Save(t.Context(), pool.NewText(pool.Assistant, fmt.Sprint("answ ", i)))
				}
				if err != nil {
					t.Fatal(err)
				}
				succeeds(t)(c.Settle(t.Context(), "", SettleOptions{Force: true}))
			}
		},
		"import": func(t *testing.T, s *Store, c *ChatContext) {
			in := make([]*record.Incoming, n/2)
			for i := range in {
				in[i] = &record.Incoming{Format: "test", Conversation: fmt.Sprint(i), Title: "t", Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}},
					Nodes: []record.Node{{ID: "n", Message: pool.NewText(pool.User, fmt.Sprint("came ", i))}}}
			}
			succeeds(t)(s.Import(t.Context(), in))
		},
		"copy": func(t *testing.T, s *Store, c *ChatContext) {
			for range n / 200 {
				succeeds(t)(c.Append(t.Context(), "", says("one", "two", "three")...))
			}
			for range 70 {
				succeeds(t)(s.Copy(t.Context(), c.ID.String(), "", false))
			}
		},
		"titles": func(t *testing.T, s *Store, c *ChatContext) {
			for range n {
				succeeds(t)(s.New(t.Context(), record.NewContext{Title: "only a title"}))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := OpenMemory(Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			c, err := s.New(t.Context(), record.NewContext{Title: "T"})
			if err != nil {
				t.Fatal(err)
			}
			store(t, s, c)
			base.Of(s).Indexing.Await(t.Context())
			err = s.at().DB.View(t.Context(), func(tx kv.Tx) error {
				st, err := index.Load(tx, words.Version)
				if err == nil && (st == nil || st.Next < find.EnoughWaiting) {
					t.Errorf("of %d documents the index has %+v", n, st)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			checkStore(t, s)
		})
	}
}

// TestLeftoversGoWhileAStoreIsOpen: what a program left that was killed meanwhile goes with the next change by whichever door, but not with each.
func TestLeftoversGoWhileAStoreIsOpen(t *testing.T) {
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s.db")
	s := open(t, path)
	c := newContext(t, s, "one")
	left := strings.Replace(leftover.Path(filepath.Dir(path), "backup-1"), fmt.Sprintf("-%d-", os.Getpid()), fmt.Sprintf("-%d-", gone.Process.Pid), 1)
	there := func() bool {
		_, err := os.Stat(left)
		return err == nil
	}
	if err := os.WriteFile(left, []byte("all of a store"), 0o600); err != nil {
		t.Fatal(err)
	}
	appendTo(t, c, "", says("two")...)
	if !there() {
		t.Error("it went with a change right after the store was opened")
	}
	for name, change := range map[string]func() error{
		"batch": func() error { _, err := c.Append(t.Context(), "", says("x")...); return err },
		"reply": func() error {
			b, err := c.BeginReply(t.Context(), "", AppendOptions{}, says("x")...)
			if err == nil {
				_, err = b.Reply.Finish(t.Context(), Ending{Messages: says(">y")})
			}
			return err
		},
		"import": func() error {
			_, err := s.Import(t.Context(), []*record.Incoming{{Format: "test", Conversation: "1", Branches: []record.IncomingBranch{{Name: "main", Leaf: 1}}, Nodes: []record.Node{{ID: "n", Message: says("x")[0]}}}})
			return err
		},
		"store": func() error {
			_, err := s.SetSettings(t.Context(), map[string]json.RawMessage{"model": json.RawMessage(`"m"`)})
			return err
		},
		"artifact": func() error { _, err := s.PutArtifact(t.Context(), []byte("x"), "text/plain"); return err },
	} {
		s.at().Sweeping.Every = 0
		if err := os.WriteFile(left, []byte("all of a store"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil || there() {
			t.Errorf("%s: %v; it is there after: %v", name, err, there())
		}
		s.at().Sweeping.Every = time.Hour
		if err := errors.Join(os.WriteFile(left, nil, 0o600), change()); err != nil && !errors.Is(err, ErrConflict) || !there() {
			t.Errorf("%s: %v; it went before it was due: %v", name, err, !there())
		}
	}
}
