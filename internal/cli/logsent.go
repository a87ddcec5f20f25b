package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/window"
)

// sentLine says between two messages what goes to the model.
type sentLine struct {
	from int // the position before which it stands
	text string
}

// sessionLines say where sessions begin and what of the branch goes to the model: the messages of the session in force, and what stands for the rest.
func (l *logPrinter) sessionLines(c *chatctx.ChatContext, snap *chatctx.Snapshot) (lines []sentLine) {
	sessions := snap.Info.Sessions
	if len(sessions) == 0 {
		return nil
	}
	o, err := operation.WindowOptions(l.r.ctx, l.r.turn(c, snap.Info.Name))
	if err != nil {
		return nil // a wrong setting is reported by the commands that use it
	}
	current := o.SessionOf(sessions)
	for i, s := range sessions {
		if i != current {
			if s.Start > 1 && i > 0 && (current < 0 || s.Start != sessions[current].Start) {
				lines = append(lines, sentLine{s.Start, sessionName(sessions, i) + " began here"})
			}
			continue
		}
		if line := currentSession(sessions, i); line != "" {
			lines = append(lines, sentLine{s.Start, line})
		}
		for _, d := range window.Lasting(&s, o.Budget) {
			lines = append(lines, sentLine{d.From, fmt.Sprintf("#%d to #%d go to the model as a digest", d.From, d.To)})
			if d.To < snap.Len() {
				lines = append(lines, sentLine{d.To + 1, "from here on messages go to the model again"})
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b sentLine) int { return cmp.Compare(a.from, b.from) })
	return lines
}

// sessionName names the session with an index, and for whom it is if not for everybody.
func sessionName(sessions []branch.Session, i int) string {
	name := fmt.Sprintf("session %d", i+1)
	if s := &sessions[i]; s.Provider != "" {
		name += fmt.Sprintf(", of %s for %s,", clean(s.Provider), clean(s.Model))
	}
	return name
}

// currentSession says what goes to the model where the session in force, which has the index i, begins, "" if there is nothing to say.
func currentSession(sessions []branch.Session, i int) string {
	s, name := &sessions[i], strings.TrimSuffix(sessionName(sessions, i), ",")
	if of := slices.IndexFunc(sessions[:i], func(o branch.Session) bool { return o.Start == s.Start && o.Provider == s.Provider }); of >= 0 {
		name += fmt.Sprintf(", session %d again", of+1)
	}
	summarised, gone := branchstore.Covered(sessions, i)
	switch {
	case s.Provider != "":
		return fmt.Sprintf("%s: what is above goes to the model as the compaction that it made", name)
	case gone > 0 && summarised > 0:
		return fmt.Sprintf("%s: #1 to #%d go to the model as a summary, #%d to #%d do not", name, summarised, summarised+1, gone)
	case gone > 0:
		return name + ": what is above does not go to the model"
	case summarised > 0:
		return name + ": what is above goes to the model as a summary"
	case i > 0:
		return name + ": from here on messages go to the model"
	}
	return ""
}
