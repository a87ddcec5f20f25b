package chatctx_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// The model says what a context is in plain lists and maps, and by itself what undo and redo lead to: it keeps the states that operations led from and to, and never asks the
// store for them. Only ids that the store makes (of branches and copies) are read, once, when they first appear.

type id = chatctx.ID

// session is a stretch of a branch.
type session struct {
	ID, Summary     id
	Start, PrunedTo int
	apart           string // the positions of which the summary does not tell
	Provider, Model string // of those that a provider began
}

// branchState is a branch as a program sees it. A state is never changed: who changes a branch makes a copy.
type branchState struct {
	name           string
	list           []id
	system, prompt string
	settings, data map[string]string
	sessions       []session
	tokens         int64 // -1: none set
	queue          []id
}

func (b *branchState) copy() *branchState { c := *b; return &c }

func (b *branchState) equal(o *branchState) bool {
	return b.name == o.name && slices.Equal(b.list, o.list) && b.system == o.system && b.prompt == o.prompt && maps.Equal(b.settings, o.settings) &&
		maps.Equal(b.data, o.data) && slices.Equal(b.sessions, o.sessions) && b.tokens == o.tokens && slices.Equal(b.queue, o.queue)
}

// contextState is what belongs to a context and to no branch, but for the active branch, which other operations move too. It is never changed either.
type contextState struct {
	title          string
	renamed        bool // somebody gave the title here
	settings, data map[string]string
	tags           map[string]id
	marks          map[id]string
	notes          map[id]string // a program's data on messages
}

func (c *contextState) copy() *contextState { o := *c; return &o }

// message is what never changes of a message.
type message struct {
	id         id
	role       pool.Role
	kind, text string
	thinks     bool
	unfinished bool
	calls      []callName
	answers    string // the call that a result is for
	isError    bool
	note       string // a program's data that it was copied with
	from       id     // the message that it is a copy of, word for word; zero: none
	root       id     // the message that it is a copy of in the end
	sums       id     // a merge's summary: the head of the branch for which it stands
	ours       bool   // the store gave it an id that is not known here
	gone       bool
}

type callName struct{ id, tool string }

func (m *message) turn() bool { return m.role == pool.User && m.kind == "" }

type callKey struct {
	message id
	index   int
}

// callState is where a call stands.
type callState struct {
	status    pool.Status
	execution pool.Execution
	expires   pool.Time
	since     pool.Time
	result    id // that came while no branch held the call's message, and waits for one
	// brought is where a call stood that had not run when somebody brought its result.
	brought pool.Status
}

func (c callState) open() bool {
	return c.status == pool.Pending || c.status == pool.Approved && c.execution != pool.Done && c.execution != pool.Failed
}

func (c callState) same(o callState) bool { return c.status == o.status && c.execution == o.execution }

var waiting = callState{status: pool.Pending, execution: pool.NotRun}

// theContext is the key of the context among what an operation is on; branches go by their ids.
var theContext id

// thing is what operations have in common where one stands on another: of a branch, or of the context.
type thing struct {
	of   id
	name string
}

// The names of the things that are the branch itself: all of one that was made, and that one is there.
const (
	wholeBranch = "all"
	isThere     = "there"
)

// operation is an entry of the model's journal: what it was on, and how that was before and after.
type operation struct {
	what           string
	on             []id
	things         map[thing]bool
	before, after  map[id]*branchState // nil: not there
	was            map[id]*branchState // the state before, also of a branch that was not there
	ctxBefore      *contextState
	activeBefore   id
	activeMoved    bool
	calls          map[callKey]callState // as they were
	spliced        map[id]bool           // branches, but new ones, whose histories it changed in length
	passed         []id                  // messages that came or went, also for a moment
	group          uint64
	undoes, undone uint64
	at             pool.Time
	lost           lost
}

// lost says what gc has made of an operation.
type lost int

const (
	stays   lost = iota
	expired      // it is there and cannot be undone
	deleted
)

func (o *operation) is(on id) bool { return slices.Contains(o.on, on) }

// shares reports whether two operations changed a thing in common. Of one that is too old nobody knows what it changed.
func (o *operation) shares(p *operation) bool {
	if len(o.on) == 0 || len(p.on) == 0 || len(o.things) == 0 || len(p.things) == 0 {
		return false
	}
	for _, k := range o.on {
		if p.is(k) && (o.lost != stays || p.lost != stays || o.things[thing{k, wholeBranch}] || p.things[thing{k, wholeBranch}]) {
			return true
		}
	}
	for x := range o.things {
		if p.things[x] {
			return true
		}
	}
	return false
}

// convo is the model of one context.
type convo struct {
	id       id
	order    []id // branches, as they were made; those that are gone too
	branches map[id]*branchState
	aside    map[id]*branchState // those that are not there, as they would come back
	from     map[id]id           // the branch that one was forked from
	ctx      *contextState
	active   id
	messages map[id]*message
	all      []id // messages, as they were made
	calls    map[callKey]callState
	claims   map[callKey]*claim
	replies  map[id]*reply
	keys     map[string]*keyed
	ops      []*operation // by number, from 1
	last     map[id]uint64
	newest   map[id]uint64
	redo     []uint64
	command  *chatctx.Batch // the first batch of a command, nil for none
	group    uint64         // of that command
	ours     uint64         // its newest operation
	purged   uint64         // the operations up to this one are gone, and none counts
	storeAt  uint64         // the number that the next operation had at the store's newest about this context; 0: none
}

type keyed struct {
	at     pool.Time
	on     id
	msgs   []*chatctx.Message
	placed []id
}

// same reports whether a key may be used again: on its branch, for its messages, while all of them are there.
func (k *keyed) same(on id, b *branchState, msgs []*chatctx.Message) bool {
	if k.on != on || len(k.msgs) != len(msgs) {
		return false
	}
	for i, at := range k.placed {
		if k.msgs[i] != msgs[i] || !slices.Contains(b.list, at) && !slices.Contains(b.queue, at) {
			return false
		}
	}
	return true
}

func (c *convo) op(n uint64) *operation {
	if n == 0 || n > uint64(len(c.ops)) {
		return nil
	}
	return c.ops[n-1]
}

func (c *convo) next() uint64 { return uint64(len(c.ops)) + 1 }

// there gives the branches that are there.
func (c *convo) there() []id {
	var out []id
	for _, b := range c.order {
		if c.branches[b] != nil {
			out = append(out, b)
		}
	}
	return out
}

func (c *convo) named(name string) (id, bool) {
	for _, b := range c.order {
		if s := c.branches[b]; s != nil && s.name == name {
			return b, true
		}
	}
	return id{}, false
}

// copy is a convo that may be changed while this one stays as it is.
func (c *convo) copy() *convo {
	o := *c
	o.order, o.redo, o.all = slices.Clone(c.order), slices.Clone(c.redo), slices.Clone(c.all)
	o.branches, o.aside, o.calls, o.last, o.newest = maps.Clone(c.branches), maps.Clone(c.aside), maps.Clone(c.calls), maps.Clone(c.last), maps.Clone(c.newest)
	o.ops = make([]*operation, len(c.ops))
	for i, op := range c.ops {
		p := *op
		o.ops[i] = &p
	}
	return &o
}

// change is an operation while it is made: what it changes lies over the convo.
type change struct {
	c         *convo
	what      string
	now       pool.Time
	branches  map[id]*branchState
	aside     map[id]*branchState
	also      map[thing]bool // things that it changed, though they may be as before in the end
	made      []id
	touched   map[id]bool
	ctx       *contextState
	onContext bool
	active    id
	calls     map[callKey]callState
	messages  map[id]*message
	added     []id
	passed    []id
	target    id
	group     uint64
	ours      uint64 // an operation of the group
	from      map[id]id
	quiet     bool // an operation though it is on nothing: a claim
	keys      map[string]*keyed
	spliced   map[id]bool
	blocked   error // since an answer is being written on what it changes
}

// unsettled is a branch with what a program left of an answer when it died.
type unsettled struct{ on id }

func (u unsettled) Error() string { return "an answer is not settled" }

// stays says why what stands on a branch, and the branch, have to stay: an answer is being written there, or was when its program died.
func (t *change) stays(b id) error {
	switch p := t.c.replies[b]; {
	case p == nil:
		return nil
	case p.holds(t.now):
		return chatctx.ErrConflict
	}
	return unsettled{b}
}

func (c *convo) begin(now pool.Time, target id) *change {
	return &change{c: c, now: now, branches: map[id]*branchState{}, aside: map[id]*branchState{}, also: map[thing]bool{}, touched: map[id]bool{}, ctx: c.ctx, active: c.active,
		calls: map[callKey]callState{}, messages: map[id]*message{}, target: target, keys: map[string]*keyed{}, from: map[id]id{}, spliced: map[id]bool{}}
}

func (t *change) branch(b id) *branchState {
	if s, ok := t.branches[b]; ok {
		return s
	}
	return t.c.branches[b]
}

// edit gives a copy of a branch to change, as what the operation is on.
func (t *change) edit(b id) *branchState {
	s := t.branch(b).copy()
	t.branches[b], t.touched[b] = s, true
	return s
}

// editContext gives a copy of the context to change.
func (t *change) editContext() *contextState {
	t.ctx, t.onContext = t.ctx.copy(), true
	return t.ctx
}

func (t *change) order() []id { return append(slices.Clone(t.c.order), t.made...) }

func (t *change) there() []id {
	return slices.DeleteFunc(t.order(), func(b id) bool { return t.branch(b) == nil })
}

func (t *change) named(name string) (id, bool) {
	for _, b := range t.there() {
		if t.branch(b).name == name {
			return b, true
		}
	}
	return id{}, false
}

func (t *change) message(m id) *message {
	if s, ok := t.messages[m]; ok {
		return s
	}
	return t.c.messages[m]
}

func (t *change) call(k callKey) callState {
	if s, ok := t.calls[k]; ok {
		return s
	}
	return t.c.calls[k]
}

// note is a program's data on a message.
func (c *contextState) note(m *message) string {
	if v, set := c.notes[m.id]; set {
		return v
	}
	return m.note
}

// keep puts a message into the pool.
func (t *change) keep(m *message) {
	if m.root == (id{}) {
		m.root = m.id
	}
	t.messages[m.id] = m
	t.added = append(t.added, m.id)
}

// create makes a branch like another.
func (t *change) create(name string, like *branchState) (id, error) {
	if _, taken := t.named(name); taken {
		return id{}, chatctx.ErrConflict
	}
	b := pool.NewID()
	s := &branchState{name: name, tokens: -1}
	if like != nil {
		s.system, s.prompt, s.settings = like.system, like.prompt, like.settings
	}
	t.made = append(t.made, b)
	t.branches[b], t.touched[b] = s, true
	return b, nil
}

// splice changes a history; sessions stay at their messages.
func (t *change) splice(b id, at, removed int, insert ...id) {
	if removed == 0 && len(insert) == 0 {
		return
	}
	s := t.edit(b)
	n := len(s.list)
	if grows := removed == len(insert) || removed == 0 && at == n; !grows && t.blocked == nil {
		t.blocked = t.stays(b)
	}
	if t.c.branches[b] != nil && removed != len(insert) {
		t.spliced[b] = true
	}
	t.also[thing{b, "history"}] = true
	t.passed = slices.Concat(t.passed, insert, s.list[at:at+removed])
	was := s.list
	s.list = slices.Concat(s.list[:at], insert, s.list[at+removed:])
	if removed > 0 || at < n {
		s.sessions = sessionsOn(was, s.list, s.sessions, at+len(insert) == len(s.list))
	}
}

// sessionsOn gives the sessions of a history that was another one: those whose summaries still tell of what the history begins with, each at its messages, which
// follow the last one before it that is still there. Where the history was cut, one without any message ends too.
func sessionsOn(was, is []id, sessions []session, cut bool) (kept []session) {
	after := func(n int) int { // the place after what is left of the first n
		for n > 0 && !slices.Contains(is, was[n-1]) {
			n--
		}
		if n == 0 {
			return 0
		}
		return slices.Index(is, was[n-1]) + 1
	}
	for _, x := range sessions {
		told := 0
		for _, first := range sessions {
			if x.Summary != (id{}) && first.Summary == x.Summary {
				told = min(first.Start, x.Start) - 1
				break
			}
		}
		if len(is) < told || !slices.Equal(was[:told], is[:told]) || cut && len(is) < x.Start {
			continue
		}
		x.Start, x.PrunedTo = after(x.Start-1)+1, after(x.PrunedTo)
		kept = append(kept, x)
	}
	return kept
}

// holders are the branches that hold a message.
func (t *change) holders(m id) []id {
	return slices.DeleteFunc(t.there(), func(b id) bool { return !slices.Contains(t.branch(b).list, m) })
}

// empty reports whether the operation is none.
func (t *change) empty() bool { return len(t.touched) == 0 && !t.onContext && !t.quiet }

// runs reports whether somebody holds a claim on a call.
func (c *convo) runs(k callKey, now pool.Time) bool {
	held := c.claims[k]
	return c.calls[k].execution == pool.Running && held != nil && now-held.renewed <= life
}

// bring puts the results that waited for their calls' messages at the ends of the branches that hold these again, those of a branch in the order of the calls.
func (t *change) bring() {
	for _, b := range t.there() {
		for _, m := range slices.Clone(t.branch(b).list) {
			for i := range t.message(m).calls {
				k := callKey{m, i}
				s := t.call(k)
				if s.result == (id{}) {
					continue
				}
				if !t.message(s.result).gone {
					t.splice(b, len(t.branch(b).list), 0, s.result)
				}
				s.result = id{}
				t.calls[k] = s
			}
		}
	}
}

// commit puts the change onto the convo and its journal, and gives the operation; nil where there is none.
func (t *change) commit() *operation {
	c := t.c
	t.bring()
	for _, m := range t.added {
		c.messages[m] = t.messages[m]
		if !t.messages[m].ours {
			c.all = append(c.all, m)
		}
	}
	maps.Copy(c.keys, t.keys)
	maps.Copy(c.from, t.from)
	if t.empty() {
		return nil
	}
	op := &operation{what: t.what, things: t.things(), was: map[id]*branchState{}, before: map[id]*branchState{}, after: map[id]*branchState{},
		calls: map[callKey]callState{}, group: t.group, at: t.now, passed: t.passed, spliced: t.spliced, activeBefore: c.active, activeMoved: c.active != t.active}
	for _, b := range t.order() {
		if !t.touched[b] {
			continue
		}
		op.on = append(op.on, b)
		op.before[b], op.after[b] = c.branches[b], t.branches[b]
		op.was[b] = cmp.Or(c.branches[b], c.aside[b])
	}
	if t.onContext {
		op.on = append(op.on, theContext)
		op.ctxBefore = c.ctx
	}
	for k, s := range t.calls {
		if s.since = c.calls[k].since; s.since == 0 {
			s.since = t.now
		}
		if was, known := c.calls[k]; known && was != s {
			op.calls[k] = was
		}
		c.calls[k] = s
	}
	c.ops = append(c.ops, op)
	n := uint64(len(c.ops))
	for _, k := range append(slices.Clone(op.on), t.target) {
		if newest := c.last[k]; newest > op.group && newest != t.ours && (c.op(newest).group != op.group || c.op(newest).lost == deleted) {
			op.group = n // what somebody else did there stands on the group, or it is too old to be undone
		}
	}
	if op.group == 0 {
		op.group = n
	}
	for _, k := range op.on {
		c.last[k], c.newest[k] = n, n
	}
	maps.Copy(c.aside, t.aside)
	c.order = append(c.order, t.made...)
	for b := range t.touched {
		c.branches[b] = t.branches[b]
	}
	c.ctx, c.active = t.ctx, t.active
	c.passOver(op)
	return op
}

// passOver lets undo pass over a command that made branches and nothing else, once the last of them is removed.
func (c *convo) passOver(last *operation) {
	removes := func(k id) bool { return k != theContext && last.before[k] != nil && last.after[k] == nil }
	if !slices.ContainsFunc(last.on, removes) || last.undoes != 0 {
		return
	}
	all, made := []uint64{}, map[id]bool{}
	for n := last.group; n <= uint64(len(c.ops)); n++ {
		op := c.op(n)
		if op == nil || op.group != last.group || op.undone != 0 || op.undoes != 0 {
			continue
		}
		all = append(all, n)
		for _, k := range op.on {
			if made[k] = made[k] || op.before[k] == nil; !made[k] || c.branches[k] != nil {
				return
			}
		}
		if op.lost != stays || len(op.calls) > 0 || op.activeMoved || op.is(theContext) && len(op.ctxBefore.differs(c.ctx)) > 0 {
			return
		}
	}
	for _, n := range slices.Backward(all) {
		if c.last[theContext] == n {
			c.last[theContext] = c.below(theContext, n)
		}
		c.op(n).undone = n
	}
}

// do is commit of what a program did, which forgets what cannot be redone after it.
func (t *change) do() *operation {
	op := t.commit()
	if op != nil {
		t.c.dropRedo(op)
	}
	return op
}

// dropRedo forgets the undos that cannot be redone after an operation (nil: after none).
func (c *convo) dropRedo(after *operation) {
	var blocked []*operation
	if after != nil {
		blocked = append(blocked, after)
	}
	var kept []uint64
	for _, n := range slices.Backward(c.redo) {
		u := c.op(n)
		drop := u.lost != stays || c.op(u.undoes).lost != stays || slices.ContainsFunc(blocked, u.shares)
		if !drop {
			kept = append(kept, n)
			continue
		}
		blocked = append(blocked, u)
	}
	slices.Reverse(kept)
	c.redo = kept
}

// revert makes the change that takes an operation back.
func (c *convo) revert(op *operation, now pool.Time) (*change, error) {
	t := c.begin(now, id{})
	var left error
	for _, k := range op.on {
		if op.spliced[k] && t.branch(k) != nil || op.before[k] == nil && t.branch(k) != nil {
			if err := t.stays(k); errors.Is(err, chatctx.ErrConflict) {
				return nil, err
			} else if left == nil {
				left = err
			}
		}
	}
	if left != nil {
		return nil, left
	}
	back := map[id]bool{}
	for _, k := range op.on {
		if k == theContext {
			t.ctx, t.onContext = op.contextBack(t.ctx), true
			continue
		}
		is := t.branch(k)
		s := op.branchBack(k, cmp.Or(is, c.aside[k]))
		t.touched[k], back[k] = true, is == nil
		there := is != nil
		if op.things[thing{k, wholeBranch}] || op.things[thing{k, isThere}] {
			there = op.before[k] != nil
		}
		if is = s; !there {
			is = nil
		}
		if t.branches[k] = is; is == nil {
			t.aside[k], back[k] = s, false
		}
	}
	names := map[string]bool{}
	for _, b := range t.there() {
		if name := t.branch(b).name; names[name] {
			return nil, chatctx.ErrConflict
		} else {
			names[name] = true
		}
	}
	for k, was := range op.calls {
		is := t.call(k)
		switch {
		case is.execution == pool.NotRun, is.brought != "" && is.brought == was.status && was.execution == pool.NotRun:
		case !was.same(is) && c.runs(k, now):
			return nil, chatctx.ErrConflict
		case was.same(is) && was.result != is.result:
			is.result = was.result
			t.calls[k] = is
			continue
		default:
			continue
		}
		if was == is || was.same(is) && was.expires == is.expires {
			continue
		}
		if was.open() && !is.open() && len(t.holders(k.message)) > 1 {
			continue
		}
		if was.status == pool.Pending && was.expires != 0 && was.expires <= now {
			was.expires = now + max(was.expires-was.since, 60e6)
		}
		t.calls[k] = was
	}
	before := c.begin(now, id{})
	for k := range c.calls {
		if c.runs(k, now) && len(before.holders(k.message)) > 0 && len(t.holders(k.message)) == 0 {
			return nil, chatctx.ErrConflict
		}
	}
	return t, t.goBack(op, back)
}

// goBack goes where people were before an operation, if that branch is there and they went with the operation, or it has just come back, or theirs went. From a
// branch that goes they go to the one that it came from.
func (t *change) goBack(op *operation, back map[id]bool) error {
	if op.activeMoved {
		there, moves := t.branch(op.activeBefore) != nil, op.is(theContext)
		if moves && !there && !op.fieldsOfContext() {
			return chatctx.ErrConflict
		}
		if there && (moves || t.branch(t.c.active) == nil || back[op.activeBefore]) {
			t.active = op.activeBefore
		}
	}
	if t.branch(t.active) == nil {
		if t.active = t.c.from[t.active]; t.branch(t.active) == nil {
			return chatctx.ErrConflict
		}
	}
	return nil
}

// below finds the newest operation in force on something before operation n; 0 for none.
func (c *convo) below(k id, n uint64) uint64 {
	for n--; n > c.purged; n-- {
		if op := c.op(n); op.is(k) && op.undone == 0 && op.undoes == 0 {
			return n
		}
	}
	return 0
}

// undo takes back an operation.
func (c *convo) undo(n uint64, now pool.Time) error {
	op := c.op(n)
	if op == nil || op.lost != stays || op.undone != 0 || len(op.on) == 0 {
		return chatctx.ErrConflict
	}
	newest := !slices.ContainsFunc(op.on, func(k id) bool { return c.last[k] != n })
	for m := n + 1; m <= uint64(len(c.ops)) && !newest; m++ {
		if o := c.op(m); o.undone == 0 && o.undoes == 0 && o.lost != deleted && o.shares(op) {
			return chatctx.ErrConflict
		}
	}
	t, err := c.revert(op, now)
	if err != nil {
		return err
	}
	newestOf := maps.Clone(c.last)
	u := c.entry(t, op, n)
	c.redo = append(c.redo, u)
	op.undone = u
	for _, k := range op.on {
		if c.last[k] = newestOf[k]; c.last[k] == n {
			c.last[k] = c.below(k, n)
		}
	}
	return nil
}

// redoOne takes an undo back.
func (c *convo) redoOne(u uint64, now pool.Time) error {
	undo := c.op(u)
	op := c.op(undo.undoes)
	t, err := c.revert(undo, now)
	if err != nil {
		return err
	}
	newestOf := maps.Clone(c.last)
	undo.undone = c.entry(t, op, u)
	op.undone = 0
	for _, k := range op.on {
		c.last[k] = max(newestOf[k], undo.undoes)
	}
	return nil
}

// entry puts an undo or a redo of op on the journal.
func (c *convo) entry(t *change, op *operation, undoes uint64) uint64 {
	t.what, t.quiet = "undo", true
	e := t.commit()
	e.undoes = undoes
	e.group, e.passed, e.spliced = 0, op.passed, op.spliced
	e.things = maps.Clone(t.also)
	for x := range op.things {
		if x.name[0] != 'c' {
			e.things[x] = true
		}
	}
	for k := range t.calls {
		e.things[callThing(k)] = true
	}
	return uint64(len(c.ops))
}

// undoGroup takes back what one command made, newest first.
func (c *convo) undoGroup(n uint64, now pool.Time) (first uint64, err error) {
	op := c.op(n)
	if op == nil || op.lost != stays || op.undone != 0 {
		return 0, chatctx.ErrConflict
	}
	var all []uint64
	for i := uint64(len(c.ops)); i >= op.group && i > 0; i-- {
		if o := c.op(i); o.group == op.group && o.undone == 0 && o.undoes == 0 && o.lost != deleted {
			all = append(all, i)
		}
	}
	for _, n := range all {
		if err := c.undo(n, now); err != nil {
			return 0, err
		}
		first = n
	}
	return first, nil
}

// redoable finds the newest undo that is redone on a branch: one on it or on the context, or on a branch that is not there and came from it, or from none
// that is there, or to which people came from it. It gives its place in the list, -1 for none.
func (c *convo) redoable(b id) int {
	past := map[id]bool{}
	next := uint64(len(c.ops))
	for i, n := range slices.Backward(c.redo) {
		for ; next > n; next-- {
			if op := c.op(next); op.undoes == 0 && op.lost != deleted {
				on(past, op)
			}
		}
		if slices.ContainsFunc(c.op(n).on, func(k id) bool { return past[k] }) {
			on(past, c.op(n)) // somebody has gone on there
			continue
		}
		op := c.op(c.op(n).undoes)
		if slices.ContainsFunc(c.op(n).on, func(k id) bool {
			return k == theContext || k == b || c.branches[k] == nil && (c.from[k] == b || c.branches[c.from[k]] == nil || op.activeMoved && op.activeBefore == b)
		}) {
			return i
		}
	}
	return -1
}

func on(all map[id]bool, op *operation) {
	for _, k := range op.on {
		all[k] = true
	}
}

// redoGroup redoes the undo at a place of the list with those before it of the same command.
func (c *convo) redoGroup(at int, now pool.Time) error {
	of := func(i int) uint64 { return c.op(c.op(c.redo[i]).undoes).group }
	group, first := of(at), at
	for at+1 < len(c.redo) && of(at+1) == group {
		at++
	}
	for first > 0 && of(first-1) == group {
		first--
	}
	for _, later := range c.redo[at+1:] {
		if slices.ContainsFunc(c.redo[first:at+1], func(u uint64) bool { return c.op(u).shares(c.op(later)) }) {
			return chatctx.ErrConflict
		}
	}
	for ; ; at-- {
		u := c.redo[at]
		c.redo = slices.Delete(c.redo, at, at+1)
		if err := c.redoOne(u, now); err != nil {
			return err
		}
		if at == first {
			return nil
		}
	}
}

// replaceIDs puts the ids that the store made in the place of the model's own.
func (t *change) replaceIDs(real map[id]id) {
	if len(real) == 0 {
		return
	}
	to := func(m id) id { return cmp.Or(real[m], m) }
	list := func(in []id) []id {
		out := slices.Clone(in)
		for i := range out {
			out[i] = to(out[i])
		}
		return out
	}
	for b, s := range t.branches {
		if s != nil {
			c := s.copy()
			c.list, c.queue = list(s.list), list(s.queue)
			t.branches[b] = c
		}
	}
	ctx := t.ctx.copy()
	ctx.tags, ctx.marks, ctx.notes = maps.Clone(ctx.tags), map[id]string{}, map[id]string{}
	for name, m := range ctx.tags {
		ctx.tags[name] = to(m)
	}
	for m, v := range t.ctx.marks {
		ctx.marks[to(m)] = v
	}
	for m, v := range t.ctx.notes {
		ctx.notes[to(m)] = v
	}
	if t.onContext {
		t.ctx = ctx
	}
	for m, r := range real {
		if s := t.messages[m]; s != nil {
			delete(t.messages, m)
			s.id, s.ours = r, false
			t.messages[r] = s
		}
	}
	for _, s := range t.messages {
		s.root, s.from, s.sums = to(s.root), to(s.from), to(s.sums)
	}
	for k, s := range t.calls {
		if r, ok := real[k.message]; ok {
			delete(t.calls, k)
			t.calls[callKey{r, k.index}] = s
		}
	}
	for x := range maps.Clone(t.also) {
		for m, r := range real {
			if name := strings.ReplaceAll(x.name, fmt.Sprint(m), fmt.Sprint(r)); name != x.name {
				delete(t.also, x)
				t.also[thing{x.of, name}] = true
			}
		}
	}
	t.added, t.passed = list(t.added), list(t.passed)
	t.target = to(t.target)
}

// replaceBranch puts the store's id of a new branch in the place of the model's.
func (t *change) replaceBranch(was, is id) {
	t.made[slices.Index(t.made, was)] = is
	for x := range maps.Clone(t.also) {
		if x.of == was {
			delete(t.also, x)
			t.also[thing{is, x.name}] = true
		}
	}
	if s, gone := t.aside[was]; gone {
		t.aside[is] = s
	}
	t.branches[is], t.touched[is] = t.branches[was], true
	delete(t.branches, was)
	delete(t.touched, was)
	if t.active == was {
		t.active = is
	}
	if t.target == was {
		t.target = is
	}
	for _, k := range t.keys {
		if k.on == was {
			k.on = is
		}
	}
	t.from[is] = t.from[was]
	for b, from := range t.from {
		if from == was {
			t.from[b] = is
		}
	}
}
