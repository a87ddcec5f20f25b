package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/input"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/pool"
)

func messageCommands() []*command {
	placed := "context, branch, message, position, revision; operation, again"
	return []*command{
		{name: "add"}, {name: "shorten"},
		{name: "append", does: "put many messages at the end of the branch: JSON, one a line", scope: onBranch, run: in(doAppend),
			more: "A line needs role and content (text or parts), tool_calls or tool_result. A line with the id of a message of this conversation puts that message on the branch, unless it is there; one with any other id becomes a copy with an id of its own. They are stored in batches, each durable when its lines are printed; if the command stops, it says how many are stored. With --key each line is stored once, for the key and the number of the line.",
			json: placed + "; a line each", example: `echo '{"role":"user","content":"Hello"}' | chatctx append -`},
		{name: "log", does: "show the branch's messages, the oldest first", scope: onBranch, run: in(doLog), paged: true,
			more: "A..B is the messages after A up to and including B, on B's branch; either end may be missing, and the other end then names the branch. -n shows the last ones; with --around so many before and after. On a terminal Markdown is rendered and wrapped at words. With -f log goes on with new messages of the branch, whoever adds them, until Ctrl-C. If sessions were compacted or resumed, lines between messages say what goes to the model.",
			json: "a message, a line each", example: `chatctx log -n 5
chatctx log @3..
chatctx log main..trains --role assistant
chatctx log -f -n 3 --json`},
	}
}

func init() { lookGroups = append(lookGroups, messageLooks) }

func messageLooks() map[string]look {
	return map[string]look{"messages.add": preparing(func(r *run, in *operation.Adding) (err error) {
		if in.Message, err = r.newMessage(in); err != nil {
			return err
		}
		return r.somewhere(r.empty(in.Options()))
	}, look{text: func(r *run, _, out any) {
		switch v := out.(type) {
		case contract.Where:
			r.printf("nothing was added to %s\n", clean(v.Branch)+" of "+titled(v.Title, v.Context))
		case operation.AddedMessage:
			if v.Again {
				r.printf("%s was added with this key before, at #%d of %s\n", short(v.Message), v.Position, placed(v.Done))
				return
			}
			r.printf("added %s as #%d to %s\n", short(v.Message), v.Position, placed(v.Done))
		}
	}}), "messages.shorten": preparing(func(r *run, in *operation.ShortForm) (err error) {
		if in.Clear != (in.Text == "") {
			return usagef("shorten takes the short form's text, or --clear to remove it")
		}
		in.Text, err = r.text(in.Text, rawFlag(in.RawInput))
		return err
	}, as(func(r *run, in *operation.ShortForm, v operation.Shorter) {
		if v.Summary == nil {
			r.printf("removed the short form of %s\n", short(v.Message))
			return
		}
		r.printf("set the short form of %s\n", short(v.Message))
	}))}
}

// errEmptyText is the error for an empty message.
var errEmptyText = &usageError{"the text is empty", "nothing was stored"}

// newMessage makes the message that add's arguments and flags describe. It opens no store.
func (r *run) newMessage(in *operation.Adding) (*chatctx.Message, error) {
	roles := []pool.Role{pool.System, pool.User, pool.Assistant, pool.ToolRole}
	if !slices.Contains(roles, in.Role) {
		return nil, &usageError{fmt.Sprintf("no role %q", in.Role), "a message is from system, user, assistant or tool"}
	}
	if in.Text == "" && len(in.Image)+len(in.File) == 0 {
		return nil, &usageError{"add needs the text", `usage: chatctx add ROLE TEXT, or - for standard input`}
	}
	switch {
	case in.Role != pool.ToolRole && (in.Call != "" || in.Error || in.Short != ""):
		return nil, usagef("--answers, --error and --summary are for the role tool")
	case in.Short != "" && in.Call == "":
		return nil, usagef("--summary is the short form of a result, and --answers names the call that it answers")
	}
	if in.Text == "-" && in.Short == "-" {
		return nil, usagef("standard input is the text or the summary, not both")
	}
	text, err := r.text(in.Text, rawFlag(in.RawInput))
	if err != nil {
		return nil, err
	}
	if in.Short, err = r.text(in.Short, rawFlag(in.RawInput)); err != nil {
		return nil, err
	}
	m := &chatctx.Message{Role: in.Role}
	m.Meta.Model = in.Model
	if text != "" {
		m.Content = append(m.Content, pool.Part{Type: pool.TextPart, Text: text})
	}
	if err := attach(r.ctx, m, in.Image, in.File); err != nil {
		return nil, err
	}
	if len(m.Content) == 0 && in.Call == "" {
		return nil, errEmptyText
	}
	if in.Call != "" {
		m.Result = &pool.Result{RequestID: in.Call, IsError: in.Error, Text: text, CompactSummary: in.Short}
		if len(m.Content) > 1 {
			m.Result.Text, m.Result.Parts = "", m.Content
		}
		m.Content = nil
	}
	return m, m.Validate()
}

// somewhere opens the store and makes sure that there is a context to add to: without --context, it makes one if there is none. Before that it calls try with a
// new context that is stored nowhere: what is refused there leaves nothing behind.
func (r *run) somewhere(try func(*chatctx.ChatContext) error) error {
	other := r.branchName() != "" && r.branchName() != chatctx.MainBranch
	st, err := r.writer()
	if r.contextRef() != "" || other {
		return err
	}
	if errors.Is(err, chatctx.ErrNotExist) {
		if err := r.tried(nil, try); err != nil {
			return err
		}
		if st, err = r.creator(); err == nil {
			_, err = st.New(r.ctx, record.NewContext{IfNone: true})
		}
		return err
	}
	if err != nil {
		return err
	}
	if _, err := st.Context(r.ctx, ""); !errors.Is(err, chatctx.ErrNotFound) {
		return err
	}
	for _, err := range st.Contexts(r.ctx, record.ListOptions{}) {
		if err != nil {
			return err
		}
		return contextHint(base.NotFound("conversation", "")) // there are some: the person has to choose
	}
	defaults, err := st.Settings(r.ctx)
	if err == nil {
		err = r.tried(defaults, try)
	}
	if err == nil {
		_, err = st.New(r.ctx, record.NewContext{IfNone: true})
	}
	return err
}

// tried calls try with a new context in memory.
func (r *run) tried(defaults map[string]json.RawMessage, try func(*chatctx.ChatContext) error) error {
	st, err := chatctx.OpenMemory(chatctx.Options{})
	if err != nil {
		return err
	}
	defer st.Close()
	if len(defaults) > 0 {
		if _, err := st.SetSettings(r.ctx, defaults); err != nil {
			return err
		}
	}
	c, err := st.New(r.ctx, record.NewContext{})
	if err != nil {
		return err
	}
	return startHint(try(c))
}

// empty tries the options of an append on a context that has nothing yet.
func (r *run) empty(o chatctx.AppendOptions) func(*chatctx.ChatContext) error {
	return func(c *chatctx.ChatContext) error {
		b := c.Begin("")
		b.AppendWith(o)
		_, err := b.Commit(r.ctx)
		return err
	}
}

type appendIn struct {
	File   string  `arg:"FILE|-"`
	Key    string  `flag:"key" doc:"store once for this {KEY} within 24 hours, however often the command is run"`
	Expect *uint64 `flag:"expect" doc:"only while the branch has this {REVISION}: it stops when somebody else adds to it"`
}

// doAppend stores messages from JSON lines, in batches.
func doAppend(r *run, in *appendIn) error {
	var from io.Reader = r.con.in
	if in.File != "-" {
		f, err := input.Open(r.ctx, in.File)
		if err != nil {
			return err
		}
		defer f.Close()
		from = f
	}
	a := &appender{r: r, lines: newLines(from, maxText, batchMessages), key: in.Key, expect: in.Expect}
	if in.Key != "" {
		a.lines.most = 1 // each line has a key of its own
	}
	err := a.all()
	if err != nil && a.stored+a.known > 0 {
		n := a.stored + a.known
		return contract.Partly(err, fmt.Sprintf("%s %s stored, up to line %d", count(n, "message"), are(n), a.line))
	}
	if err != nil {
		return err
	}
	return r.appended(a)
}

// appended reports an append in text; its JSON was printed line by line.
func (r *run) appended(a *appender) error {
	if r.json() || a.last == nil {
		r.note("no messages there, nothing was stored")
		return nil
	}
	known := ""
	if a.known > 0 {
		known = fmt.Sprintf(", %d were there already", a.known)
	}
	if n := a.mended + a.lines.mended; n > 0 {
		a.r.note("half characters and bytes that are not text were replaced in %s of JSON", count(n, "place"))
	}
	r.printf("added %s to %s%s\n", count(a.stored, "message"), placed(a.last), known)
	if a.newest != "" {
		r.note("undo with: %s", r.lineAbout("undo "+a.newest, subject{context: a.last.Context}))
	}
	return nil
}
