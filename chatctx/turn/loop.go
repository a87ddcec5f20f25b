package turn

import (
	"context"
	"errors"

	"github.com/chatctx/chatctx/chatctx"
)

// ErrTokens means that a Send reached its limit of tokens while the model still wanted to go on.
var ErrTokens = errors.New("the limit of tokens is reached: send --continue goes on")

// resume decides and runs the calls of the branch's last turn that an earlier program left open, before the model is asked. ask reports whether none is left:
// without a new user message the model is not asked while calls wait.
func (s *sending) resume(ctx context.Context) (ask bool, err error) {
	m, err := s.waitingFor(ctx)
	if err != nil {
		return false, err
	}
	if m == nil {
		return true, nil
	}
	if s.Calls != nil {
		return s.afterCalls(ctx, m, nil, false)
	}
	return false, s.giveUp(ctx)
}

// waitingFor returns the message of the last turn with open calls, nil if there is none, and counts these calls.
func (s *sending) waitingFor(ctx context.Context) (*chatctx.Message, error) {
	if err := s.Context.SettleCalls(ctx, s.reply.Branch); err != nil {
		return nil, err
	}
	calls, err := s.Context.OpenCalls(ctx, s.reply.Branch)
	if err != nil || len(calls) == 0 {
		return nil, err
	}
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
		if turn == "" {
			turn = e.Turn
		}
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
