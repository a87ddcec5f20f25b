package chatctx

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chatctx/chatctx/pool"
)

var modelSteps = flag.Int("model.steps", 400, "random operations in each run of the model test")

// state is what the model says of a context: plain lists and maps.
type state struct {
	branches map[string][]ID
	system   map[string]string
	active   string
	title    string
	tags     map[string]ID
}

func (s *state) clone() *state {
	out := &state{branches: map[string][]ID{}, system: maps.Clone(s.system), active: s.active, title: s.title, tags: maps.Clone(s.tags)}
	for k, v := range s.branches {
		out.branches[k] = slices.Clone(v)
	}
	return out
}

// done is an operation that the model remembers: what it was on, and the state before it.
type done struct {
	on     map[string]bool // branch ids; "" is the context
	before *state
	after  *state
	undone bool
	moved  bool   // undoing it changed the active branch too
	was    string // the active branch when it was undone
}

// model drives a store and the plain state beside it.
type model struct {
	t     *testing.T
	rng   *rand.Rand
	store *Store
	c     *ChatContext
	path  string
	state *state
	ops   []*done
	redo  []*done
	ids   map[string]string // branch name to the branch's id
	from  map[string]string // branch id to that of the branch it was forked from
	calls bool              // messages ask for tools; forks then copy some
	roots map[ID]ID
	open  int // open calls seen
}

// root follows a message to the one that it is a copy of in the end.
func (m *model) root(id ID) ID {
	if r, ok := m.roots[id]; ok {
		return r
	}
	msg, err := m.c.Message(m.ctx(), id)
	if err != nil {
		m.t.Fatal(err)
	}
	r := id
	if msg.CopiedFrom != nil {
		r = m.root(*msg.CopiedFrom)
	}
	m.roots[id] = r
	return r
}

func (m *model) rootsOf(list []ID) []ID {
	out := make([]ID, len(list))
	for i, id := range list {
		out[i] = m.root(id)
	}
	return out
}

func (m *model) ctx() context.Context { return context.Background() }

func (m *model) names() []string { return slices.Sorted(maps.Keys(m.state.branches)) }

func (m *model) anyBranch() string { n := m.names(); return n[m.rng.Intn(len(n))] }

// do runs a batch on a branch and, if it went well, the same on the model.
func (m *model) do(on []string, what string, b *Batch, apply func(*state)) {
	m.t.Helper()
	before := m.state.clone()
	out, err := b.Commit(m.ctx())
	if err != nil {
		m.t.Fatalf("%s: %v", what, err)
	}
	apply(m.state)
	m.learnIDs()
	if out.Operation == "" {
		return
	}
	d := &done{on: map[string]bool{}, before: before, after: m.state.clone()}
	for _, name := range on {
		if name != "" {
			name = m.ids[name]
		}
		d.on[name] = true
	}
	m.ops = append(m.ops, d)
	m.dropRedo(d.on)
}

// dropRedo forgets what can no longer be redone.
func (m *model) dropRedo(on map[string]bool) {
	blocked := maps.Clone(on)
	var kept []*done
	for _, r := range slices.Backward(m.redo) {
		drop := m.lost(r)
		for k := range r.on {
			drop = drop || blocked[k]
		}
		if drop {
			maps.Copy(blocked, r.on)
		} else {
			kept = append(kept, r)
		}
	}
	slices.Reverse(kept)
	m.redo = kept
}

func (m *model) learnIDs() {
	infos, err := m.c.Branches(m.ctx())
	if err != nil {
		m.t.Fatal(err)
	}
	for _, info := range infos {
		m.ids[info.Name] = info.ID.String()
		m.from[info.ID.String()] = info.Branch.From.String()
	}
}

func (m *model) texts(n int) []*Message {
	var out []*Message
	for range n {
		role := []pool.Role{pool.User, pool.Assistant}[m.rng.Intn(2)]
		out = append(out, pool.NewText(role, fmt.Sprint(m.rng.Int63())))
		if m.calls && role == pool.Assistant {
			out = append(out, m.asking(out[len(out)-1])...)
		}
	}
	return out
}

// asking gives a message some calls, and results for some of them.
func (m *model) asking(msg *Message) []*Message {
	var results []*Message
	for i := range m.rng.Intn(3) {
		id := fmt.Sprintf("call_%d_%d", i, m.rng.Int63())
		msg.Calls = append(msg.Calls, pool.Call{ID: id, Tool: "look", Arguments: []byte(`{"at":1}`)})
		if m.rng.Intn(2) == 0 {
			results = append(results, &Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: id, Text: "seen"}})
		}
	}
	return results
}

func ids(msgs []*Message) []ID {
	var out []ID
	for _, m := range msgs {
		out = append(out, m.ID)
	}
	return out
}

func (m *model) step() {
	name := m.anyBranch()
	list := m.state.branches[name]
	b := m.c.Begin(name)
	n := m.rng.Intn(16)
	if m.calls && (n == 6 || n == 7 || n == 9) {
		n = 0 // with a call go its results: the plain lists do not know that
	}
	switch n {
	case 0, 1, 2, 3:
		msgs := m.texts(1 + m.rng.Intn(4))
		b.Append(msgs, AppendOptions{})
		m.do([]string{name}, "append", b, func(s *state) { s.branches[name] = append(s.branches[name], ids(msgs)...) })
	case 4:
		m.fork(b, name, list)
	case 5:
		if len(list) > 0 {
			pos := 1 + m.rng.Intn(len(list))
			b.Rewind(Ref(fmt.Sprintf("@%d", pos)))
			m.do([]string{name}, "rewind", b, func(s *state) { s.branches[name] = list[:pos] })
		}
	case 6, 7:
		if len(list) > 0 {
			i := m.rng.Intn(len(list))
			b.Drop(Ref(fmt.Sprintf("@%d", i+1)))
			m.do([]string{name}, "drop", b, func(s *state) { s.branches[name] = slices.Delete(slices.Clone(list), i, i+1) })
		}
	case 8:
		if len(list) > 0 {
			i := m.rng.Intn(len(list))
			msgs := m.texts(1 + m.rng.Intn(2))
			b.Insert(Ref(fmt.Sprintf("@%d", i+1)), msgs)
			m.do([]string{name}, "insert", b, func(s *state) { s.branches[name] = slices.Insert(slices.Clone(list), i, ids(msgs)...) })
		}
	case 9:
		m.pick(b, name, list)
	case 10:
		if len(list) > 0 {
			m.edit(b, name, list)
		}
	case 11:
		m.namesAndSwitches(b, name, list)
	case 12:
		text := fmt.Sprint(m.rng.Int63())
		b.SetSystem(&text)
		m.do([]string{name}, "system", b, func(s *state) { s.system[name] = text })
	case 13, 14:
		m.undo(name)
	case 15:
		m.doRedo(name)
	}
}

func (m *model) fork(b *Batch, name string, list []ID) {
	to := fmt.Sprintf("b%d", m.rng.Intn(1000000))
	at, n, stay := Ref(""), len(list), m.rng.Intn(2) == 0
	if n > 0 {
		n = 1 + m.rng.Intn(n)
		at = Ref(fmt.Sprintf("@%d", n))
	}
	b.Fork(to, at, stay)
	on := []string{to}
	if stay {
		on = append(on, "")
	}
	m.do(on, "fork", b, func(s *state) {
		s.branches[to], s.system[to] = slices.Clone(list[:n]), s.system[name]
		if !stay {
			s.active = to
		}
	})
}

func (m *model) pick(b *Batch, name string, list []ID) {
	from := m.anyBranch()
	src := m.state.branches[from]
	if len(src) == 0 {
		return
	}
	id := src[m.rng.Intn(len(src))]
	res := b.Pick(from, RefTo(id))
	m.do([]string{name}, "pick", b, func(s *state) {
		if len(res.Added) != 1 || (res.Added[0].Message == id) == slices.Contains(list, id) {
			m.t.Fatalf("pick of %s onto a branch that holds it: %t; added %v", id, slices.Contains(list, id), res.Added)
		}
		s.branches[name] = append(slices.Clone(list), res.Added[0].Message)
	})
}

func (m *model) edit(b *Batch, name string, list []ID) {
	i, keep := m.rng.Intn(len(list)), m.rng.Intn(2) == 0
	res := b.Edit(Ref(fmt.Sprintf("@%d", i+1)), "changed", EditOptions{KeepRest: keep, Name: fmt.Sprintf("e%d", m.rng.Int63())})
	before := m.state.clone()
	if _, err := b.Commit(m.ctx()); err != nil {
		m.t.Fatalf("edit: %v", err)
	}
	snap, err := m.c.Snapshot(m.ctx(), res.Branch)
	if err != nil {
		m.t.Fatal(err)
	}
	got, err := snap.IDs(m.ctx())
	if err != nil {
		m.t.Fatal(err)
	}
	want := append(slices.Clone(list[:i]), got[i])
	if keep {
		want = append(want, list[i+1:]...)
	}
	m.state.branches[res.Branch], m.state.system[res.Branch], m.state.active = want, m.state.system[name], res.Branch
	m.learnIDs()
	m.ops = append(m.ops, &done{on: map[string]bool{m.ids[res.Branch]: true}, before: before, after: m.state.clone()})
}

func (m *model) namesAndSwitches(b *Batch, name string, list []ID) {
	switch m.rng.Intn(4) {
	case 0:
		b.Switch(name)
		m.do([]string{""}, "switch", b, func(s *state) { s.active = name })
	case 1:
		if name != m.state.active {
			id := m.ids[name]
			b = m.c.Begin("")
			b.RemoveBranch(name)
			m.do([]string{""}, "branch rm", b, func(s *state) { delete(s.branches, name); delete(s.system, name) })
			m.ops[len(m.ops)-1].on[id] = true
		}
	case 2:
		title := fmt.Sprint(m.rng.Int63())
		b.SetTitle(title)
		m.do([]string{""}, "rename", b, func(s *state) { s.title = title })
	case 3:
		if len(list) > 0 {
			tag, id := fmt.Sprintf("t%d", m.rng.Int63()), list[0]
			b.Tag(tag, RefTo(id))
			m.do([]string{""}, "tag", b, func(s *state) { s.tags[tag] = id })
		}
	}
}

// undo takes back the newest operation on the branch or the context, in the store and in the model.
func (m *model) undo(name string) {
	var op *done
	for _, d := range slices.Backward(m.ops) {
		if !d.undone && (d.on[""] || d.on[m.ids[name]]) {
			op = d
			break
		}
	}
	_, err := m.store.Undo(m.ctx(), m.c.ID.String(), name, "")
	if op == nil {
		if err == nil { // the making of the context: bring it back
			if _, err := m.store.Redo(m.ctx(), m.c.ID.String(), ""); err != nil {
				m.t.Fatalf("redo of new: %v", err)
			}
		}
		return
	}
	for _, later := range m.ops[slices.Index(m.ops, op)+1:] {
		for k := range op.on {
			if !later.undone && later.on[k] && m.alive(k) {
				if !errors.Is(err, ErrConflict) {
					m.t.Fatalf("undo under a newer operation: %v", err)
				}
				return
			}
		}
	}
	if err != nil {
		m.t.Fatalf("undo: %v", err)
	}
	op.undone, op.moved, op.was = true, false, m.state.active
	m.redo = append(m.redo, op)
	m.restore(op, op.after, op.before)
}

// alive reports whether a branch of that id is there; the context always is.
func (m *model) alive(id string) bool {
	if id == "" {
		return true
	}
	for name := range m.state.branches {
		if m.ids[name] == id {
			return true
		}
	}
	return false
}

func (m *model) doRedo(name string) {
	m.dropRedo(map[string]bool{})
	at := len(m.redo) - 1
	for at >= 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(m.redo[at].on)), func(id string) bool { return m.redoneOn(id, name) }) {
		at--
	}
	_, err := m.store.Redo(m.ctx(), m.c.ID.String(), name)
	if at < 0 {
		if !errors.Is(err, ErrNotFound) {
			m.t.Fatalf("redo with nothing to redo: %v", err)
		}
		return
	}
	op := m.redo[at]
	for _, later := range m.redo[at+1:] {
		for id := range op.on {
			if later.on[id] {
				if !errors.Is(err, ErrConflict) {
					m.t.Fatalf("redo under a later undo: %v", err)
				}
				return
			}
		}
	}
	if err != nil {
		m.t.Fatalf("redo: %v", err)
	}
	m.redo = slices.Delete(m.redo, at, at+1)
	op.undone = false
	m.restore(op, op.before, op.after)
}

// redoneOn says what of a branch, by its id, is redone on the branch name: its own, the context's, and that of branches which are not there and came from it,
// or from none that is.
func (m *model) redoneOn(id, name string) bool {
	return id == "" || id == m.ids[name] || !m.alive(id) && (m.from[id] == m.ids[name] || !m.alive(m.from[id]))
}

// lost reports whether an undone operation was on a branch that is gone, other than one that it made itself.
func (m *model) lost(op *done) bool {
	for id := range op.on {
		made := true
		for name := range op.before.branches {
			made = made && m.ids[name] != id
		}
		if id != "" && !made && !m.alive(id) && len(op.before.branches) <= len(op.after.branches) {
			return true
		}
	}
	return false
}

// restore puts what an operation changed from one state to another.
func (m *model) restore(op *done, from, to *state) {
	for name := range m.state.branches {
		if _, was := to.branches[name]; !was {
			if _, is := from.branches[name]; is {
				delete(m.state.branches, name)
				delete(m.state.system, name)
			}
		}
	}
	made := ""
	for name, list := range to.branches {
		_, is := from.branches[name]
		if !is {
			made = name
		}
		if !is || !slices.Equal(from.branches[name], list) {
			m.state.branches[name] = slices.Clone(list)
		}
		if !is || from.system[name] != to.system[name] {
			m.state.system[name] = to.system[name]
		}
	}
	if op.on[""] {
		if from.title != to.title {
			m.state.title = to.title
		}
		for tag := range from.tags {
			if _, keep := to.tags[tag]; !keep {
				delete(m.state.tags, tag)
			}
		}
		for tag, id := range to.tags {
			if _, had := from.tags[tag]; !had {
				m.state.tags[tag] = id
			}
		}
		if from.active != to.active && op.undone {
			m.state.active = to.active
		} else if from.active != to.active {
			m.state.active = op.was
		}
	} else if _, there := m.state.branches[m.state.active]; from.active != to.active && (!there || made == to.active && op.moved) {
		m.state.active, op.moved = to.active, true
	}
	if _, there := m.state.branches[m.state.active]; !there {
		info, err := m.c.Info(m.ctx())
		if err != nil {
			m.t.Fatal(err)
		}
		m.state.active = info.Active // any that is there will do
	}
}

// compare holds the store against the model.
func (m *model) compare() {
	m.t.Helper()
	infos, err := m.c.Branches(m.ctx())
	if err != nil {
		m.t.Fatal(err)
	}
	if len(infos) != len(m.state.branches) {
		m.t.Fatalf("%d branches, want %d", len(infos), len(m.state.branches))
	}
	for _, info := range infos {
		want, ok := m.state.branches[info.Name]
		if !ok {
			m.t.Fatalf("branch %q should not be there", info.Name)
		}
		snap := &Snapshot{ctx: m.c, Info: info}
		got, err := snap.IDs(m.ctx())
		if err != nil {
			m.t.Fatal(err)
		}
		if m.calls {
			got, want = m.rootsOf(got), m.rootsOf(want)
		}
		if !slices.Equal(got, want) {
			m.t.Fatalf("branch %q has %d messages, want %d, or others", info.Name, len(got), len(want))
		}
		if info.SystemText != m.state.system[info.Name] {
			m.t.Fatalf("branch %q has the system prompt %q, want %q", info.Name, info.SystemText, m.state.system[info.Name])
		}
	}
	info, err := m.c.Info(m.ctx())
	if err != nil {
		m.t.Fatal(err)
	}
	if info.Active != m.state.active || (m.state.title != "" && info.Title != m.state.title) {
		m.t.Fatalf("active %q, title %q; want %q, %q", info.Active, info.Title, m.state.active, m.state.title)
	}
	tags, err := m.c.Tags(m.ctx())
	if err != nil || !maps.Equal(tags, m.state.tags) {
		m.t.Fatalf("tags %v, want %v (%v)", tags, m.state.tags, err)
	}
}

func checkStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Check(context.Background(), true, func(p Problem) { t.Errorf("check: %d %s: %s", p.Invariant, p.Where, p.Text) }); err != nil {
		t.Errorf("check: %v", err)
	}
}

func (m *model) reopen() {
	if m.path == "" {
		return
	}
	if err := m.store.at.Close(); err != nil {
		m.t.Fatal(err)
	}
	var err error
	if m.store, err = Open(m.path, Options{}); err != nil {
		m.t.Fatal(err)
	}
	if m.c, err = m.store.Context(m.ctx(), m.c.ID.String()); err != nil {
		m.t.Fatal(err)
	}
}

func newModel(t *testing.T, seed int64, file bool) *model {
	m := &model{t: t, rng: rand.New(rand.NewSource(seed)), ids: map[string]string{}, from: map[string]string{}, roots: map[ID]ID{}, state: &state{branches: map[string][]ID{MainBranch: nil},
		system: map[string]string{}, active: MainBranch, tags: map[string]ID{}}}
	var err error
	if file {
		m.path = filepath.Join(t.TempDir(), "model.db")
		m.store, err = Open(m.path, Options{Create: true})
	} else {
		m.store, err = OpenMemory(Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if m.c, err = m.store.New(m.ctx(), NewContext{Title: "model"}); err != nil {
		t.Fatal(err)
	}
	m.state.title = "model"
	m.learnIDs()
	return m
}

// TestModel drives random operations, undo, redo and reopening against plain maps.
func TestModel(t *testing.T) {
	for seed := range int64(8) {
		file := seed%4 == 0
		t.Run(fmt.Sprintf("seed=%d/file=%t", seed, file), func(t *testing.T) {
			m := newModel(t, seed, file)
			for i := range *modelSteps {
				m.step()
				m.compare()
				if i%97 == 0 {
					m.reopen()
					m.compare()
				}
			}
			checkStore(t, m.store)
			if err := m.store.at.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestModelWithCalls does the same with calls that wait: a fork copies them, and none waits on two branches at once.
func TestModelWithCalls(t *testing.T) {
	for seed := range int64(6) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			m := newModel(t, 100+seed, false)
			m.calls = true
			for range *modelSteps / 4 {
				m.step()
				m.compare()
				m.alone()
				checkStore(t, m.store)
				if t.Failed() {
					t.FailNow()
				}
			}
			if m.open == 0 {
				t.Error("no call was ever open")
			}
		})
	}
}

// alone holds that a message with an open call is on one branch alone.
func (m *model) alone() {
	m.t.Helper()
	on := map[ID]string{}
	infos, err := m.c.Branches(m.ctx())
	if err != nil {
		m.t.Fatal(err)
	}
	for _, info := range infos {
		for e, err := range (&Snapshot{ctx: m.c, Info: info}).Entries(m.ctx(), 1, 0) {
			if err != nil {
				m.t.Fatal(err)
			}
			for i := range e.Calls {
				if e.Calls[i].Open() {
					m.open++
				}
				if e.Calls[i].Open() && on[e.ID] != "" && on[e.ID] != info.Name {
					m.t.Fatalf("message %s with an open call is on %q and %q", e.ID, on[e.ID], info.Name)
				}
			}
			on[e.ID] = info.Name
		}
	}
}
