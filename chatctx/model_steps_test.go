package chatctx_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// errSkip: the step makes no sense on what is there.
var errSkip = errors.New("skip")

// batch is a batch while it is made, with what it changes in the model.
type batch struct {
	*run
	*change
	b     *chatctx.Batch
	on    id          // the branch that it began on
	words []string    // what the steps are
	check []stepCheck // looks at what the steps made
	keyed bool
	// renamed: a step names branches otherwise, so that what a step made has another name in the end.
	renamed bool
}

// stepCheck says what is wrong with what a step made, by its place in the batch.
type stepCheck struct {
	at    int
	wrong func(*chatctx.Step) string
}

// made looks at what the step that was added last makes.
func (b *batch) made(wrong func(*chatctx.Step) string) {
	b.check = append(b.check, stepCheck{b.b.Len() - 1, wrong})
}

func (b *batch) say(format string, args ...any) {
	b.words = append(b.words, fmt.Sprintf(format, args...))
}

func (b *batch) state() *branchState { return b.branch(b.target) }

// crashed reports whether a program died while it answered on a branch, which a change of what stands there would settle first: overAnswer does that.
func (b *batch) crashed(on id) bool { return errors.As(b.stays(on), &unsettled{}) }

// steps are all there are, with their weights. A step gives the error that the store has to give.
var steps = []struct {
	weight int
	do     func(*batch) error
}{
	{14, (*batch).appendNew}, {3, (*batch).appendKnown}, {3, (*batch).appendResult}, {2, (*batch).appendKeyed}, {4, (*batch).insert}, {6, (*batch).fork}, {5, (*batch).edit},
	{4, (*batch).rewind}, {3, (*batch).drop}, {1, (*batch).clear}, {3, (*batch).pick}, {3, (*batch).merge}, {4, (*batch).takeAnswer}, {3, (*batch).switchTo},
	{4, (*batch).remove}, {5, (*batch).rename}, {2, (*batch).swap}, {2, (*batch).replace}, {2, (*batch).tag}, {1, (*batch).untag}, {2, (*batch).mark},
	{1, (*batch).title}, {2, (*batch).systemPrompt}, {1, (*batch).userPrompt}, {2, (*batch).setSettings}, {1, (*batch).contextData}, {1, (*batch).branchData},
	{2, (*batch).note}, {2, (*batch).setSessions}, {1, (*batch).setTokens}, {1, (*batch).loose}, {3, (*batch).decide}, {1, (*batch).expire}, {1, (*batch).expect},
}

// text gives new words; some have a word that the embedder's hook takes out.
func (r *run) text() string {
	r.words++
	if r.rng.Intn(8) == 0 {
		return fmt.Sprintf("hush %d", r.words)
	}
	return fmt.Sprintf("word %d", r.words)
}

// hushed is what the hook makes of a text.
func hushed(text string) string { return strings.ReplaceAll(text, "hush", "----") }

// fresh makes new messages with their models; some ask for tools, and some of those bring results.
func (r *run) fresh(n int) (msgs []*chatctx.Message, states []*message, calls map[callKey]callState) {
	calls = map[callKey]callState{}
	add := func(m *chatctx.Message, s *message) {
		m.ID = pool.NewID()
		s.id = m.ID
		msgs, states = append(msgs, m), append(states, s)
	}
	for range n {
		text := r.text()
		if r.rng.Intn(2) == 0 {
			add(pool.NewText(pool.User, text), &message{role: pool.User, text: hushed(text)})
			continue
		}
		m, s := pool.NewText(pool.Assistant, text), &message{role: pool.Assistant, text: hushed(text)}
		if s.thinks = r.rng.Intn(4) == 0; s.thinks {
			m.Content = append([]pool.Part{{Type: pool.ThinkingPart, Text: "hm", Provider: "p"}}, m.Content...)
		}
		add(m, s)
		var results []string
		for i := range max(0, r.rng.Intn(5)-2) {
			r.words++
			name := fmt.Sprintf("call_%d", r.words)
			m.Calls = append(m.Calls, pool.Call{ID: name, Tool: "look", Arguments: []byte(`{"at":1}`)})
			s.calls = append(s.calls, callName{name, "look"})
			calls[callKey{m.ID, i}] = waiting
			if r.rng.Intn(3) == 0 {
				results = append(results, name)
				calls[callKey{m.ID, i}] = callState{status: pool.Approved, execution: pool.Done, brought: pool.Pending}
			}
		}
		for _, name := range results {
			add(&chatctx.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: name, Text: "seen"}}, &message{role: pool.ToolRole, text: "seen", answers: name})
		}
	}
	return msgs, states, calls
}

func idsOf(states []*message) []id {
	out := make([]id, len(states))
	for i, s := range states {
		out[i] = s.id
	}
	return out
}

// storeFresh puts new messages into the model's pool.
func (t *change) storeFresh(states []*message, calls map[callKey]callState) []id {
	for _, s := range states {
		t.keep(s)
	}
	maps.Copy(t.calls, calls)
	return idsOf(states)
}

func (b *batch) appendNew() error {
	msgs, states, calls := b.fresh(1 + b.rng.Intn(3))
	b.say("append %d", len(msgs))
	b.b.Append(msgs...)
	at := len(b.state().list)
	added := b.storeFresh(states, calls)
	b.splice(b.target, at, 0, added...)
	b.made(func(s *chatctx.Step) string { return placed(s.Placed, at, added) })
	return nil
}

// placed says what is wrong with where messages were put.
func placed(got []record.Placement, at int, want []id) string {
	if len(got) != len(want) {
		return fmt.Sprintf("%d messages placed, want %d", len(got), len(want))
	}
	for i, p := range got {
		if p.Message != want[i] || p.Position != at+1+i {
			return fmt.Sprintf("message %d is %s at %d, want %s at %d", i, p.Message, p.Position, want[i], at+1+i)
		}
	}
	return ""
}

// anyStored is a message of the context that was stored before this batch.
func (b *batch) anyStored() *message {
	if len(b.c.all) == 0 {
		return nil
	}
	m := b.c.messages[b.c.all[b.rng.Intn(len(b.c.all))]]
	if m.gone {
		return nil
	}
	return m
}

// appendKnown appends a message whose id exists, with the same content or with other.
func (b *batch) appendKnown() error {
	m := b.anyStored()
	if m == nil || m.answers != "" || m.unfinished || b.message(m.id) != m {
		return errSkip
	}
	msg := pool.NewText(m.role, m.text)
	msg.ID, msg.Kind = m.id, m.kind
	if m.thinks {
		msg.Content = append([]pool.Part{{Type: pool.ThinkingPart, Text: "hm", Provider: "p"}}, msg.Content...)
	}
	for _, call := range m.calls {
		msg.Calls = append(msg.Calls, pool.Call{ID: call.id, Tool: call.tool, Arguments: []byte(`{"at":1}`)})
	}
	if b.rng.Intn(3) == 0 {
		b.say("append other content as %s", record.Short(m.id))
		msg.Content[len(msg.Content)-1].Text += "!"
		b.b.Append(msg)
		return chatctx.ErrConflict
	}
	b.say("append %s again", record.Short(m.id))
	b.b.Append(msg)
	if at := b.stands(b.state().list, m); at >= 0 {
		b.made(func(s *chatctx.Step) string {
			if len(s.Placed) != 1 || s.Placed[0].Position != at+1 || !s.Placed[0].Known {
				return fmt.Sprintf("a message that is there is placed at %v, want %d", s.Placed, at+1)
			}
			return ""
		})
		return nil
	}
	at := len(b.state().list)
	b.place(m)
	b.made(func(s *chatctx.Step) string {
		if len(s.Placed) != 1 || s.Placed[0].Position != at+1 {
			return fmt.Sprintf("a known message is placed at %v, want %d", s.Placed, at+1)
		}
		return ""
	})
	return nil
}

// stands is where a list holds a message, or the copy of it that a branch gets because calls of it wait; -1: nowhere.
func (t *change) stands(list []id, m *message) int {
	if at := slices.Index(list, m.id); at >= 0 || len(m.calls) == 0 {
		return at
	}
	return slices.IndexFunc(list, func(x id) bool { return t.message(x).from == m.id })
}

// place puts a stored message that the target does not hold at its end: as a fork would, or as it is where no branch holds it.
func (t *change) place(m *message) {
	list := []id{m.id}
	if len(t.holders(m.id)) > 0 {
		list = t.share(list, true)
	}
	t.splice(t.target, len(t.branch(t.target).list), 0, list...)
}

// appendKeyed appends once, whatever comes again.
func (b *batch) appendKeyed() error {
	if b.keyed {
		return errSkip
	}
	b.keyed = true
	key := fmt.Sprintf("key%d", b.rng.Intn(6))
	msgs, states, calls := b.fresh(1)
	b.say("append with %s", key)
	if known := b.knows(b.c, key); known != nil {
		if len(b.words) > 1 {
			return errSkip
		}
		if b.rng.Intn(2) == 0 {
			msgs = known.msgs
		}
		b.b.AppendWith(chatctx.AppendOptions{Key: key}, msgs...)
		if !known.same(b.target, b.state(), msgs) {
			return chatctx.ErrConflict
		}
		b.made(func(s *chatctx.Step) string {
			if !s.Again || len(s.Placed) != len(known.placed) || s.Placed[0].Message != known.placed[0] {
				return fmt.Sprintf("the key %s gave %v again=%t, want %v", key, s.Placed, s.Again, known.placed)
			}
			return ""
		})
		return errAgain
	}
	b.b.AppendWith(chatctx.AppendOptions{Key: key}, msgs...)
	added := b.storeFresh(states, calls)
	b.splice(b.target, len(b.state().list), 0, added...)
	b.keys[key] = &keyed{at: b.run.now, on: b.target, msgs: msgs, placed: added}
	return nil
}

// errAgain: the key of the batch is known, and nothing more of it is done.
var errAgain = errors.New("again")

// appendResult appends a tool's result for a call that waits on the branch.
func (b *batch) appendResult() error {
	list := b.state().list
	for i := len(list) - 1; i >= 0; i-- {
		m := b.message(list[i])
		for j := len(m.calls) - 1; j >= 0; j-- {
			k := callKey{m.id, j}
			if !b.call(k).open() || b.rng.Intn(2) == 0 || b.laterCall(list[i+1:], m.calls[j].id) {
				continue
			}
			failed := b.rng.Intn(3) == 0
			msg := &chatctx.Message{ID: pool.NewID(), Role: pool.ToolRole, Result: &pool.Result{RequestID: m.calls[j].id, Text: "late", IsError: failed}}
			b.say("append the result of %s", m.calls[j].id)
			b.b.Append(msg)
			said := &message{id: msg.ID, role: pool.ToolRole, text: "late", answers: m.calls[j].id, isError: failed}
			if b.call(k).execution == pool.Running && b.c.runs(k, b.run.now) {
				said.kind = pool.Late
			} else {
				s := callState{status: pool.Approved, execution: ended(failed), expires: b.call(k).expires}
				if b.call(k).execution == pool.NotRun {
					s.brought = b.call(k).status
					if was, there := b.c.calls[k]; there { // undo takes back what the batch decided first, too
						s.brought = was.status
					}
				}
				b.calls[k] = s
			}
			b.keep(said)
			b.splice(b.target, len(list), 0, msg.ID)
			return nil
		}
	}
	return errSkip
}

func (t *change) laterCall(after []id, call string) bool {
	return slices.ContainsFunc(after, func(m id) bool {
		return slices.ContainsFunc(t.message(m).calls, func(c callName) bool { return c.id == call })
	})
}

func ended(failed bool) pool.Execution {
	if failed {
		return pool.Failed
	}
	return pool.Done
}

// ref names the message at a place of the target, from 0.
func (b *batch) ref(at int) record.Ref {
	m := b.state().list[at]
	if b.c.messages[m] != nil && b.rng.Intn(2) == 0 {
		return record.RefTo(m)
	}
	if back := len(b.state().list) - 1 - at; back == 0 && b.rng.Intn(2) == 0 {
		return "@"
	} else if b.rng.Intn(3) == 0 {
		return record.Ref(fmt.Sprintf("@-%d", back))
	}
	return record.Ref(fmt.Sprintf("@%d", at+1))
}

// movable is somewhere for a step that changes what stands on the target.
func (b *batch) movable() (at int, ok bool) {
	at, ok = b.somewhere()
	return at, ok && !b.crashed(b.target)
}

// somewhere chooses a place on the target; ok is false where it is empty.
func (b *batch) somewhere() (at int, ok bool) {
	n := len(b.state().list)
	if n == 0 {
		return 0, false
	}
	return b.rng.Intn(n), true
}

func (b *batch) insert() error {
	at, ok := b.movable()
	if !ok {
		return errSkip
	}
	msgs, states, calls := b.fresh(1 + b.rng.Intn(2))
	b.say("insert %d before @%d", len(msgs), at+1)
	b.b.Insert(b.ref(at), msgs...)
	b.splice(b.target, at, 0, b.storeFresh(states, calls)...)
	return nil
}

// newName gives a name for a branch, sometimes one that is taken.
func (b *batch) newName() string { return fmt.Sprintf("b%d", b.rng.Intn(12)) }

func (b *batch) goTo(made id, stay bool) {
	if stay {
		b.onContext = true
	} else {
		b.active, b.target = made, made
	}
}

func (b *batch) fork() error {
	if len(b.there()) > 9 {
		return errSkip
	}
	name, stay, at := b.newName(), b.rng.Intn(2) == 0, record.Ref("")
	n := len(b.state().list)
	if i, ok := b.somewhere(); ok && b.rng.Intn(3) > 0 {
		n, at = i+1, b.ref(i)
	}
	b.say("fork %s at %d, stay %t", name, n, stay)
	b.b.Fork(name, chatctx.ForkOptions{At: at, Stay: stay})
	made, err := b.forkTo(name, n)
	if err == nil {
		b.goTo(made, stay)
	}
	return err
}

func (b *batch) forkTo(name string, n int) (id, error) {
	from := b.state()
	made, err := b.create(name, from)
	if err != nil {
		return made, err
	}
	b.from[made] = b.target
	b.splice(made, 0, 0, b.share(from.list[:n], true)...)
	s := b.change.edit(made)
	if s.sessions = from.sessions; n < len(from.list) {
		s.sessions = sessionsOn(from.list, from.list[:n], from.sessions, true)
	}
	return made, nil
}

// share gives what another branch gets to hold of a list: messages with calls that have no result there are copied, and wait again.
func (t *change) share(list []id, ending bool) []id {
	out := slices.Clone(list)
	must := map[int]bool{}
	for i, m := range out {
		for j := range t.message(m).calls {
			must[i] = must[i] || t.call(callKey{m, j}).open()
		}
	}
	if ending {
		answered := map[string]bool{}
		for i := len(out) - 1; i >= 0; i-- {
			m := t.message(out[i])
			if m.answers != "" {
				answered[m.answers] = answered[m.answers] || m.kind != pool.Late
				continue
			}
			for j, c := range m.calls {
				s := t.call(callKey{m.id, j})
				must[i] = must[i] || !answered[c.id] && s.status == pool.Approved && (s.execution == pool.Done || s.execution == pool.Failed)
			}
			break
		}
	}
	for i := range out {
		if must[i] {
			out[i] = t.duplicate(out[i], out[i+1:])
		}
	}
	return out
}

// duplicate stores a copy of a message; its calls wait again, but for those that were denied and those whose result is among the messages after it.
func (t *change) duplicate(of id, after []id) id {
	m := *t.message(of)
	m.note = t.ctx.note(&m)
	m.id, m.ours, m.from, m.sums = pool.NewID(), true, id{}, id{}
	for j, c := range m.calls {
		s := t.call(callKey{of, j})
		switch answer := t.answer(c.id, after); {
		case s.status == pool.Denied:
		case answer == nil:
			s = waiting
		case s.open():
			s = callState{status: pool.Approved, execution: ended(answer.isError)}
		}
		if s.expires = 0; s.open() {
			m.from = of
		}
		t.calls[callKey{m.id, j}] = s
	}
	t.keep(&m)
	return m.id
}

// answer is the result of a call among the messages after it, nil for none.
func (t *change) answer(call string, after []id) *message {
	for _, a := range after {
		m := t.message(a)
		if m.answers == call && m.kind != pool.Late {
			return m
		}
		if slices.ContainsFunc(m.calls, func(c callName) bool { return c.id == call }) {
			return nil
		}
	}
	return nil
}

func (b *batch) edit() error {
	at, ok := b.somewhere()
	if !ok || len(b.there()) > 9 {
		return errSkip
	}
	o := record.EditOptions{KeepRest: b.rng.Intn(2) == 0, Stay: b.rng.Intn(2) == 0}
	if b.rng.Intn(2) == 0 {
		o.Name = b.newName()
	}
	text := b.text()
	b.say("edit @%d as %q, rest %t, stay %t", at+1, o.Name, o.KeepRest, o.Stay)
	b.b.Edit(b.ref(at), text, o)
	name := o.Name
	if name == "" {
		name = b.numbered(b.state().name)
	}
	from := b.state()
	made, err := b.forkTo(name, at)
	if err != nil {
		return err
	}
	m := *b.message(from.list[at])
	m.note = b.ctx.note(&m)
	m.id, m.ours, m.from, m.sums, m.text, m.thinks = pool.NewID(), true, id{}, id{}, hushed(text), false
	b.keep(&m)
	for j := range m.calls {
		if s := b.call(callKey{from.list[at], j}); s.status != pool.Denied {
			b.calls[callKey{m.id, j}] = waiting
		} else {
			b.calls[callKey{m.id, j}] = callState{status: s.status, execution: s.execution}
		}
	}
	b.splice(made, at, 0, m.id)
	if o.KeepRest {
		b.splice(made, at+1, 0, b.share(from.list[at+1:], true)...)
	}
	n := len(b.branch(made).list)
	b.goTo(made, o.Stay)
	b.made(func(s *chatctx.Step) string {
		if s.Branch != name && !b.renamed || s.Messages != n {
			return fmt.Sprintf("edit made %q with %d messages, want %q with %d", s.Branch, s.Messages, name, n)
		}
		return ""
	})
	return nil
}

// numbered is the first of NAME.2, NAME.3 … that is free.
func (b *batch) numbered(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		name = name[:i]
	}
	for i := 2; ; i++ {
		next := fmt.Sprintf("%s.%d", name, i)
		if _, taken := b.named(next); !taken {
			return next
		}
	}
}

func (b *batch) rewind() error {
	at, ok := b.movable()
	if !ok {
		return errSkip
	}
	b.say("rewind to @%d", at+1)
	b.b.Rewind(b.ref(at))
	b.splice(b.target, at+1, len(b.state().list)-at-1)
	return nil
}

// withResults gives the places of messages with those of their calls' results.
func (t *change) withResults(list []id, places ...int) []int {
	set := map[int]bool{}
	for _, at := range places {
		set[at] = true
		waits := map[string]bool{}
		for _, c := range t.message(list[at]).calls {
			waits[c.id] = true
		}
		for i := at + 1; i < len(list) && len(waits) > 0; i++ {
			m := t.message(list[i])
			if m.answers != "" && waits[m.answers] {
				set[i] = true
				delete(waits, m.answers)
			}
			for _, c := range m.calls {
				delete(waits, c.id)
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func (b *batch) drop() error {
	at, ok := b.movable()
	if !ok {
		return errSkip
	}
	refs, places := []record.Ref{b.ref(at)}, []int{at}
	if other, _ := b.somewhere(); b.rng.Intn(3) == 0 {
		refs, places = append(refs, b.ref(other)), append(places, other)
	}
	b.say("drop %v", places)
	b.b.Drop(refs...)
	all := b.withResults(b.state().list, places...)
	for _, i := range slices.Backward(all) {
		b.splice(b.target, i, 1)
	}
	b.made(func(s *chatctx.Step) string {
		if s.Removed != len(all) {
			return fmt.Sprintf("drop removed %d, want %d", s.Removed, len(all))
		}
		return ""
	})
	return nil
}

func (b *batch) clear() error {
	if b.crashed(b.target) {
		return errSkip
	}
	b.say("clear")
	b.b.Clear()
	n := len(b.state().list)
	b.splice(b.target, 0, n)
	s := b.state().copy() // without messages that alone is no operation
	s.sessions, s.tokens = nil, -1
	b.branches[b.target] = s
	return nil
}

// other chooses a branch other than the target; ok is false where there is none.
func (b *batch) other() (o id, ok bool) {
	all := slices.DeleteFunc(b.there(), func(x id) bool { return x == b.target })
	if len(all) == 0 {
		return id{}, false
	}
	return all[b.rng.Intn(len(all))], true
}

// bring puts messages of another branch at a place of the target; those that it holds are copied.
func (b *batch) bring(at int, list []id) {
	held := map[id]bool{}
	for _, m := range b.state().list {
		held[m] = true
	}
	out := slices.Clone(list)
	for i, m := range out {
		if held[m] {
			out[i] = b.duplicate(m, out[i+1:])
		}
	}
	b.splice(b.target, at, 0, b.share(out, true)...)
}

// turnAt gives the places of the turn that stands at a place of a list: of its user's message, -1 for none, and after its last one.
func (t *change) turnAt(list []id, at int) (begins, ends int) {
	for begins = at; begins >= 0 && !t.message(list[begins]).turn(); {
		begins--
	}
	for ends = at + 1; ends < len(list) && !t.message(list[ends]).turn(); {
		ends++
	}
	return begins, ends
}

// takeAnswer puts an answer of another branch in the place of the target's own.
func (b *batch) takeAnswer() error {
	from, ok := b.other()
	if !ok || len(b.branch(from).list) == 0 || b.crashed(b.target) || len(b.there()) > 9 {
		return errSkip
	}
	src, o := b.branch(from).list, record.TakeOptions{KeepRest: b.rng.Intn(2) == 0}
	pos := b.rng.Intn(len(src))
	b.say("take @%d of %s, rest %t", pos+1, b.branch(from).name, o.KeepRest)
	b.b.Take(record.Ref(fmt.Sprintf("branch:%s@%d", b.branch(from).name, pos+1)), o)
	begins, ends := b.turnAt(src, pos)
	if begins < 0 || ends == begins+1 || b.stays(b.target) != nil {
		return chatctx.ErrConflict
	}
	was := b.state()
	at := b.stands(was.list, b.message(src[begins]))
	if at < 0 {
		return chatctx.ErrConflict
	}
	_, end := b.turnAt(was.list, at)
	at++
	answer := src[begins+1 : ends]
	if slices.Equal(answer, was.list[at:end]) {
		return nil
	}
	beside := ""
	if at < len(was.list) {
		var err error
		if beside, err = b.moveBeside(at, end, o.KeepRest); err != nil {
			return err
		}
	}
	b.bring(at, answer)
	b.made(func(s *chatctx.Step) string {
		if s.Beside != beside && !b.renamed || len(s.Placed) != len(answer) || s.Placed[0].Position != at+1 {
			return fmt.Sprintf("take made %q and placed %v, want %q and %d from position %d on", s.Beside, s.Placed, beside, len(answer), at+1)
		}
		return ""
	})
	return nil
}

// moveBeside takes what the target has from a place up to another, or with what follows, off to a new branch that goes on as the target did.
func (b *batch) moveBeside(at, end int, keepRest bool) (name string, err error) {
	was := b.state()
	if !keepRest {
		end = len(was.list)
	}
	b.splice(b.target, at, end-at)
	name = b.numbered(was.name)
	made, err := b.create(name, was)
	if err != nil {
		return name, err
	}
	b.from[made] = b.target
	b.splice(made, 0, 0, slices.Concat(b.share(was.list[:at], false), was.list[at:end], b.share(was.list[end:], true))...)
	b.change.edit(made).sessions = was.sessions
	return name, nil
}

func (b *batch) pick() error {
	from, ok := b.other()
	if !ok || len(b.branch(from).list) == 0 {
		return errSkip
	}
	src := b.branch(from).list
	at := b.rng.Intn(len(src))
	b.say("pick @%d of %s", at+1, b.branch(from).name)
	b.b.Pick(b.branch(from).name, record.Ref(fmt.Sprintf("@%d", at+1)))
	var list []id
	for _, i := range b.withResults(src, at) {
		list = append(list, src[i])
	}
	b.bring(len(b.state().list), list)
	return nil
}

func (b *batch) merge() error {
	from, ok := b.other()
	if !ok || len(b.state().list) > 60 {
		return errSkip
	}
	src, here, n := b.branch(from).list, b.state().list, 0
	for n < len(src) && n < len(here) && src[n] == here[n] {
		n++
	}
	news := b.lacking(src[n:], here[n:])
	if b.rng.Intn(2) == 0 {
		b.say("merge %s", b.branch(from).name)
		b.b.Merge(b.branch(from).name, chatctx.MergeOptions{})
		if len(news) > 0 {
			b.bring(len(b.state().list), news)
		}
		return nil
	}
	text := b.text()
	b.say("merge %s as a summary", b.branch(from).name)
	b.b.Merge(b.branch(from).name, chatctx.MergeOptions{Summary: text})
	if len(news) == 0 {
		return nil
	}
	head := src[len(src)-1]
	if b.message(head).kind == "summary" || !slices.ContainsFunc(here[n:], func(x id) bool { return b.message(x).sums == head }) {
		m := &message{id: pool.NewID(), ours: true, role: pool.User, kind: "summary", text: hushed(text), root: b.message(head).root, sums: head}
		b.keep(m)
		b.splice(b.target, len(here), 0, m.id)
	}
	return nil
}

// lacking are the messages of a stretch of another branch that are not here, neither themselves nor as copies with calls that waited; with these their results
// stay away.
func (t *change) lacking(there, here []id) (news []id) {
	copied := map[string]bool{}
	for _, x := range there {
		m := t.message(x)
		known := t.stands(here, m) >= 0
		if !slices.Contains(here, x) {
			for _, c := range m.calls {
				copied[c.id] = known
			}
		}
		if !known && !copied[m.answers] {
			news = append(news, x)
		}
	}
	return news
}

func (b *batch) switchTo() error {
	all := b.there()
	to := all[b.rng.Intn(len(all))]
	b.say("switch to %s", b.branch(to).name)
	b.b.Switch(b.branch(to).name)
	b.onContext = b.onContext || to != b.active
	b.active, b.target = to, to
	return nil
}

func (b *batch) remove() error {
	all := b.there()
	gone := all[b.rng.Intn(len(all))]
	if gone == b.target && gone != b.active || b.crashed(gone) {
		return errSkip
	}
	b.say("remove %s", b.branch(gone).name)
	b.b.RemoveBranch(b.branch(gone).name)
	if gone == b.active {
		return chatctx.ErrConflict
	}
	b.removeBranch(gone)
	return nil
}

// removeBranch takes a branch away; its record stays for as long as the operation, with what it needs.
func (t *change) removeBranch(gone id) {
	for _, x := range t.branch(gone).sessions {
		t.passed = append(t.passed, x.Summary)
	}
	if t.blocked == nil {
		t.blocked = t.stays(gone)
	}
	t.aside[gone] = t.branch(gone)
	t.branches[gone], t.touched[gone], t.onContext = nil, true, true
}

// renameTo is one rename.
func (b *batch) renameTo(old id, to string) error {
	b.say("rename %s to %s", b.branch(old).name, to)
	b.renamed = true
	b.b.RenameBranch(b.branch(old).name, to)
	if b.branch(old).name == to {
		return nil
	}
	if _, taken := b.named(to); taken {
		return chatctx.ErrConflict
	}
	b.change.edit(old).name = to
	b.onContext = true
	return nil
}

func (b *batch) rename() error {
	all := b.there()
	return b.renameTo(all[b.rng.Intn(len(all))], b.newName())
}

// swap gives two branches each other's names.
func (b *batch) swap() error {
	o, ok := b.other()
	if _, taken := b.named("aside"); !ok || taken {
		return errSkip
	}
	mine, theirs := b.state().name, b.branch(o).name
	return errors.Join(b.renameTo(b.target, "aside"), b.renameTo(o, mine), b.renameTo(b.target, theirs))
}

// replace removes a branch and gives its name to another, new or renamed.
func (b *batch) replace() error {
	gone, ok := b.other()
	if !ok || gone == b.active || len(b.there()) < 3 || b.stays(gone) != nil {
		return errSkip
	}
	name := b.branch(gone).name
	b.say("remove %s", name)
	b.b.RemoveBranch(name)
	b.removeBranch(gone)
	if b.rng.Intn(2) == 0 {
		return b.renameTo(b.target, name)
	}
	b.say("fork %s", name)
	b.b.Fork(name, chatctx.ForkOptions{Stay: true})
	_, err := b.forkTo(name, len(b.state().list))
	return err
}

// anywhere names a message on the target or elsewhere in the context.
func (b *batch) anywhere() (id, record.Ref, bool) {
	if b.rng.Intn(4) == 0 {
		if m := b.anyStored(); m != nil {
			return m.id, record.RefTo(m.id), true
		}
	}
	at, ok := b.somewhere()
	if !ok {
		return id{}, "", false
	}
	m := b.state().list[at]
	return m, b.ref(at), !b.message(m).ours
}

func (b *batch) tag() error {
	m, ref, ok := b.anywhere()
	if !ok {
		return errSkip
	}
	name := fmt.Sprintf("t%d", b.rng.Intn(6))
	b.say("tag %s", name)
	b.b.Tag(name, ref)
	if old, taken := b.ctx.tags[name]; taken {
		if old == m {
			return nil
		}
		return chatctx.ErrConflict
	}
	c := b.editContext()
	c.tags = maps.Clone(c.tags)
	c.tags[name] = m
	b.also[thing{name: "tag " + name}] = true
	return nil
}

func (b *batch) untag() error {
	name := fmt.Sprintf("t%d", b.rng.Intn(6))
	b.say("untag %s", name)
	b.b.Untag(name)
	if _, there := b.ctx.tags[name]; !there {
		return chatctx.ErrNotFound
	}
	c := b.editContext()
	c.tags = maps.Clone(c.tags)
	delete(c.tags, name)
	b.also[thing{name: "tag " + name}] = true
	return nil
}

func (b *batch) mark() error {
	m, ref, ok := b.anywhere()
	if !ok {
		return errSkip
	}
	mark := []string{"pinned", "excluded", ""}[b.rng.Intn(3)]
	b.say("mark %q", mark)
	b.b.Mark(ref, mark)
	if b.ctx.marks[m] == mark {
		return nil
	}
	c := b.editContext()
	c.marks = maps.Clone(c.marks)
	b.also[thing{name: "mark " + fmt.Sprint(m)}] = true
	if c.marks[m] = mark; mark == "" {
		delete(c.marks, m)
	}
	return nil
}

func (b *batch) title() error {
	text := b.text()
	b.say("title")
	b.b.SetTitle(text)
	ctx := b.editContext()
	ctx.title, ctx.renamed = hushed(text), ctx.renamed || ctx.title != hushed(text)
	return nil
}

// maybeText is a text, or nil to take one away.
func (b *batch) maybeText() (text, want string) {
	if b.rng.Intn(4) == 0 {
		return "", ""
	}
	text = b.text()
	return text, hushed(text)
}

func (b *batch) systemPrompt() error {
	text, want := b.maybeText()
	b.say("system prompt %q", want)
	b.b.SetSystem(text)
	if b.state().system != want {
		b.change.edit(b.target).system = want
	}
	return nil
}

func (b *batch) userPrompt() error {
	text, want := b.maybeText()
	b.say("user prompt %q", want)
	b.b.SetPrompt(text)
	if b.state().prompt != want {
		b.change.edit(b.target).prompt = want
	}
	return nil
}

// setting chooses a name and a value, "" to take it away.
func (b *batch) setting() (name, value string, raw json.RawMessage) {
	name = fmt.Sprintf("app.k%d", b.rng.Intn(3))
	if value = fmt.Sprintf("%d", b.rng.Intn(4)); value == "3" {
		return name, "", json.RawMessage("null")
	}
	return name, value, json.RawMessage(value)
}

// with gives a map with one value set, and whether that is a change.
func with(m map[string]string, name, value string) (map[string]string, bool) {
	if m[name] == value {
		return m, false
	}
	m = maps.Clone(m)
	if m == nil {
		m = map[string]string{}
	}
	if m[name] = value; value == "" {
		delete(m, name)
	}
	return m, true
}

func (b *batch) setSettings() error {
	name, value, raw := b.setting()
	onContext := b.rng.Intn(2) == 0
	b.say("setting %s=%q, context %t", name, value, onContext)
	set := map[string]json.RawMessage{name: raw}
	if onContext {
		b.b.SetContextSettings(set)
		if m, changed := with(b.ctx.settings, name, value); changed {
			b.editContext().settings = m
		}
		return nil
	}
	b.b.SetSettings(set)
	if m, changed := with(b.state().settings, name, value); changed {
		b.change.edit(b.target).settings = m
	}
	return nil
}

func (b *batch) contextData() error {
	name, value, raw := b.setting()
	b.say("context data %s=%q", name, value)
	b.b.SetContextData(name, raw)
	if m, changed := with(b.ctx.data, name, value); changed {
		b.editContext().data = m
	}
	return nil
}

func (b *batch) branchData() error {
	name, value, raw := b.setting()
	b.say("branch data %s=%q", name, value)
	b.b.SetBranchData(name, raw)
	if m, changed := with(b.state().data, name, value); changed {
		b.change.edit(b.target).data = m
	}
	return nil
}

// note sets a program's data on a message.
func (b *batch) note() error {
	m, ref, ok := b.anywhere()
	if !ok {
		return errSkip
	}
	value := fmt.Sprintf("%d", 1+b.rng.Intn(1000000))
	b.say("note %s", value)
	b.b.SetMessageData(ref, "n", json.RawMessage(value))
	c := b.editContext()
	c.notes = maps.Clone(c.notes)
	c.notes[m] = value
	b.also[thing{name: "note " + fmt.Sprint(m)}] = true
	return nil
}

// setSessions compacts the branch up to three times at once. Each summary has the words of the messages that it stands for, so that compareRequest can hold what
// a request has; it has no words of those that are pinned or excluded.
func (b *batch) setSessions() error {
	n := len(b.state().list)
	if n < 2 {
		return errSkip
	}
	made := []session{{ID: pool.NewID(), Start: 1, PrunedTo: b.rng.Intn(n)}}
	stored := []branch.Session{{ID: made[0].ID, Start: 1, PrunedTo: made[0].PrunedTo}}
	for start := 2 + b.rng.Intn(n-1); start <= n && len(made) < 4 && b.rng.Intn(3) > 0; start += 1 + b.rng.Intn(n) {
		text, apart := "", []int(nil)
		for i, m := range b.state().list[:start-1] {
			if b.ctx.marks[m] != "" {
				apart = append(apart, i+1)
				continue
			}
			text += b.message(m).text + "; "
		}
		s := session{ID: pool.NewID(), Start: start, Summary: b.putLoose(text), apart: fmt.Sprint(apart)}
		made = append(made, s)
		stored = append(stored, branch.Session{ID: s.ID, Start: start, Summary: s.Summary, Apart: apart})
	}
	b.say("sessions %d", len(made))
	b.b.SetSessions(stored)
	b.change.edit(b.target).sessions = made
	return nil
}

// compacting are the models whose replies bring compactions.
var compacting = [2]string{"one", "two"}

func (b *batch) putLoose(text string) id {
	m := pool.NewText(pool.User, text)
	m.Kind = "summary"
	b.b.PutLoose(m)
	b.keep(&message{id: m.ID, role: pool.User, kind: "summary", text: hushed(text)})
	return m.ID
}

func (b *batch) loose() error {
	b.say("loose")
	b.putLoose(b.text())
	return nil
}

func (b *batch) setTokens() error {
	n := b.rng.Int63n(1 << 40)
	b.say("tokens %d", n)
	b.b.SetTokens(branch.Tokens{Input: n})
	b.change.edit(b.target).tokens = n
	return nil
}

// expect makes the batch depend on a revision of the branch that it began on, sometimes on one that is past.
func (b *batch) expect() error {
	known := b.laws[b.on]
	if known == nil {
		return errSkip
	}
	at := known.revision
	if b.rng.Intn(2) == 0 && len(b.words) == 0 {
		b.say("expect %d", at)
		b.b.Expect(at)
		return nil
	}
	b.say("expect %d, which is wrong", at+7)
	b.b.Expect(at + 7)
	return chatctx.ErrConflict
}
