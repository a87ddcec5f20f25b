package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/view"
)

func contextCommands() []*command {
	return []*command{
		{name: "new"},
		{name: "ls"},
		{name: "use"},
		{name: "show"},
		{name: "rename"},
		{name: "title"},
		{name: "rm"},
		{name: "label"},
		{name: "restore"},
		{name: "status"},
	}
}

// readNew puts what standard input, the chat and the flags say into the parameters of a new conversation.
func readNew(r *run, in *operation.NewConversation) (err error) {
	in.Activate = true
	if in.From != "" {
		for _, f := range []struct{ name, given string }{{"system", in.System}, {"prompt", in.Prompt}, {"model", in.Model}, {"mode", in.Mode}} {
			if f.given != "" {
				return &usageError{"new --copy-of copies everything and takes no --" + f.name, "change the copy after: chatctx system, prompt, config"}
			}
		}
		return nil
	}
	if in.Branch != "" {
		return usagef("--branch goes with --copy-of: it is the branch to copy")
	}
	for _, s := range []string{in.Title, in.Prompt, in.Model, in.Mode} {
		if err := validText(s); err != nil {
			return err
		}
	}
	in.Settings = map[string]json.RawMessage{}
	maps.Copy(in.Settings, r.con.begins)
	for key, v := range map[string]string{"model": in.Model, "mode": in.Mode} {
		if v != "" {
			in.Settings[key], _ = json.Marshal(v)
		}
	}
	in.System, err = r.text(in.System, rawFlag(in.RawInput))
	return err
}

// newContext reports a new context.
func (r *run) newContext(_ *operation.NewConversation, v contract.Named) {
	r.printf("made conversation %s with branch %s; it is the current one\n", named(v.Title, v.Context), clean(v.Branch))
	about := subject{context: v.Context}
	r.note("add to it: %s   undo with: %s", r.lineAbout("add user TEXT", about), r.lineAbout("undo", about))
	r.noteOther(v.Context)
}

// noteOther says that this shell works on another context than the new current one.
func (r *run) noteOther(current chatctx.ID) {
	other := os.Getenv("CHATCTX_CONTEXT")
	if other == "" {
		return
	}
	if c, err := r.st.Context(r.ctx, other); err == nil && c.ID == current {
		return
	}
	r.note("CHATCTX_CONTEXT is set: this shell still works on %s; unset CHATCTX_CONTEXT to follow the current one", clean(other))
}

// checkListing refuses flags of ls that do not go together.
func checkListing(r *run, in *operation.Listing) error {
	if in.Until != nil && in.OlderThan != nil {
		return usagef("ls --until and --older-than are the same: give one")
	}
	_, err := r.most(in.Limit)
	return err
}

// nothingListed says why a list of contexts is empty.
func (r *run) nothingListed(in *operation.Listing) string {
	switch {
	case in.Given() || in.Word != "" || in.Since != nil || in.Until != nil:
		return "no conversation fits"
	case in.Trash:
		return "the trash is empty"
	}
	trash := 0
	for _, err := range r.st.Contexts(r.ctx, record.ListOptions{Trash: true}) {
		if err != nil {
			break
		}
		trash++
	}
	if trash > 0 {
		return fmt.Sprintf("all there is lies in the trash (%s): %s   bring one back: %s", count(trash, "conversation"), r.onStore("ls --trash"), r.onStore("restore CTX"))
	}
	if labels, err := view.Labels(r.ctx, base.Of(r.st)); err == nil && labels[chatctx.Archived] > 0 {
		return fmt.Sprintf("all there is has the label archived (%s): %s", count(labels[chatctx.Archived], "conversation"), r.onStore("ls --label "+chatctx.Archived))
	}
	return "no conversations yet\n" + firstSteps
}

// contextLine prints a context in ls: current or not, id, last change, title, and what is in it.
func (r *run) contextLine(i *record.ContextInfo) {
	mark := " "
	if i.Current {
		mark = r.paint(green, "*")
	}
	date := pad(moment(i.Updated), 16) + "  "
	end := fmt.Sprintf("%s, %s, on %s", count(i.Messages, "message"), count(i.Branches, "branch"), oneLine(i.Active))
	title := cmp.Or(oneLine(i.Title), "(no title)")
	const id, titles, ends = 2 + 8 + 2, 16, 36 // the columns before the date, and what title and end take
	room := max(r.con.width-id-len(date)-2-ends, titles)
	if r.con.tty { // what goes to another program is whole; on a narrow terminal the end gives way first, then the date
		left := r.con.width - id
		if left -= len(date); left < titles+2 {
			date, left = "", left+len(date)
		}
		if end = cut(end, max(left-room-2, 0)); left < room+2+len("1 message") {
			end, room = "", left
		}
		title = cut(title, room)
	}
	r.printf("%s %s  %s%s\n", mark, r.paint(yellow, short(i.ID)), date, strings.TrimRight(pad(title, room)+"  "+r.paint(dim, end), " "))
}

func init() { lookGroups = append(lookGroups, contextLooks) }

func contextLooks() map[string]look {
	list := preparing(checkListing, as(func(r *run, _ *operation.Listing, i *record.ContextInfo) { r.contextLine(i) }))
	list.none = func(r *run, in any) { r.note("%s", r.nothingListed(in.(*operation.Listing))) }
	return map[string]look{
		"contexts.list": list,
		"contexts.new":  preparing(readNew, as((*run).newContext)),
		"contexts.trash": as(func(r *run, _ *operation.Trashing, v contract.Named) {
			r.printf("%s is in the trash; chatctx restore %s brings it back\n", named(v.Title, v.Context), short(v.Context))
		}).toEach("put into the trash:"),
		"contexts.restore": as(func(r *run, _ *operation.ConversationArgument, v contract.Named) {
			r.printf("%s is back\n", named(v.Title, v.Context))
		}),
		"contexts.activate": preparing(func(r *run, in *operation.Chosen) (err error) {
			if in.Context == "" {
				in.Context, err = r.pickContext()
			}
			return err
		}, as(func(r *run, _ *operation.Chosen, v operation.Current) {
			r.printf("now in %s, on branch %s\n", named(v.Title, v.Context), clean(v.Branch))
			if v.Was != (chatctx.ID{}) && v.Was != v.Context {
				r.note("go back: %s", r.onStore("use "+short(v.Was)))
			}
			r.noteOther(v.Context)
		})),
		"contexts.rename": preparing(func(_ *run, in *operation.NewTitle) error {
			if strings.TrimSpace(in.Title) == "" {
				return usagef("rename needs a title that is not empty")
			}
			return validText(in.Title)
		}, as(func(r *run, in *operation.NewTitle, v contract.Named) {
			r.printf("conversation %s is now %s\n", short(v.Context), titled(v.Title, v.Context))
		})),
	}
}
