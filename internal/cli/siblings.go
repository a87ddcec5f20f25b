package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/pool"
)

// answeredApart prints a whole answer under its branch's name.
func (r *run) answeredApart(out *turn.Outcome) {
	if !r.json() {
		for i, m := range out.Replies {
			r.printf("%s\n", r.paint(bold, clean(out.Branch)))
			r.printMessage(&chatctx.Entry{Message: m, Position: out.Places[i].Position}, "", r.is("thinking"))
		}
	}
	if err := r.answered(out); err != nil {
		r.note("%v", err)
	}
	r.con.out.flush()
}

func doRetry(r *run) error {
	if _, err := r.writer(); err != nil {
		return err
	}
	if r.many() {
		return r.askAgain()
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
	if last && !r.given("as") {
		return r.speak(t)
	}
	if err := r.sibling(t, question); err != nil {
		return err
	}
	out, err := r.say(t)
	if out == nil || out.Reply() == nil {
		return errors.Join(err, r.unmake(t))
	}
	return errors.Join(err, r.goTo(t))
}

// unmake takes the branch off that a command made for an answer that did not come.
func (r *run) unmake(t *turn.Turn) error {
	b := t.Context.Begin("")
	b.RemoveBranch(t.Branch)
	_, err := b.Together(t.PartOf).Commit(context.WithoutCancel(r.ctx))
	return err
}

// goTo makes the turn's branch the active one, as a part of the same command.
func (r *run) goTo(t *turn.Turn) error {
	b := t.Context.Begin("")
	b.Switch(t.Branch)
	_, err := b.Together(t.PartOf).Commit(context.WithoutCancel(r.ctx))
	return err
}

// question finds the last user message of a branch, and whether nothing stands after it.
func (r *run) question(c *chatctx.ChatContext, name string) (e *chatctx.Entry, last bool, err error) {
	snap, err := c.Snapshot(r.ctx, name)
	if err != nil {
		return nil, false, err
	}
	for e, err := range snap.Entries(r.ctx, snap.Len(), 1) {
		if err != nil {
			return nil, false, err
		}
		if e.Role == pool.User && e.Kind == "" && !e.Hidden {
			return e, e.Position == snap.Len(), nil
		}
	}
	return nil, false, fmt.Errorf("%w: no user has asked anything on %s", chatctx.ErrEmpty, clean(name))
}

// sibling makes a branch that ends with the question, and has the turn ask there.
func (r *run) sibling(t *turn.Turn, question *chatctx.Entry) error {
	name := r.flag("as")
	if name == "" {
		taken, err := r.takenNames(t.Context)
		if err != nil {
			return err
		}
		name = freeBeside(taken, t.Branch, "")
	}
	b := t.Context.Begin(t.Branch)
	b.Name("retry")
	b.Fork(name, chatctx.ForkOptions{At: chatctx.RefTo(question.ID), Stay: true})
	if _, err := b.Together(b).Commit(r.ctx); err != nil {
		return err
	}
	t.Branch, t.PartOf = name, b
	return nil
}
