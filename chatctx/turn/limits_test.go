package turn

import (
	"context"
	"errors"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/memkv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// answersCalls appends the result of each call to the branch.
func answersCalls(turn *Turn) func(context.Context, string, *chatctx.Message, []string) (bool, error) {
	return func(ctx context.Context, branch string, m *chatctx.Message, _ []string) (bool, error) {
		for _, c := range m.Calls {
			result := &chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: c.ID, Text: "noon"}}
			if _, err := turn.Context.Append(ctx, branch, result); err != nil {
				return false, err
			}
		}
		return true, nil
	}
}

// TestLimits: a reply costs 7 tokens in and 3 out. A Send ends when it reaches the limit, and not below it.
func TestLimits(t *testing.T) {
	tests := []struct {
		name   string
		tokens int64
		rounds int
		asked  int
		err    error
	}{
		{"tokens reached", 10, 0, 1, ErrTokens},
		{"tokens not reached", 11, 0, 2, ErrTokens},
		{"rounds", 0, 2, 2, ErrRounds},
		{"no limit", 0, 0, 4, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := newProvider(t, calls, calls, calls, says("Noon."))
			turn := newTurn(t, p)
			turn.Tokens, turn.Rounds, turn.Calls = test.tokens, test.rounds, answersCalls(turn)
			if _, err := turn.Send(t.Context(), user("What time is it?")); !errors.Is(err, test.err) {
				t.Errorf("%v, want %v", err, test.err)
			}
			if len(p.bodies) != test.asked {
				t.Errorf("asked %d times, want %d", len(p.bodies), test.asked)
			}
			if claim, err := view.Running(t.Context(), base.ContextOf(turn.Context.Store(), turn.Context.ID), ""); claim != nil || err != nil {
				t.Errorf("the claim stays: %+v, %v", claim, err)
			}
		})
	}
}

// TestCallsOfOlderTurns: a turn with a new question does not wait for them any more.
func TestCallsOfOlderTurns(t *testing.T) {
	turn := newTurn(t, newProvider(t, calls, says("Never mind, then.")))
	if _, err := turn.Send(t.Context(), user("What time is it?")); err != nil {
		t.Fatal(err)
	}
	if _, err := turn.Context.Append(t.Context(), "", user("Leave it.")); err != nil {
		t.Fatal(err)
	}
	out, err := turn.Send(t.Context())
	if err != nil || out.Waiting != 0 || out.Reply() == nil {
		t.Fatalf("%+v, %v", out, err)
	}
	want(t, turn.Context, "user: What time is it?", "assistant: Let me see.", "user: Leave it.", "assistant: Never mind, then.")
}

// busy is an engine whose file another program holds for some writes.
type busy struct {
	kv.DB
	left int
}

func (b *busy) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	if b.left > 0 {
		b.left--
		return kv.ErrLocked
	}
	return b.DB.Update(ctx, fn)
}

// TestAReplyWaitsForTheFile: a reply is paid for, so it is stored as soon as the file is free.
func TestAReplyWaitsForTheFile(t *testing.T) {
	turn := newTurn(t, newProvider(t, says("Hello!")))
	db := &busy{DB: memkv.New()}
	s, err := chatctx.OpenDB(db, chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	info, err := turn.Context.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if turn.Context, err = s.New(t.Context(), record.NewContext{Settings: info.Settings}); err != nil {
		t.Fatal(err)
	}
	ticks(turn) // nobody checks the claim meanwhile
	turn.Show = func(e Event) {
		if e.Delta != nil {
			db.left = finishTries - 1
		}
	}
	if _, err := turn.Send(t.Context(), user("Hi")); err != nil {
		t.Fatal(err)
	}
	want(t, turn.Context, "user: Hi", "assistant: Hello!")
}
