package journal

import (
	"slices"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Fork makes a branch with the first n messages of another.
func (t *Txn) Fork(from *branch.Branch, name string, n int, res *record.Step) (*branch.Branch, error) {
	made, err := t.Create(name, from)
	if err != nil {
		return nil, err
	}
	pieces, err := t.share(made, branchstore.Slice(from.Pieces, 0, n), true)
	if err != nil {
		return nil, err
	}
	if made.At, err = branchstore.IDAt(t.Tx, t.ID, from.Pieces, n-1); err != nil {
		return nil, err
	}
	if err := t.Splice(made, 0, 0, pieces); err != nil {
		return nil, err
	}
	made.Sessions = sessionsAfter(from.Sessions, n, branchstore.Len(from)-n, 0, n)
	res.From, res.At = from.Name, made.At
	if err := t.copyRules(from, made); err != nil {
		return nil, err
	}
	return made, t.Stands(res, made)
}

// share returns pieces as another branch may hold them. A message with a call that has no result there is copied, and in the copy each such call that was
// not denied waits again: a decision on one branch never counts on another. With ending the pieces end a history, so results after them are not on the new
// branch.
func (t *Txn) share(to *branch.Branch, pieces []branch.Piece, ending bool) ([]branch.Piece, error) {
	places, err := t.mustCopy(pieces, ending)
	if err != nil || len(places) == 0 {
		return pieces, err
	}
	for _, i := range places {
		id, err := branchstore.IDAt(t.Tx, t.ID, pieces, i)
		if err != nil {
			return nil, err
		}
		p, err := t.copyMessage(to, id, branchstore.Slice(pieces, i+1, i+1+view.MaxResults))
		if err != nil {
			return nil, err
		}
		pieces = branchstore.Splice(pieces, i, 1, []branch.Piece{p})
	}
	return pieces, nil
}

// mustCopy finds the places of messages with calls that have no result in pieces.
func (t *Txn) mustCopy(pieces []branch.Piece, ending bool) ([]int, error) {
	calls, err := view.UnansweredIn(t.Tx, t.ID, pieces)
	if err != nil {
		return nil, err
	}
	var places []int
	for _, u := range calls {
		if i := branchstore.Place(pieces, u.Home.Segment, u.Home.Position); i >= 0 && !slices.Contains(places, i) {
			places = append(places, i)
		}
	}
	if ending {
		i, err := t.cutCalls(pieces)
		if err != nil {
			return nil, err
		}
		if i >= 0 && !slices.Contains(places, i) {
			places = append(places, i)
		}
	}
	slices.Sort(places)
	return places, nil
}

// cutCalls finds the message at the end of pieces, before tool results if any, whose calls have results only after the pieces; -1 if there is none.
func (t *Txn) cutCalls(pieces []branch.Piece) (int, error) {
	answered := map[string]bool{}
	for i := branchstore.Count(pieces) - 1; i >= 0; i-- {
		ms, err := t.messagesAt(branchstore.Slice(pieces, i, i+1))
		if err != nil {
			return -1, err
		}
		m := ms[0]
		if m.Result != nil && m.Kind == pool.Late {
			continue
		}
		if m.Result != nil {
			answered[m.Result.RequestID] = true
			continue
		}
		for j := range m.Calls {
			if c := &m.Calls[j]; !answered[c.ID] && c.Status == pool.Approved && (c.Execution == pool.Done || c.Execution == pool.Failed) {
				return i, nil
			}
		}
		return -1, nil
	}
	return -1, nil
}

// messagesAt reads the messages of pieces with calls in their present state.
func (t *Txn) messagesAt(pieces []branch.Piece) ([]*pool.Message, error) {
	ids, err := branchstore.IDs(t.Tx, t.ID, pieces)
	if err != nil {
		return nil, err
	}
	out := make([]*pool.Message, 0, len(ids))
	for _, id := range ids {
		m, err := t.Get(id)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func (t *Txn) Get(id pool.ID) (*pool.Message, error) {
	m, err := poolstore.Get(t.Tx, t.ID, id)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, base.Damaged("message %s is missing", id)
	}
	return m, view.FillCalls(t.Tx, t.ID, m)
}

// copyMessage stores a copy of a message as the next entry of a branch's segment. Calls that were not denied and have no result among the messages of next,
// which follow it, wait again.
func (t *Txn) copyMessage(to *branch.Branch, id pool.ID, next []branch.Piece) (branch.Piece, error) {
	m, err := t.Get(id)
	if err != nil {
		return branch.Piece{}, err
	}
	var after []*pool.Message
	if len(m.Calls) > 0 {
		if after, err = t.messagesAt(next); err != nil {
			return branch.Piece{}, err
		}
	}
	m.ID, m.CopiedFrom = pool.NewID(), &id
	for i := range m.Calls {
		c := &m.Calls[i]
		switch r := base.ResultFor(c.ID, after); {
		case c.Status == pool.Denied:
		case r == nil:
			c.Status, c.Execution, c.Reason = pool.Pending, pool.NotRun, ""
		case c.Open(): // it has a result here; who runs the original still runs it for that one
			c.Status, c.Execution = pool.Approved, pool.Done
			if r.IsError {
				c.Execution = pool.Failed
			}
		}
	}
	return t.Put(to, []*pool.Message{m})
}

// Edit makes the branch of Batch.Edit.
func (t *Txn) Edit(from *branch.Branch, ref record.Ref, text string, o record.EditOptions, res *record.Step) (*branch.Branch, error) {
	from, pos, err := t.Locate(from, ref)
	if err != nil {
		return nil, err
	}
	if o.Name != "" {
		if err := branchstore.CheckNewName(o.Name); err != nil {
			return nil, err
		}
	}
	name := o.Name
	if name == "" {
		if name, err = t.FreeName(from.Name); err != nil {
			return nil, err
		}
	}
	id, err := branchstore.IDAt(t.Tx, t.ID, from.Pieces, pos-1)
	if err != nil {
		return nil, err
	}
	m, err := t.Get(id)
	if err != nil {
		return nil, err
	}
	made, err := t.Fork(from, name, pos-1, res)
	if err != nil {
		return nil, err
	}
	for i := max(branchstore.Current(from.Sessions), 0); i < len(from.Sessions); i++ {
		if told, _ := branchstore.Covered(from.Sessions, i); pos <= told {
			t.noteSummary(record.SummaryChange{Branch: made.Name, From: 1, To: told, Provider: from.Sessions[i].Provider})
		}
	}
	if err := t.appendEdited(made, m, text); err != nil {
		return nil, err
	}
	if o.KeepRest {
		rest, err := t.share(made, branchstore.Slice(from.Pieces, pos, branchstore.Len(from)), true)
		if err != nil {
			return nil, err
		}
		if err := t.Splice(made, branchstore.Len(made), 0, rest); err != nil {
			return nil, err
		}
	}
	return made, t.Stands(res, made)
}

// appendEdited stores a copy of m with another text at the end of a branch.
func (t *Txn) appendEdited(b *branch.Branch, m *pool.Message, text string) error {
	id := m.ID
	m.ID, m.CopiedFrom, m.Created = pool.NewID(), &id, t.Now
	m.Source = nil
	if m.Result != nil {
		m.Result.Text, m.Result.JSON, m.Result.Parts, m.Result.SHA256, m.Result.Size = text, nil, nil, pool.Hash{}, 0
	} else {
		m.Content = replaceText(m.Content, text)
	}
	for i := range m.Calls {
		if c := &m.Calls[i]; c.Status != pool.Denied {
			c.Status, c.Execution, c.Reason = pool.Pending, pool.NotRun, ""
		}
	}
	if err := m.Validate(); err != nil {
		return err
	}
	p, err := t.Put(b, []*pool.Message{m})
	if err != nil {
		return err
	}
	return t.Splice(b, branchstore.Len(b), 0, []branch.Piece{p})
}

// replaceText replaces all text parts by one. It drops thinking, since that led to the old text.
func replaceText(parts []pool.Part, text string) []pool.Part {
	var out []pool.Part
	done := false
	for _, p := range parts {
		switch {
		case p.Type == pool.ThinkingPart:
		case p.Type != pool.TextPart:
			out = append(out, p)
		case !done:
			out = append(out, pool.Part{Type: pool.TextPart, Text: text})
			done = true
		}
	}
	if !done {
		out = append(out, pool.Part{Type: pool.TextPart, Text: text})
	}
	return out
}

// FreeName returns the first of NAME.2, NAME.3 … that no branch has, where NAME is name without such an ending.
func (t *Txn) FreeName(name string) (string, error) {
	return branchstore.FreeName(t.Tx, t.ID, branchstore.PlainName(trimNumber(name)))
}

// NameOr returns a name for a new branch: name, or the first free one of ELSE.2, ELSE.3 … if another branch has it and otherwise is not empty.
func (t *Txn) NameOr(name, otherwise string) (string, error) {
	if otherwise == "" {
		return name, nil
	}
	id, err := branchstore.Lookup(t.Tx, t.ID, name)
	if err != nil || id == (pool.ID{}) {
		return name, err
	}
	return branchstore.FreeName(t.Tx, t.ID, otherwise)
}

func trimNumber(name string) string {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	if i < len(name) && i > 1 && name[i-1] == '.' {
		return name[:i-1]
	}
	return name
}

// WithResults returns the positions of messages on a branch and of the results of their calls, in order.
func (t *Txn) WithResults(b *branch.Branch, refs []record.Ref) ([]int, error) {
	set := map[int]bool{}
	for _, ref := range refs {
		places, err := t.Positions(b, ref)
		if err != nil {
			return nil, err
		}
		for _, pos := range places {
			set[pos] = true
			if err := t.results(b, pos, set); err != nil {
				return nil, err
			}
		}
	}
	var all []int
	for pos := range set {
		all = append(all, pos)
	}
	slices.Sort(all)
	return all, nil
}

// results adds the positions of the results of the calls of the message at pos.
func (t *Txn) results(b *branch.Branch, pos int, set map[int]bool) error {
	ms, err := t.messagesAt(branchstore.Slice(b.Pieces, pos-1, pos))
	if err != nil || len(ms[0].Calls) == 0 {
		return err
	}
	waiting := map[string]bool{}
	for _, c := range ms[0].Calls {
		waiting[c.ID] = true
	}
	for next := pos + 1; next <= branchstore.Len(b) && len(waiting) > 0; next++ {
		after, err := t.messagesAt(branchstore.Slice(b.Pieces, next-1, next))
		if err != nil {
			return err
		}
		m := after[0]
		if m.Result != nil && waiting[m.Result.RequestID] {
			set[next] = true
			delete(waiting, m.Result.RequestID)
		}
		for _, c := range m.Calls {
			delete(waiting, c.ID)
		}
	}
	return nil
}

// Bring appends pieces of another branch to the target. Messages that the target holds already are copied.
func (t *Txn) Bring(pieces []branch.Piece, res *record.Step) error {
	if err := t.bringTo(branchstore.Len(t.Target), pieces, true, res); err != nil {
		return err
	}
	return t.Merge(t.Target)
}

// bringTo puts pieces of another branch at a place of the target, from 0. Messages that the target holds already are copied. ending is as in share.
func (t *Txn) bringTo(at int, pieces []branch.Piece, ending bool, res *record.Step) error {
	b := t.Target
	ids, err := branchstore.IDs(t.Tx, t.ID, pieces)
	if err != nil {
		return err
	}
	wanted := make(map[pool.ID]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	held := map[pool.ID]bool{}
	err = branchstore.Read(t.Tx, t.ID, b.Pieces, func(_ int, id pool.ID) error {
		if wanted[id] {
			held[id] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if pieces, err = t.copyHeld(pieces, ids, held); err != nil {
		return err
	}
	if pieces, err = t.share(b, pieces, ending); err != nil {
		return err
	}
	if err := t.Splice(b, at, 0, pieces); err != nil {
		return err
	}
	added, err := branchstore.IDs(t.Tx, t.ID, pieces)
	for i, id := range added {
		res.Placed = append(res.Placed, record.Placement{Message: id, Position: at + 1 + i})
	}
	return err
}

func (t *Txn) copyHeld(pieces []branch.Piece, ids []pool.ID, held map[pool.ID]bool) ([]branch.Piece, error) {
	if len(held) == 0 {
		return pieces, nil
	}
	for i, id := range ids {
		if !held[id] {
			continue
		}
		p, err := t.copyMessage(t.Target, id, branchstore.Slice(pieces, i+1, i+1+view.MaxResults))
		if err != nil {
			return nil, err
		}
		pieces = branchstore.Splice(pieces, i, 1, []branch.Piece{p})
	}
	return pieces, nil
}

// LastTurn finds the last turn. start is the place of its user's message, counted from 0: 0 in an empty history, -1 if there is no user's message. finished
// reports whether the history is empty, or ends with a complete assistant's message without calls or with a system message.
func (t *Txn) LastTurn(b *branch.Branch) (start int, finished bool, err error) {
	n := branchstore.Len(b)
	if n == 0 {
		return 0, true, nil
	}
	ms, err := t.messagesAt(branchstore.Slice(b.Pieces, n-1, n))
	if err != nil {
		return 0, false, err
	}
	head := ms[0]
	finished = head.Role == pool.Assistant && !head.Unfinished && len(head.Calls) == 0 || head.Role == pool.System
	for start = n - 1; start >= 0; start-- {
		ms, err := t.messagesAt(branchstore.Slice(b.Pieces, start, start+1))
		if err != nil {
			return 0, false, err
		}
		if branchstore.ItemOf(ms[0]).Turn {
			return start, finished, nil
		}
	}
	return -1, finished, nil
}
