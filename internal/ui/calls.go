package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// queue has the calls of all conversations that wait for a decision, the oldest first, with everything that the one at the cursor would run.
type queue struct {
	sheet
	calls []*waiting
	known bool // they were read
	busy  bool // a reading is running
	stale bool // another one must follow
	// The calls with a decision from here that the list may not know yet; true once it is made. Keys decide nothing about them: another call may stand there in a moment.
	ours map[string]bool
	gone bool // the call at the cursor was decided elsewhere, and another one is there
	// The person's input about the call at the cursor, before the decision.
	reason string
	last   *waiting                   // the last approved call, to which g refers
	opened *waiting                   // the call whose conversation g opened
	edited map[string]json.RawMessage // arguments that replace the proposed ones, by call
	top    int                        // the first line of the details
}

// waiting is a call that waits, with the rules' decision and with what it would do.
type waiting struct {
	*record.Call
	title  string // of its conversation
	ruling *record.Ruling
	tool   *record.Tool // nil if it is no command
}

type callsMsg struct {
	of    *queue
	calls []*waiting
	err   error
	knows []string // the calls whose decisions from here are included
}

// mostCalls bounds how many calls are read at once.
const mostCalls = 200

func (m *model) openCalls() tea.Cmd {
	q := &queue{edited: map[string]json.RawMessage{}, ours: map[string]bool{}}
	m.over = q
	return q.read(m)
}

func (q *queue) read(m *model) tea.Cmd {
	if q.busy {
		q.stale = true
		return nil
	}
	q.busy, q.stale = true, false
	st, ctx, msg := m.st, m.ctx, callsMsg{of: q}
	for ref, made := range q.ours {
		if made {
			msg.knows = append(msg.knows, ref)
		}
	}
	return func() tea.Msg {
		titles := map[chatctx.ID]string{}
		for c, err := range st.Calls(ctx, record.CallFilter{State: record.CallState(pool.Pending, pool.NotRun)}) {
			if err != nil || len(msg.calls) == mostCalls {
				msg.err = err
				break
			}
			w := &waiting{Call: c}
			if w.ruling, err = toolcall.Judge(ctx, base.Of(st), c); err != nil {
				msg.err = err
				break
			}
			if w.ruling.Effect != record.Ask {
				continue // the rules decide
			}
			in, err := st.Context(ctx, c.Context.String())
			if err == nil && m.o.Command != nil {
				w.tool, err = m.o.Command(ctx, in, c)
			}
			if err != nil {
				msg.err = err
				break
			}
			if _, ok := titles[c.Context]; !ok {
				titles[c.Context] = record.Short(c.Context)
				if info, err := in.Info(ctx); err == nil {
					titles[c.Context] = screen.Titled(info.Title, info.ID)
				}
			}
			w.title = titles[c.Context]
			msg.calls = append(msg.calls, w)
		}
		return msg
	}
}

func (q *queue) update(m *model, msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case callsMsg:
		if msg.of != q {
			return nil
		}
		if q.busy = false; q.stale {
			return q.read(m)
		}
		q.known = true
		if m.complain(msg.err); msg.err == nil {
			q.take(msg.calls)
		}
		for _, ref := range msg.knows {
			delete(q.ours, ref)
		}
	case changesMsg:
		return q.read(m)
	}
	return nil
}

// take sets calls that were read. The cursor stays on its call.
func (q *queue) take(calls []*waiting) {
	here := q.ref()
	q.calls = calls
	q.resize(len(q.calls), q.height)
	for i, c := range q.calls {
		if string(c.Ref()) == here {
			q.to(i)
		}
	}
	if q.ref() != here {
		_, ours := q.ours[here]
		q.reason, q.top, q.gone = "", 0, here != "" && !ours
	}
}

// asks reports whether the person has seen the call at the cursor before pressing a key that decides.
func (q *queue) asks(m *model) bool {
	if q.gone {
		q.gone = false
		m.say(true, "the call that stood here was decided elsewhere; this is another one")
		return false
	}
	_, ours := q.ours[q.ref()]
	return !ours
}

// here returns the call at the cursor, nil if there is none.
func (q *queue) here() *waiting {
	if q.cursor >= len(q.calls) {
		return nil
	}
	return q.calls[q.cursor]
}

func (q *queue) ref() string {
	if c := q.here(); c != nil {
		return string(c.Ref())
	}
	return ""
}

func (q *queue) coming() bool { return q.busy && !q.known }
func (q *queue) hint() string {
	if len(q.calls) == 0 {
		return "g run, go on  esc: back"
	}
	return "y yes  n no  A always  e edit  r reason  g run, go on  E editor  enter: its place  esc: back"
}

// arrange gives a third of the lines to the list, and the rest to the details.
func (q *queue) arrange(columns, lines int) {
	q.columns = columns
	q.resize(len(q.calls), min(max(lines/3, 2), max(len(q.calls), 1)))
}

func (q *queue) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	c, name := q.here(), k.String()
	switch {
	case name == "g": // here it does not go to the beginning
		return q.goOn(m)
	case name == "pgdown" || name == "ctrl+d" || name == "space":
		q.top += max(m.body()/3, 1)
		return nil
	case name == "pgup" || name == "ctrl+u":
		q.top = max(q.top-max(m.body()/3, 1), 0)
		return nil
	case q.closes(m, k):
		q.reason, q.top = "", 0
		return nil
	case c == nil:
		return nil
	}
	if slices.Contains([]string{"y", "n", "A", "a"}, name) && !q.asks(m) {
		return nil
	}
	switch name {
	case "y":
		return q.decide(m, c, record.Verdict{Status: pool.Approved, Arguments: q.edited[string(c.Ref())], Reason: q.reason})
	case "n":
		return q.decide(m, c, record.Verdict{Status: pool.Denied, Reason: q.reason})
	case "A", "a":
		return q.always(m, c)
	case "e":
		q.askArguments(m, c)
	case "E":
		return m.editAnswer(q.askArguments(m, c))
	case "r":
		asked := m.ask("the reason, which the model gets with a no", q.reason, func(m *model, text string) (tea.Cmd, error) {
			if q.ref() == string(c.Ref()) {
				q.reason = text
			}
			return nil, nil
		})
		asked.empty = true
		asked.keeps(m, "reason "+string(c.Ref()))
	case "enter":
		return q.enter(m)
	}
	return nil
}

// arguments returns the arguments with which the call would run, as a text to edit.
func (q *queue) arguments(c *waiting) string {
	raw := q.edited[string(c.Ref())]
	if raw == nil {
		raw = c.RunArguments()
	}
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

// askArguments asks for arguments that replace those of a call. Only the next y approves them.
func (q *queue) askArguments(m *model, c *waiting) *question {
	ref := string(c.Ref())
	return m.askText("the arguments of "+c.Tool, "arguments "+ref, q.arguments(c), func(m *model, text string) (tea.Cmd, error) {
		if !json.Valid([]byte(text)) {
			return nil, errors.New("that is not JSON")
		}
		q.edited[ref] = screen.Compact(json.RawMessage(text))
		m.say(false, "y runs it with these arguments")
		return nil, nil
	})
}

// decide makes a decision, together with new rules; it reports if another person was faster.
func (q *queue) decide(m *model, c *waiting, v record.Verdict, rules ...record.Rule) tea.Cmd {
	v.Name, q.ours[string(c.Ref())] = m.o.By, false
	if v.Status == pool.Approved {
		q.last = c
	}
	st, ctx := m.st, m.ctx
	return func() tea.Msg {
		b := st.Begin(c.Context.String(), c.Branch)
		for _, rule := range rules {
			b.AddRule(rule, record.RuleScope{})
		}
		b.Decide(c.Ref(), v)
		done, err := b.Commit(ctx)
		if err != nil {
			return decidedMsg{q, string(c.Ref()), doneMsg{err: err}}
		}
		return decidedMsg{q, string(c.Ref()), doneMsg{note: fmt.Sprintf("%s is %s; g runs what was approved", c.Tool, done.Last().Call.Status)}}
	}
}

// decidedMsg is the result of a decision about a call.
type decidedMsg struct {
	of   *queue
	call string
	doneMsg
}

// always makes one of the matching rules, and approves the call.
func (q *queue) always(m *model, c *waiting) tea.Cmd {
	question := c.ruling.Question
	if raw := q.edited[string(c.Ref())]; raw != nil {
		question.Arguments = raw
	}
	offers := approval.Offers(question)
	ch := &choice{title: "Allow from now on, in this conversation", under: q}
	for _, r := range offers {
		ch.options = append(ch.options, r.String())
	}
	verdict := record.Verdict{Status: pool.Approved, Arguments: q.edited[string(c.Ref())], Reason: q.reason}
	ch.then = func(m *model, i int) tea.Cmd {
		rule := *offers[i]
		rule.Reason = verdict.Reason
		return q.decide(m, c, verdict, rule)
	}
	m.over = ch
	ch.n = len(ch.options)
	return nil
}

// goOn runs the approved calls on the branch of the last approved call, or else of the one at the cursor, and asks the model when all results are there.
func (q *queue) goOn(m *model) tea.Cmd {
	c := q.last
	if len(q.ours) > 0 { // it was typed ahead
		return m.await(func() bool { return len(q.ours) == 0 || m.over != overlay(q) })
	}
	if c == nil {
		c = q.here()
	}
	if c == nil {
		m.say(true, "nothing was approved here; in the tree, i and an empty message go on")
		return nil
	}
	if m.conv == nil || m.conv.c.ID != c.Context {
		if q.opened == c { // it could not be opened, and the reason is on the screen
			return nil
		}
		q.opened = c
		return tea.Batch(m.openContext(&record.ContextInfo{ContextFacts: record.ContextFacts{ID: c.Context}}), m.await(func() bool { return !m.opening }))
	}
	if !m.talks() {
		return nil
	}
	m.over = nil
	return m.sendOn(c.Branch, "")
}

// enter shows the call's message in its tree.
func (q *queue) enter(m *model) tea.Cmd {
	c := q.here()
	if c == nil {
		return nil
	}
	m.over = nil
	return m.goToHit(&record.Hit{Context: c.Context, Message: &chatctx.Message{ID: c.Message}, Branches: nil})
}

func (q *queue) draw(m *model, lines int) []screen.Line {
	q.heading = plural.CallsWait(len(q.calls)) + " for a decision"
	switch {
	case q.busy && len(q.calls) == 0:
		q.heading = "looking …"
	case len(q.calls) == 0:
		q.heading = "no call waits for a decision"
	}
	out := q.list(func(i int) screen.Line {
		c := q.calls[i]
		return screen.Line{{Text: screen.OneLine(screen.Plainly(c.Tool)), Style: screen.Bold}, {Text: "(" + screen.OneLine(screen.Plainly(string(c.RunArguments()))) + ")  "},
			{Text: c.title + " ‹" + screen.OneLine(c.Branch) + "›", Style: screen.Dim}}
	})
	c := q.here()
	if c == nil {
		return out
	}
	details := q.details(m, c)
	q.top = max(min(q.top, len(details)-(lines-len(out))), 0)
	return append(out, details[q.top:]...)
}

// details returns everything that a call would run, and why it needs a decision.
func (q *queue) details(m *model, c *waiting) []screen.Line {
	width, columns := m.width(), max(q.columns, 4)
	rule := func(text string) screen.Line { return screen.Line{{Text: "── " + text, Style: screen.Dim}} }
	out := []screen.Line{rule(fmt.Sprintf("%s  call %s:%d, since %s", screen.OneLine(screen.Plainly(c.Tool)), record.Short(c.Message), c.Index, screen.Moment(c.Since)))}
	hard := func(text string, style screen.Style) {
		out = append(out, screen.Hard(text, style, columns, width, nil)...)
	}
	run := c.RunArguments()
	if raw := q.edited[string(c.Ref())]; raw != nil || c.Effective != nil {
		hard("proposed:", screen.Dim)
		hard(screen.Pretty(c.Arguments), screen.Dim)
		hard("to be run with:", screen.Dim)
		if raw != nil {
			run = raw
		}
	}
	hard(screen.Pretty(run), screen.Cyan)
	if c.tool != nil {
		hard(screen.Plainly(approval.CommandText(c.tool, run)), screen.Bold)
	}
	if before, after, name, ok := screen.FileChange(run); ok {
		out = append(out, screen.Line{{Text: screen.OneLine(screen.Plainly(name)), Style: screen.Bold}})
		for _, l := range screen.LineDiff(before, after) {
			style := map[byte]screen.Style{'+': screen.Green, '-': screen.Red, 0: screen.Dim}[l.Sign]
			hard(string(max(l.Sign, ' '))+" "+l.Text, style)
		}
	}
	if c.ruling != nil {
		out = append(out, screen.Wrap([]screen.Span{{Text: screen.OneLine(screen.RulingLine(c.ruling)), Style: screen.Yellow}}, columns, width, nil, nil)...)
	}
	if q.reason != "" {
		hard("reason: "+screen.Plainly(q.reason), 0)
	}
	return out
}

// choice lets the person choose one of several lines.
type choice struct {
	sheet
	title   string
	options []string
	under   overlay // shown again afterwards
	then    func(m *model, i int) tea.Cmd
}

func (c *choice) update(m *model, msg tea.Msg) tea.Cmd { return c.under.update(m, msg) }
func (c *choice) hint() string                         { return "enter: this one  esc: none" }

func (c *choice) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	switch {
	case k.String() == "enter":
		return c.enter(m)
	case c.closes(m, k) && m.over == nil:
		m.over = c.under
	}
	return nil
}

func (c *choice) enter(m *model) tea.Cmd {
	m.over = c.under
	return c.then(m, c.cursor)
}

func (c *choice) draw(m *model, _ int) []screen.Line {
	c.heading = c.title
	return c.list(func(i int) screen.Line { return screen.Line{{Text: screen.OneLine(screen.Plainly(c.options[i]))}} })
}
