package all_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/adapter"
	"github.com/chatctx/chatctx/adapter/adaptertest"
	_ "github.com/chatctx/chatctx/adapter/all"
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/pool"
)

// walk does random things to contexts with the store's own operations.
type walk struct {
	*rand.Rand
	t        *testing.T
	store    *chatctx.Store
	contexts []*chatctx.ChatContext
	c        *chatctx.ChatContext // the one of the current step
	replies  []*chatctx.Reply     // running replies
	claims   []*chatctx.CallClaim // of running calls
	seed     uint64
	n        int

	steps, refused, bodies map[string]int
}

func newWalk(t *testing.T, seed uint64) *walk {
	store, err := chatctx.OpenMemory(chatctx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	c, err := store.New(t.Context(), record.NewContext{Title: "walk", Messages: []*chatctx.Message{pool.NewText(pool.User, "begin")}})
	if err != nil {
		t.Fatal(err)
	}
	return &walk{Rand: rand.New(rand.NewPCG(seed, 3)), t: t, store: store, contexts: []*chatctx.ChatContext{c}, c: c, seed: seed,
		steps: map[string]int{}, refused: map[string]int{}, bodies: map[string]int{}}
}

func (w *walk) sum(steps, refused, bodies map[string]int) {
	for into, from := range map[*map[string]int]map[string]int{&steps: w.steps, &refused: w.refused, &bodies: w.bodies} {
		for k, n := range from {
			(*into)[k] += n
		}
	}
}

// place is the branch and message of a step.
type place struct {
	*chatctx.Batch
	branch string
	other  string // another branch, or the same if there is none
	ref    record.Ref
}

// changes are the steps that consist of one batch.
var changes = map[string]func(*walk, place){
	"fork": func(w *walk, p place) {
		p.Fork(fmt.Sprint("fork", w.n), chatctx.ForkOptions{At: p.ref, Stay: w.chance(2)})
	},
	"edit":      func(w *walk, p place) { p.Edit(p.ref, "edited", record.EditOptions{KeepRest: w.chance(2)}) },
	"rewind":    func(_ *walk, p place) { p.Rewind(p.ref) },
	"drop":      func(_ *walk, p place) { p.Drop(p.ref) },
	"pick":      func(_ *walk, p place) { p.Pick(p.other, p.ref) },
	"interrupt": func(w *walk, p place) { p.Interrupt(chatctx.InterruptOptions{Question: w.chance(2)}) },
	"insert":    func(w *walk, p place) { p.Insert(p.ref, w.messages()[:1]...) },
	"mark":      func(w *walk, p place) { p.Mark(p.ref, []string{"excluded", "pinned", ""}[w.IntN(3)]) },
	"merge":     func(_ *walk, p place) { p.Merge(p.other, chatctx.MergeOptions{}) },
	"merge summary": func(w *walk, p place) {
		summary := one(w, []string{"what was said there", "\u200b", "ends in space "})
		p.Merge(p.other, chatctx.MergeOptions{Summary: summary})
	},
	"compact": (*walk).compact,
	"decide":  (*walk).decide,
	"expire":  (*walk).expire,
}

// others are the steps that are no batch, or more than one.
var others = map[string]func(*walk, place) error{
	"append": func(w *walk, p place) error { w.append(p.branch); return nil },
	"undo": func(w *walk, p place) error {
		_, err := w.store.Undo(w.t.Context(), w.c.ID.String(), p.branch, "")
		_, _ = w.store.Restore(w.t.Context(), w.c.ID.String()) // the undone operation may be the creation of the context
		return err
	},
	"redo": func(w *walk, p place) error {
		_, err := w.store.Redo(w.t.Context(), w.c.ID.String(), p.branch)
		return ignore(err, chatctx.ErrNotFound)
	},
	"copy":   (*walk).copy,
	"import": (*walk).importTree,
	"ask":    (*walk).ask,
	"reply":  (*walk).reply,
	"settle": func(w *walk, p place) error {
		_, err := w.c.Settle(w.t.Context(), p.branch, chatctx.SettleOptions{Force: w.chance(2)})
		return err
	},
	"claim":   (*walk).claim,
	"resolve": (*walk).resolve,
}

func ignore(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

var kinds = slices.Sorted(maps.Keys(both()))

func both() map[string]bool {
	m := map[string]bool{}
	for k := range changes {
		m[k] = true
	}
	for k := range others {
		m[k] = true
	}
	return m
}

func (w *walk) chance(n int) bool { return w.IntN(n) == 0 }

func one[T any](w *walk, list []T) T { return list[w.IntN(len(list))] }

// take removes a random element from a list, if there is any.
func take[T any](w *walk, list *[]T) (v T, ok bool) {
	if len(*list) == 0 {
		return v, false
	}
	i := w.IntN(len(*list))
	v = (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return v, true
}

// step does one thing. A step that the store refuses (for an empty branch, or a decided call) changes nothing.
func (w *walk) step() {
	w.c = one(w, w.contexts)
	names := w.branches()
	i := w.IntN(len(names))
	p := place{branch: names[i], other: names[(i+1+w.IntN(2))%len(names)], ref: record.Ref(fmt.Sprint("@-", w.IntN(8)))}
	kind := one(w, kinds)
	if w.chance(3) {
		kind = "append"
	}
	if p.other == p.branch && strings.HasPrefix(kind, "merge") {
		kind = "fork"
	}
	w.count(kind)
	if do := others[kind]; do != nil {
		w.done(kind, do(w, p))
		return
	}
	p.Batch = w.c.Begin(p.branch)
	changes[kind](w, p)
	_, err := p.Commit(w.t.Context())
	w.done(kind, err)
}

func (w *walk) count(kind string) {
	w.n++
	w.steps[kind]++
}

func (w *walk) done(kind string, err error) {
	if err != nil {
		w.refused[kind]++
	}
}

func (w *walk) branches() []string {
	list, err := w.c.Branches(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, b := range list {
		names = append(names, b.Name)
	}
	return names
}

// append adds some messages, each by itself: the store refuses text that is not UTF-8, a call without a name …
func (w *walk) append(name string) {
	for _, m := range w.messages() {
		w.count("message")
		b := w.c.Begin(name)
		b.Append(m)
		_, err := b.Commit(w.t.Context())
		w.done("message", err)
	}
}

// messages returns some of a random draft's messages.
func (w *walk) messages() []*chatctx.Message {
	var list []*chatctx.Message
	w.n++
	for _, m := range adaptertest.Random(w.seed*1000+uint64(w.n), adapter.Anthropic, "claude-opus-4-6").Messages {
		if m.Message.ID = pool.NewID(); m.Role == "" {
			m.Role = pool.User
		}
		for i := range m.Content { // the store would refuse all because of one
			if p := &m.Content[i]; p.SHA256 != (pool.Hash{}) {
				*p = pool.Part{Type: pool.TextPart, Text: "was an artifact"}
			}
		}
		list = append(list, m.Message)
	}
	return list[:1+w.IntN(min(len(list), 4))]
}

// sound returns messages that the store accepts.
func (w *walk) sound() []*chatctx.Message {
	list := slices.DeleteFunc(w.messages(), func(m *chatctx.Message) bool { return m.Validate() != nil })
	return append(list, pool.NewText(one(w, []pool.Role{pool.User, pool.Assistant}), "sound"))
}

// compact opens a session somewhere on the branch, with a summary or without.
func (w *walk) compact(p place) {
	info, err := w.c.Branch(w.t.Context(), p.branch)
	if err != nil {
		w.t.Fatal(err)
	}
	s := branch.Session{ID: pool.NewID(), Start: 1 + w.IntN(info.Messages+1)}
	if s.Start > 1 {
		s.PrunedTo = w.IntN(s.Start)
	}
	if !w.chance(4) {
		summary := one(w, w.sound())
		p.PutLoose(summary)
		s.Summary = summary.ID
	}
	p.SetSessions(append(slices.Clone(info.Sessions), s))
}

// call returns an open call of the branch.
func (w *walk) call(p place) (*record.Call, bool) {
	calls, err := toolcall.OpenCalls(w.t.Context(), base.ContextOf(w.c.Store(), w.c.ID), p.branch)
	if err != nil {
		w.t.Fatal(err)
	}
	return take(w, &calls)
}

func callRef(c *record.Call) record.CallRef {
	return record.CallRef(fmt.Sprintf("%s:%d", c.Message, c.Index))
}

// decide approves, denies or cancels an open call, which may be far back.
func (w *walk) decide(p place) {
	c, ok := w.call(p)
	if !ok {
		return
	}
	p.Decide(callRef(c), one(w, []record.Verdict{{Status: pool.Approved}, {Status: pool.Approved, Arguments: json.RawMessage(`{"other":1}`)},
		{Status: pool.Denied, Reason: "so"}, {Status: pool.Denied, Reason: " \n"}, {Status: pool.Denied},
		{Status: pool.Denied, Kind: record.ByCancel, Reason: "no more"}}))
}

// expire lets an open call expire: the next program that looks at it denies it.
func (w *walk) expire(p place) {
	if c, ok := w.call(p); ok && c.Status == pool.Pending {
		p.ExpireCall(callRef(c), pool.Now()-1)
	}
}

// claim claims an approved call, to run it.
func (w *walk) claim(p place) error {
	calls, err := toolcall.OpenCalls(w.t.Context(), base.ContextOf(w.c.Store(), w.c.ID), p.branch)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range calls {
		if c.Status == pool.Approved && c.Execution == pool.NotRun {
			claim, err := w.store.ClaimCall(w.t.Context(), w.c.ID.String(), p.branch, callRef(c), record.ClaimOptions{})
			if err == nil {
				w.claims = append(w.claims, claim)
			}
			return err
		}
	}
	return nil
}

// resolve answers a running call, wherever its branch is by now, as a program or as a person.
func (w *walk) resolve(place) error {
	claim, ok := take(w, &w.claims)
	if !ok {
		return nil
	}
	_, err := claim.Resolve(w.t.Context(), record.CallAnswer{By: one(w, []string{"", "somebody"}), Kind: one(w, []string{"", "interrupted"}),
		Result: one(w, []pool.Result{{Text: "it is done"}, {Text: "it broke", IsError: true}, {JSON: json.RawMessage(`{"a":1}`)}, {},
			{Parts: []pool.Part{{Type: pool.TextPart, Text: "see"}, {Type: pool.ImagePart, MediaType: "image/png", Data: adaptertest.PNG(2, 2)}}}})})
	return err
}

// ask begins a reply. If one is running already, the messages are queued.
func (w *walk) ask(p place) error {
	begun, err := w.c.BeginReply(w.t.Context(), p.branch, chatctx.AppendOptions{}, w.sound()...)
	if err == nil && begun.Reply != nil {
		w.replies = append(w.replies, begun.Reply)
	}
	return err
}

// reply ends a reply, wherever its branch is by now, or stores what has arrived of it.
func (w *walk) reply(place) error {
	r, ok := take(w, &w.replies)
	if !ok {
		return nil
	}
	list := w.sound()
	if w.chance(3) {
		w.replies = append(w.replies, r)
		return ignore(r.Save(w.t.Context(), list[0]), chatctx.ErrStopped)
	}
	ended, err := r.Finish(w.t.Context(), chatctx.Ending{Messages: list, Stop: w.chance(3)})
	if err == nil && ended.Held {
		w.replies = append(w.replies, r)
	}
	return ignore(err, chatctx.ErrStopped)
}

// maxContexts limits the number of contexts of a walk.
const maxContexts = 4

func (w *walk) copy(place) error {
	if len(w.contexts) == maxContexts {
		return nil
	}
	c, err := w.store.Copy(w.t.Context(), w.c.ID.String(), "", false)
	if err == nil {
		w.contexts = append(w.contexts, c)
	}
	return err
}

// importTree imports a tree as another program's file may contain it: several roots, results before their calls or without them, branches that end anywhere.
func (w *walk) importTree(place) error {
	if len(w.contexts) == maxContexts {
		return nil
	}
	in := &record.Incoming{Format: "test", Conversation: fmt.Sprint(w.n), Title: "tree", System: one(w, []string{"", "be good", " "})}
	for len(in.Nodes) < 12 {
		for _, m := range w.sound() {
			in.Nodes = append(in.Nodes, record.Node{ID: fmt.Sprint(len(in.Nodes)), Parent: w.IntN(len(in.Nodes) + 1), Message: m})
		}
	}
	for i := range 1 + w.IntN(3) {
		in.Branches = append(in.Branches, record.IncomingBranch{Name: fmt.Sprint("b", i), Leaf: w.IntN(len(in.Nodes) + 1)})
	}
	made, err := w.store.Import(w.t.Context(), []*record.Incoming{in})
	if err != nil {
		return err
	}
	c, err := w.store.Context(w.t.Context(), made[0].Context.String())
	if err == nil {
		w.contexts = append(w.contexts, c)
	}
	return err
}

// judge makes and checks a body of each branch of the current context for each provider.
func (w *walk) judge() {
	for _, name := range w.branches() {
		for _, s := range subjects {
			model := s.models[w.n%len(s.models)]
			raw, err := w.body(name, s.provider, model)
			if errors.Is(err, chatctx.ErrEmpty) {
				continue
			}
			w.bodies[s.provider]++
			if err == nil {
				err = adaptertest.Validate(s.provider, model, raw)
			}
			if err != nil {
				w.t.Fatalf("seed %d, step %d, branch %s, %s: %v\n%s", w.seed, w.n, name, s.provider, err, raw)
			}
		}
	}
}

func (w *walk) body(branch, provider, model string) ([]byte, error) {
	d, err := w.c.Draft(context.WithoutCancel(w.t.Context()), branch)
	if err != nil {
		return nil, err
	}
	d.Settings = map[string]json.RawMessage{"model": json.RawMessage(`"` + model + `"`)}
	return adaptertest.Bytes(provider, d)
}
