package window

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/pool"
)

// Inject returns an Enhancer that puts a text (a file, something retrieved) into the draft as a pinned user message of kind injected, before the last user
// message, or at the end if there is none. The same text is put in once.
func Inject(name, text string) enhancer.Enhancer {
	return enhancer.Func("inject", func(_ context.Context, d *chatctx.Draft) error {
		m := made("injected", "<context name=\""+name+"\">\n"+text+"\n</context>")
		for _, have := range d.Messages {
			if have.ID == m.ID {
				return nil
			}
		}
		m.Pinned, m.State, m.Step = true, enhancer.Pinned, "inject"
		at := len(d.Messages)
		for i, have := range slices.Backward(d.Messages) {
			if have.Role == pool.User && have.Kind == "" {
				at = i
				break
			}
		}
		d.Messages = slices.Insert(d.Messages, at, m)
		d.Notes = append(d.Notes, chatctx.Note{Step: "inject", Message: m.ID, What: "put in " + name})
		return nil
	})
}

// made returns a user message that is in no store. Its id follows from its kind and text.
func made(kind, text string) *chatctx.DraftMessage {
	m := pool.NewText(pool.User, text)
	m.Kind = kind
	m.ID = idOf(kind, text)
	return &chatctx.DraftMessage{Entry: pool.Entry{Message: m}, State: enhancer.In}
}

// idOf returns an id made from texts: a UUID of version 8, the same for the same texts.
func idOf(texts ...string) pool.ID {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t)
	}
	id := pool.ID(h.Sum(nil)[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return id
}

// AddTools returns an Enhancer that adds tool definitions, except those whose name the draft has already.
func AddTools(tools ...record.Tool) enhancer.Enhancer {
	return enhancer.Func("tools added", func(_ context.Context, d *chatctx.Draft) error {
		for _, t := range tools {
			if !slices.ContainsFunc(d.Tools, func(have record.Tool) bool { return have.Name == t.Name }) {
				d.Tools = append(d.Tools, t)
				d.Notes = append(d.Notes, chatctx.Note{Step: "tools added", What: "tool " + t.Name})
			}
		}
		return nil
	})
}

// SetSystem returns an Enhancer that replaces the branch's system prompt by a text.
func SetSystem(text string) enhancer.Enhancer {
	return enhancer.Func("system", func(_ context.Context, d *chatctx.Draft) error {
		if d.System != text {
			d.System = text
			d.Notes = append(d.Notes, chatctx.Note{Step: "system", What: "system prompt replaced"})
		}
		return nil
	})
}

// Pin returns an Enhancer that pins the messages with the ids, as the mark in the store does.
func Pin(ids ...pool.ID) enhancer.Enhancer {
	return enhancer.Func("pin", func(_ context.Context, d *chatctx.Draft) error {
		for _, m := range d.Messages {
			if slices.Contains(ids, m.ID) {
				m.Pinned, m.State, m.Step = true, enhancer.Pinned, "pin"
			}
		}
		return nil
	})
}

// Exclude returns an Enhancer that leaves out the messages with the ids and those marked excluded in the store. It leaves out the results with a call, and the
// call with a result, so that no half is sent.
func Exclude(ids ...pool.ID) enhancer.Enhancer {
	return enhancer.Func("exclude", func(_ context.Context, d *chatctx.Draft) error {
		out := func(m *chatctx.DraftMessage) bool { return m.State == enhancer.Excluded || slices.Contains(ids, m.ID) }
		if !slices.ContainsFunc(d.Messages, out) {
			return nil
		}
		partners := partner(d.Messages)
		groups := make([]bool, len(d.Messages))
		for i, m := range d.Messages {
			if out(m) {
				groups[i] = true
				if partners[i] >= 0 {
					groups[partners[i]] = true
				}
			}
		}
		leaveOut(d, "exclude", enhancer.Excluded, "excluded", func(i int) bool { return groups[i] || partners[i] >= 0 && groups[partners[i]] })
		return nil
	})
}

// leaveOut removes the messages for which which(index) is true from the draft, with a note for each.
func leaveOut(d *chatctx.Draft, step, state, why string, which func(i int) bool) {
	kept := d.Messages[:0:0]
	for i, m := range d.Messages {
		if which(i) {
			note(d, step, m, state, why, m.Tokens)
		} else {
			kept = append(kept, m)
		}
	}
	d.Messages = kept
}

// TrimTo returns an Enhancer that keeps the last n messages and those that must stay: the messages that Trim never drops, and both halves of a call and its
// results. The messages begin with a user message if one is among them.
func TrimTo(n int) enhancer.Enhancer {
	return enhancer.Func("trim to", func(_ context.Context, d *chatctx.Draft) error {
		if len(d.Messages) <= n {
			return nil
		}
		l := layoutOf(d.Messages)
		at := len(d.Messages) - n
		for at > 0 && !l.may[at] {
			at--
		}
		for i := at; i < len(d.Messages); i++ {
			if l.may[i] && d.Messages[i].Role == pool.User {
				at = i
				break
			}
		}
		leaveOut(d, "trim to", enhancer.Trimmed, fmt.Sprintf("only the last %d messages", n), func(i int) bool { return i < at && !l.stay[i] })
		return nil
	})
}
