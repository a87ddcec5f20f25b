package journal

import (
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/pool"
)

// TakeAnswer puts the answer to which ref's message belongs in the place of the target's own answer to the same user's message. What the target had from
// there on moves to a new branch.
func (t *Txn) TakeAnswer(ref record.Ref, o record.TakeOptions, res *record.Step) error {
	b := t.Target
	answer, question, err := t.answerAt(ref)
	if err != nil {
		return err
	}
	if err := t.stays(b); err != nil {
		return err
	}
	asked, err := t.Get(question)
	if err != nil {
		return err
	}
	at, err := t.Reader().StandsAt(b, asked)
	if err != nil {
		return err
	}
	if at == 0 {
		return base.Conflict("the branch %q does not hold the user's message %s that this answers: chatctx pick or merge brings messages along", b.Name, record.Short(question))
	}
	_, end, err := t.Reader().TurnOf(b, at)
	if err != nil {
		return err
	}
	if same, err := t.sameMessages(answer, branchstore.Slice(b.Pieces, at, end)); err != nil || same {
		return err
	}
	if at < branchstore.Len(b) {
		if err := t.moveBeside(at, end, o.KeepRest, question, res); err != nil {
			return err
		}
	}
	if err := t.bringTo(at, answer, true, res); err != nil {
		return err
	}
	return t.Merge(b)
}

// answerAt finds the whole answer to which ref's message belongs, and the user's message that it answers.
func (t *Txn) answerAt(ref record.Ref) ([]branch.Piece, pool.ID, error) {
	on, pos, err := t.Reader().LocateThere(t.Target, ref)
	if err != nil {
		return nil, pool.ID{}, err
	}
	begins, ends, err := t.Reader().TurnOf(on, pos)
	if err != nil {
		return nil, pool.ID{}, err
	}
	if begins == 0 || ends <= begins {
		return nil, pool.ID{}, base.Conflict("%q is not an answer: no message of branch %q answers there", ref, on.Name)
	}
	question, err := branchstore.IDAt(t.Tx, t.ID, on.Pieces, begins-1)
	return branchstore.Slice(on.Pieces, begins, ends), question, err
}

func (t *Txn) sameMessages(a, b []branch.Piece) (bool, error) {
	if branchstore.Same(a, b) {
		return true, nil
	}
	as, err := branchstore.IDs(t.Tx, t.ID, a)
	if err != nil {
		return false, err
	}
	bs, err := branchstore.IDs(t.Tx, t.ID, b)
	return slices.Equal(as, bs), err
}

// moveBeside makes a branch that continues as the target does now, and takes the entries from at to end off the target, and those after them unless
// keepRest is set. Messages that leave the target move with their calls; those that stay are shared as with a fork. They leave before the new branch is
// made, so that an undo removes the branch before it puts them back: a waiting call is never on two branches.
func (t *Txn) moveBeside(at, end int, keepRest bool, question pool.ID, res *record.Step) error {
	b, was := t.Target, *t.Target
	if !keepRest {
		end = branchstore.Len(b)
	}
	name, err := t.FreeName(b.Name)
	if err != nil {
		return err
	}
	if err := t.Splice(b, at, end-at, nil); err != nil {
		return err
	}
	made, err := t.Create(name, &was)
	if err != nil {
		return err
	}
	made.At = question
	shared, err := t.share(made, branchstore.Slice(was.Pieces, 0, at), false)
	if err != nil {
		return err
	}
	rest, err := t.share(made, branchstore.Slice(was.Pieces, end, branchstore.Len(&was)), true)
	if err != nil {
		return err
	}
	if err := t.Splice(made, 0, 0, slices.Concat(shared, branchstore.Slice(was.Pieces, at, end), rest)); err != nil {
		return err
	}
	made.Sessions = slices.Clone(was.Sessions)
	res.Beside = name
	return t.copyRules(b, made)
}
