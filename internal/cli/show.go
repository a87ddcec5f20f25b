package cli

import (
	"errors"

	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/pool"
)

func init() { lookGroups = append(lookGroups, showLooks) }

func showLooks() map[string]look {
	shown := look{text: func(r *run, in, out any) {
		switch v := out.(type) {
		case operation.Shown:
			r.printMessage(v.Entry, v.Mark, true)
			for _, i := range v.Tasks {
				r.note("the call %d is for the sub-context %s", i.Index, named(i.Title, i.ID))
			}
		case operation.ShownConversation:
			r.printConversation(&v)
		case operation.SavedParts:
			r.printSaved(&v)
		case operation.ShownCode:
			r.printWhole(v.Code)
		case operation.ShownText:
			r.printText(&v)
		}
	}}
	return map[string]look{"show": orFails(preparing(func(_ *run, in *operation.Showing) error {
		switch {
		case in.Block != nil && !in.Code:
			return usagef("show --block is for --code")
		case in.Message == "" && in.Code:
			in.Message = "@"
		case in.Message == "" && (in.Save != "" || in.Text):
			return &usageError{"show --save and --text need a message", "chatctx show @ --save DIR"}
		}
		return nil
	}, shown), func(r *run, in *operation.Showing, err error) error {
		var ranged *operation.RangeError
		if errors.As(err, &ranged) {
			return &usageError{"show takes one message, not a range", "all of it: " + r.again("log "+quote(string(ranged.Ref)))}
		}
		return err
	})}
}

func (r *run) printConversation(v *operation.ShownConversation) {
	r.printf("%s\n", r.heading(v.Title, v.ID))
	r.printf("%s, changed %s\n", count(v.Messages, "message"), moment(v.Updated))
	if v.Trashed != 0 {
		r.printf("in the trash since %s\n", moment(v.Trashed))
	}
	r.printf("\n")
	for _, b := range v.Branches {
		r.branchLine(b)
	}
	for _, p := range []struct{ name, text string }{{"system", v.System}, {"prompt", v.Prompt}} {
		if p.text != "" {
			r.printf("\n%s of %s:\n%s\n", p.name, clean(v.Branch), clean(p.text))
		}
	}
	if len(v.Settings) > 0 {
		r.printf("\nsettings of %s:\n", clean(v.Branch))
		r.printSettings(v.Settings)
	}
	if v.Task != nil {
		r.printf("\nsub-context of %s:\n", short(v.Task.Parent))
		r.subLine(v.Task.Info)
	}
}

func (r *run) printSaved(v *operation.SavedParts) {
	for _, s := range v.Saved {
		r.printf("%s  %s, %s\n", clean(s.File), clean(s.MediaType), size(int64(s.Size)))
	}
	if len(v.Saved) == 0 {
		r.note("the message %s holds no images or files", short(v.Message))
	}
}

// printText prints the text of a message as it is stored, on a terminal without what would act there.
func (r *run) printText(v *operation.ShownText) {
	if ending := screen.OutcomeText(v.Entry.Message); v.Entry.Role == pool.Assistant && ending != "" {
		r.note("this answer is %s", ending)
	}
	r.printWhole(v.Text)
}

// printWhole prints a text byte for byte, safe on a terminal.
func (r *run) printWhole(text string) {
	if r.con.tty {
		text = clean(text)
	}
	r.printf("%s", text)
}
