package journal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// A message that no branch holds was on one that is removed, or was taken off one. The record of the first has it still; of the second the journal tells, as
// long as its operations are kept.

// heldBy is a branch as it was when it last held a message, with the message's position and the ids up to it.
type heldBy struct {
	*branch.Branch
	pos int
	ids []pool.ID
}

// onceHeld returns the newest branch that held a message which no branch holds, removed or not, as it was then, and the message's position on it. If the
// histories of two up to the message differ, it returns an ErrAmbiguous that names both, unless the message is wanted alone, and ErrNotFound if nothing that is
// kept tells of one.
func (t *Txn) onceHeld(id pool.ID, alone bool) (*branch.Branch, int, error) {
	all, err := t.holdersOnce(id)
	if err != nil {
		return nil, 0, err
	}
	if len(all) == 0 {
		return nil, 0, base.NotFoundSince("branch with the message", record.Short(id), "no branch held it, or gc or a purge took what tells of that")
	}
	slices.SortFunc(all, func(a, b heldBy) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), slices.Compare(b.ID[:], a.ID[:]))
	})
	if !alone && slices.ContainsFunc(all, func(h heldBy) bool { return !slices.Equal(h.ids, all[0].ids) }) {
		words := make([]string, len(all))
		for i, h := range all {
			words[i] = fmt.Sprintf("%q (%s)", h.Name, plural.Count(len(h.ids), "message"))
		}
		return nil, 0, base.Ambiguous("history up to message", record.Short(id), words, 0)
	}
	return all[0].Branch, all[0].pos, nil
}

// holdersOnce finds the branches that held a message, each as it last held it. It goes back through the journal, undoing the splices of each branch.
func (t *Txn) holdersOnce(id pool.ID) (found []heldBy, err error) {
	home, err := poolstore.HomeOf(t.Tx, t.ID, id)
	if err != nil || home == nil {
		return nil, err
	}
	past := map[pool.ID]*branch.Branch{}
	var all []*branch.Branch
	err = branchstore.All(t.Tx, t.ID, func(b *branch.Branch) error {
		all = append(all, b)
		return nil
	})
	look := func(b *branch.Branch, in []branch.Piece) error {
		at, err := t.Reader().StandsAt(&branch.Branch{Pieces: in}, &pool.Message{ID: id, Home: *home})
		if at == 0 || err != nil {
			past[b.ID] = b
			return err
		}
		delete(past, b.ID)
		if at, err = t.Reader().StandsAt(b, &pool.Message{ID: id, Home: *home}); err != nil {
			return err
		}
		ids, err := branchstore.IDs(t.Tx, t.ID, branchstore.Slice(b.Pieces, 0, at))
		found = append(found, heldBy{b, at, ids})
		return err
	}
	for _, b := range all {
		if err == nil {
			err = look(b, b.Pieces)
		}
	}
	if err != nil {
		return nil, err
	}
	return found, base.EachOperation(t.Tx, base.NewestFirst(t.ID), func(_ uint64, op *base.Operation) error {
		for _, c := range slices.Backward(op.Changes) {
			if c.Kind != base.SpliceChange || len(c.Key) != len(pool.ID{}) || past[pool.ID(c.Key)] == nil {
				continue
			}
			b := *past[pool.ID(c.Key)]
			b.Pieces, b.Sessions = branchstore.Splice(b.Pieces, c.At, branchstore.Count(c.Inserted), c.Removed), nil
			if err := look(&b, c.Removed); err != nil {
				return err
			}
		}
		return nil
	})
}

// ToPick returns the pieces with messages and the results of their calls: of a branch, by its name, and each alone if no branch holds it, whatever the name is.
func (t *Txn) ToPick(name string, refs []record.Ref) ([]branch.Piece, error) {
	src, missing := t.Branch(name)
	if missing != nil && !errors.Is(missing, base.ErrNotFound) {
		return nil, missing
	}
	var held []record.Ref
	var alone []branch.Piece
	for _, ref := range refs {
		id, on, _, err := t.Reader().Locate(cmp.Or(src, t.Target), ref)
		if err != nil || on != nil {
			held = append(held, ref)
			continue
		}
		once, _, err := t.onceHeld(id, true)
		if err != nil {
			return nil, err
		}
		more, err := t.picked(once, []record.Ref{record.RefTo(id)})
		if err != nil {
			return nil, err
		}
		alone = append(alone, more...)
	}
	if len(held) == 0 {
		return alone, nil
	}
	if missing != nil {
		return nil, missing
	}
	pieces, err := t.picked(src, held)
	return append(pieces, alone...), err
}

// picked returns the pieces with messages of a branch and the results of their calls.
func (t *Txn) picked(src *branch.Branch, refs []record.Ref) (pieces []branch.Piece, err error) {
	all, err := t.WithResults(src, refs)
	for _, pos := range all {
		pieces = append(pieces, branchstore.Slice(src.Pieces, pos-1, pos)...)
	}
	return pieces, err
}
