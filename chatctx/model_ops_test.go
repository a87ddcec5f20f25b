package chatctx_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

var bg = context.Background()

// life is how long a claim holds without being renewed.
const life = pool.Time(chatctx.ClaimLife / time.Microsecond)

// claim is who runs a call.
type claim struct {
	handle  *chatctx.CallClaim
	renewed pool.Time
}

// reply is who answers on a branch.
type reply struct {
	handle      *chatctx.Reply // nil: its program crashed
	renewed     pool.Time
	partial     *message
	at          int // the process that has it
	group, last uint64
	made        uint64 // the operation that made the branch for it, 0 for none
	asked       request
}

// request is what a reply's request held, for the case that its model compacts it.
type request struct {
	sessions []branch.Session
	was      []session // the same in the model
	next     session   // what the compaction begins, but for its summary
	apart    []int     // the messages that it does not hold
	told     string    // the words of the others
}

// operations are all there are beside the steps of a batch, with their weights.
var operations = []struct {
	weight int
	do     func(*run, *convo) error
}{
	{60, (*run).batch}, {14, (*run).undo}, {10, (*run).redo}, {6, (*run).beginReply}, {3, (*run).replyApart}, {3, (*run).savePartial}, {6, (*run).finishReply}, {1, (*run).crashReply},
	{1, (*run).settleReply}, {3, (*run).overAnswer}, {1, (*run).interrupt}, {3, (*run).claimCall}, {3, (*run).resolveCall}, {2, (*run).trash}, {2, (*run).gc}, {1, (*run).task},
	{1, (*run).purge}, {3, (*run).imports}, {1, (*run).reopen}, {2, (*run).hold}, {2, (*run).another},
}

// store chooses the process that does something.
func (r *run) store() *chatctx.Store {
	r.at = r.rng.Intn(len(r.stores))
	return r.stores[r.at]
}

func (r *run) view(c *convo) *chatctx.ChatContext {
	v, err := r.store().Context(bg, c.id.String())
	r.must(err, "context")
	return v
}

// wanted holds an error of the store against the one that the model expects.
func (r *run) wanted(err, want error, what string) {
	if want == nil && err != nil || want != nil && !errors.Is(err, want) {
		r.fail("%s: the error is %v, want %v", what, err, want)
	}
}

func (r *run) must(err error, what string) { r.wanted(err, nil, what) }

// refused is for what cannot be done, for one reason or another.
func (r *run) refused(err error, what string) {
	if !errors.Is(err, chatctx.ErrConflict) && !errors.Is(err, chatctx.ErrNotFound) {
		r.fail("%s: the error is %v, want a refusal", what, err)
	}
}

// anyBranch chooses a branch, and how to name it.
func (r *run) anyBranch(c *convo) (id, string) {
	all := c.there()
	b := all[r.rng.Intn(len(all))]
	if b == c.active && r.rng.Intn(2) == 0 {
		return b, ""
	}
	return b, c.branches[b].name
}

// batch is one to five steps.
func (r *run) batch(c *convo) error {
	target, name := r.anyBranch(c)
	b := &batch{run: r, on: target, change: c.begin(r.now, target), b: r.store().Begin(c.id.String(), name)}
	joined := r.join(c, b)
	var want error
	for n := 1 + max(0, r.rng.Intn(8)-3); len(b.words) < n && want == nil; {
		words, checks := len(b.words), len(b.check)
		want = pickWeighted(r.rng, steps, func(i int) int { return steps[i].weight }).do(b)
		if errors.Is(want, errSkip) {
			if b.words, b.check, want = b.words[:words], b.check[:checks], nil; words > 0 {
				n--
			}
		}
		if want == nil {
			want = b.blocked
		}
	}
	r.say("batch on %q: %v -> %v", name, b.words, want)
	if errors.Is(want, errAgain) {
		done, err := b.b.Commit(bg)
		r.must(err, "commit")
		if done.Operation != "" {
			r.fail("an append that was done already made the operation %s", done.Operation)
		}
		r.checks(b.check, done)
		return nil
	}
	done, err := b.b.Commit(bg)
	r.wanted(err, want, "commit")
	if err != nil {
		return nil
	}
	if op := r.commit(b.change, done.Operation, (*change).do); op != nil && joined {
		c.group, c.ours = op.group, uint64(len(c.ops))
	}
	r.checks(b.check, done)
	return nil
}

// join makes a batch now and then the first of a command, or a part of it.
func (r *run) join(c *convo, b *batch) bool {
	switch n := r.rng.Intn(8); {
	case n == 0 || n < 4 && c.command == nil:
		c.command, c.group, c.ours = b.b, 0, 0
	case n > 3:
		return false
	}
	b.b.Together(c.command)
	b.change.group, b.change.ours = c.group, c.ours
	r.say("together with the command of operation %d: ", c.group)
	return true
}

func (r *run) checks(all []stepCheck, done *record.Committed) {
	for _, check := range all {
		if wrong := check.wrong(done.Steps[check.at]); wrong != "" {
			r.fail("%s", wrong)
		}
	}
}

// commit puts a change that the store has made onto the model: it reads the ids that the store made, and the operation's number.
func (r *run) commit(t *change, number string, do func(*change) *operation) *operation {
	r.learn(t)
	op := do(t)
	want := ""
	if op != nil {
		want = strconv.Itoa(len(t.c.ops))
	}
	if number != "?" && number != want {
		r.fail("the operation has the number %q, want %q", number, want)
	}
	return op
}

// learn reads the ids of new branches, and of copies.
func (r *run) learn(t *change) {
	view := r.view(t.c)
	for _, b := range slices.Clone(t.made) {
		if s := t.branches[b]; s != nil {
			info, err := view.Branch(bg, s.name)
			r.must(err, "a new branch")
			t.replaceBranch(b, info.ID)
		}
	}
	real := map[id]id{}
	for b, s := range t.branches {
		if s == nil || !t.touched[b] || !slices.ContainsFunc(s.list, func(m id) bool { return t.messages[m] != nil && t.messages[m].ours }) {
			continue
		}
		snap, err := view.Snapshot(bg, s.name)
		r.must(err, "snapshot")
		got, err := snap.IDs(bg)
		r.must(err, "ids")
		if len(got) != len(s.list) {
			r.fail("branch %s has %d messages, want %d", s.name, len(got), len(s.list))
		}
		for i, m := range s.list {
			if s := t.messages[m]; m != got[i] && s != nil && s.ours && t.c.messages[got[i]] == nil {
				real[m] = got[i]
			}
		}
	}
	t.replaceIDs(real)
}

// undo takes back what is newest on a branch, or now and then an operation by its number.
func (r *run) undo(c *convo) error {
	b, name := r.anyBranch(c)
	n, named := max(c.last[theContext], c.last[b]), ""
	if r.rng.Intn(5) == 0 && len(c.ops) > 0 {
		n = uint64(1 + r.rng.Intn(len(c.ops)))
		named = strconv.FormatUint(n, 10)
		if op := c.op(n); op.undone != 0 || op.undoes != 0 && c.op(op.undoes).undoes != 0 {
			return errSkip
		} else if op.undoes != 0 {
			return r.undoUndo(c, n, name, named)
		}
	} else if c.storeAt > n {
		return r.undoStore(c, name)
	}
	r.say("undo on %q: %q, which is %d", name, named, n)
	done, err := r.store().Undo(bg, c.id.String(), name, named)
	var try *convo
	var first uint64
	want := r.settling(c, func() (err error) {
		if named == "" {
			n = max(c.last[theContext], c.last[b])
		}
		try = c.copy()
		first, err = try.undoGroup(n, r.now)
		return err
	})
	if want != nil {
		r.refused(err, "undo")
		return nil
	}
	r.must(err, "undo")
	*c = *try
	if done.Undid.ID != strconv.FormatUint(first, 10) || done.Operation != strconv.Itoa(len(c.ops)) {
		r.fail("undo took back %s as %s, want %d as %d", done.Undid.ID, done.Operation, first, len(c.ops))
	}
	return nil
}

// undoUndo names an undo, which redoes it with those of the same command.
func (r *run) undoUndo(c *convo, n uint64, name, named string) error {
	r.say("undo on %q of the undo %d", name, n)
	done, err := r.store().Undo(bg, c.id.String(), name, named)
	var try *convo
	want := r.settling(c, func() error {
		try = c.copy()
		try.dropRedo(nil)
		at := slices.Index(try.redo, n)
		if at < 0 {
			return chatctx.ErrConflict
		}
		return try.redoGroup(at, r.now)
	})
	if want != nil {
		r.refused(err, "undo of an undo")
		return nil
	}
	r.must(err, "undo of an undo")
	if *c = *try; done.Operation != strconv.Itoa(len(c.ops)) {
		r.fail("undo of an undo is operation %s, want %d", done.Operation, len(c.ops))
	}
	return nil
}

// settling does something with the model; where an answer of a program that died has to be put on a branch first, as the store does it, it does that and then does it again.
func (r *run) settling(c *convo, do func() error) error {
	for {
		err := do()
		var left unsettled
		if !errors.As(err, &left) {
			return err
		}
		r.stopReply(c, left.on, false)
	}
}

// undoStore takes back what the store did with the context last, and brings it back.
func (r *run) undoStore(c *convo, name string) error {
	r.say("undo on %q of the store's operation", name)
	done, err := r.store().Undo(bg, c.id.String(), name, "")
	if errors.Is(err, chatctx.ErrConflict) {
		return nil
	}
	r.must(err, "undo in the store")
	if done.Operation[0] != 's' {
		r.fail("undo took back %s, want the store's", done.Undid.ID)
	}
	_, err = r.store().Undo(bg, "", "", done.Operation)
	r.must(err, "bringing it back")
	c.storeAt = 1
	return nil
}

// redoStore moves the context that the store's newest undo took out of the trash there again, and undoes that.
func (r *run) redoStore(c *convo, name string) error {
	r.say("redo on %q of the store's undo", name)
	done, err := r.store().Redo(bg, c.id.String(), name)
	if errors.Is(err, chatctx.ErrConflict) {
		return nil
	}
	r.must(err, "redo in the store")
	if done.Operation[0] != 's' || done.Context != r.storeUndone.id {
		r.fail("redo took %s of %s back, want the store's undo of %s", done.Operation, done.Context, r.storeUndone.id)
	}
	_, err = r.store().Undo(bg, "", "", done.Operation)
	r.must(err, "undoing it again")
	r.storeUndone.storeAt, r.storeUndoneAt = 0, r.storeUndone.next()
	return nil
}

func (r *run) redo(c *convo) error {
	b, name := r.anyBranch(c)
	try := c.copy()
	try.dropRedo(nil)
	at := try.redoable(b)
	if r.storeUndone != nil && at < 0 || r.storeUndone == c && r.storeUndoneAt > try.redo[at] {
		return r.redoStore(c, name)
	}
	r.say("redo on %q", name)
	done, err := r.store().Redo(bg, c.id.String(), name)
	want := r.settling(c, func() error {
		try = c.copy()
		try.dropRedo(nil)
		if at = try.redoable(b); at < 0 {
			return chatctx.ErrNotFound
		}
		return try.redoGroup(at, r.now)
	})
	if at < 0 && r.storeUndone != nil {
		r.fail("a redo is forgotten, and the store's is next")
	}
	if want != nil {
		r.refused(err, "redo")
		return nil
	}
	r.must(err, "redo")
	*c = *try
	if done.Operation != strconv.Itoa(len(c.ops)) {
		r.fail("redo is operation %s, want %d", done.Operation, len(c.ops))
	}
	return nil
}

// holds reports whether a reply's claim holds.
func (p *reply) holds(now pool.Time) bool { return p != nil && now-p.renewed <= life }

// settle puts what has come of a reply onto the branch, unfinished.
func (c *convo) settle(t *change) {
	p := c.replies[t.target]
	if p != nil && p.partial != nil {
		t.keep(p.partial)
		t.splice(t.target, len(t.branch(t.target).list), 0, p.partial.id)
	}
}

// knows gives what was done under a key, nil where the key is new or too old.
func (r *run) knows(c *convo, key string) *keyed {
	if k := c.keys[key]; k != nil && r.now-k.at <= 24*3600*1e6 {
		return k
	}
	return nil
}

func (r *run) beginReply(c *convo) error {
	b, name := r.anyBranch(c)
	msgs, states, calls := r.fresh(r.rng.Intn(3))
	key := ""
	if len(msgs) > 0 && r.rng.Intn(4) == 0 {
		key = fmt.Sprintf("key%d", r.rng.Intn(6))
	}
	known := r.knows(c, key)
	if known != nil && r.rng.Intn(2) == 0 {
		msgs = known.msgs
	}
	r.say("begin a reply on %q with %d, key %q", name, len(msgs), key)
	begun, err := r.view(c).BeginReply(bg, name, chatctx.AppendOptions{Key: key}, msgs...)
	at, t := r.at, c.begin(r.now, b)
	old, again := c.replies[b], known
	if again != nil && !again.same(b, t.branch(b), msgs) {
		r.wanted(err, chatctx.ErrConflict, "a key for something else")
		return nil
	}
	if again != nil {
		states, calls = nil, nil
		if err == nil && (!begun.Again || len(begun.Last().Placed) != len(again.placed) || begun.Last().Placed[0].Message != again.placed[0]) {
			r.fail("the key %s gave %v again=%t, want %v", key, begun.Last().Placed, begun.Again, again.placed)
		}
	} else if key != "" {
		t.keys[key] = &keyed{at: r.now, on: b, msgs: msgs, placed: idsOf(states)}
	}
	if old.holds(r.now) {
		if len(msgs) == 0 {
			r.wanted(err, chatctx.ErrConflict, "a second reply")
			return nil
		}
		r.must(err, "queue")
		if begun.Reply != nil || begun.Holder == nil {
			r.fail("two replies on one branch")
		}
		if len(states) > 0 {
			s := t.edit(b)
			s.queue = append(slices.Clone(s.queue), t.storeFresh(states, calls)...)
		}
		r.commit(t, "?", (*change).do)
		return nil
	}
	r.must(err, "begin a reply")
	if begun.Reply == nil {
		r.fail("nobody replies, and the reply does not begin")
	}
	c.settle(t)
	delete(c.replies, b)
	t.unqueue()
	t.splice(b, len(t.branch(b).list), 0, t.storeFresh(states, calls)...)
	p := &reply{handle: begun.Reply, renewed: r.now, at: at}
	if op := r.commit(t, "?", (*change).do); op != nil {
		p.group, p.last = op.group, uint64(len(c.ops))
	}
	c.replies[b], p.asked = p, r.asks(c, b)
	return nil
}

// asks is the request to one of the models that compact. What a person excluded is not in it.
func (r *run) asks(c *convo, b id) (q request) {
	info, err := r.view(c).Branch(bg, c.branches[b].name)
	r.must(err, "the branch of a request")
	q.sessions, q.was = info.Sessions, c.branches[b].sessions
	if len(q.was) == 0 {
		q.was = []session{{ID: pool.NewID(), Start: 1}}
		q.sessions = []branch.Session{{ID: q.was[0].ID, Start: 1}}
	}
	for i, m := range c.branches[b].list {
		if c.ctx.marks[m] == "excluded" {
			q.apart = append(q.apart, i+1)
			continue
		}
		q.told += c.messages[m].text + "; "
	}
	q.next = session{ID: pool.NewID(), Start: len(c.branches[b].list) + 1, apart: fmt.Sprint(q.apart), Provider: "provider", Model: compacting[r.rng.Intn(2)]}
	return q
}

// compacts puts the compaction of a request into the end of its reply. The result is its summary.
func (q *request) compacts(e *chatctx.Ending) *message {
	m := pool.NewText(pool.Assistant, q.told)
	m.ID, m.Kind = pool.NewID(), "summary"
	q.next.Summary = m.ID
	e.Loose, e.Sessions = []*chatctx.Message{m}, q.sessions
	e.Begins = &branch.Session{ID: q.next.ID, Start: q.next.Start, Summary: m.ID, Apart: q.apart, Provider: q.next.Provider, Model: q.next.Model}
	return &message{id: m.ID, role: pool.Assistant, kind: m.Kind, text: m.Text()}
}

// stands reports whether the sessions of a branch are still those of the request: none was opened, moved or pruned further.
func (q *request) stands(now []session) bool {
	return len(now) == 0 && len(q.sessions) == 1 && q.was[0].Start == 1 ||
		slices.EqualFunc(now, q.was, func(a, b session) bool { return a.ID == b.ID && a.Start == b.Start && a.PrunedTo <= b.PrunedTo })
}

// replyApart makes a branch for a reply alone.
func (r *run) replyApart(c *convo) error {
	if len(c.there()) > 9 {
		return errSkip
	}
	target, name := r.anyBranch(c)
	b := &batch{run: r, on: target, change: c.begin(r.now, target), b: r.store().Begin(c.id.String(), name)}
	at := r.at
	n, ok := b.somewhere()
	if !ok {
		return errSkip
	}
	made, ref := b.newName(), b.ref(n)
	r.say("a branch %s for a reply, at @%d of %q", made, n+1, name)
	handle := b.b.Together(b.b).ForkForReply(made, chatctx.ForkOptions{At: ref})
	done, err := b.b.Commit(bg)
	if _, taken := c.named(made); taken {
		r.wanted(err, chatctx.ErrConflict, "a branch for a reply")
		return nil
	}
	r.must(err, "a branch for a reply")
	_, want := b.forkTo(made, n+1)
	r.must(want, "a branch for a reply in the model")
	b.onContext = true
	r.commit(b.change, done.Operation, (*change).do)
	on, _ := c.named(made)
	c.replies[on] = &reply{handle: handle, renewed: r.now, at: at, made: uint64(len(c.ops)), asked: r.asks(c, on)}
	return nil
}

// leave takes a branch away that was made for a reply of which nothing came.
func (c *convo) leave(t *change, p *reply, came bool) {
	if b := t.target; p.made != 0 && !came && c.last[b] == p.made && b != c.active {
		t.removeBranch(b)
	}
}

// unqueue puts what waits onto the branch.
func (t *change) unqueue() bool {
	waits := t.branch(t.target).queue
	if len(waits) == 0 {
		return false
	}
	t.edit(t.target).queue = nil
	for _, m := range waits {
		if s := t.message(m); t.stands(t.branch(t.target).list, s) < 0 {
			t.place(s)
		}
	}
	return true
}

// replying chooses a reply that a program has.
func (r *run) replying(c *convo) (id, *reply) {
	for _, b := range c.order {
		if p := c.replies[b]; p != nil && p.handle != nil && r.rng.Intn(2) == 0 {
			return b, p
		}
	}
	return id{}, nil
}

func (r *run) savePartial(c *convo) error {
	_, p := r.replying(c)
	if p == nil {
		return errSkip
	}
	text := r.text()
	m := pool.NewText(pool.Assistant, text)
	m.ID = pool.NewID()
	r.say("save a part of a reply")
	r.must(p.handle.Save(bg, m), "save")
	p.renewed, p.partial = r.now, &message{id: m.ID, role: pool.Assistant, text: hushed(text), unfinished: true}
	return nil
}

func (r *run) finishReply(c *convo) error {
	b, p := r.replying(c)
	if p == nil {
		return errSkip
	}
	e := chatctx.Ending{GoOn: r.rng.Intn(4) == 0, Stop: r.rng.Intn(4) == 0}
	var states []*message
	calls := map[callKey]callState{}
	failed := r.rng.Intn(4) == 0
	if failed {
		text := r.text()
		m := pool.NewText(pool.Assistant, text)
		m.ID, m.Unfinished, m.Meta.Error = pool.NewID(), true, "it broke off"
		e.Messages, states = []*chatctx.Message{m}, []*message{{id: m.ID, role: pool.Assistant, text: hushed(text), unfinished: true}}
	} else {
		e.Messages, states, calls = r.fresh(r.rng.Intn(3))
	}
	var summary *message
	if len(e.Messages) > 0 && !failed && r.rng.Intn(3) == 0 {
		summary = p.asked.compacts(&e)
	}
	r.say("finish a reply with %d, go on %t, stop %t, failed %t, compacted %t", len(e.Messages), e.GoOn, e.Stop, failed, summary != nil)
	done, err := p.handle.Finish(bg, e)
	if c.branches[b] == nil {
		r.wanted(err, chatctx.ErrStopped, "finish on a branch that is gone")
		p.handle = nil
		return nil
	}
	r.must(err, "finish")
	t := c.begin(r.now, b)
	if p.group != 0 && c.last[b] == p.last {
		t.group, t.ours = p.group, p.last
	}
	t.splice(b, len(t.branch(b).list), 0, t.storeFresh(states, calls)...)
	if len(states) == 0 {
		c.settle(t)
	}
	if summary != nil {
		t.keep(summary)
		if p.asked.stands(t.branch(b).sessions) {
			t.edit(b).sessions = append(slices.Clone(p.asked.was), p.asked.next)
		}
	}
	more := !e.Stop && t.unqueue()
	if !e.GoOn && !more {
		c.leave(t, p, len(states) > 0 || p.partial != nil)
	}
	if op := r.commit(t, done.Operation, (*change).do); op != nil {
		p.group, p.last = op.group, uint64(len(c.ops))
	}
	if more {
		p.group = 0 // what somebody asked meanwhile has an answer of its own
	}
	if p.partial = nil; done.Held != (e.GoOn || more) {
		r.fail("the claim is held: %t, want %t", done.Held, e.GoOn || more)
	}
	if !done.Held {
		delete(c.replies, b)
	} else {
		p.asked = r.asks(c, b)
	}
	return nil
}

// crashReply forgets a reply, as a program that dies does, and waits until its claim is dead.
func (r *run) crashReply(c *convo) error {
	_, p := r.replying(c)
	if p == nil {
		return errSkip
	}
	r.say("crash of a reply")
	p.handle = nil
	r.now += life + 1
	return nil
}

func (r *run) settleReply(c *convo) error {
	b, name := r.anyBranch(c)
	p, force := c.replies[b], r.rng.Intn(2) == 0
	if p == nil {
		return errSkip
	}
	r.say("settle %q, force %t", name, force)
	m, err := r.view(c).Settle(bg, name, chatctx.SettleOptions{Force: force})
	r.must(err, "settle")
	if p.holds(r.now) && !force {
		if m != nil {
			r.fail("a reply that runs was settled")
		}
		return nil
	}
	r.stopReply(c, b, false)
	return nil
}

// stopReply ends a reply in the model. away: the branch that was made for it goes where nothing came.
func (r *run) stopReply(c *convo, b id, away bool) {
	t := c.begin(r.now, b)
	p := c.replies[b]
	if p.made != 0 && c.last[b] == p.made {
		t.group, t.ours = c.op(p.made).group, p.made
	}
	if c.settle(t); away {
		c.leave(t, p, p.partial != nil)
	}
	r.commit(t, "?", (*change).do)
	if p.handle != nil {
		r.wanted(p.handle.Held(bg), chatctx.ErrStopped, "a reply that was stopped")
	}
	delete(c.replies, b)
}

func (r *run) interrupt(c *convo) error {
	b, name := r.anyBranch(c)
	all := r.rng.Intn(2) == 0
	r.say("interrupt %q, all %t", name, all)
	batch := r.store().Begin(c.id.String(), name)
	batch.Interrupt(chatctx.InterruptOptions{Question: all})
	done, err := batch.Commit(bg)
	r.must(err, "interrupt")
	if c.replies[b] != nil {
		r.stopReply(c, b, false)
	}
	t := c.begin(r.now, b)
	if list := t.branch(b).list; len(list) > 0 {
		head := t.message(list[len(list)-1])
		finished := head.role == pool.Assistant && !head.unfinished && len(head.calls) == 0
		start := len(list) - 1
		for start >= 0 && !t.message(list[start]).turn() {
			start--
		}
		if !all {
			start++
		}
		if start = max(start, 0); !finished {
			t.splice(b, start, len(list)-start)
		}
	}
	r.commit(t, done.Operation, (*change).do)
	return nil
}

// trash moves the context there, where nothing can be done with it, and takes it out again.
func (r *run) trash(c *convo) error {
	byUndo := r.rng.Intn(2) == 0
	r.say("trash and restore, by undo %t", byUndo)
	_, err := r.store().Trash(bg, c.id.String())
	for _, p := range c.replies {
		if p.holds(r.now) {
			r.wanted(err, chatctx.ErrConflict, "trash while somebody answers")
			return nil
		}
	}
	r.must(err, "trash")
	_, err = r.view(c).Append(bg, "", pool.NewText(pool.User, "lost"))
	r.wanted(err, chatctx.ErrConflict, "append in the trash")
	if r.storeUndone = nil; byUndo {
		r.storeUndone, r.storeUndoneAt = c, c.next()
		_, err = r.store().Undo(bg, c.id.String(), "", "")
		c.storeAt = 0
	} else {
		_, err = r.store().Restore(bg, c.id.String())
		c.storeAt = c.next()
	}
	r.must(err, "restore")
	return nil
}

// gc lets go of what is old.
func (r *run) gc(*convo) error {
	age := []pool.Time{0, 1, 1e6, 60e6, 3600e6}[r.rng.Intn(5)]
	keep := r.rng.Intn(3) * 10
	r.say("gc older than %d µs, keep %d", age, keep)
	r.now++
	_, err := r.store().Maintenance().GC(bg, record.GCOptions{OlderThan: time.Duration(age) * time.Microsecond, KeepOperations: keep})
	r.must(err, "gc")
	for _, c := range r.convos {
		for _, b := range slices.SortedFunc(maps.Keys(c.replies), func(a, b id) int { return bytes.Compare(a[:], b[:]) }) {
			if !c.replies[b].holds(r.now) {
				r.stopReply(c, b, true)
			}
		}
		c.expire(age, keep, r.now)
		r.gone(c)
		r.compare(c, true, false)
	}
	r.held = nil
	return nil
}

// expire lets go of old operations. Those that are the newest on something stay as a line; what was removed and no operation can bring back is no more.
func (c *convo) expire(age pool.Time, keep int, now pool.Time) {
	var old []uint64
	held := map[id]bool{theContext: true}
	seen := 0
	for n := uint64(len(c.ops)); n > 0; n-- {
		op := c.op(n)
		if op.lost == deleted {
			continue
		}
		if seen++; op.lost == expired || age > 0 && seen > keep && op.at+age < now {
			old = append(old, n)
			continue
		}
		for _, k := range op.on {
			held[k] = true
		}
	}
	for k := range c.replies {
		if !held[k] && c.branches[k] == nil {
			delete(c.replies, k)
		}
	}
	needed := map[uint64]bool{}
	for k, n := range c.newest {
		if held[k] || c.branches[k] != nil {
			needed[n], needed[c.last[k]] = true, true
		}
	}
	for _, n := range old {
		if c.op(n).lost = deleted; needed[n] {
			c.op(n).lost = expired
		}
	}
}

// gone holds that what nothing needs is not there any more.
func (r *run) gone(c *convo) {
	needed, maybe := map[id]bool{}, map[id]bool{}
	for _, s := range c.branches {
		needs(needed, s)
	}
	for _, op := range c.ops {
		if op.lost != stays {
			continue
		}
		for _, k := range op.on {
			needs(needed, op.before[k])
			needs(needed, op.after[k])
			if c.branches[k] == nil { // removed: its history stays with its record, which an undo may have changed since
				for _, other := range c.ops {
					needs(maybe, other.before[k])
					needs(maybe, other.after[k])
				}
			}
		}
		for _, m := range op.passed {
			maybe[m] = true
		}
		for k := range op.calls {
			needed[k.message] = true
		}
		if op.ctxBefore != nil {
			needsContext(needed, op.ctxBefore)
			for m := range op.ctxBefore.notes {
				maybe[m] = true // where the operation set its note
			}
		}
	}
	needsContext(needed, c.ctx)
	for m := range c.ctx.notes {
		maybe[m] = true
	}
	for _, s := range c.calls {
		maybe[s.result] = true // as long as the call's message is
	}
	view := r.view(c)
	for _, m := range c.all {
		s := c.messages[m]
		if needed[m] || s.gone {
			continue
		}
		if _, err := view.Message(bg, m); err == nil {
			if maybe[m] || c.near(m) {
				continue
			}
			r.fail("message %s is needed by nothing and stays", m)
		}
		s.gone = true
	}
	c.all = slices.DeleteFunc(c.all, func(m id) bool { return c.messages[m].gone })
}

// near reports whether an operation that holds is on a message in a way that the model does not follow: a call that it made or closed.
func (c *convo) near(m id) bool { return len(c.messages[m].calls) > 0 }

func needs(needed map[id]bool, s *branchState) {
	if s == nil {
		return
	}
	for _, m := range s.list {
		needed[m] = true
	}
	for _, m := range s.queue {
		needed[m] = true
	}
	for _, x := range s.sessions {
		needed[x.Summary] = true
	}
}

func needsContext(needed map[id]bool, s *contextState) {
	for _, m := range s.tags {
		needed[m] = true
	}
	for m := range s.marks {
		needed[m] = true
	}
}

// overAnswer changes a branch on which an answer was being written when its program died: that is put there first.
func (r *run) overAnswer(c *convo) error {
	b, name := r.anyBranch(c)
	p := c.replies[b]
	if p == nil || p.holds(r.now) || len(c.branches[b].list) == 0 {
		return errSkip
	}
	at := r.rng.Intn(len(c.branches[b].list))
	ref := record.RefTo(c.branches[b].list[at])
	batch := r.store().Begin(c.id.String(), name)
	how := []string{"rewind", "drop", "insert", "clear", "remove"}[r.rng.Intn(5)]
	if how == "remove" && b == c.active {
		return errSkip
	}
	msgs, states, calls := r.fresh(1)
	r.say("%s @%d on %q, where an answer is not settled", how, at+1, name)
	switch how {
	case "rewind":
		batch.Rewind(ref)
	case "drop":
		batch.Drop(ref)
	case "insert":
		batch.Insert(ref, msgs...)
	case "clear":
		batch.Clear()
	case "remove":
		batch.RemoveBranch(c.branches[b].name)
	}
	done, err := batch.Commit(bg)
	r.must(err, how)
	moves := how != "rewind" || at+1 < len(c.branches[b].list)
	if moves {
		r.stopReply(c, b, false)
	}
	t := c.begin(r.now, b)
	n := len(t.branch(b).list)
	switch how {
	case "rewind":
		t.splice(b, at+1, n-at-1)
	case "drop":
		for _, i := range slices.Backward(t.withResults(t.branch(b).list, at)) {
			t.splice(b, i, 1)
		}
	case "insert":
		t.splice(b, at, 0, t.storeFresh(states, calls)...)
	case "clear":
		t.splice(b, 0, n)
		s := t.branch(b).copy()
		s.sessions, s.tokens = nil, -1
		t.branches[b] = s
	case "remove":
		t.removeBranch(b)
	}
	r.commit(t, done.Operation, (*change).do)
	return nil
}

// task starts a sub-context, ends it, and its summary comes to the branch.
func (r *run) task(c *convo) error {
	b, name := r.anyBranch(c)
	r.say("task on %q", name)
	text := r.text()
	child, err := r.view(c).StartTask(bg, name, record.NewTask{NewContext: record.NewContext{Title: "task"}})
	r.must(err, "task")
	_, err = child.Append(bg, "", pool.NewText(pool.User, "do it"))
	r.must(err, "append to the task")
	done, err := child.EndTask(bg, record.TaskEnd{State: record.TaskReturned, Summary: text})
	r.must(err, "end of the task")
	t := c.begin(r.now, b)
	m := &message{id: done.Message, role: pool.User, kind: "summary", text: "The task \"task\" returned:\n" + hushed(text)}
	t.keep(m)
	t.splice(b, len(t.branch(b).list), 0, m.id)
	r.commit(t, done.Parent.Operation, (*change).do)
	r.storeUndone = nil
	return nil
}

// purge removes a message that has no copy for good, and with it the way back.
func (r *run) purge(c *convo) error {
	b, name := r.anyBranch(c)
	if len(c.branches[b].list) == 0 || r.rng.Intn(4) > 0 {
		return errSkip
	}
	m := c.branches[b].list[r.rng.Intn(len(c.branches[b].list))]
	for _, other := range c.all {
		if other != m && c.messages[other].root == c.messages[m].root {
			return errSkip
		}
	}
	r.say("purge of %s", record.Short(m))
	_, err := r.store().Maintenance().PurgeMessages(bg, c.id.String(), name, []record.Ref{record.RefTo(m)}, chatctx.PurgeOptions{})
	t := c.begin(r.now, b)
	var abandoned []id
	for _, k := range c.there() {
		at := slices.Index(c.branches[k].list, m)
		if at >= 0 {
			if p := c.replies[k]; p.holds(r.now) {
				r.wanted(err, chatctx.ErrConflict, "purge of what an answer stands on")
				return nil
			}
			abandoned = append(abandoned, k)
			t.splice(k, at, 1)
		}
		ends := func(x session) bool { return x.Summary == m }
		if i := slices.IndexFunc(t.branch(k).sessions, ends); i >= 0 {
			s := t.edit(k)
			s.sessions = s.sessions[:i]
		}
	}
	r.must(err, "purge")
	for _, k := range abandoned {
		delete(c.replies, k)
	}
	ctx := c.ctx.copy()
	ctx.tags, ctx.marks, ctx.notes = maps.Clone(ctx.tags), maps.Clone(ctx.marks), maps.Clone(ctx.notes)
	maps.DeleteFunc(ctx.tags, func(_ string, at id) bool { return at == m })
	delete(ctx.marks, m)
	delete(ctx.notes, m)
	c.ctx = ctx
	maps.Copy(c.branches, t.branches)
	c.messages[m].gone = true
	c.all = slices.DeleteFunc(c.all, func(x id) bool { return x == m })
	for _, op := range c.ops {
		op.lost = deleted
	}
	c.purged = uint64(len(c.ops))
	c.last, c.newest, c.redo, c.keys = map[id]uint64{}, map[id]uint64{}, nil, map[string]*keyed{}
	for k, p := range c.replies {
		if p.partial = nil; c.branches[k] == nil {
			delete(c.replies, k)
		}
	}
	r.gone(c)
	r.held, r.storeUndone, c.storeAt = nil, nil, 0
	return nil
}

// another makes a context, or forgets the oldest where there are several.
func (r *run) another(*convo) error {
	if len(r.convos) > 2 && r.rng.Intn(2) == 0 {
		return errSkip
	}
	if len(r.convos) > 3 {
		r.convos = r.convos[1:]
	}
	r.say("another context")
	r.newConvo()
	return nil
}

// reopen opens the store anew, after a close or as after a crash.
func (r *run) reopen(*convo) error {
	i, crash := r.rng.Intn(len(r.stores)), r.rng.Intn(2) == 0
	r.say("reopen %d, crash %t", i, crash)
	if r.open(i, crash); !crash {
		r.held = nil // its store is closed
	}
	for _, c := range r.convos {
		for _, p := range c.replies {
			if p.at == i {
				p.handle = nil
			}
		}
	}
	return nil
}
