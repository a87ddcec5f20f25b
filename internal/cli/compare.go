package cli

import (
	"errors"

	"github.com/rivo/uniseg"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/compare"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/screen"
)

func init() { lookGroups = append(lookGroups, compareLooks) }

func compareCommands() []*command { return []*command{{name: "compare"}, {name: "take"}} }

func compareLooks() map[string]look {
	return map[string]look{
		"compare": orFails(preparing(func(r *run, in *operation.Comparing) error {
			if in.Markdown && in.HTML || (in.Markdown || in.HTML) && r.json() {
				return usagef("compare takes one of --markdown, --html and --json")
			}
			return nil
		}, as(printCompared)), func(r *run, _ *operation.Comparing, err error) error {
			if ref := (*record.RefError)(nil); errors.As(err, &ref) && ref.Kind == chatctx.SecondAnswer {
				return &hinted{err, "ask several models: " + r.again("ask --models A,B") + "   or name what to compare: " + r.again("compare BRANCH BRANCH")}
			}
			return err
		}),
		"take": as(printTaken),
	}
}

func printCompared(r *run, in *operation.Comparing, t *compare.Table) {
	switch { // what cannot be written is reported at the end of the command
	case in.Markdown:
		_ = t.WriteMarkdown(r.out(screen.TextWriter))
	case in.HTML:
		_ = t.WriteHTML(r.out(screen.TextWriter))
	default:
		for _, l := range screen.Compared(t, r.con.width, uniseg.StringWidth, r.con.color) {
			r.printf("%s\n", l.Paint(r.pen()))
		}
	}
}

func printTaken(r *run, _ *operation.Taking, v contract.Taken) {
	if v.Operation == "" {
		r.printf("%s has this answer already\n", clean(v.Branch))
		return
	}
	moved := ""
	if v.MovedTo != nil {
		moved = "; the previous answer is now on branch " + clean(*v.MovedTo)
	}
	r.printf("took %s into %s%s\n", count(len(v.Messages), "message"), placed(r.done), moved)
}

// pen writes styles as the terminal supports them.
func (r *run) pen() screen.Pen { return screen.Pen{Styles: r.con.color, Color: r.con.color} }
