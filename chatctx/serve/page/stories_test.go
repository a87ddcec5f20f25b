package page_test

import (
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// trip is a conversation with two branches.
func trip(t *testing.T) func(*chatctx.Store) {
	return func(s *chatctx.Store) {
		t.Helper()
		c, err := s.New(t.Context(), chatctx.NewContext{Title: "A trip"})
		if err != nil {
			t.Fatal(err)
		}
		commit(t, c.Begin("main"), func(b *chatctx.Batch) {
			b.Append(pool.NewText(pool.User, "Where do we go?"), pool.NewText(pool.Assistant, "To **Rome**.\n\n| day | place |\n| --- | --- |\n| 1 | Forum |\n\n```go\nfunc main() {}\n```\n<script>alert(1)</script>"))
		})
		commit(t, c.Begin("main"), func(b *chatctx.Batch) {
			b.Fork("paris", chatctx.ForkOptions{At: "@1", Stay: true})
		})
		commit(t, c.Begin("paris"), func(b *chatctx.Batch) { b.Append(pool.NewText(pool.Assistant, "To Paris.")) })
	}
}

func commit(t *testing.T, b *chatctx.Batch, fill func(*chatctx.Batch)) *chatctx.Committed {
	t.Helper()
	fill(b)
	done, err := b.Commit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return done
}

func TestAConversationIsShown(t *testing.T) {
	r := open(t, trip(t))
	r.sees("To Rome.")
	r.sees("<script>alert(1)</script>")
	r.sees("paris  +1")
	r.shot("conversation")
	r.accessible("a conversation")
	r.click("main", "The next way")
	r.sees("To Paris.")
	r.gone("To Rome.")
}
