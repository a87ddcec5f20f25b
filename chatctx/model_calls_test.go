package chatctx_test

import (
	"fmt"
	"slices"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// waitingCall chooses a call of a message that was stored before, in one of some states, whose message one branch holds.
func (r *run) anyCall(c *convo, is func(callState) bool) (callKey, bool) {
	var all []callKey
	for _, m := range c.all {
		for i := range c.messages[m].calls {
			if k := (callKey{m, i}); is(c.calls[k]) {
				all = append(all, k)
			}
		}
	}
	if len(all) == 0 {
		return callKey{}, false
	}
	return all[r.rng.Intn(len(all))], true
}

func refOf(k callKey) record.CallRef {
	return record.CallRef(fmt.Sprintf("%s:%d", k.message, k.index+1))
}

// due puts on the model what time or a crash has brought to a call, as the store does before somebody works with it.
func (r *run) due(c *convo, k callKey) {
	s := c.calls[k]
	t := c.begin(r.now, id{})
	switch {
	case s.status == pool.Pending && s.expires != 0 && r.now >= s.expires:
		holders := t.holders(k.message)
		if len(holders) == 0 {
			return
		}
		t.deny(k, holders[0], "expired: nobody decided in time", true)
	case s.execution == pool.Running && (c.claims[k] == nil || r.now-c.claims[k].renewed > life):
		t.calls[k] = callState{status: pool.Approved, execution: pool.Uncertain, expires: s.expires}
		t.quiet = true
		delete(c.claims, k)
	default:
		return
	}
	r.commit(t, "?", (*change).do)
}

// deny decides against a call; a result that says so goes to the end of the branch, of a call that expired only in the last turn.
func (t *change) deny(k callKey, holder id, text string, expired bool) {
	s := t.call(k)
	t.calls[k] = callState{status: pool.Denied, execution: pool.NotRun, expires: s.expires}
	t.branches[holder], t.touched[holder] = t.branch(holder).copy(), true
	list := t.branch(holder).list
	if expired && slices.ContainsFunc(list[slices.Index(list, k.message)+1:], func(m id) bool { return t.message(m).turn() }) {
		return
	}
	m := &message{id: pool.NewID(), ours: true, role: pool.ToolRole, text: text, answers: t.message(k.message).calls[k.index].id, isError: true}
	t.keep(m)
	t.splice(holder, len(list), 0, m.id)
}

// decide is the step that approves or denies a call.
func (b *batch) decide() error {
	k, ok := b.anyCall(b.c, func(s callState) bool { return s.status != "" })
	if !ok || b.c.messages[k.message].gone || len(b.words) > 0 && b.call(k) != b.c.calls[k] {
		return errSkip
	}
	s := b.call(k)
	if s.status == pool.Pending && s.expires != 0 && b.run.now >= s.expires || s.execution == pool.Running {
		return errSkip // it is settled first: claimCall does that
	}
	v := record.Verdict{Status: pool.Approved}
	if b.rng.Intn(2) == 0 {
		v = record.Verdict{Status: pool.Denied, Reason: "no"}
		if b.rng.Intn(3) == 0 {
			v.Kind = record.ByCancel
		}
	}
	b.say("%s %s", v.Status, refOf(k)[32:])
	b.b.Decide(refOf(k), v)
	cancels := v.Kind == record.ByCancel && s.status == pool.Approved && s.execution == pool.NotRun
	if s.status != pool.Pending && !cancels {
		return chatctx.ErrConflict
	}
	holder, held := b.holder(k)
	if !held {
		return chatctx.ErrConflict
	}
	if v.Status == pool.Approved {
		b.calls[k] = callState{status: pool.Approved, execution: pool.NotRun, expires: s.expires}
		b.change.edit(holder)
		return nil
	}
	b.deny(k, holder, map[bool]string{true: "cancelled: no", false: "denied: no"}[v.Kind == record.ByCancel], false)
	return nil
}

// holder is the branch that holds a call's message, the target before others.
func (b *batch) holder(k callKey) (id, bool) {
	holders := b.holders(k.message)
	if slices.Contains(holders, b.target) {
		return b.target, true
	}
	if len(holders) == 0 {
		return id{}, false
	}
	return holders[0], true
}

// expire sets a time for a call.
func (b *batch) expire() error {
	k, ok := b.anyCall(b.c, func(s callState) bool { return s.status == pool.Pending && s.expires == 0 })
	if !ok || b.c.messages[k.message].gone || b.call(k) != b.c.calls[k] {
		return errSkip
	}
	holder, held := b.holder(k)
	at := b.run.now + pool.Time(b.rng.Intn(100e6))
	b.say("expire %s", refOf(k)[32:])
	b.b.ExpireCall(refOf(k), at)
	if !held {
		return chatctx.ErrConflict
	}
	b.change.edit(holder)
	b.calls[k] = callState{status: pool.Pending, execution: pool.NotRun, expires: at}
	return nil
}

// claimCall takes a call to run it.
func (r *run) claimCall(c *convo) error {
	k, ok := r.anyCall(c, func(s callState) bool { return s.open() })
	if !ok {
		return errSkip
	}
	again := r.rng.Intn(2) == 0
	r.say("claim %s, again %t", refOf(k)[32:], again)
	got, err := r.store().ClaimCall(bg, c.id.String(), "", refOf(k), record.ClaimOptions{Again: again})
	r.due(c, k)
	s := c.calls[k]
	t := c.begin(r.now, id{})
	fresh := s.status == pool.Approved && s.execution == pool.NotRun
	if len(t.holders(k.message)) == 0 || !fresh && !(again && s.execution == pool.Uncertain) {
		r.wanted(err, chatctx.ErrConflict, "claim")
		return nil
	}
	r.must(err, "claim")
	t.calls[k] = callState{status: pool.Approved, execution: pool.Running, expires: s.expires}
	t.quiet = true
	r.commit(t, "?", (*change).do)
	c.claims[k] = &claim{handle: got, renewed: r.now}
	return nil
}

// resolveCall ends a call with its claim, with the token of nobody, or without.
func (r *run) resolveCall(c *convo) error {
	k, ok := r.anyCall(c, func(s callState) bool { return s.execution == pool.Running || s.execution == pool.Uncertain })
	if !ok || len(c.begin(r.now, id{}).holders(k.message)) > 1 {
		return errSkip
	}
	failed := r.rng.Intn(3) == 0
	answer := record.CallAnswer{Result: pool.Result{Text: "ran", IsError: failed}}
	how := []string{"the claim", "a wrong token", "no token"}[r.rng.Intn(3)]
	held := c.calls[k].execution == pool.Running && c.claims[k] != nil && r.now-c.claims[k].renewed <= life
	switch {
	case how == "a wrong token":
		answer.Token = pool.NewID()
	case how == "the claim" && held:
		answer.Token = c.claims[k].handle.Token
	}
	r.say("resolve %s with %s", refOf(k)[32:], how)
	done, err := r.store().ResolveCall(bg, c.id.String(), "", refOf(k), answer)
	r.due(c, k)
	if how == "a wrong token" || how == "no token" && held {
		r.wanted(err, chatctx.ErrConflict, "a claim that it does not have")
		return nil
	}
	r.must(err, "resolve")
	t := c.begin(r.now, id{})
	t.calls[k] = callState{status: pool.Approved, execution: ended(failed), expires: c.calls[k].expires}
	t.quiet = true
	m := &message{id: done.Last().Placed[0].Message, role: pool.ToolRole, text: "ran", answers: c.messages[k.message].calls[k.index].id, isError: failed}
	t.keep(m)
	if holders := t.holders(k.message); len(holders) > 0 {
		t.splice(holders[0], len(t.branch(holders[0]).list), 0, m.id)
	} else {
		s := t.calls[k]
		s.result = m.id
		t.calls[k] = s
	}
	r.commit(t, done.Operation, (*change).do)
	delete(c.claims, k)
	return nil
}
