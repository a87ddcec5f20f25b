package boltkv

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/chatctx/chatctx/chatctx/kv"
)

// updates commits Updates together that arrive while another one commits. The first of them, the leader, opens a transaction and passes it from one member
// to the next. Each member runs its function in its own goroutine, so that a panic, or the end of a test, happens where it belongs. An Update that is alone
// does not wait.
//
// A member's error counts only if its function saw nothing but stored data. If other members had written before it, its error may be their fault: a member
// that has also written runs again, as the first of the next group; the error of one that has not is returned once the group is committed.
type updates struct {
	mu      sync.Mutex
	queue   []*member
	leading bool // a leader runs, or was told to
	last    int  // members in the last committed group
}

const (
	groupSize = 256
	groupTime = 5 * time.Millisecond // an older group takes no more members
	// gather is how long a group waits to become as large as the last one, whose members were woken by its commit and are about to come again.
	gather = 200 * time.Microsecond
	grace  = glance // the least wait for other programs, for a member that has waited behind this program's leader so far
)

// member is one Update.
type member struct {
	handle *handle
	fn     func(kv.RwTx) error
	joined time.Time
	turn   chan turn
	ran    chan struct{}

	// The result of the last run, valid after ran.
	err   error
	wrote bool
	gone  bool // it panicked or its goroutine ended: no caller waits for its result
}

// turn tells a member to lead, to run in a session, or how its Update ended.
type turn struct {
	lead    bool
	session *session
	err     error
}

// update runs one member to its end.
func (u *updates) update(ctx context.Context, m *member) error {
	if u.join(m) {
		return u.lead(ctx, m)
	}
	cancelled := ctx.Done()
	for {
		select {
		case t := <-m.turn:
			switch {
			case t.lead:
				return u.lead(ctx, m)
			case t.session != nil:
				m.run(t.session)
			default:
				return t.err
			}
		case <-cancelled:
			if u.quit(m) {
				return ctx.Err()
			}
			cancelled = nil // too late: it is in a group
		}
	}
}

// join makes m the leader if there is none, else it puts m into the queue.
func (u *updates) join(m *member) (leads bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.leading {
		u.leading = true
		return true
	}
	u.queue = append(u.queue, m)
	return false
}

// quit takes m out of the queue if it is still there.
func (u *updates) quit(m *member) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.Index(u.queue, m)
	if i >= 0 {
		u.queue = slices.Delete(u.queue, i, i+1)
	}
	return i >= 0
}

// pop takes the first member of the queue, nil if the queue is empty.
func (u *updates) pop() *member {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.queue) == 0 {
		return nil
	}
	m := u.queue[0]
	u.queue = slices.Delete(u.queue, 0, 1)
	return m
}

// putBack puts ms at the head of the queue.
func (u *updates) putBack(ms ...*member) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queue = slices.Insert(u.queue, 0, ms...)
}

// handOver tells the first member of the queue to lead.
func (u *updates) handOver() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.queue) == 0 {
		u.leading = false
		return
	}
	u.queue[0].turn <- turn{lead: true}
	u.queue = slices.Delete(u.queue, 0, 1)
}

// giveUp passes the leader's ErrLocked on to the members of the queue whose time is over too.
func (u *updates) giveUp(err error) {
	if !errors.Is(err, kv.ErrLocked) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.queue = slices.DeleteFunc(u.queue, func(m *member) bool {
		over := m.left() <= 0
		if over {
			m.turn <- turn{err: err}
		}
		return over
	})
}

// left is the rest of the time that m may wait for other programs.
func (m *member) left() time.Duration { return m.handle.wait - time.Since(m.joined) }

// lead opens the file and commits one group.
func (u *updates) lead(ctx context.Context, m *member) error {
	defer u.handOver()
	if err := ctx.Err(); err != nil {
		return err
	}
	lease := m.handle.file.lease
	p := newPatience(ctx, max(m.left(), min(m.handle.wait, grace)))
	o, err := lease.enter(p, toWrite)
	if err != nil {
		u.giveUp(err)
		return err
	}
	g := &group{updates: u, file: o, members: []*member{m}}
	defer func() { lease.leave(g.stale) }()
	return g.commit()
}

// group is the set of Updates that a leader commits.
type group struct {
	*updates
	file    *opened
	members []*member // in the order in which they run, the leader first
	full    bool      // takes no more members
	begun   time.Time
	bolt    *bolt.Tx // nil after its end
	stale   bool     // the file must be opened again
}

// commit commits the group and returns the result of the leader's Update.
func (g *group) commit() error {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // bbolt reads pages when it commits, too
	defer g.drop()                                           // the leader's function may panic
	g.begun = time.Now()
	for {
		again, err := g.try()
		if !again {
			return err
		}
	}
}

// drop ends a group that was not committed, because the leader panicked: the other members go back into the queue.
func (g *group) drop() {
	if g.bolt != nil {
		g.rollback()
		g.putBack(g.members[1:]...)
	}
}

func (g *group) rollback() {
	g.file.rollback(g.bolt)
	g.bolt = nil
}

// try runs all members once. It commits unless it has to take one out first.
func (g *group) try() (again bool, err error) {
	tx, err := g.file.begin(true)
	if err != nil {
		return false, g.settle(err)
	}
	g.bolt = tx
	leader := g.members[0]
	s := newSession(g.file, tx, leader.handle.file.sequential)
	for i := 0; i < len(g.members) || g.grow(); i++ {
		m := g.members[i]
		m.takeTurn(s, m == leader)
		switch {
		case m.err == nil && !m.gone && s.damage == nil:
		case m == leader:
			g.stale = s.damage != nil
			g.rollback()
			g.putBack(g.members[1:]...)
			return false, m.err
		case m.wrote || s.damage != nil:
			g.takeOut(i)
			return true, nil
		case m.gone:
			g.members = slices.Delete(g.members, i, i+1)
			i--
		}
	}
	g.bolt = nil
	err = g.file.commit(tx)
	g.last = len(g.members)
	if err == nil {
		leader.handle.file.wrote(s.wrote)
	}
	return false, g.settle(err)
}

// grow takes one more member from the queue, if the group may take one.
func (g *group) grow() bool {
	if g.full || len(g.members) >= groupSize || time.Since(g.begun) > groupTime {
		return false
	}
	m := g.next()
	if m == nil {
		return false
	}
	g.members = append(g.members, m)
	return true
}

// next takes the first member of the queue. If this group is smaller than the last one, it waits for a moment; an Update that is alone never waits.
func (g *group) next() *member {
	m := g.pop()
	if m != nil || len(g.members) >= g.last {
		return m
	}
	for begun := time.Now(); m == nil && time.Since(begun) < gather; m = g.pop() {
		runtime.Gosched()
	}
	if m == nil {
		g.last = 0 // nobody comes: the next group does not wait
	}
	return m
}

// takeOut ends the try and keeps only the members before i for the next one. Member i will lead the next group, with those after it.
func (g *group) takeOut(i int) {
	g.rollback()
	rest := g.members[i:]
	if rest[0].gone {
		rest = rest[1:]
	}
	g.putBack(rest...)
	g.members, g.full = g.members[:i], true
}

// settle tells all members how their Updates ended and returns the leader's result.
func (g *group) settle(err error) error {
	g.stale = err != nil
	for _, m := range g.members[1:] {
		result := err
		if err == nil {
			result = m.err
		}
		m.turn <- turn{err: result}
	}
	return err
}

// takeTurn runs m in s, in m's goroutine, and returns when that has ended.
func (m *member) takeTurn(s *session, here bool) {
	if here {
		m.run(s)
	} else {
		m.turn <- turn{session: s}
	}
	<-m.ran
}

// run calls the member's function and reports its end even if it panics.
func (m *member) run(s *session) {
	t := &rwTx{tx: tx{session: s}}
	m.err, m.gone = nil, true
	defer func() {
		t.ended = true
		m.wrote = t.wrote
		m.ran <- struct{}{}
	}()
	m.err = m.call(t)
	m.gone = false
}

func (m *member) call(t *rwTx) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer t.file.fault(&err)
	if err := m.handle.check(t.file, t); err != nil {
		return err
	}
	if err := m.fn(t); err != nil {
		return err
	}
	return t.damage
}
