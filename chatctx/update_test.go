package chatctx

import (
	"fmt"
	"testing"

	"github.com/chatctx/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/chatctx/internal/index"
	"github.com/chatctx/chatctx/chatctx/internal/words"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// stored ends the test if a change failed.
func stored(t *testing.T) func(done any, err error) {
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
				stored(t)(c.Append(t.Context(), "", says(fmt.Sprint("said ", i))...))
			}
		},
		"reply": func(t *testing.T, s *Store, c *ChatContext) {
			for i := range n / 2 {
				b, err := c.BeginReply(t.Context(), "", AppendOptions{}, pool.NewText(pool.User, fmt.Sprint("question ", i)))
				if err != nil {
					t.Fatal(err)
				}
				stored(t)(b.Reply.Finish(t.Context(), Ending{Messages: []*Message{pool.NewText(pool.Assistant, fmt.Sprint("answer ", i))}}))
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
				stored(t)(c.Settle(t.Context(), "", SettleOptions{Force: true}))
			}
		},
		"import": func(t *testing.T, s *Store, c *ChatContext) {
			in := make([]*Incoming, n/2)
			for i := range in {
				in[i] = &Incoming{Format: "test", Conversation: fmt.Sprint(i), Title: "t", Branches: []IncomingBranch{{Name: "main", Leaf: 1}},
					Nodes: []Node{{ID: "n", Message: pool.NewText(pool.User, fmt.Sprint("came ", i))}}}
			}
			stored(t)(s.Import(t.Context(), in))
		},
		"copy": func(t *testing.T, s *Store, c *ChatContext) {
			for range n / 200 {
				stored(t)(c.Append(t.Context(), "", says("one", "two", "three")...))
			}
			for range 70 {
				stored(t)(s.Copy(t.Context(), c.ID.String(), "", false))
			}
		},
		"titles": func(t *testing.T, s *Store, c *ChatContext) {
			for range n {
				stored(t)(s.New(t.Context(), NewContext{Title: "only a title"}))
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
			c, err := s.New(t.Context(), NewContext{Title: "T"})
			if err != nil {
				t.Fatal(err)
			}
			store(t, s, c)
			s.Maintenance().AwaitIndex(t.Context())
			err = s.at.DB.View(t.Context(), func(tx kv.Tx) error {
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
