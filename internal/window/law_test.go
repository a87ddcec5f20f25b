package window

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/enhancer"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

var markPattern = regexp.MustCompile(`mark\d+x`)

// lister is a model whose summaries are the marks of the messages that it is given.
type lister struct{}

func (lister) Complete(_ context.Context, p enhancer.Prompt) (*pool.Message, error) {
	_, messages, _ := strings.Cut(p.Text, "The messages to summarise:")
	return pool.NewText(pool.Assistant, strings.Join(markPattern.FindAllString(messages, -1), " ")), nil
}

// markedTalk is a conversation whose messages each have a mark of their own.
type markedTalk struct {
	*testing.T
	rng   *rand.Rand
	store *chatctx.Store
	c     *chatctx.ChatContext
	marks int
	done  []string
}

func (l *markedTalk) text() string {
	l.marks++
	return fmt.Sprintf("mark%dx %s", l.marks, strings.Repeat("and more words that nobody needs ", 5))
}

func (l *markedTalk) branches() (names []string) {
	all, err := l.c.Branches(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	for _, b := range all {
		names = append(names, b.Name)
	}
	return names
}

func (l *markedTalk) any() string { names := l.branches(); return names[l.rng.Intn(len(names))] }

// change does something on a branch, which the store may refuse.
func (l *markedTalk) change(name string, fill func(b *chatctx.Batch)) {
	b := l.c.Begin(name)
	fill(b)
	if _, err := b.Commit(l.Context()); err != nil && !errors.Is(err, chatctx.ErrConflict) && !errors.Is(err, chatctx.ErrNotFound) && !errors.Is(err, chatctx.ErrInvalid) {
		l.Fatal(l.done, err)
	}
}

// step does one of the commands that change a history, or what a request has of it.
func (l *markedTalk) step() {
	name := l.any()
	snap, err := l.c.Snapshot(l.Context(), name)
	if err != nil {
		l.Fatal(err)
	}
	at := func() record.Ref { return record.Ref(fmt.Sprintf("@%d", 1+l.rng.Intn(max(snap.Len(), 1)))) }
	other := l.any()
	there := func() record.Ref {
		return record.Ref(fmt.Sprintf("branch:%s@%d", other, 1+l.rng.Intn(max(snap.Len(), 1))))
	}
	user, assistant := pool.NewText(pool.User, l.text()), pool.NewText(pool.Assistant, l.text())
	ends := []int{1 + l.rng.Intn(snap.Len()+1), 1 + l.rng.Intn(snap.Len()+1)}
	slices.Sort(ends)
	o := DefaultOptions()
	o.Budget, o.CompactKeep, o.CompactMessages, o.CompactKeepMessages = 0, 0, 1, 1+l.rng.Intn(6)
	r := Request{Completer: lister{}, Model: "m", Limit: 1 << 30}
	steps := []struct {
		name string
		n    int
		do   func()
	}{
		{"append", 12, func() { l.change(name, func(b *chatctx.Batch) { b.Append(user, assistant) }) }},
		{"rewind", 2, func() { l.change(name, func(b *chatctx.Batch) { b.Rewind(at()) }) }},
		{"drop", 3, func() { l.change(name, func(b *chatctx.Batch) { b.Drop(at()) }) }},
		{"insert", 2, func() { l.change(name, func(b *chatctx.Batch) { b.Insert(at(), user) }) }},
		{"clear", 1, func() { l.change(name, func(b *chatctx.Batch) { b.Clear() }) }},
		{"interrupt", 1, func() {
			l.change(name, func(b *chatctx.Batch) { b.Append(user) })
			l.change(name, func(b *chatctx.Batch) { b.Interrupt(chatctx.InterruptOptions{Question: l.rng.Intn(2) == 0}) })
		}},
		{"take", 3, func() {
			l.change(name, func(b *chatctx.Batch) { b.Take(there(), record.TakeOptions{KeepRest: l.rng.Intn(2) == 0}) })
		}},
		{"retry", 3, func() { // another answer to a question, on a branch of its own, and back
			l.change(name, func(b *chatctx.Batch) {
				b.Fork(fmt.Sprintf("r%d", l.marks), chatctx.ForkOptions{At: at(), Stay: true})
			})
			l.change(fmt.Sprintf("r%d", l.marks), func(b *chatctx.Batch) { b.Append(assistant) })
		}},
		{"edit", 2, func() {
			l.change(name, func(b *chatctx.Batch) { b.Edit(at(), l.text(), record.EditOptions{KeepRest: l.rng.Intn(2) == 0}) })
		}},
		{"merge", 1, func() { l.change(name, func(b *chatctx.Batch) { b.Merge(other, chatctx.MergeOptions{}) }) }},
		{"pick", 1, func() {
			l.change(name, func(b *chatctx.Batch) { b.Pick(other, record.Ref(fmt.Sprintf("@%d", 1+l.rng.Intn(4)))) })
		}},
		{"mark", 3, func() {
			l.change(name, func(b *chatctx.Batch) { b.Mark(at(), []string{enhancer.Pinned, enhancer.Excluded, ""}[l.rng.Intn(3)]) })
		}},
		{"compact", 6, func() { r.Anew = l.rng.Intn(3) == 0; _, err = Compact(l.Context(), l.c, name, o, r) }},
		{"range", 4, func() { _, err = CompactStretch(l.Context(), l.c, name, o, r, ends[0], ends[1]) }},
		{"resume", 1, func() { o.DigestTokens = 1 << 20; _, err = Resume(l.Context(), l.c, name, o, "1") }},
		{"undo", 6, func() { _, err = l.store.Undo(l.Context(), l.c.ID.String(), name, "") }},
		{"redo", 4, func() { _, err = l.store.Redo(l.Context(), l.c.ID.String(), name) }},
	}
	n := 0
	for _, s := range steps {
		n += s.n
	}
	n = l.rng.Intn(n)
	for _, s := range steps {
		if n -= s.n; n < 0 {
			l.done = append(l.done, s.name+" "+name)
			s.do()
			return
		}
	}
}

// hold holds the request of each branch: it has the marks of all messages of the branch, its own or those of a summary, and no others. Excluded messages may be in a summary.
func (l *markedTalk) hold() {
	excluded, err := l.c.Marks(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	for _, name := range l.branches() {
		o := DefaultOptions()
		o.Budget = 0
		d, err := l.c.Draft(l.Context(), name)
		if err == nil {
			_, err = Standard(o, nil, nil).Run(l.Context(), d)
		}
		if err != nil {
			l.Fatal(l.done, err)
		}
		sent := map[string]int{}
		put := func(m *pool.Message) {
			for _, mark := range markPattern.FindAllString(m.Text(), -1) {
				sent[mark]++
			}
		}
		if d.Summary != nil {
			put(d.Summary.Message)
		}
		for _, m := range d.Messages {
			put(m.Message)
		}
		snap, err := l.c.Snapshot(l.Context(), name)
		if err != nil {
			l.Fatal(err)
		}
		held := map[string]bool{}
		for e, err := range snap.Entries(l.Context(), 1, 0) {
			if err != nil {
				l.Fatal(err)
			}
			for _, mark := range markPattern.FindAllString(e.Text(), -1) {
				held[mark] = true
				if sent[mark] == 0 && excluded[e.ID] != enhancer.Excluded {
					l.Fatalf("%q\nthe request of %s lacks %s, message %d of %d", l.done, name, mark, e.Position, snap.Len())
				}
			}
		}
		for mark := range sent {
			if !held[mark] {
				l.Fatalf("%q\nthe request of %s has %s, which it does not hold; %+v", l.done, name, mark, snap.Info.Sessions)
			}
		}
	}
}

// TestRequestHoldsTheBranch: whatever was done, the request of a branch has exactly what the branch holds: a summary stands only for messages that are on it, and
// what was taken off is in no request, no digest and no summary.
func TestRequestHoldsTheBranch(t *testing.T) {
	for seed := range testkit.Seeds(t, 40) {
		s, err := chatctx.OpenMemory(chatctx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.New(t.Context(), record.NewContext{})
		if err != nil {
			t.Fatal(err)
		}
		l := &markedTalk{T: t, rng: rand.New(rand.NewSource(int64(seed))), store: s, c: c}
		for range 60 {
			l.step()
			l.hold()
		}
		storetest.Close(t, s)
	}
}

// Name returns the lister's name, under which its answers are remembered.
func (lister) Name() string { return "lister" }
