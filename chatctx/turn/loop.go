package turn

import (
	"context"
	"errors"

	"github.com/chatctx/chatctx/chatctx"
)

// ErrTokens: a Send reached its limit of tokens while the model still wanted to go on.
var ErrTokens = errors.New("the limit of tokens is reached: send --continue goes on")

// resume decides and runs the calls that the branch's last turn still waits for, as a program left them, before the model is asked. ask: none is left. Without a word of
// the user's the model is not asked while calls wait.
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

// waitingFor is the message of the last turn whose calls are open, nil for none, and counts these.
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

// spent is how many tokens the replies of this Send have cost.
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
