package adapter

import (
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// answer gives every call a result, orders results as the provider requires, and moves media that a result cannot hold into a user turn after it. Then it lists
// the remaining media.
func (b *builder) answer() {
	turns := make([]*Turn, 0, len(b.Turns)+2)
	for _, t := range b.Turns {
		turns = append(turns, t)
		if t.Role != pool.Assistant {
			continue
		}
		b.fill(t)
		if moved := b.move(t); moved != nil {
			turns = append(turns, moved)
		}
	}
	b.Turns = turns
	for _, t := range turns {
		b.list(t.Items)
		for _, r := range t.Results {
			b.list(r.Items)
		}
	}
}

func (b *builder) list(items []Item) {
	for i := range items {
		if items[i].Media != nil {
			b.media = append(b.media, &items[i])
		}
	}
}

// fill adds the missing results.
func (b *builder) fill(t *Turn) {
	missing := 0
	for i := range t.Items {
		if c := t.Items[i].Call; c != nil && c.result == nil {
			text := NoResult
			if c.Status == pool.Denied && !c.Later && c.Reason != "" {
				text = Denied + ": " + c.Reason
			}
			c.result = &Result{Call: c, Items: []Item{{Text: text}}, Missing: true}
			t.Results = append(t.Results, c.result)
			missing++
		}
	}
	if missing > 0 {
		b.Note(t.Message, "%d of its calls without result: each says so", missing)
	}
	if !b.rules.CallOrder {
		return
	}
	t.Results = t.Results[:0]
	for i := range t.Items {
		if c := t.Items[i].Call; c != nil {
			t.Results = append(t.Results, c.result)
		}
	}
}

// move removes the media that a turn's results cannot hold, and returns them as a turn of their own; nil if there are none.
func (b *builder) move(t *Turn) *Turn {
	var moved *Turn
	for _, r := range t.Results {
		if b.rules.Media.InResults && !(r.Error && !b.rules.Media.InErrors) {
			continue
		}
		var kept, out []Item
		for _, i := range r.Items {
			if i.Media != nil {
				out = append(out, i)
			} else {
				kept = append(kept, i)
			}
		}
		if out == nil {
			continue
		}
		if kept == nil {
			kept = []Item{{Text: ImagesBelow}}
		}
		if moved == nil {
			moved = &Turn{Role: pool.User, Message: chatctx.ID{}}
		}
		moved.Items = append(append(moved.Items, Item{Text: imagesText(r.Call)}), out...)
		r.Items = kept
		b.Note(r.Message, "what the result of call %s shows is sent in a user message after it", r.Call.Call.ID)
	}
	return moved
}
