package cli

import (
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/screen"
)

func init() { lookGroups = append(lookGroups, journalLooks) }

func journalCommands() []*command {
	return []*command{{name: "op", does: "what was done", scope: onContext, subs: []*command{{name: "log"}}}, {name: "undo"}, {name: "redo"}}
}

func journalLooks() map[string]look {
	return map[string]look{
		"operations.list": preparing(func(r *run, in *operation.Journal) error {
			in.Both = true
			_, err := r.most(in.Limit)
			return err
		}, as(func(r *run, _ *operation.Journal, o *record.Operation) { r.operationLine(o) }).orNone(func(r *run) { r.note("nothing was done yet") })),
		"undo": as(func(r *run, _ *operation.ToUndo, out contract.Undone) { r.undone(out.Done) }),
		"redo": as(func(r *run, _ *operation.Change, out contract.Undone) { r.undone(out.Done) }),
	}
}

func (r *run) operationLine(o *record.Operation) {
	what := clean(o.What)
	if len(o.Branches) > 0 {
		what += " on " + cut(oneLine(strings.Join(o.Branches, ", ")), 60)
	}
	if o.Undoes != "" {
		what += ", takes back " + o.Undoes
	}
	if o.Undone {
		what += r.paint(dim, " (undone)")
	}
	by := "by " + clean(o.By)
	if o.User != "" {
		by += " for " + clean(o.User)
	}
	r.row(8, "%s  %s  %s  %s", r.paint(yellow, pad(o.ID, 6)), moment(o.At), what, r.paint(dim, by))
	if about := screen.About(o); about != "" {
		r.row(8, "        %s", about)
	}
}

// undone reports what was undone, whose it was and how to redo it.
func (r *run) undone(u *record.Undone) {
	what, way := "", "redo with: "
	again := u.What == "redo"
	if again {
		way = "undo with: "
	}
	if o := u.Undid; o != nil {
		if what = "took back " + o.ID + " "; again {
			what = "did again: "
		}
		what += clean(o.What)
		if len(o.Branches) > 0 {
			what += " on " + oneLine(strings.Join(o.Branches, ", "))
		}
		what += fmt.Sprintf(" of %s, by %s", moment(o.At), clean(o.By))
	}
	r.noteBroken(u.Broken...)
	if u.Context != (chatctx.ID{}) {
		what += " in " + titled(u.Title, u.Context)
	}
	r.printf("%s\n", what)
	r.note("%s%s", way, r.lineAbout("undo "+u.Operation, subject{context: u.Context}))
}
