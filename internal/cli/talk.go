package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/chatctx/chatctx/adapter/wire"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/jsontree"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

func talkCommands() []*command {
	sent := "context, branch, message (as in log), position, revision, operation, waiting, open{person, program, child, running}, finish_reason, outcome (refused | filtered | cut_short | lost_call | empty), refused, window{" + contract.WindowFields + "}; queued"
	return []*command{
		{name: "send", does: "ask the model, and put its answer on the branch", scope: onBranch, run: in(doSend),
			more: "The message is stored before anything is sent; the answer shows while it comes. Ctrl-C stops the answer and keeps the part that came. If another program waits for an answer on this branch, the message is queued and answered there. --model given again asks several, as --models does; --file - is standard input as text; --dry-run says what it would cost, with the cache and without. " +
				"The model's name chooses the provider; its key is read from the environment (OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY …). Exit code 6: a tool call waits for a decision; 7: the provider or the model refuses, or the answer is empty. A refused or empty answer stays on the branch.",
			json: sent + "; a line each answer; " + billFields, example: `chatctx send "Where should we go in May?"
git diff | chatctx send - --model claude-sonnet-4-5
cat notes.txt | chatctx send "Summarise this." -
chatctx send --continue`},
		{name: "ask", does: "ask several models at once, and put each answer on a branch of its own", scope: onBranch, run: in(doAsk),
			more: "The message goes on this branch, each answer on a new branch from there, named after its model; the active branch stays. Without --models the branch's own model is asked, once or --times times. Without TEXT the last user message is answered again. Each answer is stored when it ends; an empty or failed one, or one whose provider has no key, leaves no branch; Ctrl-C keeps the parts that came, unfinished. The models and --set are for these answers alone: config --branch NAME model=… sets the model of a branch from then on. One undo takes all back. Exit code 8: some failed; 7: all failed; 6: a tool call waits for a decision.",
			json: sent + "; a line each answer", example: `chatctx ask "Name the boat" --models claude-sonnet-4-5,gpt-5
chatctx ask --models gpt-5,gpt-4o --set gpt-4o:temperature=0
chatctx ask "Name the boat" --times 3`},
		{name: "retry", does: "answer the last user message again, on a new branch beside the old answer", scope: onBranch, run: in(doRetry),
			more: "If that message has no answer yet, it gets one on this branch. A retry that fails before its first answer is complete leaves no branch. With --models or --times, retry is the same as ask without TEXT.",
			json: sent, example: "chatctx retry --model gpt-5"},
		{name: "chat", does: "talk with the model at the terminal", scope: onBranch, run: in(doChat),
			more: "Every command works after a slash, also while an answer comes: /fork NAME, /switch NAME, /edit REF TEXT, /retry, /undo, /tree, /system TEXT … and /model NAME, /help, /quit. /new, /use, /import and /switch move the chat there; the chat shows what others add to its branch. " +
				"Ctrl-C stops an answer or clears the line, Ctrl-D ends the chat; Alt+Enter or Ctrl-J begins a new line, Tab completes a command, Ctrl-R searches what was typed before, Ctrl-X opens your editor. Typed lines are kept in chatctx/history in the state folder, or in the file that CHATCTX_HISTORY names; if that is empty, nothing is kept. " +
				"Lines pasted together are one message. From a pipe each line is a message.",
			json: sent + "; a line each answer", example: "chatctx chat"},
		{name: "models"},
		{name: "request"},
		{name: "explain"},
	}
}

type providerFlag struct {
	Provider string `flag:"provider" doc:"the {PROVIDER}: openai, openai-responses, anthropic, gemini or ollama"`
}

// whomFlags say whom to ask, for this command alone.
type whomFlags = operation.Whom

func (f *providerFlag) Asks() (whomFlags, bool) {
	return whomFlags{Provider: f.Provider}, f.Provider != ""
}

// askFlags are whomFlags for commands that can ask several models.
type askFlags struct {
	providerFlag
	Model []string `flag:"model,m" doc:"the {MODEL}; else the setting model, else CHATCTX_MODEL"`
}

func (f *askFlags) Asks() (whomFlags, bool) {
	one := whomFlags{Provider: f.Provider}
	if len(f.Model) == 1 {
		one.Model = f.Model[0]
	}
	return one, f.Provider != "" || len(f.Model) > 0
}

// asksWhom are the parameters of a command that can say whom to ask: the one, and whether they name anybody.
type asksWhom interface {
	Asks() (one whomFlags, named bool)
}

// talks says how a command talks with a model: as its own flags say, or, if it has no such flags, as the chat does in which it was typed.
type talks struct {
	whom     whomFlags
	thinking bool // show it
}

// inChat is the key of a context for the talks of the chat in which a command is typed.
type inChat struct{}

// talksOf returns how a command with these parameters talks.
func talksOf(ctx context.Context, in any) talks {
	t, _ := ctx.Value(inChat{}).(talks)
	if own, ok := in.(asksWhom); ok {
		t.whom, _ = own.Asks()
	}
	if own, ok := in.(interface{ shows() bool }); ok {
		t.thinking = own.shows()
	}
	return t
}

func (f *thinkingFlag) shows() bool { return f.Thinking }

type thinkingFlag struct {
	Thinking bool `flag:"thinking" doc:"show the model's thinking too"`
}

// askIn is a message that is sent to models, and to which.
type askIn struct {
	Text  string `arg:"[TEXT|-]"`
	Input string `arg:"[-]"` // standard input, after the text
	askFlags
	Image []string `flag:"image" doc:"an image {FILE}, after the text; may be given again"`
	File  []string `flag:"file" doc:"a {FILE} of any kind, after the text; may be given again"`
	templateFlags
	thinkingFlag
	rawFlag
	manyFlags
}

// none reports whether the command line has no message.
func (in *askIn) none() bool {
	return in.Text == "" && in.Template == "" && len(in.Image)+len(in.File) == 0
}

type sendIn struct {
	askIn
	Continue bool `flag:"continue" doc:"no new message: answer what the branch ends with"`
	dryRunFlag
}

// asked returns the settings that the command line puts over the branch's.
func (r *run) asked() map[string]json.RawMessage {
	set := map[string]json.RawMessage{}
	if m := r.talks.whom.Model; m != "" {
		set["model"] = jsontree.Quote(m)
	}
	if p := r.talks.whom.Provider; p != "" {
		set["provider"] = jsontree.Quote(p)
	}
	return set
}

// turn returns the turn of a branch.
func (r *run) turn(c *chatctx.ChatContext, branchName string) *turn.Turn {
	e := r.executor(c)
	return &turn.Turn{Context: c, Branch: branchName, Settings: r.asked(), Calls: func(ctx context.Context, branchName string, reply *chatctx.Message, named []string) (bool, error) {
		if named != nil || !r.carried {
			if _, err := r.carryOn(ctx, c, branchName); err != nil {
				return false, err
			}
		}
		return e.Calls(ctx, branchName, reply, named)
	}}
}

// talk finds the conversation in which a command talks, and the branch's own name.
func (r *run) talk() (*chatctx.ChatContext, string, error) {
	c, err := r.st.Context(r.ctx, r.contextRef())
	if err != nil {
		return nil, "", contextHint(err)
	}
	info, err := c.Branch(r.ctx, r.branchName())
	if err != nil {
		return nil, "", err
	}
	return c, info.Name, nil
}

func doSend(r *run, in *sendIn) error {
	template, err := r.filled(in.templateFlags)
	if err != nil {
		return err
	}
	m, err := r.sendMessage(in, template.Text)
	if err != nil {
		return err
	}
	many := r.many(in.askFlags, in.manyFlags)
	if in.DryRun {
		return r.drySend(in, m)
	}
	if m == nil {
		if _, err := r.writer(); err != nil {
			return err
		}
	} else if err := r.somewhere(func(c *chatctx.ChatContext) error { return r.couldAsk(r.turn(c, chatctx.MainBranch), in, m) }); err != nil {
		return err
	}
	c, name, err := r.talk()
	if err == nil {
		err = r.joins(c, name, template.System)
	}
	if err != nil {
		return err
	}
	t := r.turn(c, name)
	t.System = template.System
	var msgs []*chatctx.Message
	if m != nil {
		msgs = append(msgs, m)
	}
	if in.Continue {
		if _, err := r.carryOn(r.ctx, c, name); err != nil {
			return err
		}
		r.carried = true
	}
	if many {
		return r.askMany(t, in.askFlags, in.manyFlags, m, "") // which checks for each of them whether it fits
	}
	if err := r.fits(t, msgs); err != nil {
		return err
	}
	return r.speak(t, msgs...)
}

// couldAsk checks that the command can ask the models that it names.
func (r *run) couldAsk(t *turn.Turn, in *sendIn, m *chatctx.Message) error {
	if !r.many(in.askFlags, in.manyFlags) {
		return r.fits(t, []*chatctx.Message{m})
	}
	askers, err := r.askers(t, in.askFlags, in.manyFlags)
	if err != nil {
		return err
	}
	_, err = turn.FitAll(r.ctx, t.Branch, turnsOf(askers), m)
	return r.notTaken(err)
}

// sendMessage returns the user's message, which may begin with a template's text, nil under --continue.
func (r *run) sendMessage(in *sendIn, template string) (*chatctx.Message, error) {
	empty := in.none()
	switch {
	case in.Continue && !empty:
		return nil, usagef("send --continue takes no message")
	case in.Continue && r.many(in.askFlags, in.manyFlags):
		return nil, usagef("send --continue asks once; ask without TEXT asks again on new branches")
	case in.Continue:
		return nil, nil
	case empty && r.con.inTTY:
		return nil, r.needsText()
	}
	text, files, err := r.saidText(&in.askIn, template)
	if err != nil {
		return nil, err
	}
	if empty && text == "" {
		return nil, r.needsText()
	}
	m := &chatctx.Message{Role: pool.User}
	if text != "" {
		m.Content = append(m.Content, pool.Part{Type: pool.TextPart, Text: text})
	}
	if err := attach(r.ctx, m, in.Image, files); err != nil {
		return nil, err
	}
	if len(m.Content) == 0 {
		return nil, errEmptyText
	}
	return m, m.Validate()
}

func (r *run) needsText() error {
	return &usageError{r.name + " needs the text", "usage: chatctx " + r.name + " TEXT, or - for standard input; send --continue answers what the branch ends with"}
}

// saidText returns the text of a message: a template's, that of the command line, and standard input if - asks for it or if there is nothing else. A - among the files means
// the same, and is not among those that it returns.
func (r *run) saidText(in *askIn, template string) (text string, files []string, err error) {
	words, input := slices.DeleteFunc([]string{in.Text, in.Input}, func(w string) bool { return w == "" }), 0
	for i, w := range words {
		if w == "-" {
			input++
		}
		if i == 1 && w != "-" {
			return "", nil, &usageError{fmt.Sprintf("%s: too many arguments, from %q on", r.name, w), "put text of several words in quotes; - is standard input"}
		}
	}
	files = slices.DeleteFunc(slices.Clone(in.File), func(f string) bool {
		if f == "-" {
			words = append(words, "-")
			input++
		}
		return f == "-"
	})
	if input > 1 {
		return "", nil, usagef("standard input can be read only once, and - stands for it %d times", input)
	}
	if len(words) == 0 && template == "" && len(files)+len(in.Image) == 0 {
		words = []string{"-"}
	}
	var texts []string
	if template != "" && len(words) == 0 {
		template, err = r.withPiped(template, in.rawFlag)
	}
	if template != "" {
		texts = append(texts, template)
	}
	if err != nil {
		return "", nil, err
	}
	for _, w := range words {
		text, err := r.text(w, in.rawFlag)
		if err != nil {
			return "", nil, err
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n"), files, nil
}

// fits checks before anything is stored whether the request can be made and whether the provider takes what is attached.
func (r *run) fits(t *turn.Turn, msgs []*chatctx.Message) error {
	return r.notTaken(t.Fits(r.ctx, msgs...))
}

// notTaken says what to do if a provider would not take a message as it is.
func (r *run) notTaken(err error) error {
	var not *turn.NotTakenError
	if errors.As(err, &not) {
		return &usageError{not.Error(), "nothing was stored"}
	}
	return talkHint(err)
}

// speak sends, shows the answer as it arrives, and reports it.
func (r *run) speak(t *turn.Turn, msgs ...*chatctx.Message) error {
	_, err := r.say(t, msgs...)
	return err
}

// say is speak with its outcome, nil if nothing was stored.
func (r *run) say(t *turn.Turn, msgs ...*chatctx.Message) (*turn.Outcome, error) {
	return r.hear(t, msgs, func() (*turn.Outcome, error) { return t.Send(r.ctx, msgs...) })
}

// hear asks, and reports the outcome: nil if nothing was stored or is kept.
func (r *run) hear(t *turn.Turn, msgs []*chatctx.Message, ask func() (*turn.Outcome, error)) (*turn.Outcome, error) {
	compacted := r.compactFirst(t)
	v := &voice{r: r, thinking: r.talks.thinking}
	if !r.json() {
		t.Show = v.show
	}
	out, err := ask()
	v.end()
	if out == nil {
		return nil, r.notSaid(talkHint(err), msgs)
	}
	calls, open, openErr := r.openAfter(out)
	if err == nil {
		err = openErr
	}
	if printErr := r.answered(t, out); printErr != nil && err == nil {
		err = printErr
	}
	switch {
	case err == nil && open.All() > 0:
		r.tellWaiting(calls)
		return out, &waitsError{open, []string{r.toAsk("send --continue", t.Context, out.Branch)}}
	case err == nil && out.Request != nil && compacted:
		r.tidied(t, out)
	}
	if err == nil {
		r.tellUnrun(t.Context, out.Branch)
		for _, m := range out.Replies {
			err = cmp.Or(err, refusal(m))
		}
		if !errors.Is(err, turn.ErrNothing) {
			return out, err
		}
		return out, &hinted{turn.ErrNothing, "to ask again: " + r.toAsk("retry", t.Context, out.Branch)}
	}
	return out, r.asksAgain(t, out, talkHint(err))
}

// asksAgain says how to go on if no answer came: the message is stored and must not be sent a second time; queued messages stay queued.
func (r *run) asksAgain(t *turn.Turn, out *turn.Outcome, err error) error {
	if err == nil {
		return nil
	}
	again := r.toAsk("send --continue", t.Context, out.Branch)
	if wait := r.stranded(t.Context, out.Branch); wait != "" {
		r.note("%s in the queue of %s: the next message that is sent there takes along what waits, or now: %s", wait, clean(out.Branch), again)
	}
	switch {
	case len(out.Asked) == 0 || out.Reply() != nil:
		return err
	case r.ctx.Err() != nil:
		return contract.Partly(err, "the message is on the branch without an answer; to ask again: "+again)
	}
	return withHint(err, "the message is on the branch; to ask again: "+again)
}

// notSaid says how to get a message back that was typed in a chat and not stored.
func (r *run) notSaid(err error, msgs []*chatctx.Message) error {
	if r.con.live == nil || len(msgs) == 0 {
		return err
	}
	return withHint(err, "the message was not stored; the key Up brings it back")
}

// stranded says how many messages wait in the queue of a branch where nobody answers, "" for none.
func (r *run) stranded(c *chatctx.ChatContext, branchName string) string {
	ctx := context.WithoutCancel(r.ctx)
	claim, err := view.Running(ctx, base.ContextOf(c.Store(), c.ID), branchName)
	if err != nil || base.Held(claim, base.Of(r.st).Now()) {
		return "" // the program that answers there goes on with them
	}
	queued, err := view.Queued(ctx, base.ContextOf(c.Store(), c.ID), branchName)
	switch {
	case err != nil || len(queued) == 0:
		return ""
	case len(queued) == 1:
		return "a message waits"
	}
	return count(len(queued), "message") + " wait"
}

// withHint adds a line to the hint of an error.
func withHint(err error, hint string) error {
	if h := (*hinted)(nil); errors.As(err, &h) {
		hint = h.hint + "\n" + hint
	}
	return &hinted{err, hint}
}

// tidied says what was left out of the last request for lack of room, and compacts the branch if its settings say so. Since the answer is there already, a
// failure is only reported.
func (r *run) tidied(t *turn.Turn, out *turn.Outcome) {
	o := window.Of(out.Request).Options
	if o.Notify {
		for _, line := range window.Notices(out.Request.Report) {
			r.note("%s", line)
		}
	}
	done, err := t.Compact(r.ctx)
	switch {
	case err != nil:
		r.notCompacted(err)
	case done != nil && o.Notify:
		r.tellCompacted(t, done)
	}
}

// notCompacted reports that a compaction that is due failed.
func (r *run) notCompacted(err error) {
	lines := []string{"the branch should be compacted, but: " + clean(err.Error())}
	if h := (*hinted)(nil); errors.As(talkHint(err), &h) {
		lines = append(lines, h.hint)
	}
	r.note("%s", r.onLines(lines))
}

func (r *run) tellCompacted(t *turn.Turn, done *window.Compacted) {
	r.note("%s\nundo with: %s", r.compacted(t, done), r.lineAbout("undo "+done.Operation, subject{context: t.Context.ID}))
}

// compacted says what a compaction did. The size after it is that of the branch's next request, if that can be told, so that no two figures stand for one request.
func (r *run) compacted(t *turn.Turn, done *window.Compacted) string {
	req, _, err := r.foresee(t)
	if err != nil {
		return done.Notice()
	}
	done.After = window.Of(req).Forecast.Tokens
	return done.Notice() + "\n  the next request: " + window.Of(req).Forecast.String()
}

// compactFirst compacts a branch that is due for it before something is asked there: much was added, or an earlier compaction failed. It reports whether
// another may be tried after the answer; a failure is reported once and stops nothing.
func (r *run) compactFirst(t *turn.Turn) bool {
	req, _ := t.Fit(r.ctx)
	if req == nil || window.Of(req).Forecast == nil || !window.Of(req).Forecast.Due {
		return true
	}
	done, err := t.Compact(r.ctx)
	if err != nil && r.ctx.Err() == nil {
		r.notCompacted(err)
	}
	if done != nil && window.Of(req).Options.Notify {
		r.tellCompacted(t, done)
	}
	return err == nil
}

// answered reports the outcome of a Send: as JSON a line for each answer, else a line for the person.
func (r *run) answered(t *turn.Turn, out *turn.Outcome) error {
	if !r.json() {
		r.closing(t, out)
		return nil
	}
	v := answerJSON{Context: out.Context, Branch: out.Branch, Queued: out.Queued}
	if len(out.Replies) == 0 && !out.Queued {
		return nil
	}
	if out.Queued {
		return r.printJSON(v)
	}
	_, open, err := r.openAfter(out)
	if err != nil {
		return err
	}
	for i, m := range out.Replies {
		e, err := r.entryOf(t, out, i)
		if err != nil {
			return err
		}
		outcome := pool.OutcomeOf(m)
		v.Message, v.Position, v.Waiting = e, e.Position, 0
		v.FinishReason, v.Outcome, v.Refused = m.Meta.FinishReason, string(outcome), outcome.Refused()
		if i == len(out.Replies)-1 {
			v.Waiting, v.Revision, v.Operation = open.Person, out.Revision, out.Operation
			if open.All() > 0 {
				v.Open = &open.Open
			}
			if req, _, err := r.foresee(t); err == nil {
				window := contract.WindowOf(window.Of(req).Forecast)
				v.Window = &window
			}
		}
		if err := r.printJSON(v); err != nil {
			return err
		}
	}
	return nil
}

// entryOf returns a reply as the branch has it: with the message before it, its turn and session.
func (r *run) entryOf(t *turn.Turn, out *turn.Outcome, i int) (*chatctx.Entry, error) {
	snap, err := t.Context.Snapshot(r.ctx, out.Branch)
	if err != nil {
		return nil, err
	}
	at := out.Places[i].Position
	page, err := snap.Page(r.ctx, at, at)
	if err != nil {
		return nil, err
	}
	if len(page) != 1 || page[0].ID != out.Replies[i].ID { // somebody took it off meanwhile
		return &chatctx.Entry{Message: out.Replies[i], Position: at}, nil
	}
	return page[0], nil
}

// refusal returns the error for a reply that was refused or is empty, nil for any other.
func refusal(m *chatctx.Message) error {
	err := turn.Refusal(m)
	if err == nil || errors.Is(err, turn.ErrNothing) {
		return err
	}
	return fmt.Errorf("%w: %s; what it said is on the branch", err, screen.OutcomeText(m))
}

// closing prints the line after an answer.
func (r *run) closing(t *turn.Turn, out *turn.Outcome) {
	if out.Queued {
		if r.talks.whom != (whomFlags{}) {
			r.note("the answer that is on its way keeps its own model, not the one of this command")
		}
		if out.Holder.PID == os.Getpid() {
			r.note("queued: it goes on %s and is asked after the answer that is on its way there", clean(out.Branch))
			return
		}
		r.note("queued: %s (process %d) waits for an answer on %s and will ask this next", clean(out.Holder.Program), out.Holder.PID, clean(out.Branch))
		return
	}
	m := out.Reply()
	if m == nil {
		return
	}
	for i, earlier := range out.Replies[:len(out.Replies)-1] { // answers to messages of the queue followed
		if came := screen.OutcomeText(earlier); came != "" {
			r.note("the answer on %s, #%d, is %s", clean(out.Branch), out.Places[i].Position, came)
		}
	}
	line := fmt.Sprintf("%s on %s, #%d", clean(m.Meta.Model), clean(out.Branch), out.Places[len(out.Places)-1].Position)
	if m.Meta.InputTokens != nil && m.Meta.OutputTokens != nil {
		line += fmt.Sprintf(", %d tokens in, %d out", *m.Meta.InputTokens, *m.Meta.OutputTokens)
	}
	if m.Meta.CacheRead != nil && *m.Meta.CacheRead > 0 {
		line += fmt.Sprintf(" (%d from the cache)", *m.Meta.CacheRead)
	}
	if m.Unfinished {
		line += ", unfinished"
	} else if came := screen.OutcomeText(m); came != "" {
		line += ", " + came
	}
	req, _, err := r.foresee(t)
	told := err == nil && window.Of(req).Options.Notify
	parts := []string{line}
	if told && (window.Of(req).Forecast.Due || 2*window.Of(req).Forecast.Tokens > window.Of(req).Forecast.Budget && window.Of(req).Forecast.Budget > 0) {
		parts = append(parts, "the next request: "+window.Of(req).Forecast.String())
	}
	r.note("%s", r.onLines(append(parts, "undo with: "+r.lineAbout("undo "+out.Operation, subject{context: t.Context.ID}))))
	if told && !r.common.Quiet && window.Of(req).Options.Budget == 0 && req.Draft.Settings["budget"] == nil && view.FirstTold(r.ctx, base.Of(r.st), t.Context.ID, window.Of(req).Options.Model) {
		r.note("context window of %s unknown; nothing was trimmed. Set it: chatctx config budget=N, in tokens", clean(window.Of(req).Options.Model))
	}
}

// voice shows an answer as it arrives.
type voice struct {
	r        *run
	thinking bool   // show it
	last     string // the type of the previous piece
	open     bool   // the present line has words
}

func (v *voice) show(e turn.Event) {
	if v.r.con.happens != nil {
		v.r.con.happens(e)
	}
	switch {
	case e.Delta != nil:
		v.delta(e.Delta)
	case e.Retry != nil:
		v.r.note("%s: %s; trying again in %s", e.Retry.Failed.Provider, strings.ReplaceAll(string(e.Retry.Failed.Kind), "_", " "), e.Retry.Wait.Round(time.Second/10))
	case e.Settled != nil:
		v.r.note("an answer that another program began is on the branch, unfinished: %s", short(e.Settled.ID))
	case e.Message != nil:
		v.message(e.Message)
	}
}

func (v *voice) delta(d *wire.Delta) {
	r := v.r
	switch d.Type {
	case pool.ThinkingPart:
		if !v.thinking {
			return
		}
		v.turnTo(d.Type, "[thinking]\n")
		r.printf("%s", r.paint(dim, clean(d.Text)))
	case pool.TextPart, pool.RefusalPart:
		v.turnTo(pool.TextPart, "")
		if r.con.live != nil {
			r.con.live.Say(d.Text)
			return
		}
		r.printf("%s", clean(d.Text))
	default:
		return
	}
	v.open = d.Text == "" || d.Text[len(d.Text)-1] != '\n'
	r.con.out.flush()
}

// turnTo begins another kind of words on a line of its own.
func (v *voice) turnTo(typ, mark string) {
	if v.last == typ {
		return
	}
	v.end()
	if v.last == pool.ThinkingPart {
		v.r.printf("[/thinking]\n")
	}
	v.r.printf("%s", mark)
	v.last = typ
}

// message shows the calls of a stored answer.
func (v *voice) message(m *chatctx.Message) {
	v.end()
	if v.last == pool.ThinkingPart {
		v.r.printf("[/thinking]\n")
	}
	v.last = ""
	for i := range m.Calls {
		v.r.printf("%s\n", callLine(m, i))
	}
}

// end ends the present line; if an interrupt has ended the output, on the terminal's other stream.
func (v *voice) end() {
	if v.r.con.live != nil {
		v.r.con.live.Said()
	}
	if v.open && v.r.con.tty && v.r.con.out.ctx.Err() != nil {
		fmt.Fprintln(v.r.con.err)
		v.open = false
	}
	if v.open {
		v.r.printf("\n")
		v.open = false
	}
	v.r.con.out.flush()
}

// settle puts on the branch what had arrived of an answer whose program has died. If the store cannot be written, it does nothing. It closes the store.
func (r *run) settle(c *chatctx.ChatContext) {
	r.close()
	if _, err := r.writer(); err == nil {
		if w, err := r.st.Context(r.ctx, c.ID.String()); err == nil {
			_, _ = w.Settle(r.ctx, r.branchName(), chatctx.SettleOptions{}) // the next writer tries again
		}
		r.close()
	}
}
