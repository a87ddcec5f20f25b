package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/internal/ui"
	"github.com/chatctx/chatctx/pool"
)

// atTerminal runs the chat with line editing and a history. A line can be edited while an answer is written above it.
func (s *chat) atTerminal() error {
	s.seen() // before anything can be typed
	history := openTyped()
	p := ui.StartPrompt(s.r.ctx, ui.PromptOptions{
		In: s.r.con.stdin(), Out: s.r.con.out.w, Color: s.r.con.color, Label: s.label(), History: history.lines(), Complete: s.completions, Stop: s.stop, Editor: editorOf,
	})
	s.term = p
	s.show("A line is a message; /help lists commands, Ctrl-C stops an answer, Ctrl-D ends the chat.\n")
	if err := s.watch(); err != nil {
		s.complain(err)
	}
	s.catchUp()
	for {
		line, err := p.Line()
		if err == nil {
			history.add(line.Text)
			p.Show(line, s.isMessage(line))
			if !s.takeTyped(line) {
				continue
			}
		}
		s.answers.Wait()
		err = errors.Join(err, p.Close())
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return errors.Join(err, s.unanswered())
	}
}

// chatHelp fits a screen of 40 columns and 24 lines.
const chatHelp = `A line is a message. Commands:
  /new TITLE      a new conversation
  /use [CTX]      go to another one
  /import FILE    bring one in, go there
  /fork NAME      go on on a new branch
  /switch [NAME]  go to another branch
  /retry          answer again, beside
  /edit REF TEXT  another text, beside
  /undo  /redo    take back, do again
  /log  /tree     what was said, branches
  /system TEXT    what the model is told
  /model NAME     ask another model
  /calls          what waits for you
  /help COMMAND   every command works
  /quit           or Ctrl-D: end
Keys:
  Tab             completes a command
  Ctrl-R  Up      what was typed before
  Alt+Enter  Ctrl-J     a new line
  Ctrl-X          your editor
  Ctrl-C          stops, or clears
`

// isMessage reports whether a line goes to the model.
func (s *chat) isMessage(line ui.Line) bool {
	return s.openQuestion() == nil && (line.Message || !strings.HasPrefix(strings.TrimSpace(line.Text), "/"))
}

// takeTyped is take of a typed line. A paste of several lines is a message or the answer to a question, such as arguments, and no command.
func (s *chat) takeTyped(line ui.Line) (quit bool) {
	switch {
	case !line.Message:
		return s.take(line.Text)
	case !s.answersQuestion(line.Text):
		s.sayText(line.Text)
	}
	return false
}

// happens handles an event of an answer of this chat.
func (s *chat) happens(c *chatctx.ChatContext, branch string, e turn.Event) {
	switch {
	case e.Message != nil:
		s.news.mine([]*pool.Message{e.Message})
	case s.term == nil:
	case e.Request != nil:
		s.tell(c, branch, true)
		s.term.Doing("asking " + oneLine(e.Request.Model) + " …")
	case e.Delta != nil && e.Delta.Type == pool.ThinkingPart:
		s.term.Doing("thinking …")
	case e.Delta != nil:
		s.term.Doing("")
	}
}

// completions returns what may replace the last word of a command.
func (s *chat) completions(before string) (from int, list []ui.Completion) {
	line := before[1:]
	words, starts := cutWords(line)
	last := len(words) - 1
	if end := strings.TrimRight(line, " \t\n"); len(end) < len(line) && end != "" { // a new word begins
		words, starts = append(words, ""), append(starts, len(line))
		last++
	}
	word := strings.TrimLeft(words[last], `"'`)
	r := s.r.apart()
	defer r.close()
	here := flagWords(commonFlags{Context: s.conversation().ID.String(), Branch: s.onBranch(), Store: s.r.typedStore()})
	var found []candidate
	switch {
	case last > 0 && words[0] == "model":
		p, _ := splitUnfinished(here)
		found = begin(r.values(p, "MODEL", word), word)
	default:
		found = r.candidates(append(here, words[:last]...), word)
		if last == 0 {
			found = append(found, begin([]candidate{{"model", "ask another model"}, {"quit", "end the chat"}}, word)...)
		}
	}
	for _, c := range found {
		list = append(list, ui.Completion{Word: chatWord(c.word), Hint: oneLine(c.hint)})
	}
	return starts[last] + 1, list
}

// chatWord quotes a word for a chat if it has white space.
func chatWord(w string) string {
	switch {
	case !strings.ContainsAny(w, " \t\n"):
		return w
	case strings.Contains(w, `"`):
		return "'" + w + "'"
	}
	return fmt.Sprintf(`"%s"`, w)
}
