package care

import (
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// callIndexes checks what refers to calls from outside their records: the index by the provider's ids, and claims.
func (c *checker) callIndexes(id pool.ID) error {
	err := c.tx.Scan(base.CallBucket, kv.Prefix(id[:]), func(key, value []byte) error {
		rec, err := base.DecodeCall(key, value)
		if err != nil {
			return nil // openCalls reports it
		}
		message, index := base.CallOfKey(key)
		where := fmt.Sprintf("call %s:%d", message, index+1)
		has, err := c.tx.Get(base.CallIDBucket, base.CallIDKey(id, rec.CallID, key[16:]...))
		if err != nil {
			return err
		}
		if has == nil {
			c.problem(5, where, "is not to be found by its id %q", rec.CallID)
		}
		claim, err := c.tx.Get(base.ClaimBucket, key)
		if err == nil && (claim != nil) != (rec.Execution == pool.Running) {
			c.problem(5, where, "is %s, and claimed: %t", rec.State(), claim != nil)
		}
		c.steps(where, rec)
		return err
	})
	if err != nil {
		return err
	}
	return c.tx.Scan(base.CallIDBucket, kv.Prefix(id[:]), func(key, value []byte) error {
		if len(key) < 16+1+18 || len(value) > 0 {
			c.problem(5, "callid", "a key of %d bytes with %d", len(key), len(value))
			return nil
		}
		at := key[len(key)-18:]
		has, err := c.tx.Get(base.CallBucket, base.Under(id, at...))
		if err == nil && has == nil {
			c.problem(5, fmt.Sprintf("call %s", pool.ID(at[:16])), "is in the index by ids and has no record")
		}
		return err
	})
}

// steps checks that each of a call's steps leads to the next, and the last to its present state.
func (c *checker) steps(where string, rec *record.CallRecord) {
	for i, d := range rec.Decisions {
		next := rec.State()
		if i+1 < len(rec.Decisions) {
			next = rec.Decisions[i+1].From
		}
		if d.To != next {
			c.problem(5, where, "its step %d leads to %s, and it goes on at %s", i+1, d.To, next)
		}
	}
}

// kept checks the rules, tools and task of a context.
func (c *checker) kept(id pool.ID) error {
	where := "conversation " + id.String()
	rec, _, err := base.GetContext(c.tx, id)
	if err != nil {
		return err
	}
	if task := rec.Task; task != nil {
		known := slices.Contains([]string{record.TaskRunning, record.TaskReturned, record.TaskFailed, record.TaskAbandoned}, task.State)
		if rec.Parent == (pool.ID{}) || !known || (task.State == record.TaskRunning) != (task.Ended == 0) {
			c.problem(8, where, "is a sub-context of %s that is %q, ended %d", rec.Parent, task.State, task.Ended)
		}
	}
	for _, scope := range []pool.ID{id, {}} {
		if _, err := view.RulesOf(c.tx, scope); err != nil {
			c.problem(3, where, "%v", err)
		}
	}
	if _, err := view.KeptTools(c.tx, id); err != nil {
		c.problem(3, where, "%v", err)
	}
	return nil
}
