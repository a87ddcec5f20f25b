package turn

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/toolcall"
)

// ErrTokens means that a Send reached its limit of tokens while the model still wanted to go on.
var ErrTokens = errors.New("the limit of tokens is reached: send --continue goes on")

// resume decides and runs the calls of the branch that an earlier program left open, before the model is asked. ask reports whether it may be: without a new
// user message it is not asked while calls of the last turn wait.
func (s *sending) resume(ctx context.Context, asked bool) (ask bool, err error) {
	if err := toolcall.SettleBranch(ctx, base.ContextOf(s.Context.Store(), s.Context.ID), s.reply.Branch); err != nil {
		return false, err
	}
	calls, err := toolcall.OpenCalls(ctx, base.ContextOf(s.Context.Store(), s.Context.ID), s.reply.Branch)
	if err != nil || len(calls) == 0 {
		return err == nil, err
	}
	if !asked {
		m, err := s.waitingFor(ctx, calls)
		switch {
		case err != nil:
			return false, err
		case m != nil && s.Calls == nil:
			return false, s.giveUp(ctx)
		case m != nil:
			return s.afterCalls(ctx, m, nil, false)
		}
	}
	approved := slices.IndexFunc(calls, func(c *record.Call) bool { return c.WaitsFor() == record.WaitsForProgram })
	if s.Calls == nil || approved < 0 || s.aside {
		return true, nil
	}
	m, err := s.Context.Message(ctx, calls[approved].Message)
	if err == nil {
		_, err = s.runCalls(ctx, m, nil)
	}
	return err == nil, err
}

// waitingFor returns the message of the last turn with open calls, nil if there is none, and counts these calls.
func (s *sending) waitingFor(ctx context.Context, calls []*record.Call) (*chatctx.Message, error) {
	snap, err := s.Context.Snapshot(ctx, s.reply.Branch)
	if err != nil {
		return nil, err
	}
	open := map[chatctx.ID]int{}
	for _, c := range calls {
		open[c.Message]++
	}
	turn := ""
	for e, err := range snap.Entries(ctx, snap.Len(), 1) {
		if err != nil {
			return nil, err
		}
		turn = cmp.Or(turn, e.Turn)
		if e.Turn != turn {
			break
		}
		if n := open[e.ID]; n > 0 {
			s.out.Waiting = n
			return e.Message, nil
		}
	}
	return nil, nil
}

// spent returns how many tokens the replies of this Send took.
func (o *Outcome) spent() int64 {
	var n int64
	for _, m := range o.Replies {
		for _, count := range []*int64{m.Meta.InputTokens, m.Meta.OutputTokens} {
			if count != nil {
				n += *count
			}
		}
	}
	return n
}
