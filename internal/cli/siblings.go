package cli

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/pool"
)

// freeNames are n names beside a branch that no branch has: main.2, main.3 …
func (r *run) freeNames(c *chatctx.ChatContext, beside string, n int) ([]string, error) {
	list, err := c.Branches(r.ctx)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, b := range list {
		taken[b.Name] = true
	}
	base := beside
	if i := strings.LastIndexByte(beside, '.'); i > 0 && strings.Trim(beside[i+1:], "0123456789") == "" {
		base = beside[:i]
	}
	var names []string
	for i := 2; len(names) < n; i++ {
		if name := fmt.Sprintf("%s.%d", base, i); !taken[name] {
			names = append(names, name)
		}
	}
	return names, nil
}

// sendBranches asks several times at once, each time on a new branch that begins as this one and has the message. This branch stays
// as it is, and active.
func (r *run) sendBranches(t *turn.Turn, m *chatctx.Message) error {
	names, err := r.freeNames(t.Context, t.Branch, r.flags.Int("branches"))
	if err != nil {
		return err
	}
	info, err := t.Context.Info(r.ctx)
	if err != nil {
		return err
	}
	b := t.Context.Begin(t.Branch)
	b.Name("send")
	b.Fork(names[0], chatctx.ForkOptions{})
	b.Append(m)
	for _, name := range names[1:] {
		b.Fork(name, chatctx.ForkOptions{})
	}
	b.Switch(info.Active)
	if _, err := b.Together(b).Commit(r.ctx); err != nil {
		return err
	}
	t.PartOf = b
	return r.askAll(t, names)
}

// askAll asks on several branches at once and reports each answer when it is whole.
func (r *run) askAll(t *turn.Turn, names []string) error {
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	done, waits := 0, 0
	for _, name := range names {
		all.Go(func() {
			own := *t
			own.Branch = name
			out, err := own.Send(r.ctx)
			mu.Lock()
			defer mu.Unlock()
			if out != nil {
				r.answeredApart(out)
				waits += out.Waiting
			}
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("on %s: %w", name, err))
				return
			}
			done++
		})
	}
	all.Wait()
	switch {
	case failed != nil && done > 0 && r.ctx.Err() == nil:
		return &partialError{failed, fmt.Sprintf("%d of %d answers are there", done, len(names))}
	case failed != nil:
		return talkHint(failed)
	case waits > 0:
		return &waitsError{waits}
	}
	r.note("compare them: %s", r.again("diff "+quote(names[0])+" "+quote(names[len(names)-1])))
	return nil
}

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
	c, name, err := r.talk()
	if err != nil {
		return err
	}
	question, last, err := r.question(c, name)
	if err != nil {
		return err
	}
	t := r.turn(c, name)
	if _, err := t.Request(r.ctx); err != nil {
		return talkHint(err)
	}
	if !last || r.given("as") {
		if err := r.sibling(t, question); err != nil {
			return err
		}
	}
	return r.speak(t)
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

// sibling makes a branch that ends with the question, and has the turn go on in it.
func (r *run) sibling(t *turn.Turn, question *chatctx.Entry) error {
	name := r.flag("as")
	if name == "" {
		names, err := r.freeNames(t.Context, t.Branch, 1)
		if err != nil {
			return err
		}
		name = names[0]
	}
	b := t.Context.Begin(t.Branch)
	b.Name("retry")
	b.Fork(name, chatctx.ForkOptions{At: chatctx.RefTo(question.ID)})
	if _, err := b.Together(b).Commit(r.ctx); err != nil {
		return err
	}
	t.Branch, t.PartOf = name, b
	return nil
}
