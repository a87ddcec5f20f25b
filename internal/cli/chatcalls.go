package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/contract"
)

// asking is a chat's question about waiting calls: until it is answered, typed lines answer it, except commands.
type asking struct {
	lines chan string
	done  <-chan struct{}
}

// answersQuestion gives a line to the present question, and reports whether there is one.
func (s *chat) answersQuestion(line string) bool {
	s.mu.Lock()
	q := s.question
	s.mu.Unlock()
	if q == nil || strings.HasPrefix(strings.TrimSpace(line), "/") {
		return false
	}
	select {
	case q.lines <- line:
		return true
	case <-q.done:
		return false
	}
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
		decided, failed := s.decideCalls(r.ctx, t)
		if failed != nil || !decided {
			return errors.Join(failed, err)
		}
		msgs = nil
	}
}

// decideCalls asks about the calls that wait on a branch and in its sub-contexts, and reports whether all of them are decided.
func (s *chat) decideCalls(ctx context.Context, t *turn.Turn) (decided bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := &asking{lines: make(chan string), done: ctx.Done()}
	if !s.askOnly(q) {
		return false, nil
	}
	defer s.asked()
	r := *s.r
	r.ctx, r.con = ctx, s.console(ctx)
	v := &reviewer{r: &r, st: r.st}
	v.takes = func(c *chatctx.Call) bool { return c.Context != t.Context.ID || c.Branch == t.Branch }
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
	seen, err := v.all(chatctx.CallFilter{Context: t.Context.ID, State: contract.CallStates["pending"]})
	err = errors.Join(err, r.con.out.close())
	return err == nil && ctx.Err() == nil && seen > 0 && v.decided == seen, err
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
