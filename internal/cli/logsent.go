package cli

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/enhancer"
)

// sentLine says between two messages what goes to the model.
type sentLine struct {
	from int // the position before which it stands
	text string
}

// sessionLines say where sessions begin and what of the branch goes to the model: the messages of the last session, and what stands for the rest.
func (l *logPrinter) sessionLines(c *chatctx.ChatContext, snap *chatctx.Snapshot) (lines []sentLine) {
	sessions := snap.Info.Sessions
	if len(sessions) == 0 {
		return nil
	}
	o, err := l.r.windowOptions(c, snap.Info.Name)
	if err != nil {
		return nil // a wrong setting is reported by the commands that use it
	}
	for i, s := range sessions {
		if i < len(sessions)-1 {
			if s.Start > 1 && i > 0 {
				lines = append(lines, sentLine{s.Start, fmt.Sprintf("session %d began here", i+1)})
			}
			continue
		}
		above := "what is above does not go to the model"
		if s.Summary != (chatctx.ID{}) {
			above = "what is above goes to the model as a summary"
		}
		if s.Start > 1 {
			lines = append(lines, sentLine{s.Start, fmt.Sprintf("session %d: %s", i+1, above)})
		}
		for _, d := range enhancer.Lasting(&s, o.Budget) {
			lines = append(lines, sentLine{d.From, fmt.Sprintf("#%d to #%d go to the model as a digest", d.From, d.To)})
			if d.To < snap.Len() {
				lines = append(lines, sentLine{d.To + 1, "from here on messages go to the model again"})
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b sentLine) int { return cmp.Compare(a.from, b.from) })
	return lines
}
