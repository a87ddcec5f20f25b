package cli

import (
	"fmt"
	"iter"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/screen"
)

func journalCommands() []*command {
	undone := "operation, context, branch, undid{operation, at, what, by, branches}, broken[{rule, example, is, at}] (examples that rules break which deny and are back)"
	return []*command{
		{name: "op", does: "what was done", scope: onContext, subs: []*command{
			{name: "log", does: "list what was done, the newest first", scope: onContext, run: in(doOpLog), paged: true,
				more: "Each line says what the operation changed, with old and new values, but only the names of settings that can hold an address, a path or a key. The list includes changes of the store that concern this conversation or the whole store, and your own changes there while this conversation was current.",
				json: "operation, at, what, by, user (on a server: the database's and the local one), undone; context, branches, undoes, about, changed[{of, from, to}]; a line each", example: "chatctx op log -n 10"},
		}},
		{name: "undo", does: "take back the branch's last operation, or the one that is named", scope: onBranch, run: in(doUndo),
			more: "If an operation of the conversation or the store (rename, rm, import …) came last, undo takes that back. On a server it takes back what others did to the store only if OP names it. Undo is refused (5) if somebody has gone on from the operation, if the operation concerns a running call, or if an example of a rule would break.",
			json: undone, example: "chatctx undo"},
		{name: "redo", does: "take the last undo back", scope: onBranch, do: doRedo,
			more: "It redoes what was undone on the branch, the conversation or the store, newest first, until something else is done there. If undo removed a branch, run redo with its name as --branch, on the branch that it was forked from, or on the branch where undo led.",
			json: undone, example: "chatctx redo"},
	}
}

type opLogIn struct {
	N     *int `flag:"n" doc:"only the newest {N}"`
	Store bool `flag:"store" doc:"what was done to the store: new, rm, restore, import (name another store before the command: chatctx --store FILE op log)"`
}

func doOpLog(r *run, in *opLogIn) error {
	most, err := r.most(in.N)
	if err != nil {
		return err
	}
	st, err := r.reader()
	if err != nil {
		return err
	}
	var ops iter.Seq2[*chatctx.Operation, error]
	if in.Store {
		ops = st.StoreOperations(r.ctx)
	} else {
		ops = st.AllOperations(r.ctx, r.contextRef())
	}
	n := 0
	for o, err := range ops {
		if err != nil {
			return contextHint(err)
		}
		if r.stopped() || most > 0 && n == most {
			break
		}
		n++
		if err := r.emit(o, func() { r.operationLine(o) }); err != nil {
			return err
		}
	}
	if n == 0 {
		r.note("nothing was done yet")
	}
	return nil
}

func (r *run) operationLine(o *chatctx.Operation) {
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

type undoIn struct {
	Operation string `arg:"[OP]"`
}

func doUndo(r *run, in *undoIn) error {
	st, err := r.writer()
	if err != nil {
		return err
	}
	u, err := st.Undo(r.ctx, r.contextRef(), r.branchName(), in.Operation)
	if err != nil {
		return contextHint(err)
	}
	return r.undone(u, true)
}

func doRedo(r *run) error {
	st, err := r.writer()
	if err != nil {
		return err
	}
	u, err := st.Redo(r.ctx, r.contextRef(), r.branchName())
	if err != nil {
		return contextHint(err)
	}
	return r.undone(u, false)
}

// undone reports what was undone, whose it was and how to redo it.
func (r *run) undone(u *chatctx.Undone, back bool) error {
	what := ""
	if o := u.Undid; o != nil {
		if what = "took back " + o.ID + " "; !back {
			what = "did again: "
		}
		what += clean(o.What)
		if len(o.Branches) > 0 {
			what += " on " + oneLine(strings.Join(o.Branches, ", "))
		}
		what += fmt.Sprintf(" of %s, by %s", moment(o.At), clean(o.By))
	}
	r.noteBroken(u.Broken...)
	in := ""
	if u.Context != (chatctx.ID{}) {
		in = " in " + titled(u.Title, u.Context)
	}
	return r.emit(contract.UndoneOf(u), func() {
		r.printf("%s%s\n", what, in)
		r.note("the other way: %s", r.lineAbout("undo "+u.Operation, subject{context: u.Context}))
	})
}
