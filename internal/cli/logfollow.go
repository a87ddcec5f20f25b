package cli

import (
	"context"

	"github.com/chatctx/chatctx/chatctx"
)

// mostRemembered is of how many messages at the end a following log knows the ids.
const mostRemembered = 1000

// follow prints what the flags select and continues with what is added to the branch, until it is interrupted.
func (l *logPrinter) follow(c *chatctx.ChatContext) error {
	r := l.r
	r.con.out.pager = nil
	changes, err := r.st.Watch(r.ctx)
	if err != nil {
		return err
	}
	part, err := l.begin(c) // nothing comes between this and the first change
	if err != nil {
		return err
	}
	snap := part.Snapshot
	branch := snap.Info.Name
	f := &follower{logPrinter: l, at: snap.Len()}
	if err := f.remember(snap, max(snap.Len()-mostRemembered, 0)+1); err != nil {
		return err
	}
	for {
		if err := r.con.out.flush(); err != nil {
			return err
		}
		select {
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		case change, ok := <-changes:
			switch {
			case !ok:
				return context.Cause(r.ctx)
			case change.Err != nil:
				return change.Err
			case change.Context != c.ID:
				continue
			}
		}
		snap, err := c.Snapshot(r.ctx, branch)
		if err != nil {
			return err
		}
		if err := f.goOn(c, snap); err != nil {
			return err
		}
	}
}

// follower knows how far a log was printed.
type follower struct {
	*logPrinter
	at  int          // number of messages printed
	ids []chatctx.ID // of the last ones
}

// remember records the messages from a position on.
func (f *follower) remember(snap *chatctx.Snapshot, from int) error {
	for e, err := range snap.Entries(f.r.ctx, from, snap.Len()) {
		if err != nil {
			return err
		}
		f.ids = append(f.ids, e.ID)
	}
	f.ids = f.ids[max(len(f.ids)-mostRemembered, 0):]
	return nil
}

// goOn prints what was added, after a note on what was taken off.
func (f *follower) goOn(c *chatctx.ChatContext, snap *chatctx.Snapshot) error {
	r := f.r
	same, err := f.same(snap)
	if err != nil {
		return err
	}
	if gone := f.at - same; gone > 0 {
		r.note("%s taken off the end", count(gone, "message"))
		f.ids = f.ids[:max(len(f.ids)-gone, 0)]
	}
	f.at = same
	if snap.Len() == f.at {
		return nil
	}
	if !r.json() {
		if f.marks, err = c.Marks(r.ctx); err != nil {
			return err
		}
	}
	for e, err := range snap.Entries(r.ctx, f.at+1, snap.Len()) {
		if err != nil {
			return err
		}
		if err := f.print(e); err != nil {
			return err
		}
		f.at = e.Position
		f.ids = append(f.ids, e.ID)
	}
	f.ids = f.ids[max(len(f.ids)-mostRemembered, 0):]
	return nil
}

// same returns the position up to which the branch is as it was printed.
func (f *follower) same(snap *chatctx.Snapshot) (int, error) {
	at := min(f.at, snap.Len())
	first := f.at - len(f.ids) // the position before the first that is remembered
	if at <= first || at < 1 {
		return at, nil
	}
	for e, err := range snap.Entries(f.r.ctx, at, first+1) {
		if err != nil {
			return 0, err
		}
		if e.ID == f.ids[e.Position-first-1] {
			return e.Position, nil
		}
	}
	return first, nil
}
