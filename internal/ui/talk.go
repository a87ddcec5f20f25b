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
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/pool"
)

func talkingKeys() []key {
	return []key{
		{[]string{"i"}, inTree | inPreview, "write", "write to the model on the active branch; an empty message lets it go on", (*model).write},
		{[]string{"r"}, inTree | inPreview, "retry", "answer the question at the cursor again, with another model", (*model).retry},
		{[]string{"A"}, inTree | inPreview, "", "ask several models at once, each on a branch of its own", (*model).askMany},
		{[]string{"o"}, inTree | inPreview, "", "set the model of the conversation; empty: the store's default", (*model).setModel},
		{[]string{"x"}, inList | inTree | inPreview, "", "stop the answers that are arriving", (*model).stop},
	}
}

// asking is a question that was asked at once: it gets one answer, or several, and the cursor follows them until the person moves.
type asking struct {
	branch  string // the branch to whose head the cursor goes; "" until it is known
	streams []*stream
}

// running reports whether an answer is still arriving.
func (a *asking) running() bool { return slices.ContainsFunc(a.streams, (*stream).running) }

// stream is an arriving answer.
type stream struct {
	*asking
	context chatctx.ID
	branch  string // "" until its branch is made
	stop    context.CancelFunc
	text    strings.Builder
	state   string   // the activity while no words arrive
	ended   *doneMsg // its result; nil while it is arriving
	notes   []string // about calls that ran

	shown   screen.Stream // of the text, for a width
	upTo    int           // how much of the text it was given
	whole   []screen.Line // the lines that it returned
	columns int
}

// streamMsg is an event of an answer; ended is set at its end.
type streamMsg struct {
	*stream
	event turn.Event
	ended *doneMsg
	note  string // about a call that it runs
	on    string // the branch of the answer, where another program had just taken the name that was meant for it
}

func (s *stream) running() bool { return s.ended == nil }

// doing returns the activity, for the status.
func (s *stream) doing() string {
	if s.branch == "" {
		return "making a branch for the answer"
	}
	return "answering on " + screen.OneLine(s.branch)
}

// streaming returns the answer that is arriving on a branch of the open conversation, nil if there is none.
func (m *model) streaming(branch string) *stream {
	i := slices.IndexFunc(m.streams, func(s *stream) bool {
		return s.running() && s.branch == branch && m.conv != nil && s.context == m.conv.c.ID
	})
	if i < 0 {
		return nil
	}
	return m.streams[i]
}

// streamsShown returns the answers that the preview shows: those on branches whose head is at the cursor.
func (m *model) streamsShown() (out []*stream) {
	if m.conv == nil || m.left == onList {
		return nil
	}
	r := m.conv.here()
	if r == nil { // there are no messages yet
		if s := m.streaming(m.conv.info.Active); s != nil {
			out = append(out, s)
		}
		return out
	}
	for _, i := range r.Heads {
		if s := m.streaming(m.conv.nameOf(i)); s != nil {
			out = append(out, s)
		}
	}
	return out
}

// lines returns the answer so far. Complete blocks are rendered once, the last one each time.
func (s *stream) lines(columns int, width screen.Width) []screen.Line {
	if s.columns != columns {
		s.again(columns)
	}
	text := s.text.String()
	s.whole = append(s.whole, s.shown.Add(text[s.upTo:], columns, width)...)
	s.upTo = len(text)
	head := screen.Line{{Text: "assistant", Style: screen.Green | screen.Bold}, {Text: " ‹" + screen.OneLine(s.branch) + "›  " + s.state + " x stops", Style: screen.Dim}}
	return append(append([]screen.Line{head}, s.whole...), s.shown.Rest(columns, width)...)
}

// again makes the whole text be rendered again.
func (s *stream) again(columns int) {
	s.shown, s.whole, s.upTo, s.columns = screen.Stream{}, nil, 0, columns
}

// begin starts an answer on a branch; answer runs beside the loop, with a context that the person can cancel.
func (m *model) begin(branch string, answer func(ctx context.Context, s *stream) doneMsg) {
	ctx, cancel := context.WithCancel(m.ctx)
	s := m.newStream(&asking{branch: branch}, branch, cancel)
	m.errands.do(func() {
		defer cancel()
		done := answer(ctx, s)
		m.send(streamMsg{stream: s, ended: &done})
	})
}

// newStream returns a new arriving answer. The cursor and the preview follow the last question.
func (m *model) newStream(of *asking, branch string, stop context.CancelFunc) *stream {
	s := &stream{asking: of, context: m.conv.c.ID, branch: branch, stop: stop, state: "asking …"}
	of.streams = append(of.streams, s)
	m.streams = append(slices.DeleteFunc(m.streams, func(s *stream) bool { return !s.running() }), s)
	m.follow, m.atEnd, m.focus = of, true, onTree
	if m.panes().preview.w == 0 { // otherwise the answer would not be visible
		m.left, m.focus = onTree, onPreview
	}
	return s
}

// turnOn returns the turn of a branch, whose events go to the stream.
func (m *model) turnOn(c *chatctx.ChatContext, branch string, set map[string]json.RawMessage, s *stream) *turn.Turn {
	t := m.o.Turn(c, branch, set, func(text string) { m.send(streamMsg{stream: s, note: text}) })
	t.Show = func(e turn.Event) { m.send(streamMsg{stream: s, event: e}) }
	return t
}

// streamed handles an event of an answer.
func (m *model) streamed(msg streamMsg) tea.Cmd {
	s, e := msg.stream, msg.event
	here := m.conv != nil && m.conv.c.ID == s.context
	switch {
	case msg.ended != nil:
		return m.ended(s, msg.ended, here)
	case msg.on != "":
		s.branch = msg.on
	case msg.note != "":
		s.notes = append(s.notes, msg.note)
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
	case e.Request != nil && here: // the person's message is stored
		return m.reread()
	}
	return nil
}

// ended handles the end of an answer. When all answers to a question have ended, it reports the results.
func (m *model) ended(s *stream, done *doneMsg, here bool) tea.Cmd {
	if done.err != nil && errors.Is(done.err, context.Canceled) {
		*done = came(nil, done.err)
	}
	s.ended = done
	if done.back != "" && m.drafts[done.draft] == "" {
		m.drafts[done.draft] = done.back
	}
	if !s.asking.running() {
		followed := m.follow == s.asking
		all := m.sum(s.asking)
		for _, of := range s.asking.streams {
			all.note = strings.Join(append(of.notes, all.note), "; ")
		}
		if !here { // where u would take back something else
			all.undoable = false
			if i := m.list.index(s.context); i >= 0 && all.err == nil {
				all.note += ", in " + screen.Titled(m.list.infos[i].Title, s.context)
			}
		}
		m.report(all)
		if followed {
			m.follow = nil
			if here {
				m.goHead = all.head
			}
		}
	}
	if !here {
		return nil
	}
	return m.reread()
}

// sum returns the result of all answers to a question.
func (m *model) sum(a *asking) doneMsg {
	if len(a.streams) == 1 {
		return *a.streams[0].ended
	}
	on := map[became][]string{}
	out := doneMsg{head: a.branch}
	var err error
	for _, s := range a.streams {
		on[s.ended.became] = append(on[s.ended.became], s.branch)
		if s.ended.err != nil && err == nil {
			err = s.ended.err
		}
		if s.ended.head != "" && out.head == a.branch {
			out.head = s.ended.head
		}
	}
	var words []string
	for _, w := range []struct {
		became
		words string
	}{{answered, "answered on"}, {calls, "a call waits for your decision (a) on"}, {refused, "refused on"}, {part, "stopped: what came is kept, unfinished, on"}, {nothing, "stopped before anything came on"}, {failed, "failed:"}} {
		if on[w.became] != nil {
			words = append(words, w.words+" "+strings.Join(on[w.became], ", "))
		}
	}
	out.note = strings.Join(words, "; ")
	switch {
	case err == nil:
		out.undoable = true
	case len(on[failed]) == len(a.streams):
		out = doneMsg{err: err, head: out.head}
	default:
		out.err, out.undoable = fmt.Errorf("%s (%w)", out.note, err), true
	}
	return out
}

func (m *model) stop() tea.Cmd {
	if !m.stopAll() {
		m.say(true, "no answer comes")
	}
	return nil
}

// stopAll stops the arriving answers, and reports whether there were any.
func (m *model) stopAll() bool {
	some := false
	for _, s := range m.streams {
		if s.running() {
			s.stop()
			some = true
		}
	}
	return some
}

// talks reports whether there is a conversation and a model to ask.
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

// message is the name of the draft of a message to a model.
const message = "message"

func (m *model) write() tea.Cmd {
	if !m.talks() {
		return nil
	}
	branch := m.conv.info.Active
	q := m.askText("to the model on "+branch, message, "", func(m *model, text string) (tea.Cmd, error) { return m.sendOn(branch, text), nil })
	q.empty = true
	return nil
}

// sendOn sends a message on a branch; an empty one answers what the branch ends with.
func (m *model) sendOn(branch, text string) tea.Cmd {
	if m.conv == nil {
		return nil
	}
	c, draft := m.conv.c, m.draftName(message)
	var messages []*chatctx.Message
	if strings.TrimSpace(text) != "" {
		messages = append(messages, pool.NewText(pool.User, text))
	}
	m.begin(branch, func(ctx context.Context, s *stream) doneMsg {
		t := m.turnOn(c, branch, nil, s)
		out, err := (*turn.Outcome)(nil), t.Fits(ctx, messages...)
		if err == nil {
			out, err = t.Send(ctx, messages...)
		}
		done := came(out, err)
		switch {
		case len(messages) == 0:
		case out == nil:
			done = done.unsaid(draft, text)
		case done.err != nil && out.Reply() == nil:
			done.err = fmt.Errorf("%w; what you wrote is on %s: i and Enter ask again", err, out.Branch)
		}
		return done
	})
	m.toNamed(branch)
	return nil
}

// unsaid returns a result in which the typed text was not stored and becomes a draft again.
func (d doneMsg) unsaid(draft, text string) doneMsg {
	d.draft, d.back = draft, text
	const offers = "; i offers again what you wrote"
	if d.err != nil {
		d.err = fmt.Errorf("%w"+offers, d.err)
	} else {
		d.note += offers
	}
	return d
}

// became is the outcome of an answer.
type became int

const (
	failed  became = iota
	nothing        // it was stopped before anything arrived
	part           // it was stopped
	refused        // by the model or a filter; what it said is kept
	calls          // it has calls that wait for a decision
	answered
)

// came returns the result of an answer.
func came(out *turn.Outcome, err error) doneMsg {
	head := ""
	if out != nil {
		head = out.Branch
	}
	switch {
	case errors.Is(err, context.Canceled) && (out == nil || out.Reply() == nil):
		return doneMsg{note: "stopped before an answer was there", head: head, became: nothing}
	case errors.Is(err, context.Canceled):
		return doneMsg{note: "stopped; what came is kept, unfinished", head: head, became: part}
	case err != nil:
		return doneMsg{err: err, head: head}
	case out.Queued:
		return doneMsg{note: "queued: " + out.Holder.Program + " waits for an answer here and will ask this next", became: answered}
	case out.Waiting > 0:
		return doneMsg{note: plural.CallsWait(out.Waiting) + " for your decision: a", head: head, became: calls}
	}
	r, note, is := out.Reply(), "answered on "+out.Branch, answered
	if r != nil && screen.OutcomeText(r) != "" {
		note = "the answer on " + out.Branch + " is " + screen.OutcomeText(r)
	}
	if r != nil && r.Refusal() != "" {
		is = refused
	}
	if r != nil && r.Meta.InputTokens != nil && r.Meta.OutputTokens != nil {
		note += fmt.Sprintf(": %d tokens in, %d out", *r.Meta.InputTokens, *r.Meta.OutputTokens)
	}
	return doneMsg{note: note, undoable: true, head: head, became: is}
}

// retry answers the question at the cursor again, on a branch beside the old answer.
func (m *model) retry() tea.Cmd {
	if !m.talks() {
		return nil
	}
	return m.atMessage(func(v *conversation, r *screen.Row, e *chatctx.Entry) tea.Cmd {
		branch, at := v.nameOf(r.Branch), e.ID
		m.ask("retry with the model", word(v.settings["model"]), func(m *model, name string) (tea.Cmd, error) {
			c, set := v.c, map[string]json.RawMessage{"model": quoted(strings.TrimSpace(name))}
			if m.conv == v {
				m.begin("", func(ctx context.Context, s *stream) doneMsg { return m.again(ctx, c, branch, at, set, s) })
			}
			return nil, nil
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
	a, err := t.Beside(ctx, "", question)
	if err != nil {
		return doneMsg{err: err}
	}
	m.send(movedMsg{s, a.Turn.Branch})
	a.Ask(ctx, false)
	return ofAnswer(a)
}

// ofAnswer returns the result of an answer on a branch of its own.
func ofAnswer(a *turn.Answer) doneMsg {
	if !a.Kept() {
		return came(nil, a.Err)
	}
	return came(a.Outcome, a.Err)
}

// movedMsg says on which branch an answer arrives, once that branch is made.
type movedMsg struct {
	*stream
	branch string
}

// questionAt returns the message if it is a user's, else the last user message before it, and whether it is the branch's last message.
func questionAt(ctx context.Context, c *chatctx.ChatContext, branch string, message chatctx.ID) (*chatctx.Entry, bool, error) {
	snap, err := c.Snapshot(ctx, branch)
	if err != nil {
		return nil, false, err
	}
	at, err := snap.Place(ctx, record.RefTo(message))
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
	return nil, false, base.Says(chatctx.ErrEmpty, "no user has asked anything before this")
}

// quoted returns a text as a setting.
func quoted(s string) json.RawMessage {
	raw, _ := json.Marshal(s)
	return raw
}

// setModel asks for the model of the conversation. A model of the active branch alone goes, since it would stay in force. The model in force is no change,
// wherever it is set.
func (m *model) setModel() tea.Cmd {
	if m.conv == nil {
		return nil
	}
	was := word(m.conv.settings["model"])
	m.ask("the model of this conversation", was, func(m *model, name string) (tea.Cmd, error) {
		name, value := strings.TrimSpace(name), json.RawMessage("null")
		if name != "" && name == was {
			m.say(false, "the model stays "+name)
			return nil, nil
		}
		if name != "" {
			value = quoted(name)
		}
		note := said("the model is now %s", name)
		if name == "" {
			note = said("the conversation has no model of its own")
		}
		return m.change("", func(b *chatctx.Batch) {
			b.SetContextSettings(map[string]json.RawMessage{"model": value})
			b.SetSettings(map[string]json.RawMessage{"model": json.RawMessage("null")})
		}, note), nil
	}).empty = true
	return nil
}

// askMany asks for the models, then for the message. It offers the models of the last time, or else the branch's own with room for more.
func (m *model) askMany() tea.Cmd {
	if !m.talks() {
		return nil
	}
	branch, c, last := m.conv.info.Active, m.conv.c, m.draftName("models")
	offered := m.drafts[last]
	if own := word(m.conv.settings["model"]); offered == "" && own != "" {
		offered = own + ", "
	}
	m.ask("ask several: their models, separated by commas", offered, func(m *model, names string) (tea.Cmd, error) {
		models := modelsIn(names)
		if len(models) == 0 {
			return nil, errors.New("name a model, or several, separated by commas")
		}
		m.drafts[last] = strings.Join(models, ", ")
		m.askText("the message to "+strings.Join(models, ", ")+"; empty answers the last one again", message, "", func(m *model, text string) (tea.Cmd, error) {
			if m.conv != nil {
				m.askAll(c, branch, models, text)
			}
			return nil, nil
		}).empty = true
		return nil, nil
	})
	return nil
}

// modelsIn returns the models of a comma-separated list.
func modelsIn(names string) (models []string) {
	for name := range strings.SplitSeq(names, ",") {
		if name = strings.TrimSpace(name); name != "" {
			models = append(models, name)
		}
	}
	return models
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
	of, draft := &asking{branch: branch}, m.draftName(message)
	for _, name := range models {
		s := m.newStream(of, taken.Free(branch, name), cancel)
		t := m.turnOn(c, s.branch, map[string]json.RawMessage{"model": quoted(name)}, s)
		turns, streams[t] = append(turns, t), s
	}
	m.errands.do(func() {
		defer cancel()
		said, at, err := toAll(ctx, c, branch, text)
		if err == nil {
			asked := func() {
				for _, t := range turns {
					m.send(streamMsg{stream: streams[t], on: t.Branch})
				}
				m.send(doneMsg{note: "asking " + strings.Join(models, ", ")})
			}
			_, err = turn.Ask(ctx, branch, said, at, turns, asked, func(a *turn.Answer) {
				done := ofAnswer(a)
				m.send(streamMsg{stream: streams[a.Turn], ended: &done})
			})
		}
		if err != nil { // no model was asked
			for _, s := range of.streams {
				done := came(nil, err)
				if text != "" {
					done = done.unsaid(draft, text)
				}
				m.send(streamMsg{stream: s, ended: &done})
			}
		}
	})
}

// toAll returns the message for all models, or, if it is blank, a reference to the last user message, which is answered again.
func toAll(ctx context.Context, c *chatctx.ChatContext, branch, text string) (*chatctx.Message, record.Ref, error) {
	if strings.TrimSpace(text) != "" {
		return pool.NewText(pool.User, text), "", nil
	}
	snap, err := c.Snapshot(ctx, branch)
	if err != nil {
		return nil, "", err
	}
	question, _, err := turn.Question(ctx, snap)
	if err != nil {
		return nil, "", err
	}
	return nil, record.RefTo(question.ID), nil
}
