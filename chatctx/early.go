package chatctx

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// keepEarly puts what precedes the session's start but outlives a summary in front of the draft's messages: the system messages, the pinned messages and those
// of which the summary does not tell, the latter two with the results of their calls, or the call of their result.
func (d *Draft) keepEarly(ctx context.Context, snap *Snapshot, marked map[ID]string, start int) error {
	if start <= 1 {
		return nil
	}
	ids, err := snap.IDs(ctx)
	if err != nil {
		return err
	}
	ids = ids[:min(start-1, len(ids))]
	kept := map[int]*Entry{}
	for i, id := range ids {
		if (marked[id] == base.Pinned || marked[id] != base.Excluded && slices.Contains(d.Session.Apart, i+1)) && kept[i+1] == nil {
			if err := snap.withPartners(ctx, i+1, start, kept); err != nil {
				return err
			}
		}
	}
	leads, err := snap.systemMessages(ctx, ids, marked, kept)
	if err != nil {
		return err
	}
	var front []*DraftMessage
	for _, pos := range slices.Sorted(maps.Keys(kept)) {
		m := draftMessage(*kept[pos], marked[kept[pos].ID])
		m.Leads = leads[pos]
		front = append(front, m)
	}
	d.Messages = slices.Insert(d.Messages, 0, front...)
	return nil
}

// systemMessages adds the messages from the branch's beginning that are system text: sent, shown, not excluded, and neither injected nor a summary. leads
// marks those that begin the branch.
func (s *Snapshot) systemMessages(ctx context.Context, ids []ID, marked map[ID]string, into map[int]*Entry) (leads map[int]bool, err error) {
	var positions []int
	leads, leading := map[int]bool{}, true
	err = s.view(ctx, func(tx kv.Tx) error {
		positions, leading = positions[:0], true
		return poolstore.Heads(tx, s.ctx.ID, ids, func(i int, h poolstore.Head) error {
			if h.Unsent || marked[ids[i]] == base.Excluded {
				return nil
			}
			leading = leading && h.Role == pool.System
			if h.Role == pool.System && !h.Hidden && !slices.Contains([]string{"injected", "summary", "digest"}, h.Kind) {
				positions = append(positions, i+1)
				leads[i+1] = leading
			}
			return nil
		})
	})
	for _, pos := range positions {
		page, pageErr := s.Page(ctx, pos, pos)
		if err = errors.Join(err, pageErr); err != nil {
			break
		}
		into[pos] = page[0]
	}
	return leads, err
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
