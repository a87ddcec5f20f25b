package intake

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// A file from somebody else decides nothing. Its approvals are kept as the file's words but are not in force, its settings count only as far as they are
// harmless, and its sub-contexts get the rules and limits of this store.
//
// undecided makes an unfinished call of a file wait for a decision here. The file's steps are kept as said by the file.

// undecided makes a call of a file that was not finished wait for a decision here. The steps that the file tells are kept as said by it.
func undecided(c *NativeCall, now pool.Time, program string) {
	state := record.CallState(c.Status, c.Execution)
	steps := c.Decisions
	c.Decisions = nil
	for n, d := range steps {
		next := state
		if n+1 < len(steps) {
			next = steps[n+1].From
		}
		if d.To != next { // steps that do not fit together are no record
			c.Decisions = nil
			continue
		}
		d.Said = true
		c.Decisions = append(c.Decisions, d)
	}
	if finished(c) {
		return
	}
	if pending := record.CallState(pool.Pending, pool.NotRun); state != pending {
		c.Decisions = append(c.Decisions, record.Decision{At: now, From: state, To: pending, Decider: pool.Decider{Kind: record.ByImport, Name: program}, Program: program,
			Reason: "what the file says of it decides nothing here", Arguments: c.Effective})
	}
	c.Status, c.Execution, c.Reason, c.Effective, c.Expires = pool.Pending, pool.NotRun, "", nil, 0
	c.Since = min(c.Since, now)
}

// finished reports whether the file says that nothing is left to do: the call was denied and did not run, or it ran to its end. Any other state, one that no
// call can have too, is one in which somebody still has to decide.
func finished(c *NativeCall) bool {
	switch c.Status {
	case pool.Denied:
		return c.Execution == pool.NotRun
	case pool.Approved:
		return c.Execution == pool.Done || c.Execution == pool.Failed
	}
	return false
}

// undecidedIn makes the open calls of a file's message wait for a decision.
func undecidedIn(m *pool.Message) {
	for i := range m.Calls {
		if c := &m.Calls[i]; c.Open() {
			c.Status, c.Execution, c.Reason = pool.Pending, pool.NotRun, ""
		}
	}
}

// bound limits a file's task to what is allowed here. Its parent counts only if the same run brought that in, and then the parent's rules hold. It returns
// alone if the parent does not count.
func (r *ImportRun) bound(n *Native) (alone bool) {
	if !r.made[n.Parent] {
		alone = n.Parent != pool.ID{}
		n.Parent, n.Task = pool.ID{}, nil
	}
	if n.Task == nil {
		return alone
	}
	task := *n.Task
	task.OwnRules, task.Depth = false, 1
	most := record.DefaultDepth
	if up := r.tasks[n.Parent]; up != nil {
		task.Depth, most = up.Depth+1, up.MaxDepth
	}
	up := r.renamed[n.Parent]
	task.Message, task.Summary = renamed(up, task.Message), renamed(up, task.Summary)
	if task.MaxDepth <= 0 || task.MaxDepth > most {
		task.MaxDepth = most
	}
	n.Task = &task
	return false
}

// Below puts a context that this run made below one of the same file that came after it, with what the file says of its task, as bound leaves it. It reports whether the
// context is there then.
func (r *ImportRun) Below(ctx context.Context, child, parent pool.ID, task *record.Task) (done bool, err error) {
	n := Native{ID: child, Parent: parent, Task: task}
	if r.bound(&n) {
		return false, nil
	}
	err = r.update(ctx, func(st *journal.StoreTxn) error {
		done = false
		rec, _, err := base.GetContext(st.Tx, child)
		if err != nil || rec == nil {
			return err
		}
		if !r.fresh[child] {
			done = rec.Parent == parent
			return nil
		}
		if circle, err := below(st.Tx, parent, child); err != nil || circle {
			return err
		}
		done = true
		return setParent(st, child, parent, n.Task)
	})
	if done && err == nil && n.Task != nil {
		r.tasks[child] = n.Task
	}
	return done, err
}

// cameIn reports whether a file brought the context into the store. A context that was made here takes no sub-contexts from a file, since what it allows
// would hold for them.
func cameIn(tx kv.Tx, id pool.ID, rec *base.ContextRecord) (bool, error) {
	for n := rec.StoreLast; n != 0; {
		op, err := base.GetOperation(tx, pool.ID{}, n)
		if err != nil || op == nil {
			return false, err
		}
		at := slices.IndexFunc(op.Chains, func(c base.Chain) bool { return c.Branch == id })
		if at < 0 {
			return false, nil
		}
		if n = op.Chains[at].Prev; n == 0 {
			return op.What == "import", nil
		}
	}
	return false, nil
}

// remember keeps, for its sub-contexts, a context that this run brought in or that an earlier run of the same file did.
func (r *ImportRun) remember(id pool.ID, fresh bool, task *record.Task, renamed map[pool.ID]pool.ID) {
	if r.made == nil {
		r.made, r.fresh, r.tasks, r.renamed = map[pool.ID]bool{}, map[pool.ID]bool{}, map[pool.ID]*record.Task{}, map[pool.ID]map[pool.ID]pool.ID{}
	}
	r.made[id], r.fresh[id], r.renamed[id] = true, r.fresh[id] || fresh, renamed
	if task != nil {
		r.tasks[id] = task
	}
}

// Hold keeps the store settings that a file brings. None is in force until a person accepts it, and the file's value is dropped if this store has its own.
func (r *ImportRun) Hold(ctx context.Context, set map[string]json.RawMessage) error {
	if err := r.store.Values("setting", &set); err != nil {
		return err
	}
	held, _ := settings.HoldAll(set)
	return r.update(ctx, func(st *journal.StoreTxn) error {
		have, err := view.StoreSettings(st.Tx)
		if err != nil {
			return err
		}
		for name, value := range settings.Held(held) {
			if string(have[name]) == string(value) {
				delete(held, settings.HeldPrefix+name)
			}
		}
		merged, changed, err := view.MergeValues(have, held)
		if err != nil || !changed {
			return err
		}
		return st.Put(base.MetaSettings, merged)
	})
}
