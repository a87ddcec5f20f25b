package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
	"github.com/chatctx/chatctx/subtask"
)

func contextCommands() []*command {
	return []*command{
		{name: "new"},
		{name: "ls"},
		{name: "use"},
		{name: "show", does: "show a message, or the conversation if none is named", scope: onBranch, run: in(doShow), paged: true,
			json: "a message; without REF: context, title, current, branch, branches[branch ls], messages, settings, system, prompt, created_at, updated_at, trashed_at, parent, task (of a sub-context, as sub show); with --save: context, branch, message, saved[{file, media_type, size, sha256}]",
			example: `chatctx show @-1
chatctx show 8f3a21bc --save pictures`},
		{name: "rename"},
		titleCommand(),
		{name: "rm"},
		{name: "label"},
		{name: "restore"},
		{name: "status", does: "where you are: conversation, branch, model, how much of the window is used, session, open calls, queue, cache", scope: onBranch, do: doStatus,
			json:    "store, context, title, branch, messages, head, revision, model, provider, mode, tokens{input_tokens, output_tokens}, " + contract.WindowFields + ", cache{read_tokens, written_tokens}, session, open_calls, queued, replying{program, pid, host, since}",
			example: "chatctx status"},
	}
}

// readNew puts what standard input, the chat and the flags say into the parameters of a new conversation.
func readNew(r *run, in *operation.NewConversation) (err error) {
	in.Activate = true
	if in.From != "" {
		for _, f := range []struct{ name, given string }{{"system", in.System}, {"prompt", in.Prompt}, {"model", in.Model}, {"mode", in.Mode}} {
			if f.given != "" {
				return &usageError{"new --from copies everything and takes no --" + f.name, "change the copy after: chatctx system, prompt, config"}
			}
		}
		return nil
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
	for _, err := range r.st.Contexts(r.ctx, chatctx.ListOptions{Trash: true}) {
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

// when parses a moment: a date, a time, or how long before now.
func when(s string, now time.Time) (pool.Time, error) {
	if s == "" {
		return 0, nil
	}
	for _, layout := range []string{time.DateOnly, time.DateTime, "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return pool.TimeOf(t), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return pool.TimeOf(t), nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return pool.TimeOf(now.Add(-d)), nil
	}
	unit := map[string]int{"d": 1, "w": 7}
	if n := len(s) - 1; n > 0 && unit[s[n:]] > 0 {
		if days, err := strconv.ParseUint(s[:n], 10, 31); err == nil {
			return pool.TimeOf(now.AddDate(0, 0, -int(days)*unit[s[n:]])), nil
		}
	}
	return 0, &usageError{fmt.Sprintf("no time %q", s), "write 2025-01-31, 2025-01-31T10:00:00Z, or how long ago: 12h, 7d, 2w"}
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

type showIn struct {
	Ref  record.Ref `arg:"[REF]"`
	Save string     `flag:"save" doc:"write the message's images and files into {DIR}; a file that is there stays"`
	Text bool       `flag:"text" doc:"the text alone, as it is stored"`
}

// doShow shows a message, or the context.
func doShow(r *run, in *showIn) error {
	if in.Ref == "" {
		if in.Save != "" || in.Text {
			return &usageError{"show --save and --text need a message", "chatctx show @ --save DIR"}
		}
		return showContext(r)
	}
	c, snap, err := r.snapshot()
	if err != nil {
		return err
	}
	if part, err := snap.Range(r.ctx, in.Ref); err != nil || part != nil {
		return cmp.Or(err, error(&usageError{"show takes one message, not a range", "all of it: " + r.again("log "+quote(string(in.Ref)))}))
	}
	e, err := snap.Find(r.ctx, in.Ref)
	if err != nil {
		return err
	}
	if dir := in.Save; dir != "" {
		return saveParts(r, c, snap, e, dir)
	}
	if in.Text {
		text := e.Text()
		if ending := screen.OutcomeText(e.Message); e.Role == pool.Assistant && ending != "" {
			r.note("this answer is %s", ending)
		}
		if r.con.tty {
			text = clean(text)
		}
		return r.emit(map[string]string{"text": e.Text()}, func() { r.printf("%s", text) })
	}
	marks, err := c.Marks(r.ctx)
	if err != nil {
		return err
	}
	var tasks []*chatctx.TaskInfo
	if len(e.Calls) > 0 && !r.json() {
		if tasks, err = subtask.List(r.ctx, c, subtask.ListOptions{Ended: true}); err != nil {
			return err
		}
	}
	return r.emit(e, func() {
		r.printMessage(e, marks[e.ID], true)
		for _, i := range tasks {
			if i.Message == e.ID {
				r.note("the call %d is for the sub-context %s", i.Index, named(i.Title, i.ID))
			}
		}
	})
}

// showContext shows the context with its branches, prompts and settings.
func showContext(r *run) error {
	c, snap, err := r.snapshot()
	if err != nil {
		return err
	}
	info, err := c.Info(r.ctx)
	if err != nil {
		return err
	}
	branches, err := c.Branches(r.ctx)
	if err != nil {
		return err
	}
	own, err := c.Effective(r.ctx, snap.Info.Name)
	if err != nil && !errors.Is(err, chatctx.ErrNotFound) {
		return err
	}
	inForce := settings.WithEnv(own, os.Getenv)
	task, err := c.TaskInfo(r.ctx)
	if err != nil && !errors.Is(err, chatctx.ErrInvalid) {
		return err
	}
	var of *contract.Task
	if task != nil {
		v := contract.TaskOf(task)
		of = &v
	}
	return r.emit(struct {
		record.ContextFacts
		Branches []*record.BranchInfo       `json:"branches"`
		Settings map[string]json.RawMessage `json:"settings"`
		System   string                     `json:"system"`
		Prompt   string                     `json:"prompt"`
		Task     *contract.Task             `json:"task,omitempty"`
	}{info.ContextFacts, branches, inForce, snap.Info.System, snap.Info.Prompt, of}, func() {
		r.printContext(info, branches, snap, inForce)
		if task != nil {
			r.printf("\nsub-context of %s:\n", short(task.Parent))
			r.subLine(task)
		}
	})
}

func (r *run) printContext(info *record.ContextInfo, branches []*record.BranchInfo, snap *chatctx.Snapshot, inForce map[string]json.RawMessage) {
	r.printf("%s\n", r.heading(info.Title, info.ID))
	r.printf("%s, changed %s\n", count(info.Messages, "message"), moment(info.Updated))
	if info.Trashed != 0 {
		r.printf("in the trash since %s\n", moment(info.Trashed))
	}
	r.printf("\n")
	for _, b := range branches {
		r.branchLine(b)
	}
	for _, p := range []struct{ name, text string }{{"system", snap.Info.System}, {"prompt", snap.Info.Prompt}} {
		if p.text != "" {
			r.printf("\n%s of %s:\n%s\n", p.name, clean(snap.Info.Name), clean(p.text))
		}
	}
	if len(inForce) > 0 {
		r.printf("\nsettings of %s:\n", clean(snap.Info.Name))
		r.printSettings(inForce)
	}
}
