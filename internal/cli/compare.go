package cli

import (
	"errors"

	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/compare"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/screen"
)

func compareCommands() []*command {
	return []*command{
		{name: "compare", args: "[REF…]", does: "show answers side by side", scope: onBranch, do: doCompare, paged: true,
			more: "Each REF is a branch, or a place at which the comparison of a branch ends; a single REF is compared with this branch. Without REF, or with this branch alone: the answers to this branch's last user message. The turns after the common part are shown in as many columns as the terminal holds, else below each other; words that the first does not have are marked.",
			flags: []*flag{
				{name: "markdown", kind: onOff, usage: "write Markdown"},
				{name: "html", kind: onOff, usage: "write one page that needs nothing else"},
			},
			json: "context, ancestor, columns[{ref, branch, messages}], turns[{turn, cells[{messages, text, edits[{kind, text}], figures}]}]",
			example: `chatctx compare
chatctx compare main trains@a1 --html > compare.html`},
		{name: "take", args: "REF", does: "put an answer from another branch in place of this branch's own", scope: onBranch, do: doTake,
			more:  "REF's whole answer, with its calls, replaces this branch's answer to the same user message, or goes to its end. The replaced messages and all after them go to a new branch, main.2, main.3 …; one undo takes back both. Calls without a result wait again here.",
			flags: []*flag{{name: "keep-rest", kind: onOff, usage: "keep the later turns after the new answer"}},
			json:  "operation, context, branch, messages[{message, position}], moved_to", example: "chatctx take trains"},
	}
}

func doCompare(r *run) error {
	if r.is("markdown") && r.is("html") || (r.is("markdown") || r.is("html")) && r.json() {
		return usagef("compare takes one of --markdown, --html and --json")
	}
	c, err := r.settled()
	if err != nil {
		return err
	}
	refs := make([]chatctx.Ref, len(r.args))
	for i, arg := range r.args {
		refs[i] = chatctx.Ref(arg)
	}
	t, err := compare.Of(r.ctx, c, r.branchName(), refs...)
	var ref *chatctx.RefError
	switch {
	case errors.As(err, &ref) && ref.Kind == chatctx.SecondAnswer:
		return &hinted{err, "ask several models: " + r.again("ask --models A,B") + "   or name what to compare: " + r.again("compare BRANCH BRANCH")}
	case err != nil:
		return err
	case r.is("markdown"):
		return t.WriteMarkdown(r.out(screen.TextWriter))
	case r.is("html"):
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

func doTake(r *run) error {
	c, err := r.change(func(b *chatctx.Batch) {
		b.Take(chatctx.Ref(r.arg(0)), chatctx.TakeOptions{KeepRest: r.is("keep-rest")})
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
