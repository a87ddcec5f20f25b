package cli

import (
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/enhancer/tokens"
	"github.com/chatctx/chatctx/internal/operation"
)

type pinIn struct {
	Messages []string `arg:"[REF…]"`
	dryRunFlag
}

func doPin(r *run, in *pinIn) error {
	if len(in.Messages) == 0 {
		return r.listMarks()
	}
	return r.mark(markIn(*in), enhancer.Pinned, "", "pinned")
}

type markIn struct {
	Messages []string `arg:"REF…"`
	dryRunFlag
}

func doUnpin(r *run, in *markIn) error   { return r.mark(*in, "", enhancer.Pinned, "unpinned") }
func doExclude(r *run, in *markIn) error { return r.mark(*in, enhancer.Excluded, "", "excluded") }
func doInclude(r *run, in *markIn) error { return r.mark(*in, "", enhancer.Excluded, "included again") }

// markJSON is a message and its mark.
type markJSON struct {
	Message  chatctx.ID `json:"message"`
	Position int        `json:"position"`
	Mark     *string    `json:"mark"`
	Preview  string     `json:"preview,omitempty"`
}

type marksJSON struct {
	DryRun bool `json:"dry_run,omitempty"`
	where
	Messages []markJSON `json:"messages"`
}

// mark marks the messages that in names, or removes a mark; then it only touches messages that have the mark only.
func (r *run) mark(in markIn, mark, only, done string) error {
	c, snap, err := r.snapshotToChange()
	if err != nil {
		return err
	}
	marks, err := c.Marks(r.ctx)
	if err != nil {
		return err
	}
	v := marksJSON{DryRun: in.DryRun, where: where{Context: c.ID, Branch: snap.Info.Name}, Messages: []markJSON{}}
	for _, a := range in.Messages {
		named, err := operation.Named(r.ctx, snap, record.Ref(a))
		if err != nil {
			return err
		}
		for _, e := range named {
			if marks[e.ID] != mark && (only == "" || marks[e.ID] == only) {
				v.Messages = append(v.Messages, markJSON{Message: e.ID, Position: e.Position, Mark: stringOrNull(mark)})
			}
		}
	}
	if v.DryRun {
		return r.emit(v, func() { r.printf("would change %s\n", count(len(v.Messages), "message")) })
	}
	if len(v.Messages) == 0 {
		return r.emit(v, func() { r.note("nothing was changed") })
	}
	r.close()
	done2, err := r.change(func(b *chatctx.Batch) {
		for _, m := range v.Messages {
			b.Mark(record.Ref(m.Message.String()), mark)
		}
	})
	if err != nil {
		return err
	}
	v.where = whereOf(done2)
	return r.made(done2, v, "%s: %s of %s", done, count(len(v.Messages), "message"), placed(done2))
}

// listMarks prints the marked messages of the branch, a line for each.
func (r *run) listMarks() error {
	c, snap, err := r.snapshot()
	if err != nil {
		return err
	}
	marks, err := c.Marks(r.ctx)
	if err != nil {
		return err
	}
	var list []*chatctx.Entry
	for id := range marks {
		e, err := snap.Find(r.ctx, record.Ref(id.String()))
		if err != nil {
			return err
		}
		if e.Position > 0 {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *chatctx.Entry) int { return a.Position - b.Position })
	for _, e := range list {
		mark := marks[e.ID]
		v := markJSON{e.ID, e.Position, &mark, tokens.Preview(e.Message, 60)}
		if err := r.emit(v, func() {
			r.printf("%s  #%-5d %-9s %s\n", r.paint(yellow, short(e.ID)), e.Position, mark, cut(clean(v.Preview), max(r.con.width-30, 10)))
		}); err != nil {
			return err
		}
	}
	if len(list) == 0 {
		r.note("no message of %s is pinned or excluded", clean(snap.Info.Name))
	}
	return nil
}
