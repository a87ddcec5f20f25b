package chatctx

import (
	"context"
	"slices"
	"sort"

	"github.com/chatctx/chatctx/pool"
)

// keepPinned puts the pinned messages that stand before the session's start in front of the draft's messages: a summary stands for what is before, but not for
// them. With a call come its results and with a result its call.
func (d *Draft) keepPinned(ctx context.Context, snap *Snapshot, marked map[ID]string, start int) error {
	pinned := map[ID]bool{}
	for id, mark := range marked {
		if mark == "pinned" {
			pinned[id] = true
		}
	}
	if len(pinned) == 0 || start <= 1 {
		return nil
	}
	ids, err := snap.IDs(ctx)
	if err != nil {
		return err
	}
	kept := map[int]*Entry{}
	for i, id := range ids[:min(start-1, len(ids))] {
		if pinned[id] && kept[i+1] == nil {
			if err := snap.withPartners(ctx, i+1, start, kept); err != nil {
				return err
			}
		}
	}
	positions := make([]int, 0, len(kept))
	for pos := range kept {
		positions = append(positions, pos)
	}
	sort.Ints(positions)
	var front []*DraftMessage
	for _, pos := range positions {
		front = append(front, draftMessage(*kept[pos], marked[kept[pos].ID]))
	}
	d.Messages = slices.Insert(d.Messages, 0, front...)
	return nil
}

// withPartners adds the message at a position, the call that it answers, and the results of its calls or of that call, as far as they stand before start.
func (s *Snapshot) withPartners(ctx context.Context, position, start int, into map[int]*Entry) error {
	page, err := s.Page(ctx, position, position)
	if err != nil {
		return err
	}
	e := page[0]
	into[position] = e
	if e.Result != nil && position > 1 {
		for before, err := range s.Entries(ctx, position-1, 1) {
			if err != nil {
				return err
			}
			if callsFor(before.Message, e.Result.RequestID) {
				e = before
				into[e.Position] = e
				break
			}
		}
	}
	left := len(e.Calls)
	if left == 0 || e.Position+1 >= start {
		return nil
	}
	for after, err := range s.Entries(ctx, e.Position+1, start-1) {
		if err != nil {
			return err
		}
		if after.Result != nil && callsFor(e.Message, after.Result.RequestID) {
			into[after.Position] = after
			left--
		}
		if left == 0 {
			break
		}
	}
	return nil
}

func callsFor(m *Message, request string) bool {
	return slices.ContainsFunc(m.Calls, func(c pool.Call) bool { return c.ID == request })
}
