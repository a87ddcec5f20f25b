package chatctx

import (
	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// Decide adds a decision about a call that waits for one. A cancellation (Denied, ByCancel) may also take an approval back that nobody has begun to run. Where the call is decided against
// while its turn is still the last one, a tool message that says so goes to the end of the branch. Commit gives an ErrConflict that names
// the state where the call cannot be decided so: of several who try, one wins. What the returned Call says is filled in by Commit.
func (b *Batch) Decide(ref CallRef, v Verdict) *Call {
	res := &Call{}
	denial := &Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "call", IsError: true}}
	b.prepare = append(b.prepare, v.Check)
	b.texts("reason", &v.Reason)
	b.value("arguments", &v.Arguments)
	b.prepare = append(b.prepare, func() error {
		denial.Result.Text = v.DenialText()
		return nil
	})
	b.settle(ref)
	if v.Status == pool.Denied {
		b.ready([]*Message{denial})
	}
	b.step(map[pool.Status]string{pool.Approved: "approve", pool.Denied: "deny"}[v.Status], func(t *journal.Txn) error {
		at, err := toolcall.FindCall(t.Reader(), t.Target, b.branch != "", ref)
		if err != nil {
			return err
		}
		name, err := toolcall.Decide(t, at, &v, denial)
		if err != nil {
			return err
		}
		c, err := toolcall.DescribeCall(t.Reader(), at, t.Now, name)
		if err == nil {
			*res = *c
		}
		return err
	})
	return res
}

// ExpireCall sets when a call that waits for a decision counts as denied; zero: never.
func (b *Batch) ExpireCall(ref CallRef, at pool.Time) {
	b.settle(ref)
	b.step("expire", func(t *journal.Txn) error {
		c, err := toolcall.FindCall(t.Reader(), t.Target, b.branch != "", ref)
		if err != nil {
			return err
		}
		if c.Rec.Status != pool.Pending {
			return c.WrongState("given a time to expire")
		}
		holder, err := toolcall.HolderOf(t, c)
		if err != nil || c.Rec.Expires == at {
			return err
		}
		t.Touch(holder)
		c.Rec.Expires = at
		return t.PutCall(c.Message.ID, c.Index, c.Rec)
	})
}

// settle has a call settled before the batch's transaction, if that is due then.
func (b *Batch) settle(ref CallRef) {
	if b.calls = append(b.calls, ref); len(b.calls) == 1 {
		b.prepare = append(b.prepare, func() error { return toolcall.SettleNamed(b.store.at, b.context, b.branch, b.calls) })
	}
}
