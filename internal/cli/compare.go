package cli

import (
	"errors"

	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/compare"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/screen"
)

func compareCommands() []*command {
	return []*command{
		{name: "compare", does: "show answers side by side", scope: onBranch, run: in(doCompare), paged: true,
			more: "Each REF is a branch, or a place at which the comparison of a branch ends; a single REF is compared with this branch. Without REF, or with this branch alone: the answers to this branch's last user message. The turns after the common part are shown in as many columns as the terminal holds, else below each other; words that the first does not have are marked.",
			json: "context, ancestor, columns[{ref, branch, messages}], turns[{turn, cells[{messages, text, edits[{kind, text}], figures}]}]",
			example: `chatctx compare
chatctx compare main trains@a1 --html > compare.html`},
		{name: "take", does: "put an answer from another branch in place of this branch's own", scope: onBranch, run: in(doTake),
			more: "REF's whole answer, with its calls, replaces this branch's answer to the same user message, or goes to its end. The replaced messages and all after them go to a new branch, main.2, main.3 …; one undo takes back both. Calls without a result wait again here.",
			json: "operation, context, branch, messages[{message, position}], moved_to", example: "chatctx take trains"},
	}
}

type compareIn struct {
	Refs     []record.Ref `arg:"[REF…]"`
	Markdown bool         `flag:"markdown" doc:"write Markdown"`
	HTML     bool         `flag:"html" doc:"write one page that needs nothing else"`
}

func doCompare(r *run, in *compareIn) error {
	if in.Markdown && in.HTML || (in.Markdown || in.HTML) && r.json() {
		return usagef("compare takes one of --markdown, --html and --json")
	}
	c, err := r.settled()
	if err != nil {
		return err
	}
	t, err := compare.Of(r.ctx, c, r.branchName(), in.Refs...)
	var ref *chatctx.RefError
	switch {
	case errors.As(err, &ref) && ref.Kind == chatctx.SecondAnswer:
		return &hinted{err, "ask several models: " + r.again("ask --models A,B") + "   or name what to compare: " + r.again("compare BRANCH BRANCH")}
	case err != nil:
		return err
	case in.Markdown:
		return t.WriteMarkdown(r.out(screen.TextWriter))
	case in.HTML:
		return t.WriteHTML(r.out(screen.TextWriter))
	}
	return r.emit(t, func() {
		for _, l := range screen.Compared(t, r.con.width, uniseg.StringWidth, r.con.color) {
			r.printf("%s\n", l.Paint(r.pen()))
		}
	})
}

// pen writes styles as the terminal supports them.
func (r *run) pen() screen.Pen { return screen.Pen{Styles: r.con.color, Color: r.con.color} }

type takeIn struct {
	Ref      record.Ref `arg:"REF"`
	KeepRest bool       `flag:"keep-rest" doc:"keep the later turns after the new answer"`
}

func doTake(r *run, in *takeIn) error {
	c, err := r.change(func(b *chatctx.Batch) {
		b.Take(in.Ref, record.TakeOptions{KeepRest: in.KeepRest})
	})
	if err != nil {
		return err
	}
	step := c.Last()
	v := contract.TakenOf(c)
	if c.Operation == "" {
		return r.made(c, v, "%s has this answer already", screen.Clean(c.Branch))
	}
	moved := ""
	if step.Beside != "" {
		moved = "; what stood there is on " + screen.Clean(step.Beside)
	}
	return r.made(c, v, "took %s into %s of %s%s", screen.Count(len(step.Placed), "message"), screen.Clean(c.Branch), screen.Titled(c.Title, c.Context), moved)
}
