package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// asking is a chat's question about waiting calls: until it is answered, typed lines answer it, except commands.
type asking struct {
	lines chan string
	done  <-chan struct{}
}

// answersQuestion gives a line to the present question, and reports whether there is one.
func (s *chat) answersQuestion(line string) bool {
	q := s.openQuestion()
	if q == nil {
		return false
	}
	select {
	case q.lines <- line:
		return true
	case <-q.done:
		return false
	}
}

// openQuestion returns the present question, nil if there is none.
func (s *chat) openQuestion() *asking {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.question
}

// speak asks the model. If calls wait for a person, it asks about them in place and goes on. There is one question at a time; calls of another branch wait
// for /calls.
func (s *chat) speak(r *run, t *turn.Turn, msgs []*chatctx.Message) error {
	for {
		err := r.speak(t, msgs...)
		var waits *waitsError
		if !errors.As(err, &waits) || s.term == nil || s.onBranch() != t.Branch {
			return err
		}
		decided, all, failed := s.decideCalls(r.ctx, t)
		switch {
		case failed != nil || decided == 0:
			return errors.Join(failed, err)
		case !all: // what is approved runs, and the others are not asked about again
			return r.speak(t)
		}
		msgs = nil
	}
}

// goOn goes on after a command that decided calls, as soon as the answer that is shown has ended: what is approved runs, and the model is asked where the last
// turn has all of its results.
func (s *chat) goOn() {
	c, branch := s.conversation(), s.onBranch()
	s.answers.Go(func() {
		s.front.Lock()
		calls, err := toolcall.OpenCalls(s.r.ctx, base.ContextOf(c.Store(), c.ID), branch)
		midway := s.midway(c, branch)
		s.front.Unlock()
		approved := slices.ContainsFunc(calls, func(k *record.Call) bool { return k.WaitsFor() == record.WaitsForProgram })
		switch {
		case err != nil:
			s.complain(err)
		case s.onBranch() != branch:
			s.ready()
		case midway:
			s.say()
		case approved:
			s.command("calls run")
		default:
			s.ready()
		}
	})
}

// midway reports whether the last answer on a branch ends with calls, so that the model has not had their results.
func (s *chat) midway(c *chatctx.ChatContext, branch string) bool {
	snap, err := c.Snapshot(s.r.ctx, branch)
	if err != nil {
		return false
	}
	for e, err := range snap.Entries(s.r.ctx, snap.Len(), 1) {
		if err != nil || e.Role == pool.User {
			break
		}
		if e.Role == pool.Assistant {
			return len(e.Calls) > 0
		}
	}
	return false
}

// decideCalls asks about the calls that wait on a branch and in its sub-contexts, and reports how many are decided, and whether all are.
func (s *chat) decideCalls(ctx context.Context, t *turn.Turn) (decided int, all bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := &asking{lines: make(chan string), done: ctx.Done()}
	if !s.askOnly(q) {
		return 0, false, nil
	}
	defer s.asked()
	r := *s.r
	r.ctx, r.con = ctx, s.console(ctx)
	v := &reviewer{r: &r, st: r.st}
	v.takes = func(c *record.Call) bool { return c.Context != t.Context.ID || c.Branch == t.Branch }
	v.line = func(prompt string) (string, error) {
		r.con.out.flush()
		above, label, more := cutLast(prompt)
		if more {
			fmt.Fprintln(r.con.err, above)
		}
		s.term.Doing("")
		s.term.SetLabel(label)
		select {
		case line := <-q.lines:
			return line, nil
		case <-ctx.Done():
			return "", io.EOF
		}
	}
	seen, err := v.all(record.CallFilter{Context: t.Context.ID, State: contract.CallStates["pending"]})
	err = errors.Join(err, r.con.out.close())
	return v.decided, ctx.Err() == nil && v.decided == seen, err
}

// askOnly makes q the present question. It returns false if there is one already.
func (s *chat) askOnly(q *asking) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.question != nil {
		return false
	}
	s.question = q
	return true
}

func (s *chat) asked() {
	s.mu.Lock()
	s.question = nil
	s.mu.Unlock()
	s.term.SetLabel(s.label())
}

// cutLast separates the last line of a text from those before it.
func cutLast(text string) (above, last string, more bool) {
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return "", text, false
}
