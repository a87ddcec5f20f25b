package cli

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
)

// answeredApart prints a complete answer under its branch's name.
func (r *run) answeredApart(t *turn.Turn, out *turn.Outcome) {
	if !r.json() {
		for i, m := range out.Replies {
			r.printf("%s\n", r.paint(bold, clean(out.Branch)))
			r.printMessage(&chatctx.Entry{Message: m, Position: out.Places[i].Position}, "", r.talks.thinking)
		}
	}
	if err := r.answered(t, out); err != nil {
		r.note("%v", err)
	}
	r.con.out.flush()
}

type retryIn struct {
	askFlags
	As string `flag:"as" doc:"the new branch's {NAME}; else main.2, main.3 …"`
	thinkingFlag
	manyFlags
}

func doRetry(r *run, in *retryIn) error {
	if _, err := r.writer(); err != nil {
		return err
	}
	if r.many(in.askFlags, in.manyFlags) {
		if in.As != "" {
			return &usageError{"retry --as names one branch, and there are to be several", "leave --as out: each answer goes on a branch named after its model"}
		}
		return r.askAgain(in.askFlags, in.manyFlags)
	}
	c, name, err := r.talk()
	if err != nil {
		return err
	}
	question, last, err := r.question(c, name)
	if err != nil {
		return err
	}
	t := r.turn(c, name)
	if err := r.fits(t, nil); err != nil {
		return err
	}
	if last && in.As == "" {
		return r.speak(t)
	}
	a, err := t.Beside(r.ctx, in.As, question)
	if err != nil {
		return err
	}
	_, err = r.hear(a.Turn, nil, func() (*turn.Outcome, error) {
		if a.Ask(r.ctx, false); a.Kept() {
			return a.Outcome, a.Err
		}
		if left := r.leftOf(a); left != "" {
			return nil, withHint(talkHint(a.Err), left)
		}
		return nil, a.Err
	})
	return err
}

// question finds the last user message of a branch, and reports whether it is the last message.
func (r *run) question(c *chatctx.ChatContext, name string) (e *chatctx.Entry, last bool, err error) {
	snap, err := c.Snapshot(r.ctx, name)
	if err != nil {
		return nil, false, err
	}
	return turn.Question(r.ctx, snap)
}
