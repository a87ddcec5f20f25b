package journal

import (
	"bytes"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// openCalls registers the open calls of a message that was just put at its home.
func (t *Txn) openCalls(m *pool.Message) error {
	for i := range m.Calls {
		c := &m.Calls[i]
		if !c.Open() {
			continue
		}
		rec := &record.CallRecord{CallID: c.ID, Tool: c.Tool, Status: c.Status, Execution: c.Execution, Since: t.Now, Home: m.Home,
			Program: t.Store.Program, Origin: t.What}
		if err := t.PutCall(m.ID, i, rec); err != nil {
			return err
		}
	}
	return nil
}

// callRecord reads a call's record, nil if there is none.
func (t *Txn) callRecord(u view.Unanswered) (*record.CallRecord, error) {
	rec := &record.CallRecord{}
	ok, err := base.GetRecord(t.Tx, base.CallBucket, base.CallKey(t.ID, u.Message, u.Index), rec)
	if err != nil || !ok {
		return nil, err
	}
	return rec, nil
}

// PutCall writes a call's record and updates its indexes. The old record goes on the journal.
func (t *Txn) PutCall(message pool.ID, index int, rec *record.CallRecord) error {
	raw, err := base.EncodeRecord(rec)
	if err != nil {
		return err
	}
	return t.PutRaw(base.CallBucket, base.CallKey(t.ID, message, index), raw)
}

// MoveCall moves a call's record to a call of another message, with its claim. No undo brings it back: what became of the call stays with the message.
func (t *Txn) MoveCall(from []byte, message pool.ID, index int, rec *record.CallRecord) error {
	old, err := t.Tx.Get(base.CallBucket, from)
	if err != nil {
		return err
	}
	raw, err := base.EncodeRecord(rec)
	if err != nil {
		return err
	}
	to := base.CallKey(t.ID, message, index)
	for _, c := range []struct{ key, old, is []byte }{{from, bytes.Clone(old), nil}, {to, nil, raw}} {
		if c.is == nil {
			err = t.Tx.Delete(base.CallBucket, c.key)
		} else {
			err = t.Tx.Put(base.CallBucket, c.key, c.is)
		}
		if err == nil {
			err = t.callChanged(c.key, c.old, c.is)
		}
		if err != nil {
			return err
		}
	}
	claim, err := t.Tx.Get(base.ClaimBucket, from)
	if claim = bytes.Clone(claim); err == nil && claim != nil {
		err = t.Tx.Delete(base.ClaimBucket, from)
	}
	if err == nil && rec.Execution == pool.Running {
		err = t.Tx.Put(base.ClaimBucket, to, claim)
	}
	if err != nil || !base.IsOpen(rec) {
		return err
	}
	holders, err := t.Holders(rec.Home)
	if err != nil || len(holders) == 0 {
		return err
	}
	return t.Tx.Put(base.OpenBucket, base.OpenKey(rec, t.ID, message, index), base.HomeBytes(rec.Home))
}

// Forget removes a message that no branch ever held. No undo brings it back.
func (t *Txn) Forget(m *pool.Message) error {
	t.wrote = true
	if poolstore.Counts(m) {
		t.Rec.Messages--
	}
	return t.Tx.Delete(poolstore.Bucket, base.Under(t.ID, m.ID[:]...))
}

// callChanged updates the indexes after a change of a call's record. A call is in the open index while a branch holds its message, and in the unanswered
// index wherever its message is, so that it waits again when an undo brings the message back. A new call comes into the open index with its message, by
// Show.
func (t *Txn) callChanged(key, before, after []byte) error {
	was, err := base.DecodeCall(key, before)
	if err != nil {
		return err
	}
	is, err := base.DecodeCall(key, after)
	if err != nil {
		return err
	}
	shown, err := t.unlistCall(key, was)
	if err != nil {
		return err
	}
	switch {
	case is == nil:
		return t.Tx.Delete(base.CallIDBucket, base.CallIDKey(t.ID, was.CallID, key[16:]...))
	case was == nil:
		shown = base.IsApart(is)
		if err := t.Tx.Put(base.CallIDBucket, base.CallIDKey(t.ID, is.CallID, key[16:]...), []byte{}); err != nil {
			return err
		}
	case !base.IsOpen(was) && base.IsOpen(is):
		holders, err := t.Holders(is.Home)
		if err != nil {
			return err
		}
		shown = len(holders) > 0 || base.IsApart(is)
	}
	return t.listCall(key, is, shown)
}

// unlistCall removes a call from the indexes of waiting calls. It reports whether it was in the open one.
func (t *Txn) unlistCall(key []byte, rec *record.CallRecord) (shown bool, err error) {
	if rec == nil || !base.IsListed(rec) {
		return false, nil
	}
	message, index := base.CallOfKey(key)
	at := base.OpenKey(rec, t.ID, message, index)
	old, err := t.Tx.Get(base.OpenBucket, at)
	if err != nil {
		return false, err
	}
	shown = old != nil
	if err := t.Tx.Delete(base.OpenBucket, at); err != nil {
		return false, err
	}
	return shown, t.Tx.Delete(base.UnansweredBucket, base.UnansweredKey(t.ID, rec.Home, index))
}

// listCall puts a waiting call into the indexes. shown says whether a branch holds its message.
func (t *Txn) listCall(key []byte, rec *record.CallRecord, shown bool) error {
	if !base.IsListed(rec) {
		return nil
	}
	message, index := base.CallOfKey(key)
	value := append(append(make([]byte, 0, 16+len(rec.CallID)), message[:]...), rec.CallID...)
	if err := t.Tx.Put(base.UnansweredBucket, base.UnansweredKey(t.ID, rec.Home, index), value); err != nil || !shown || !base.IsOpen(rec) {
		return err
	}
	return t.Tx.Put(base.OpenBucket, base.OpenKey(rec, t.ID, message, index), base.HomeBytes(rec.Home))
}

// Holders names at most two of the branches that hold a place. Those that this operation has read come first.
func (t *Txn) Holders(home pool.Home) ([]string, error) {
	var names []string
	err := t.Each(func(b *branch.Branch) error {
		if len(names) == 2 {
			return kv.ErrStop
		}
		if branchstore.Place(b.Pieces, home.Segment, home.Position) >= 0 {
			names = append(names, b.Name)
		}
		return nil
	})
	return names, err
}

// Show updates the open index after messages in pieces came onto the branch b or left it: with on it adds their calls, else it removes those whose messages
// no branch holds any more.
func (t *Txn) Show(b *branch.Branch, pieces []branch.Piece, on bool) error {
	if on && len(pieces) == 1 && pieces[0] == t.quiet {
		return nil
	}
	calls, err := view.UnansweredIn(t.Tx, t.ID, pieces)
	if err != nil {
		return err
	}
	for _, u := range calls {
		rec, err := t.callRecord(u)
		if err != nil || rec == nil {
			return err
		}
		if !base.IsOpen(rec) { // its result waits for a branch
			if on {
				t.returned = append(t.returned, returned{b, u})
			}
			continue
		}
		held := on
		if !on {
			holders, err := t.Holders(rec.Home)
			if err != nil {
				return err
			}
			held = len(holders) > 0
		}
		key := base.OpenKey(rec, t.ID, u.Message, u.Index)
		if held {
			err = t.Tx.Put(base.OpenBucket, key, base.HomeBytes(rec.Home))
		} else {
			t.left = append(t.left, u)
			err = t.Tx.Delete(base.OpenBucket, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// returned is a call whose message came back onto a branch while its result is on none.
type returned struct {
	b    *branch.Branch
	call view.Unanswered
}

// bringResults appends results that came while no branch held their calls' messages to the branches that hold these messages again.
func (t *Txn) bringResults() error {
	for _, r := range t.returned {
		rec, err := t.callRecord(r.call)
		if err != nil {
			return err
		}
		if rec == nil || rec.Result == (pool.ID{}) || branchstore.Place(r.b.Pieces, rec.Home.Segment, rec.Home.Position) < 0 {
			continue
		}
		m, err := poolstore.Get(t.Tx, t.ID, rec.Result)
		if err != nil {
			return err
		}
		rec.Result = pool.ID{}
		if err := t.PutCall(r.call.Message, r.call.Index, rec); err != nil {
			return err
		}
		if m == nil {
			continue // purged
		}
		if _, err := t.Place(r.b, branchstore.Len(r.b), []*pool.Message{m}); err != nil {
			return err
		}
	}
	t.returned = nil
	return nil
}

// runner reads the claim of a running call; nil if nobody runs it any more.
func (t *Txn) runner(key []byte) (*record.Claim, error) {
	claim := &record.Claim{}
	ok, err := base.GetRecord(t.Tx, base.ClaimBucket, key, claim)
	if err != nil || !ok || claim.Task == (pool.ID{}) && base.Dead(claim, t.Now) {
		return nil, err
	}
	return claim, nil
}

// running refuses an undo that concerns a running call.
func (t *Txn) running(message pool.ID, index int, rec *record.CallRecord) error {
	if rec.Execution != pool.Running {
		return nil
	}
	claim, err := t.runner(base.CallKey(t.ID, message, index))
	if err != nil || claim == nil {
		return err
	}
	return base.Conflict("call %s:%d (%s) is %s by %s: undo it when it has ended, or take it off the branch with rewind", record.Short(message), index+1, rec.Tool, base.StateOf(rec), claim.Who())
}

// noneRuns refuses an undo that removes a whole context while one of its calls runs.
func (t *Txn) noneRuns() error {
	var calls [][]byte
	err := t.Tx.Scan(base.ClaimBucket, kv.Prefix(t.ID[:]), func(key, _ []byte) error {
		if len(key) == len(base.CallKey(t.ID, pool.ID{}, 0)) {
			calls = append(calls, bytes.Clone(key))
		}
		return nil
	})
	for _, key := range calls {
		var rec record.CallRecord
		if err == nil {
			_, err = base.GetRecord(t.Tx, base.CallBucket, key, &rec)
		}
		if err != nil {
			return err
		}
		message, index := base.CallOfKey(key)
		err = t.running(message, index, &rec)
	}
	return err
}

// keepsRunning refuses an undo that took the message of a running call off the last branch that held it.
func (t *Txn) keepsRunning() error {
	for _, u := range t.left {
		rec, err := t.callRecord(u)
		if err != nil {
			return err
		}
		if rec == nil {
			continue
		}
		holders, err := t.Holders(rec.Home)
		if err != nil {
			return err
		}
		if len(holders) > 0 {
			continue
		}
		if err := t.running(u.Message, u.Index, rec); err != nil {
			return err
		}
	}
	return nil
}

// answer closes the open call of a branch that a result answers, if there is one: a program that brings a result has run the call. It returns late if
// another program runs the call; then the result does not end it.
func (t *Txn) answer(b *branch.Branch, r *pool.Result) (late bool, err error) {
	for i := len(b.Pieces) - 1; i >= 0; i-- {
		calls, err := view.UnansweredIn(t.Tx, t.ID, b.Pieces[i:i+1])
		if err != nil {
			return false, err
		}
		for j := len(calls) - 1; j >= 0; j-- {
			if u := calls[j]; u.CallID == r.RequestID {
				return t.closeCall(u, r)
			}
		}
	}
	return false, nil
}

// closeCall closes an open call whose result was appended, and removes the claim of a program that died on it. It returns late if a program holds a claim,
// since nobody else may end the call.
func (t *Txn) closeCall(u view.Unanswered, r *pool.Result) (late bool, err error) {
	rec, err := t.callRecord(u)
	if err != nil || rec == nil {
		return false, err
	}
	key := base.CallKey(t.ID, u.Message, u.Index)
	if rec.Gate != nil { // the agent's own word
		base.Outlived(rec, r, t.Now)
	} else if claim, err := t.runner(key); claim != nil || err != nil {
		return claim != nil, err
	}
	if err := t.Tx.Delete(base.ClaimBucket, key); err != nil {
		return false, err
	}
	if rec.Gate != nil {
		return false, t.PutCall(u.Message, u.Index, rec)
	}
	from := base.StateOf(rec)
	rec.Status, rec.Execution = pool.Approved, pool.Done
	if r.IsError {
		rec.Execution = pool.Failed
	}
	rec.Decisions = append(rec.Decisions, record.Decision{At: t.Now, From: from, To: base.StateOf(rec), Decider: pool.Decider{Kind: record.ByProgram, Name: t.Store.Program}, Program: t.Store.Program, User: t.Store.User, Reason: "result appended"})
	return false, t.PutCall(u.Message, u.Index, rec)
}
