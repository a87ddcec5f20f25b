package window

import (
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// partner returns for each message that answers a call the index of the message with the call, and -1 for all others. Ids of calls are unique only in their
// message, so a result answers the nearest earlier call with its id: mostly one of the last message with calls, and only otherwise are all searched.
func partner(messages []*chatctx.DraftMessage) []int {
	out := make([]int, len(messages))
	last, known := -1, 0
	var earlier map[string]int // the calls of messages[:known]
	for i, m := range messages {
		out[i] = -1
		if r := m.Result; r != nil && last >= 0 {
			if hasCall(messages[last], r.RequestID) {
				out[i] = last
			} else {
				if earlier == nil {
					earlier = map[string]int{}
				}
				for ; known < last; known++ {
					for c := range messages[known].Calls {
						earlier[messages[known].Calls[c].ID] = known
					}
				}
				if at, ok := earlier[r.RequestID]; ok {
					out[i] = at
				}
			}
		}
		if len(m.Calls) > 0 {
			last = i
		}
	}
	return out
}

func hasCall(m *chatctx.DraftMessage, id string) bool {
	for c := range m.Calls {
		if m.Calls[c].ID == id {
			return true
		}
	}
	return false
}

// layout says which messages belong together.
type layout struct {
	partners []int
	// may says for each index from 0 to the number of messages whether the draft may be cut before it, without parting a call from its result.
	may []bool
	// stay says which messages no step may leave out: pinned ones and those that a call links to them, system messages, and the digests of this draft. A
	// summary that a sub-context or a merge left on the branch is history and may go.
	stay []bool
}

func layoutOf(messages []*chatctx.DraftMessage) layout {
	l := layout{partners: partner(messages)}
	l.setMay()
	l.setStay(messages)
	return l
}

func (l *layout) setMay() {
	n := len(l.partners)
	l.may = make([]bool, n+1)
	for i := range l.may {
		l.may[i] = true
	}
	// A result at i forbids the cuts from its call + 1 to i. Going backwards, reach is the first call of the results from here on.
	reach := n
	for i := n - 1; i >= 0; i-- {
		if l.partners[i] >= 0 {
			reach = min(reach, l.partners[i])
		}
		if reach < i {
			l.may[i] = false
		}
	}
}

func (l *layout) setStay(messages []*chatctx.DraftMessage) {
	l.stay = make([]bool, len(messages))
	groups := make([]bool, len(messages)) // by the index of the message with the call
	for i, m := range messages {
		l.stay[i] = m.Pinned || isSystem(m) || m.Kind == "digest" && m.Position == 0
		if l.stay[i] {
			groups[i] = true
			if l.partners[i] >= 0 {
				groups[l.partners[i]] = true
			}
		}
	}
	for i, at := range l.partners {
		l.stay[i] = l.stay[i] || groups[i] || at >= 0 && groups[at]
	}
}

// isSystem reports whether a message is a system message of the conversation itself, not a summary or a digest.
func isSystem(m *chatctx.DraftMessage) bool {
	return m.Role == pool.System && m.Kind != "summary" && m.Kind != "digest"
}

// Block is a range of messages that belong together: the indexes From to To, without To.
type Block struct{ From, To int }

// Blocks groups messages: a user message and everything that answers it, an answer without a user message with its results, and any other message. A digest, a
// summary and a system message before the first user message are blocks of their own.
func Blocks(messages []*chatctx.DraftMessage) []Block {
	var out []Block
	asked, alone := false, false // the last block begins with a user message; takes no more messages
	for i, m := range messages {
		starts := startsTurn(m)
		if starts || len(out) == 0 || alone || m.Kind == "digest" || m.Kind == "summary" || !asked && m.Role != pool.ToolRole {
			out = append(out, Block{From: i})
			asked, alone = starts, !starts && m.Role != pool.Assistant && m.Role != pool.ToolRole
		}
		out[len(out)-1].To = i + 1
	}
	return out
}

// keptBlocks returns how many of the newest blocks stay unchanged: Options.KeepBlocks, as far as they take a quarter of the limit, and at least one.
func (s *steps) keptBlocks() int {
	blocks, room, n := Blocks(s.d.Messages), int(tailShare*float64(s.w.counted(s.w.Limit()))), 0
	for ; n < min(s.o.KeepBlocks, len(blocks)); n++ {
		b := blocks[len(blocks)-1-n]
		for _, m := range s.d.Messages[b.From:b.To] {
			room -= s.w.of(s.d, m)
		}
		if room < 0 {
			break
		}
	}
	return max(1, n)
}

// tail returns the index at which the last keep blocks begin. It always keeps the last block, which waits for an answer or was just answered.
func tail(messages []*chatctx.DraftMessage, keep int) int {
	blocks := Blocks(messages)
	if keep = max(1, keep); len(blocks) <= keep {
		return 0
	}
	return blocks[len(blocks)-keep].From
}

// unread returns the index from which the model has not read the results. They stay unchanged, unless they alone do not fit.
func unread(messages []*chatctx.DraftMessage) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == pool.Assistant {
			return i
		}
	}
	return 0
}
