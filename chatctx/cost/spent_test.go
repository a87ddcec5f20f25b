package cost

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

var ctx = context.Background()

// opened is an empty store; its end is a check.
func opened(t *testing.T) *chatctx.Store {
	t.Helper()
	return storetest.Open(t, "", chatctx.Options{})
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func at(m *pool.Message, day string) *pool.Message {
	when, _ := time.Parse(time.RFC3339, day)
	m.Meta.Completed = pool.TimeOf(when)
	return m
}

// TestEachReplyOnce: copies, forks, other conversations, the trash, what was rewound away.
func TestEachReplyOnce(t *testing.T) {
	s := opened(t)
	c := must[*chatctx.ChatContext](t)(s.New(ctx, record.NewContext{Title: "boats"}))
	committed := must[*record.Committed](t)
	committed(c.Append(ctx, "", pool.NewText(pool.User, "?"), answer("gpt-4o", 1000, 100), pool.NewText(pool.User, "?"), answer("llama3", 500, 50)))
	b := c.Begin("")
	b.Fork("other", chatctx.ForkOptions{})
	b.Append(pool.NewText(pool.User, "?"), answer("gpt-4o", 2000, 0))
	committed(b.Commit(ctx))
	away := c.Begin("other")
	away.Rewind("@1")
	committed(away.Commit(ctx))
	must[*chatctx.ChatContext](t)(s.Copy(ctx, "boats", "copy", false))
	committed(s.Trash(ctx, "boats"))

	report := must[*Report](t)(Spent(ctx, s, Query{By: ByBranch}))
	want := Sums{Replies: 3, Usage: Usage{Input: 3500, Output: 150}, Cost: map[string]Money{"USD": 8_500_000}, Unpriced: 1}
	if report.Replies != want.Replies || report.Usage != want.Usage || report.Cost["USD"] != want.Cost["USD"] || report.Sums.Unpriced != 1 {
		t.Errorf("%+v, want %+v", report.Sums, want)
	}
	if len(report.Groups) != 2 || report.Groups[0].Branch != "other" || report.Groups[0].Cost["USD"] != 5_000_000 || !report.Groups[0].Trashed || report.Groups[1].Branch != "main" {
		t.Errorf("%+v", report.Groups)
	}
	if len(report.Unpriced) != 1 || report.Unpriced[0].Model != "llama3" || report.Unpriced[0].Input != 500 {
		t.Errorf("%+v", report.Unpriced)
	}

	// The copies alone are left: each of them once.
	if _, err := s.Maintenance().PurgeContext(ctx, "boats", chatctx.PurgeOptions{}); err != nil {
		t.Fatal(err)
	}
	must[*chatctx.ChatContext](t)(s.Copy(ctx, "copy", "copy of the copy", false))
	left := must[*Report](t)(Spent(ctx, s, Query{By: ByContext}))
	if left.Replies != 2 || left.Input != 1500 || len(left.Groups) != 1 {
		t.Errorf("%+v", left.Sums)
	}
}

func TestSpentByDayAndSince(t *testing.T) {
	s := opened(t)
	c := must[*chatctx.ChatContext](t)(s.New(ctx, record.NewContext{Title: "x"}))
	must[*record.Committed](t)(c.Append(ctx, "", at(answer("gpt-4o", 1000, 0), "2026-01-31T23:30:00Z"), at(answer("gpt-4o", 2000, 0), "2026-02-01T00:30:00Z"), answer("gpt-4o", 4000, 0)))
	east := time.FixedZone("east", 3600)
	report := must[*Report](t)(Spent(ctx, s, Query{By: ByDay, Location: east}))
	var days []string
	for _, g := range report.Groups {
		days = append(days, g.Day)
	}
	if len(days) != 2 || days[0] != "2026-02-01" || report.Groups[0].Replies != 2 || days[1] == "" {
		t.Errorf("days %v", days)
	}
	since, _ := time.Parse(time.RFC3339, "2026-02-01T00:00:00Z")
	report = must[*Report](t)(Spent(ctx, s, Query{Since: since}))
	if report.Replies != 2 || report.Input != 6000 {
		t.Errorf("since: %+v", report.Sums)
	}
	report = must[*Report](t)(Spent(ctx, s, Query{Until: since}))
	if report.Replies != 1 || report.Input != 1000 {
		t.Errorf("until: %+v", report.Sums)
	}
}

// TestOneConversation: of one conversation that conversation alone is read, unless it has copies whose originals are elsewhere; the sums are those that all of
// the store gives it.
func TestOneConversation(t *testing.T) {
	s := opened(t)
	committed := must[*record.Committed](t)
	conversation := func(title string, replies int) *chatctx.ChatContext {
		c := must[*chatctx.ChatContext](t)(s.New(ctx, record.NewContext{Title: title}))
		for range replies {
			committed(c.Append(ctx, "", pool.NewText(pool.User, "?"), answer("gpt-4o", 1000, 100)))
		}
		return c
	}
	boats, planes := conversation("boats", 2), conversation("planes", 5)
	fork := boats.Begin("")
	fork.Fork("other", chatctx.ForkOptions{})
	committed(fork.Commit(ctx))
	copied := must[*chatctx.ChatContext](t)(s.Copy(ctx, "boats", "copy", false))
	committed(copied.Append(ctx, "", pool.NewText(pool.User, "?"), answer("gpt-4o", 1000, 100)))
	whole := map[chatctx.ID]int{}
	for _, g := range must[*Report](t)(Spent(ctx, s, Query{By: ByContext})).Groups {
		whole[g.Context] = g.Replies
	}
	for _, test := range []struct {
		c             *chatctx.ChatContext
		replies, read int
	}{{boats, 2, 2}, {planes, 5, 5}, {copied, 1, 8}} {
		q := Query{Context: test.c.ID, By: ByBranch}
		report := must[*Report](t)(Spent(ctx, s, q))
		if report.Replies != test.replies || whole[test.c.ID] != test.replies {
			t.Errorf("%d replies, and %d of the whole store, not %d", report.Replies, whole[test.c.ID], test.replies)
		}
		sums := &spending{query: q, out: &Report{}, seen: map[string]bool{}, kinds: map[string]*Group{}, unpriced: map[string]*Group{}, groups: map[string]*Group{}}
		if err := sums.read(ctx, s); err != nil || len(sums.seen) != test.read {
			t.Errorf("%d replies were read, not %d: %v", len(sums.seen), test.read, err)
		}
	}
	if _, err := Spent(ctx, s, Query{Context: pool.NewID()}); !errors.Is(err, chatctx.ErrNotFound) {
		t.Errorf("of a conversation that is not there: %v", err)
	}
}
