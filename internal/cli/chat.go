package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/internal/ui"
	"github.com/chatctx/chatctx/pool"
)

// chat is a session: messages go to the model, lines that begin with a slash are commands. Both may run while an answer arrives.
type chat struct {
	r    *run
	term *ui.Prompt // nil if there is no terminal

	mu       sync.Mutex
	context  *chatctx.ChatContext
	branch   string
	stops    map[int]context.CancelFunc // of the answers under way, and of the running command
	next     int
	question *asking    // about waiting calls; nil if there is none
	news     news       // what others add
	shown    spot       // of the answer that holds front
	front    sync.Mutex // held by the answer that is shown as it arrives; others are shown when they are complete
	answers  sync.WaitGroup
	stored   <-chan struct{}               // closed when the message said last is stored; nil if none was said
	failed   error                         // of the first line that failed, for the exit code if there is no terminal
	waits    error                         // the last answer's whose calls waited
	talks    talks                         // the command line says how, until a command replaces it
	said     map[spot]*chatctx.ChatContext // where this chat said something
}

// spot is a branch of a conversation.
type spot struct {
	context chatctx.ID
	branch  string
}

type chatIn struct {
	whomFlags
	thinkingFlag
}

func doChat(r *run, _ *chatIn) error {
	hello := pool.NewText(pool.User, "Hello")
	err := r.somewhere(func(c *chatctx.ChatContext) error {
		_, err := r.turn(c, "").Request(r.ctx, hello)
		return talkHint(err)
	})
	if err != nil {
		return err
	}
	c, name, err := r.talk()
	if err != nil {
		return err
	}
	s := &chat{r: r, context: c, branch: name, stops: map[int]context.CancelFunc{}, talks: r.talks, said: map[spot]*chatctx.ChatContext{}}
	if _, err := r.turn(c, name).Request(r.ctx, hello); err != nil {
		return talkHint(err)
	}
	if r.con.inTTY && r.con.tty && !r.con.plain && !r.json() {
		if err := r.prove(c.Store()); err != nil {
			return err
		}
		return s.atTerminal()
	}
	return s.fromPipe()
}

// fromPipe takes one line after the other, each after the answer to the one before. Failures are reported as they come; the first is the outcome.
func (s *chat) fromPipe() error {
	in := bufio.NewScanner(s.r.con.in)
	in.Buffer(nil, maxText)
	for in.Scan() {
		if s.take(in.Text()) {
			break
		}
		s.answers.Wait()
		if s.r.ctx.Err() != nil {
			break
		}
	}
	err := errors.Join(s.r.ctx.Err(), in.Err(), s.unanswered())
	told := s.failed
	if told == nil && s.callsWait() {
		told = s.waits
	}
	if told == nil {
		return err
	}
	if err != nil && s.r.ctx.Err() == nil {
		s.complain(err)
	}
	return &toldError{told}
}

// callsWait reports whether a call is still open where this chat said something.
func (s *chat) callsWait() bool {
	for at, c := range s.said {
		if open, err := toolcall.OpenCalls(s.r.ctx, base.ContextOf(c.Store(), c.ID), at.branch); err != nil || len(open) > 0 {
			return true
		}
	}
	return false
}

// fails reports the failure of a line, a message or a command. A call that waits is one only if it still does at the end.
func (s *chat) fails(err error) {
	var waits *waitsError
	s.mu.Lock()
	if errors.As(err, &waits) {
		s.waits = err
	} else if s.failed == nil {
		s.failed = err
	}
	s.mu.Unlock()
	s.complain(err)
}

// unanswered returns an error for messages that this chat leaves in a queue where nobody answers them.
func (s *chat) unanswered() error {
	r := *s.r
	r.talks = s.nowTalks()
	var all error
	for at, c := range s.said {
		if wait := r.stranded(c, at.branch); wait != "" {
			why := fmt.Errorf("%s in the queue of branch %q and nobody answers there", wait, clean(at.branch))
			all = errors.Join(all, &hinted{contract.Partly(why, "all else is on the branch"), "to have an answer: " + r.toAsk("send --continue", c, at.branch)})
		}
	}
	return all
}

// take does what a line says and reports whether it ends the chat.
func (s *chat) take(line string) (quit bool) {
	trimmed := strings.TrimSpace(line)
	switch command := strings.HasPrefix(trimmed, "/"); {
	case !command && s.answersQuestion(line):
	case trimmed == "/quit" || trimmed == "/exit":
		return true
	case strings.HasPrefix(trimmed, "/quit ") || strings.HasPrefix(trimmed, "/exit "):
		s.fails(usagef("%s takes nothing after it, and ends the chat", trimmed[:5]))
	case command:
		s.command(strings.TrimSpace(trimmed[1:]))
	default:
		s.sayText(line)
	}
	return false
}

// sayText sends a line as a message.
func (s *chat) sayText(line string) {
	switch err := validText(line); {
	case err != nil:
		s.fails(err)
	case strings.TrimSpace(line) == "":
		s.ready()
	default:
		s.say(pool.NewText(pool.User, line))
	}
}

// console returns a separate console for something that runs in the chat.
func (s *chat) console(ctx context.Context) *console { return s.consoleOn(ctx, s.term.Print) }

// consoleOn is console with what prints its lines.
func (s *chat) consoleOn(ctx context.Context, print func(string)) *console {
	c := *s.r.con
	c.in, c.inTTY, c.tty, c.errs = strings.NewReader(""), false, false, false
	if s.term == nil {
		c.out = newOutput(ctx, s.r.con.out)
		return &c
	}
	w := &lineWriter{print: print}
	c.out, c.err, c.live, c.width, c.hint = newOutput(ctx, w), w, s.term, s.term.Columns(), s.slashed
	return &c
}

func (s *chat) complain(err error) {
	con := s.console(s.r.ctx)
	printError(con.err, s.inSlashes(err), s.r.json())
	s.ready()
}

// ready shows where the next message goes.
func (s *chat) ready() {
	if s.term == nil {
		return
	}
	s.mu.Lock()
	asked, idle := s.question != nil, len(s.stops) == 0
	s.mu.Unlock()
	if idle {
		s.term.Doing("")
	}
	if !asked {
		s.term.SetLabel(s.label())
	}
}

// label stands before the line.
func (s *chat) label() string { return oneLine(s.onBranch()) + "> " }

func (s *chat) onBranch() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.branch
}

// say sends a message, or none to answer what the branch ends with, without waiting for the answer. If an answer is arriving on the branch already, the
// message is queued and that answer's program goes on with it. Messages are stored in the order in which they are said.
func (s *chat) say(msgs ...*chatctx.Message) {
	ctx, ended := s.stoppable()
	s.mu.Lock()
	c, branch := s.context, s.branch
	s.mu.Unlock()
	if err := s.fits(ctx, c, branch, msgs); err != nil {
		ended()
		s.fails(err)
		return
	}
	s.news.mine(msgs)
	s.mu.Lock()
	s.said[spot{c.ID, branch}] = c
	before, stored := s.stored, make(chan struct{})
	s.stored = stored
	s.mu.Unlock()
	s.answers.Go(func() {
		begun := sync.OnceFunc(func() { close(stored) })
		if before != nil {
			<-before
		}
		err := s.answer(ctx, c, branch, msgs, begun)
		begun()
		ended()
		s.catchUp()
		if err != nil {
			s.fails(err)
			return
		}
		s.ready()
	})
}

// fits checks before a message is stored whether the model would get it. The messages of a chat are checked in the order in which they are typed.
func (s *chat) fits(ctx context.Context, c *chatctx.ChatContext, branch string, msgs []*chatctx.Message) error {
	if len(msgs) == 0 {
		return nil
	}
	r := *s.r
	r.ctx, r.con, r.talks = ctx, s.console(ctx), s.nowTalks()
	if err := r.fits(r.turn(c, branch), msgs); err != nil {
		return r.notSaid(err, msgs)
	}
	return nil
}

// answer sends messages and shows the answer, or that the messages wait for another one. It calls begun when the messages are stored.
func (s *chat) answer(ctx context.Context, c *chatctx.ChatContext, branch string, msgs []*chatctx.Message, begun func()) error {
	r, first, print := *s.r, s.front.TryLock(), s.term.PrintBetween
	if first {
		defer s.front.Unlock()
		print = s.term.Print
	}
	r.ctx, r.con, r.talks = ctx, s.consoleOn(ctx, print), s.nowTalks()
	r.con.out.ctx = s.r.ctx // what arrived is shown even if the answer is stopped
	shows := func(e turn.Event) { s.happens(c, branch, e) }
	r.con.happens = func(e turn.Event) {
		if e.Begun {
			begun()
			return
		}
		shows(e)
	}
	t := r.turn(c, branch)
	here := s.inFront(c, branch)
	switch {
	case first:
	case here: // it is queued, or its turn comes when the answer in front has ended
		turns := sync.OnceFunc(s.front.Lock)
		mine := false
		shows = func(e turn.Event) {
			turns()
			mine = true
			s.happens(c, branch, e)
		}
		defer func() {
			if mine {
				s.front.Unlock()
			}
		}()
	default:
		t.Show = r.con.happens
		out, err := t.Send(ctx, msgs...)
		switch {
		case out == nil:
			return r.notSaid(err, msgs)
		case !out.Queued:
			r.answeredApart(t, out)
		}
		return r.asksAgain(t, out, err)
	}
	s.setFront(c, branch)
	err := s.speak(&r, t, msgs)
	return errors.Join(err, r.con.out.close())
}

// nowTalks returns how the chat talks with a model now.
func (s *chat) nowTalks() talks {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.talks
}

// unsay makes settings that a command sets count before those of the command line; a model counts with its provider.
func (s *chat) unsay(p *parsed) {
	in, is := p.in.(*operation.Configuring)
	if !is {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, setting := range in.Args {
		switch key, _, set := strings.Cut(setting, "="); {
		case set && key == "model":
			s.talks.whom = whomFlags{}
		case set && key == "provider":
			s.talks.whom.Provider = ""
		}
	}
}

// inFront reports whether the answer that is shown as it arrives is one on a branch.
func (s *chat) inFront(c *chatctx.ChatContext, branch string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown == spot{c.ID, branch}
}

func (s *chat) setFront(c *chatctx.ChatContext, branch string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = spot{c.ID, branch}
}

// stoppable returns a context for something that stop ends. Call ended when it is over.
func (s *chat) stoppable() (ctx context.Context, ended func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithCancel(s.r.ctx)
	id := s.next
	s.next++
	s.stops[id] = cancel
	return ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stops, id)
		cancel()
	}
}

// stop ends the answers under way and the running command, and reports whether there were any.
func (s *chat) stop() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.stops {
		cancel()
	}
	return len(s.stops) > 0
}

// command runs a command line on this conversation.
func (s *chat) command(line string) {
	args := chatWords(line)
	p, err := split(allCommands(), args)
	if err == nil && (p.command() == nil || p.command().name == "chat") {
		err = usagef("no such command in a chat: /help lists them")
	}
	if err == nil && p.name() == "help" && len(p.args) == 0 {
		s.show(chatHelp)
		return
	}
	if err == nil && s.term != nil && !p.help {
		p, args, err = s.picked(p, args)
	}
	if err != nil {
		s.fails(err)
		return
	}
	was := s.place()
	quiet := s.news.quiet()
	con := s.console(s.r.ctx)
	con.begins = s.model(p)
	ctx, ended := s.stoppable()
	ctx = context.WithValue(ctx, inChat{}, s.nowTalks())
	err = execute(ctx, con, slices.Concat(flagWords(s.shared(p)), args[:len(p.path)], s.whom(p), args[len(p.path):]))
	if closeErr := con.out.close(); err == nil {
		err = closeErr
	}
	ended()
	s.follow(p, was, err)
	s.seen()
	quiet()
	if err != nil {
		s.fails(err)
		return
	}
	s.unsay(p)
	switch name := p.name(); {
	case p.help:
	case name == "edit":
		s.answerEdit()
		return
	case s.isElsewhere(p):
	case name == "calls approve", name == "calls deny", name == "calls cancel", name == "calls resolve":
		s.goOn()
		return
	}
	s.ready()
}

// show prints a text of the chat itself.
func (s *chat) show(text string) {
	con := s.console(s.r.ctx)
	fmt.Fprint(con.out, text)
	if err := con.out.close(); err != nil {
		s.fails(err)
		return
	}
	s.ready()
}

// picked asks the person, with the whole terminal, for what a command does not say: where to go, or in an editor for another text.
func (s *chat) picked(p *parsed, args []string) (*parsed, []string, error) {
	asks := map[string]func(*run) (string, error){"use": (*run).pickContext, "switch": (*run).pickBranch}[p.name()]
	if edit, is := p.in.(*operation.Editing); is && len(p.args) == 1 {
		asks = func(r *run) (string, error) { return r.editedText(edit.Message) }
	} else if len(p.args) > 0 {
		asks = nil
	}
	if asks == nil {
		return p, args, nil
	}
	var answer string
	err := s.term.Aside(func() (err error) {
		r := s.r.apart()
		defer r.close()
		r.common = p.over(s.shared(p))
		answer, err = asks(r)
		return err
	})
	if err != nil {
		return p, args, err
	}
	args = append(args, "--", answer)
	p, err = split(allCommands(), args)
	return p, args, err
}

// shared returns the flags that make a command work on this conversation, unless it names another.
func (s *chat) shared(p *parsed) commonFlags {
	here, said := commonFlags{Store: s.r.typedStore()}, p.over(commonFlags{})
	if said.Store != "" {
		here.Store = ""
	}
	if p.command().scope >= onContext && said.Context == "" {
		here.Context = s.conversation().ID.String()
	}
	if p.command().scope == onBranch && said.Branch == "" {
		here.Branch = s.onBranch()
	}
	return here
}

// isElsewhere reports whether a command names another branch than the chat's.
func (s *chat) isElsewhere(p *parsed) bool {
	branch := p.over(commonFlags{}).Branch
	return branch != "" && branch != s.onBranch()
}

// whom returns the flags that make a command ask the model of this chat, unless it names one.
func (s *chat) whom(p *parsed) []string {
	whom := s.nowTalks().whom
	switch in := p.in.(type) {
	case *operation.ModelListing:
		if in.Provider == "" {
			return flagWords(providerFlag{whom.Provider})
		}
	case asksWhom:
		many, can := p.in.(interface{ several() bool })
		if _, named := in.Asks(); !named && !(can && many.several()) {
			return flagWords(whom)
		}
	}
	return nil
}

// model returns the settings that say which model this branch asks and where, for a new conversation to go on with it: those that the store does not give to every
// conversation. A command line that names a model takes none of them.
func (s *chat) model(p *parsed) map[string]json.RawMessage {
	if in, is := p.in.(*operation.NewConversation); !is || in.Model != "" {
		return nil
	}
	here, err := s.conversation().Effective(s.r.ctx, s.onBranch())
	if err != nil {
		return nil
	}
	defaults, err := s.r.st.Settings(s.r.ctx)
	if err != nil {
		return nil
	}
	maps.DeleteFunc(here, func(name string, value json.RawMessage) bool {
		row, known := settings.Lookup(name)
		return !known || row.Group != settings.Asked || bytes.Equal(value, defaults[name])
	})
	return here
}

func (s *chat) conversation() *chatctx.ChatContext {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.context
}

// standing is where a chat may go on: the store's current conversation, and the active branch of the chat's own.
type standing struct {
	current chatctx.ID
	active  string
}

func (s *chat) place() (at standing) {
	if c, err := s.r.st.Context(s.r.ctx, ""); err == nil {
		at.current = c.ID
	}
	if info, err := s.conversation().Info(s.r.ctx); err == nil {
		at.active = info.Active
	}
	return at
}

// follow follows a command to another conversation or branch.
func (s *chat) follow(p *parsed, was standing, err error) {
	now, name := s.place(), p.name()
	moves := name == "use" || name == "new" || name == "import" && now.current != was.current
	if err == nil && moves && !p.help {
		s.moveTo(now.current)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil && name == "switch" && len(p.args) == 1:
		s.branch = p.args[0]
	case now.active != "" && now.active != was.active:
		s.branch = now.active
	}
}

// moveTo goes on in another conversation, on its active branch.
func (s *chat) moveTo(id chatctx.ID) {
	c, err := s.r.st.Context(s.r.ctx, id.String())
	if err != nil {
		return
	}
	info, err := c.Info(s.r.ctx)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.context, s.branch = c, info.Active
}

// answerEdit asks for an answer if an edit left the branch with a question.
func (s *chat) answerEdit() {
	_, last, err := s.r.question(s.conversation(), s.onBranch())
	if err == nil && last {
		s.say()
		return
	}
	s.ready()
}

// chatWords makes a command line of the text after the slash: words, which may be quoted. If a command ends with a text, the rest of the line is that text,
// unchanged.
func chatWords(line string) []string {
	name, rest, _ := strings.Cut(line, " ")
	if rest = strings.TrimSpace(rest); name == "model" && rest != "" {
		return []string{"config", "model=" + rest}
	} else if name == "model" {
		return []string{"config", "model"}
	}
	words, starts := cutWords(line)
	cmd, at := findCommand(allCommands(), words[0]), 1
	for cmd != nil && at < len(words) {
		sub := findCommand(cmd.subs, words[at])
		if sub == nil {
			break
		}
		cmd, at = sub, at+1
	}
	if cmd == nil {
		return words
	}
	spec := cmd.arguments()
	if len(spec) == 0 || !strings.HasPrefix(spec[len(spec)-1].word, "TEXT") {
		return words
	}
	first := at + len(spec) - 1
	if first >= len(words) {
		return words
	}
	for _, w := range words[at:] {
		if strings.HasPrefix(w, "--") {
			return words
		}
	}
	if text := line[starts[first]:]; text[0] != '"' && text[0] != '\'' {
		return append(words[:first:first], "--", text)
	}
	return words
}

// cutWords splits a line at white space. A word that begins with a quote ends with the same.
func cutWords(line string) (words []string, starts []int) {
	for i := 0; i < len(line); {
		if line[i] == ' ' || line[i] == '\t' || line[i] == '\n' {
			i++
			continue
		}
		starts = append(starts, i)
		if q := line[i]; q == '"' || q == '\'' {
			if end := strings.IndexByte(line[i+1:], q); end >= 0 {
				words = append(words, line[i+1:i+1+end])
				i += end + 2
				continue
			}
		}
		end := strings.IndexAny(line[i:], " \t\n")
		if end < 0 {
			end = len(line) - i
		}
		words = append(words, line[i:i+end])
		i += end
	}
	if len(words) == 0 {
		return []string{""}, []int{0}
	}
	return words, starts
}
