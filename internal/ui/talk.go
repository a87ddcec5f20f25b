package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/pool"
)

func talkingKeys() []key {
	return []key{
		{[]string{"i"}, inTree | inPreview, "write", "write to the model on the active branch; an empty message has it go on", (*model).write},
		{[]string{"r"}, inTree | inPreview, "retry", "answer the question at the cursor again, with another model", (*model).retry},
		{[]string{"A"}, inTree | inPreview, "", "ask several models at once, each on a branch of its own", (*model).askMany},
		{[]string{"x"}, inTree | inPreview, "", "stop the answers that come", (*model).stop},
	}
}

// stream is an answer that comes.
type stream struct {
	context chatctx.ID
	branch  string // "" until the branch is made that it comes on
	stop    context.CancelFunc
	text    strings.Builder
	state   string // what happens where no words come
	done    bool

	shown   screen.Stream // of the text, in so many columns
	upTo    int           // what of the text was given to it
	whole   []screen.Line // what it gave
	columns int
}

// streamMsg is something that happens to an answer; ended is set at its end.
type streamMsg struct {
	*stream
	event turn.Event
	ended *doneMsg
}

func (s *stream) running() bool { return !s.done }

// doing is what happens, for the status.
func (s *stream) doing() string {
	if s.branch == "" {
		return "making a branch for the answer"
	}
	return "answering on " + screen.OneLine(s.branch)
}

// streaming is the answer that comes on a branch of the open conversation, nil for none.
func (m *model) streaming(branch string) *stream {
	i := slices.IndexFunc(m.streams, func(s *stream) bool {
		return s.running() && s.branch == branch && m.conv != nil && s.context == m.conv.c.ID
	})
	if i < 0 {
		return nil
	}
	return m.streams[i]
}

// streamShown is the answer that the preview shows: one that comes on a branch whose head the cursor is on.
func (m *model) streamShown() *stream {
	if m.conv == nil || m.left == onList {
		return nil
	}
	if r := m.conv.here(); r != nil {
		for _, i := range r.Heads {
			if s := m.streaming(m.conv.nameOf(i)); s != nil {
				return s
			}
		}
	}
	return nil
}

// lines are the answer so far. Blocks that are whole are rendered once, the last one as it comes.
func (s *stream) lines(columns int, width screen.Width) []screen.Line {
	if s.columns != columns {
		s.again(columns)
	}
	text := s.text.String()
	s.whole = append(s.whole, s.shown.Add(text[s.upTo:], columns, width)...)
	s.upTo = len(text)
	head := screen.Line{{Text: "assistant", Style: screen.Green | screen.Bold}, {Text: "  " + s.state + " x stops", Style: screen.Dim}}
	return append(append([]screen.Line{head}, s.whole...), s.shown.Rest(columns, width)...)
}

// again has all of the text rendered anew.
func (s *stream) again(columns int) {
	s.shown, s.whole, s.upTo, s.columns = screen.Stream{}, nil, 0, columns
}

// begin starts an answer on a branch; answer is called beside the loop, with a context that the person can stop.
func (m *model) begin(branch string, answer func(ctx context.Context, s *stream) doneMsg) {
	ctx, cancel := context.WithCancel(m.ctx)
	s := m.newStream(branch, cancel)
	m.errands.do(func() {
		defer cancel()
		done := answer(ctx, s)
		m.send(streamMsg{stream: s, ended: &done})
	})
}

func (m *model) newStream(branch string, stop context.CancelFunc) *stream {
	s := &stream{context: m.conv.c.ID, branch: branch, stop: stop, state: "asking …"}
	m.streams = append(slices.DeleteFunc(m.streams, func(s *stream) bool { return s.done }), s)
	m.follow = true
	return s
}

// turnOn is how a branch is asked here: what happens is shown as the stream's.
func (m *model) turnOn(c *chatctx.ChatContext, branch string, set map[string]json.RawMessage, s *stream) *turn.Turn {
	t := m.o.Turn(c, branch, set)
	t.Show = func(e turn.Event) { m.send(streamMsg{stream: s, event: e}) }
	return t
}

// streamed takes what happens to an answer.
func (m *model) streamed(msg streamMsg) tea.Cmd {
	s, e := msg.stream, msg.event
	here := m.conv != nil && m.conv.c.ID == s.context
	switch {
	case msg.ended != nil:
		s.done = true
		if errors.Is(msg.ended.err, context.Canceled) {
			*msg.ended = came(nil, msg.ended.err)
		}
		m.complain(msg.ended.err)
		if !here {
			return nil
		}
		if msg.ended.err == nil && msg.ended.note != "" {
			m.say(false, msg.ended.note)
		}
		if msg.ended.head != "" {
			m.goHead = msg.ended.head
		}
		return m.reread()
	case e.Delta != nil:
		switch e.Delta.Type {
		case pool.ThinkingPart:
			s.state = "thinking …"
		default:
			s.state = ""
			s.text.WriteString(e.Delta.Text)
		}
	case e.Retry != nil:
		s.state = fmt.Sprintf("%s: %s; trying again …", e.Retry.Failed.Provider, strings.ReplaceAll(string(e.Retry.Failed.Kind), "_", " "))
	case e.Message != nil:
		s.text.Reset()
		s.again(s.columns)
		if here {
			return m.reread()
		}
	}
	return nil
}

func (m *model) stop() tea.Cmd {
	n := 0
	for _, s := range m.streams {
		if s.running() {
			s.stop()
			n++
		}
	}
	if n == 0 {
		m.say(true, "no answer comes")
	}
	return nil
}

// talks reports whether there is a conversation and somebody to ask.
func (m *model) talks() bool {
	if m.conv == nil {
		return false
	}
	if m.o.Turn == nil {
		m.say(true, "nobody can be asked here")
		return false
	}
	return true
}

func (m *model) write() tea.Cmd {
	if !m.talks() {
		return nil
	}
	branch := m.conv.info.Active
	cmd := m.askText("to the model on "+branch, "", func(m *model, text string) tea.Cmd { return m.sendOn(branch, text) })
	m.question.empty = true
	return cmd
}

// sendOn sends a message on a branch; an empty one answers what the branch ends with.
func (m *model) sendOn(branch, text string) tea.Cmd {
	if m.conv == nil {
		return nil
	}
	c := m.conv.c
	var messages []*chatctx.Message
	if strings.TrimSpace(text) != "" {
		messages = append(messages, pool.NewText(pool.User, text))
	}
	m.begin(branch, func(ctx context.Context, s *stream) doneMsg {
		t := m.turnOn(c, branch, nil, s)
		if err := t.Fits(ctx, messages...); err != nil {
			return doneMsg{err: err}
		}
		out, err := t.Send(ctx, messages...)
		return came(out, err)
	})
	m.toNamed(branch)
	m.focus = onTree
	return nil
}

// came says what became of an answer.
func came(out *turn.Outcome, err error) doneMsg {
	switch {
	case errors.Is(err, context.Canceled) && (out == nil || out.Reply() == nil):
		done := doneMsg{note: "stopped before an answer was there"}
		if out != nil {
			done.head = out.Branch
		}
		return done
	case errors.Is(err, context.Canceled):
		return doneMsg{note: "stopped; what came is kept, unfinished", head: out.Branch}
	case err != nil:
		return doneMsg{err: err}
	case out.Queued:
		return doneMsg{note: "queued: " + out.Holder.Program + " waits for an answer here and will ask this next"}
	case out.Waiting > 0:
		return doneMsg{note: waits(out.Waiting) + " for a word of yours: a", head: out.Branch}
	}
	note := "answered on " + out.Branch
	if r := out.Reply(); r != nil && r.Meta.InputTokens != nil && r.Meta.OutputTokens != nil {
		note += fmt.Sprintf(": %d tokens in, %d out", *r.Meta.InputTokens, *r.Meta.OutputTokens)
	}
	return doneMsg{note: note + "; u takes it back", head: out.Branch}
}

// retry asks the question at the cursor again, on a branch beside the old answer.
func (m *model) retry() tea.Cmd {
	if !m.talks() {
		return nil
	}
	return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
		branch, at := v.nameOf(r.Branch), e.ID
		m.ask("retry with the model", word(v.settings["model"]), func(m *model, name string) tea.Cmd {
			c, set := v.c, map[string]json.RawMessage{"model": quoted(strings.TrimSpace(name))}
			if m.conv == v {
				m.begin("", func(ctx context.Context, s *stream) doneMsg { return m.again(ctx, c, branch, at, set, s) })
			}
			return nil
		})
		return nil
	})
}

// again answers a question again.
func (m *model) again(ctx context.Context, c *chatctx.ChatContext, branch string, at chatctx.ID, set map[string]json.RawMessage, s *stream) doneMsg {
	question, last, err := questionAt(ctx, c, branch, at)
	if err != nil {
		return doneMsg{err: err}
	}
	t := m.turnOn(c, branch, set, s)
	if err := t.Fits(ctx); err != nil {
		return doneMsg{err: err}
	}
	if last {
		m.send(movedMsg{s, branch})
		return came(t.Send(ctx))
	}
	if err := t.Beside(ctx, "", question); err != nil {
		return doneMsg{err: err}
	}
	m.send(movedMsg{s, t.Branch})
	out, err := t.Send(ctx)
	if out == nil || out.Reply() == nil {
		if failed := t.Unmake(ctx); failed != nil {
			return doneMsg{err: errors.Join(err, failed)}
		}
		if err == nil {
			err = errNothingCame
		}
		return came(nil, err)
	}
	if failed := t.GoTo(ctx); failed != nil {
		err = errors.Join(err, failed)
	}
	return came(out, err)
}

var errNothingCame = errors.New("no answer came")

// movedMsg says on which branch an answer comes: where one is made for it, once it is there.
type movedMsg struct {
	*stream
	branch string
}

// questionAt is the message if a user asked with it, else the one before it with which a user did, and whether it is the branch's last.
func questionAt(ctx context.Context, c *chatctx.ChatContext, branch string, message chatctx.ID) (*chatctx.Entry, bool, error) {
	snap, err := c.Snapshot(ctx, branch)
	if err != nil {
		return nil, false, err
	}
	at, err := snap.Place(ctx, chatctx.RefTo(message))
	if err != nil {
		return nil, false, err
	}
	for e, err := range snap.Entries(ctx, at.Position, 1) {
		if err != nil {
			return nil, false, err
		}
		if e.Role == pool.User && e.Kind == "" && !e.Hidden {
			return e, e.Position == snap.Len(), nil
		}
	}
	return nil, false, fmt.Errorf("%w: no user has asked anything before this", chatctx.ErrEmpty)
}

// quoted is a text as a setting.
func quoted(s string) json.RawMessage {
	raw, _ := json.Marshal(s)
	return raw
}

// askMany asks for the models, then for the message.
func (m *model) askMany() tea.Cmd {
	if !m.talks() {
		return nil
	}
	branch, c := m.conv.info.Active, m.conv.c
	m.ask("ask several: the models, with commas between them", word(m.conv.settings["model"]), func(m *model, names string) tea.Cmd {
		var models []string
		for name := range strings.SplitSeq(names, ",") {
			if name = strings.TrimSpace(name); name != "" {
				models = append(models, name)
			}
		}
		cmd := m.askText("the message to all, empty to answer the last one again", "", func(m *model, text string) tea.Cmd {
			if m.conv != nil {
				m.askAll(c, branch, models, text)
			}
			return nil
		})
		m.question.empty = true
		return cmd
	})
	return nil
}

// askAll asks all models at once.
func (m *model) askAll(c *chatctx.ChatContext, branch string, models []string, text string) {
	ctx, cancel := context.WithCancel(m.ctx)
	streams := map[*turn.Turn]*stream{}
	taken := turn.Names{}
	for _, b := range m.conv.tree.Branches {
		taken[b.Name] = true
	}
	var turns []*turn.Turn
	for _, name := range models {
		s := m.newStream(taken.Free(branch, name), cancel)
		t := m.turnOn(c, s.branch, map[string]json.RawMessage{"model": quoted(name)}, s)
		turns, streams[t] = append(turns, t), s
	}
	m.errands.do(func() {
		defer cancel()
		var message *chatctx.Message
		var at chatctx.Ref
		if strings.TrimSpace(text) != "" {
			message = pool.NewText(pool.User, text)
		} else {
			snap, err := c.Snapshot(ctx, branch)
			if err == nil {
				var question *chatctx.Entry
				if question, _, err = turn.Question(ctx, snap); err == nil {
					at = chatctx.RefTo(question.ID)
				}
			}
			if err != nil {
				m.endAll(streams, err)
				return
			}
		}
		_, err := turn.Ask(ctx, branch, message, at, turns, func() { m.send(doneMsg{note: "asking " + strings.Join(models, ", ")}) }, func(a *turn.Answer) {
			if a.Err != nil {
				a.Outcome = nil
			}
			done := came(a.Outcome, a.Err)
			m.send(streamMsg{stream: streams[a.Turn], ended: &done})
		})
		if err != nil {
			m.endAll(streams, err)
		}
	})
}

// endAll ends answers that were not asked for after all.
func (m *model) endAll(streams map[*turn.Turn]*stream, err error) {
	for _, s := range streams {
		m.send(streamMsg{stream: s, ended: &doneMsg{err: err}})
	}
}
