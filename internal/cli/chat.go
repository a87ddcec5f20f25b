package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// chat is a session: messages go to the model, lines that begin with a slash are commands. Both may run while an answer comes.
type chat struct {
	r       *run
	context *chatctx.ChatContext
	out     io.Writer // takes writes from several goroutines
	prompt  func()    // shows that a line can be typed; nil where nobody types

	mu       sync.Mutex
	branch   string
	stops    map[int]context.CancelFunc // of the answers that come
	next     int
	question *asking    // about calls that wait; nil for none
	front    sync.Mutex // held by the answer that shows while it comes; others show when they are whole
	answers  sync.WaitGroup
	failed   error // the last answer's, for the exit code where nobody is at the terminal
}

func doChat(r *run) error {
	if err := r.somewhere(); err != nil {
		return err
	}
	c, name, err := r.talk()
	if err != nil {
		return err
	}
	s := &chat{r: r, context: c, branch: name, stops: map[int]context.CancelFunc{}}
	if _, err := r.turn(c, name).Request(r.ctx, pool.NewText(pool.User, "Hello")); err != nil {
		return talkHint(err)
	}
	if r.con.inTTY && r.con.tty && !r.json() {
		return s.atTerminal()
	}
	return s.fromPipe()
}

// fromPipe takes a line at a time, and its answer before the next.
func (s *chat) fromPipe() error {
	s.out = s.r.con.out
	in := bufio.NewScanner(s.r.con.in)
	in.Buffer(nil, maxText)
	for in.Scan() {
		if s.take(in.Text()) {
			break
		}
		s.answers.Wait()
		if err := s.r.ctx.Err(); err != nil {
			return err
		}
	}
	return errors.Join(in.Err(), s.failed)
}

// take does what a line says and reports whether it ends the chat.
func (s *chat) take(line string) (quit bool) {
	if s.answersQuestion(line) {
		return false
	}
	trimmed := strings.TrimSpace(line)
	switch {
	case trimmed == "":
		s.ready()
	case trimmed == "/quit" || trimmed == "/exit":
		return true
	case strings.HasPrefix(trimmed, "/"):
		s.command(strings.TrimSpace(trimmed[1:]))
	default:
		if err := validText(line); err != nil {
			s.complain(err)
			return false
		}
		s.say(pool.NewText(pool.User, line))
	}
	return false
}

// console is a console of its own for something that runs in the chat.
func (s *chat) console(ctx context.Context) *console {
	c := *s.r.con
	c.in, c.inTTY, c.tty, c.errs = strings.NewReader(""), false, false, false
	c.out, c.err = newOutput(ctx, s.out), s.out
	if s.prompt == nil {
		c.err = s.r.con.err
	}
	return &c
}

func (s *chat) complain(err error) {
	con := s.console(s.r.ctx)
	printError(con.err, err, s.r.json())
	s.ready()
}

// ready shows the prompt if no answer is on its way.
func (s *chat) ready() {
	s.mu.Lock()
	idle := len(s.stops) == 0
	s.mu.Unlock()
	if idle && s.prompt != nil {
		s.prompt()
	}
}

func (s *chat) onBranch() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.branch
}

// say sends a message, or none to answer what the branch ends with, and does not wait for the answer. Where one comes already on the
// branch, the message is queued and that one goes on with it.
func (s *chat) say(msgs ...*chatctx.Message) {
	ctx, cancel := context.WithCancel(s.r.ctx)
	s.mu.Lock()
	id := s.next
	s.next++
	s.stops[id] = cancel
	branch := s.branch
	s.mu.Unlock()
	s.answers.Go(func() {
		defer cancel()
		err := s.answer(ctx, branch, msgs)
		s.mu.Lock()
		delete(s.stops, id)
		s.failed = err
		s.mu.Unlock()
		if err != nil && s.prompt != nil {
			s.complain(err)
			return
		}
		s.ready()
	})
}

func (s *chat) answer(ctx context.Context, branch string, msgs []*chatctx.Message) error {
	r := *s.r
	r.ctx, r.con = ctx, s.console(ctx)
	r.con.out.ctx = s.r.ctx // what came is shown also when the answer is stopped
	t := r.turn(s.context, branch)
	if !s.front.TryLock() {
		out, err := t.Send(ctx, msgs...)
		if out != nil && !out.Queued {
			r.answeredApart(t, out)
		}
		return err
	}
	defer s.front.Unlock()
	err := s.speak(&r, t, msgs)
	return errors.Join(err, r.con.out.close())
}

// stop ends the answers that come, and reports whether there were any.
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
	if err != nil {
		s.complain(err)
		return
	}
	before := s.active()
	con := s.console(s.r.ctx)
	err = execute(s.r.ctx, con, append(s.shared(p), args...))
	if closeErr := con.out.close(); err == nil {
		err = closeErr
	}
	s.follow(p, before, err)
	if err != nil {
		s.complain(err)
		return
	}
	if p.name() == "edit" && !p.help {
		s.answerEdit()
		return
	}
	s.ready()
}

// shared are the flags that put a command on this conversation.
func (s *chat) shared(p *parsed) []string {
	var flags []string
	given := strings.Join(p.shared, " ")
	add := func(name, value string) {
		if value != "" && !strings.Contains(given, "--"+name+"=") {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	add("store", s.r.flagOnly("store", "CHATCTX_STORE"))
	if on := p.command().scope; on == onBranch || on == onContext {
		add("context", s.context.ID.String())
		if on == onBranch {
			add("branch", s.onBranch())
		}
	}
	return flags
}

func (s *chat) active() string {
	info, err := s.context.Info(s.r.ctx)
	if err != nil {
		return ""
	}
	return info.Active
}

// follow goes on in the branch that a command went to.
func (s *chat) follow(p *parsed, before string, err error) {
	after := s.active()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil && p.name() == "switch" && len(p.args) == 1:
		s.branch = p.args[0]
	case after != "" && after != before:
		s.branch = after
	}
}

// answerEdit asks for an answer where an edit left the branch with a question.
func (s *chat) answerEdit() {
	_, last, err := s.r.question(s.context, s.onBranch())
	if err == nil && last {
		s.say()
		return
	}
	s.ready()
}

// chatWords makes a command line of what stands after the slash: words, which may be in quotes. Where a command ends with a text, the
// rest of the line is that text, as it is.
func chatWords(line string) []string {
	name, rest, _ := strings.Cut(line, " ")
	if name == "model" {
		return []string{"config", "model=" + strings.TrimSpace(rest)}
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

// cutWords parts a line at white space. A word that begins with a quote ends with the same.
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

// greeting is what a chat begins with.
func (s *chat) greeting() string {
	return fmt.Sprintf("%s. A line is a message; /help lists commands, Ctrl-C stops an answer, Ctrl-D ends the chat.\n", clean(s.branch))
}
