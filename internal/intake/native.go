package intake

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/pool"
)

// A context can leave a store and come into another one with its ids and everything but its journal: view.Stream reads it, NativeImport takes it in. Package
// exchange writes and reads the file in between.

// NativeFormat is the name of that format in reports.
const NativeFormat = "chatctx"

// What an export has of a context.
type (
	Native       = record.Native
	NativeBranch = record.NativeBranch
	NativeCall   = record.NativeCall
)

// NativeImport takes in one context. Call Branch, then Append and Again for its messages, then the same for the next branch; Loose, Tag and Mark may be
// called any time after that, and Finish at the end, or Drop to give it up. Until then an unfinished context lies in the trash, where it stays if the program
// ends; another import of it continues there. One goroutine uses a NativeImport.
//
// A context that the store has already gets what is new: messages, branches, the rest of branches. That is held in memory until Finish.
type NativeImport struct {
	Alone    bool // it names a parent that does not count, because no file brought both in
	copied   int  // messages of the file that got ids of their own, since another context has theirs
	run      *ImportRun
	context  Native
	rec      base.ContextRecord
	branches []*branch.Branch
	homes    map[pool.ID]pool.Home // of the stored messages
	sessions [][]branch.Session    // of each branch; written once their summaries are there
	from     []string              // of each branch; written once all branches are there
	sources  []nativeSource
	tags     map[string]pool.ID
	marks    map[pool.ID]string
	seen     map[pool.ID]bool    // the ids of the file's messages
	renamed  map[pool.ID]pool.ID // the ids here of the file's messages that got other ids
	changed  map[pool.ID]bool    // of those, by their ids here: the context has another message under the file's id
	more     *nativeMore         // if the store has the context
	wiped    bool                // the context was purged here
	out      map[pool.ID]bool    // messages of the file that were purged here
	kept     [][]bool            // of each branch: which of its messages in the file were not purged here
	revived  bool                // the context was purged here and is brought all the same
	back     int                 // messages that were purged or redacted here and are brought all the same
}

// nativeSource is the source from which a message was imported.
type nativeSource struct {
	format, conversation, node string
	known                      base.SourceNode
}

// Native begins to take in a context.
func (r *ImportRun) Native(ctx context.Context, n Native) (*NativeImport, error) {
	if n.ID == (pool.ID{}) {
		return nil, base.Invalidf("the conversation has no id")
	}
	if err := textsOf(r.store, &n); err != nil {
		return nil, err
	}
	labels, err := base.WithLabels(nil, n.Labels...)
	if err != nil {
		return nil, err
	}
	alone := r.bound(&n)
	i := &NativeImport{Alone: alone, run: r, context: n, homes: map[pool.ID]pool.Home{}, tags: map[string]pool.ID{}, marks: map[pool.ID]string{},
		seen: map[pool.ID]bool{}, out: map[pool.ID]bool{}, renamed: map[pool.ID]pool.ID{}, changed: map[pool.ID]bool{}}
	err = r.store.DB.View(ctx, func(tx kv.Tx) error {
		rec, _, err := base.GetContext(tx, n.ID)
		if err == nil {
			err = r.gone.read(tx)
		}
		if rec == nil && r.gone.id(n.ID) == base.GoneContext {
			i.wiped, i.revived = !r.Purged, r.Purged
		}
		if rec != nil {
			i.more = &nativeMore{Tree: NewTree(&record.Incoming{Format: NativeFormat}), late: map[pool.ID]bool{}}
		}
		if r.spans == nil && err == nil {
			r.spans, err = readSpans(tx)
		}
		return err
	})
	i.rec = base.ContextRecord{Title: n.Title, Derived: n.Derived, RenamedThere: n.Renamed, Parent: n.Parent, Settings: n.Settings, AppData: n.AppData,
		Labels: labels, Created: n.Created, NextOperation: 1, Task: n.Task, Gated: levelOf(n.Gated)}
	return i, err
}

// levelOf is the mark that a file's word for a level stands for: a conversation with an agent's calls has one wherever it goes.
func levelOf(word string) string {
	switch word {
	case "", record.LevelApart, record.LevelServed:
		return word
	}
	return record.LevelOwn
}

// textsOf passes the texts of a context through the embedder's hook.
func textsOf(s *base.Store, n *Native) error {
	if err := s.Title(&n.Title); err != nil {
		return err
	}
	n.Labels = reachable(n.Labels)
	if err := s.Values("setting", &n.Settings); err != nil {
		return err
	}
	n.Settings, _ = settings.Hold(n.Settings)
	if err := s.Values("data", &n.AppData); err != nil {
		return err
	}
	if n.Task == nil {
		return nil
	}
	task := *n.Task
	n.Task = &task
	if err := s.Texts("goal", &task.Goal); err != nil {
		return err
	}
	return s.Texts("reason", &task.Reason)
}

// textsOfCall passes the texts of a call's record through the embedder's hook.
func textsOfCall(s *base.Store, c *NativeCall) error {
	c.Decisions = slices.Clone(c.Decisions)
	reasons := []*string{&c.Reason}
	for i := range c.Decisions {
		reasons = append(reasons, &c.Decisions[i].Reason)
		if err := s.Value("arguments", &c.Decisions[i].Arguments); err != nil {
			return err
		}
		if runs := c.Decisions[i].Runs; runs != nil {
			for j := range runs.Command {
				reasons = append(reasons, &runs.Command[j])
			}
			reasons = append(reasons, &runs.URL, &runs.Dir)
		}
	}
	if err := s.Value("arguments", &c.Effective); err != nil {
		return err
	}
	return s.Texts("reason", reasons...)
}

// shared makes the number of shared messages of a branch one of those that were not purged here. It returns which of those in the file were not.
func (i *NativeImport) shared(n *NativeBranch) ([]bool, error) {
	if n.Shared <= 0 {
		return nil, nil
	}
	at := slices.IndexFunc(i.branches, func(b *branch.Branch) bool { return b.Name == n.Like })
	if at < 0 || len(i.kept[at]) < n.Shared {
		return nil, base.Invalidf("branch %q begins with %s of the branch %q, which has fewer", n.Name, plural.Count(n.Shared, "message"), n.Like)
	}
	kept := slices.Clone(i.kept[at][:n.Shared])
	n.Shared = 0
	for _, is := range kept {
		if is {
			n.Shared++
		}
	}
	return kept, nil
}

// leftOut returns those of the messages that were not purged here, with the calls of those, and hides the texts of those that were redacted and are not here.
func (i *NativeImport) leftOut(ctx context.Context, msgs []*pool.Message, calls []NativeCall) ([]*pool.Message, []NativeCall, error) {
	if len(i.run.gone.kinds) == 0 {
		return msgs, calls, nil
	}
	var left []*pool.Message
	err := i.run.store.DB.View(ctx, func(tx kv.Tx) error {
		left = nil
		for _, m := range msgs {
			kind, err := i.kind(tx, m)
			switch {
			case err != nil:
				return err
			case kind == base.GoneMessage:
				i.out[m.ID] = true
				continue
			case kind == base.GoneRedacted:
				m = hiddenMessage(m)
			}
			left = append(left, m)
		}
		return nil
	})
	calls = slices.DeleteFunc(slices.Clone(calls), func(c NativeCall) bool { return i.out[c.Message] })
	return left, calls, err
}

// kind returns the kind of the mark of a message or its original that the store does not have, 0 for none.
func (i *NativeImport) kind(tx kv.Tx, m *pool.Message) (int, error) {
	kind := i.run.gone.id(m.ID)
	if kind == 0 && m.CopiedFrom != nil {
		kind = i.run.gone.id(*m.CopiedFrom)
	}
	if kind == 0 {
		return 0, nil
	}
	has, err := poolstore.Has(tx, i.context.ID, m.ID)
	switch {
	case has || err != nil:
		return 0, err
	case i.run.Purged:
		i.back++
		return 0, nil
	}
	return kind, nil
}

// keep notes which messages of the branch that was begun last were not purged here.
func (i *NativeImport) keep(ids ...pool.ID) {
	last := len(i.kept) - 1
	for _, id := range ids {
		i.kept[last] = append(i.kept[last], !i.out[id])
	}
}

// Branch begins a branch.
func (i *NativeImport) Branch(ctx context.Context, n NativeBranch) error {
	if i.wiped {
		return nil
	}
	var err error
	if n.Name, err = branchstore.ImportedName(n.Name); err != nil {
		return err
	}
	n.Like, n.From = branchstore.Reachable(n.Like), branchstore.Reachable(n.From)
	if i.named(n.Name) != nil {
		return base.Invalidf("two branches are named %q", n.Name)
	}
	if err := branchTexts(i.run.store, &n.System, &n.Prompt, &n.Settings, &n.Sessions); err != nil {
		return err
	}
	if err := i.run.store.Values("data", &n.AppData); err != nil {
		return err
	}
	b := &branch.Branch{ID: n.ID, Name: n.Name, Settings: n.Settings, AppData: n.AppData, At: n.At,
		Created: n.Created, Tokens: n.Tokens}
	if b.ID == (pool.ID{}) {
		b.ID = pool.NewID()
	}
	if slices.ContainsFunc(i.branches, func(other *branch.Branch) bool { return other.ID == b.ID }) {
		return base.Invalidf("two branches have the id %s", b.ID)
	}
	shared, err := i.shared(&n)
	if err != nil {
		return err
	}
	if n.Shared > 0 && i.more == nil {
		b.Pieces = branchstore.Slice(i.named(n.Like).Pieces, 0, n.Shared)
	}
	i.kept = append(i.kept, shared)
	if i.more != nil {
		i.branches = append(i.branches, b)
		i.more.begin(n)
		return nil
	}
	err = i.write(ctx, b, func(t *journal.Txn, b *branch.Branch) (err error) {
		t.Rec.Branches++
		if b.System, err = t.PutPrompt(n.System); err != nil {
			return err
		}
		if b.Prompt, err = t.PutPrompt(n.Prompt); err != nil {
			return err
		}
		return branchstore.PutName(t.Tx, t.ID, b.Name, b.ID)
	})
	if err == nil {
		i.branches = append(i.branches, b)
		i.sessions = append(i.sessions, n.Sessions)
		i.from = append(i.from, n.From)
	}
	return err
}

// write changes the branch b in a transaction. Meanwhile the context lies in the trash, and its first branch is active.
func (i *NativeImport) write(ctx context.Context, b *branch.Branch, change func(*journal.Txn, *branch.Branch) error) error {
	var changed branch.Branch
	var rec base.ContextRecord
	err := i.run.store.Update(base.AsGate(ctx), func(tx kv.RwTx) error {
		changed, rec = *b, i.rec
		changed.Pieces = slices.Clone(b.Pieces)
		t := &journal.Txn{Tx: tx, Store: i.run.store, Now: i.run.store.Now(), ID: i.context.ID, Rec: &rec}
		if rec.Trashed != 0 {
			t.Was = rec // it was written before
		}
		if err := change(t, &changed); err != nil {
			return err
		}
		if err := branchstore.Put(tx, t.ID, &changed); err != nil {
			return err
		}
		if rec.Trashed == 0 {
			rec.Trashed, rec.Updated, rec.Active = max(t.Now, 1), max(i.context.Updated, 1), b.ID
			if err := tx.Put(base.RecentBucket, base.RecentKey(rec.ListedAt(), t.ID), []byte{}); err != nil {
				return err
			}
		}
		return t.PutRecord()
	})
	if err == nil {
		*b, i.rec = changed, rec
	}
	return err
}

// named returns the branch that the file names so, nil if it has not come.
func (i *NativeImport) named(name string) *branch.Branch {
	name = branchstore.Reachable(name)
	for _, b := range i.branches {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// Put takes records of the stream but its first, which Native takes. Messages that come in one call, with the states of their calls, are stored together; a
// message on no branch comes alone.
func (i *NativeImport) Put(ctx context.Context, run ...record.Streamed) error {
	var msgs []*pool.Message
	var calls []NativeCall
	for _, r := range run {
		var err error
		switch r := r.(type) {
		case *record.NativeMessage:
			msgs = append(msgs, r.Message)
		case *record.NativeCall:
			calls = append(calls, *r)
		case *record.NativeBranch:
			err = i.Branch(ctx, *r)
		case record.NativeAgain:
			err = i.Again(ctx, r)
		case *record.NativeTag:
			err = i.Tag(r.Name, r.Message)
		case *record.NativeMark:
			err = i.Mark(r.Message, r.Mark)
		}
		if err != nil {
			return err
		}
	}
	if len(msgs) == 0 {
		return nil
	}
	if first, is := run[0].(*record.NativeMessage); is && first.Loose {
		return i.Loose(ctx, first.Message, calls)
	}
	return i.Append(ctx, msgs, calls)
}

// Append adds messages, which must have ids, to the branch that was begun last, and the states of their calls.
func (i *NativeImport) Append(ctx context.Context, msgs []*pool.Message, calls []NativeCall) error {
	if i.wiped {
		i.erase(msgs)
		return nil
	}
	if len(i.branches) == 0 {
		return base.Invalidf("a message stands before the first branch")
	}
	ids := make([]pool.ID, len(msgs))
	for n, m := range msgs {
		ids[n] = m.ID
	}
	msgs, calls, err := i.leftOut(ctx, msgs, calls)
	if err != nil {
		return err
	}
	i.keep(ids...)
	if err := i.ready(msgs, calls); err != nil || len(msgs) == 0 {
		return err
	}
	if i.more != nil {
		i.more.calls = append(i.more.calls, calls...)
		return i.more.add(msgs)
	}
	err = i.write(ctx, i.branches[len(i.branches)-1], func(t *journal.Txn, b *branch.Branch) error {
		if err := i.settle(t.Tx, msgs, calls); err != nil {
			return err
		}
		t.Segment(b)
		items := make([]branchstore.Item, len(msgs))
		for n, m := range msgs {
			m.Home = pool.Home{Segment: b.Segment, Position: b.High + uint64(n)}
			items[n] = branchstore.ItemOf(m)
			if err := t.Store1(m); err != nil {
				return err
			}
		}
		p, err := t.Write(b, items)
		if err != nil {
			return err
		}
		b.Pieces = branchstore.Join(b.Pieces, p)
		if err := putNativeCalls(t, msgs, calls); err != nil {
			return err
		}
		return t.Show(b, []branch.Piece{p}, true)
	})
	if err != nil {
		return err
	}
	i.run.brought(i.context.ID, msgs)
	for _, m := range msgs {
		i.homes[m.ID] = m.Home
		if src := m.Source; src != nil && src.Conversation != "" {
			i.sources = append(i.sources, nativeSource{src.Format, src.Conversation, src.Node, sourceNode(i.context.ID, m.ID, poolstore.Words(m))})
		}
	}
	return nil
}

// putNativeCalls writes the states of calls of messages that were just stored. An open call of which the file says no more waits like any other.
func putNativeCalls(t *journal.Txn, msgs []*pool.Message, calls []NativeCall) error {
	byID := make(map[pool.ID]*pool.Message, len(msgs))
	for _, m := range msgs {
		byID[m.ID] = m
	}
	told := map[string]bool{}
	for _, c := range calls {
		m := byID[c.Message]
		if m == nil {
			return base.Invalidf("the call %q belongs to message %s, which does not come before it", c.CallID, c.Message)
		}
		if c.Index < 0 || c.Index >= len(m.Calls) {
			return base.Invalidf("message %s has no call %d", c.Message, c.Index+1)
		}
		home, call := m.Home, &m.Calls[c.Index]
		rec := &record.CallRecord{CallID: call.ID, Tool: call.Tool, Status: c.Status, Execution: c.Execution, Reason: c.Reason, Since: c.Since,
			Home: home, Effective: c.Effective, Expires: c.Expires, Decisions: c.Decisions, Program: t.Store.Program, Origin: "import"}
		told[string(base.CallKey(t.ID, c.Message, c.Index))] = true
		if err := t.PutCall(c.Message, c.Index, rec); err != nil {
			return err
		}
	}
	for _, m := range msgs {
		for n := range m.Calls {
			c := &m.Calls[n]
			if !c.Open() || told[string(base.CallKey(t.ID, m.ID, n))] {
				continue
			}
			if has, err := t.Tx.Get(base.CallBucket, base.CallKey(t.ID, m.ID, n)); err != nil || has != nil {
				if err != nil {
					return err
				}
				continue
			}
			rec := &record.CallRecord{CallID: c.ID, Tool: c.Tool, Status: c.Status, Execution: c.Execution, Since: t.Now, Home: m.Home,
				Program: t.Store.Program, Origin: "import"}
			if err := t.PutCall(m.ID, n, rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// ready prepares messages and the states of calls.
func (i *NativeImport) ready(msgs []*pool.Message, calls []NativeCall) error {
	for n := range calls {
		if err := textsOfCall(i.run.store, &calls[n]); err != nil {
			return err
		}
		undecided(&calls[n], i.run.store.Now(), i.run.store.Program)
	}
	for _, m := range msgs {
		if m.ID == (pool.ID{}) {
			return base.Invalidf("a message has no id")
		}
		if i.seen[m.ID] {
			return base.Invalidf("message %s is appended twice", m.ID)
		}
		i.seen[m.ID] = true
		if err := i.run.store.Message(m); err != nil {
			return err
		}
		if err := m.Validate(); err != nil {
			return err
		}
		undecidedIn(m)
	}
	return nil
}

// Again adds messages that were added before, by their ids, to the branch that was begun last.
func (i *NativeImport) Again(ctx context.Context, ids []pool.ID) error {
	if i.wiped {
		return nil
	}
	if len(i.branches) > 0 {
		i.keep(ids...)
		ids = slices.DeleteFunc(slices.Clone(ids), func(id pool.ID) bool { return i.out[id] })
	}
	if i.more != nil {
		return i.more.again(ids)
	}
	if len(i.branches) == 0 {
		return base.Invalidf("a message stands before the first branch")
	}
	return i.write(ctx, i.branches[len(i.branches)-1], func(_ *journal.Txn, b *branch.Branch) error {
		for _, id := range ids {
			h, ok := i.homes[i.to(id)]
			if !ok || h.Segment == 0 {
				return base.Invalidf("message %s is named before it comes", id)
			}
			b.Pieces = branchstore.Join(b.Pieces, branch.Piece{Segment: h.Segment, From: h.Position, To: h.Position + 1})
		}
		return nil
	})
}

// Loose adds a message that no branch holds, such as a session's summary or a tagged message, and the states of its calls.
func (i *NativeImport) Loose(ctx context.Context, m *pool.Message, calls []NativeCall) error {
	if i.wiped {
		i.erase([]*pool.Message{m})
		return nil
	}
	msgs, calls, err := i.leftOut(ctx, []*pool.Message{m}, calls)
	if err != nil || len(msgs) == 0 {
		return err
	}
	m = msgs[0]
	if err := i.ready(msgs, calls); err != nil {
		return err
	}
	if len(i.branches) == 0 {
		return base.Invalidf("a message stands before the first branch")
	}
	if i.more != nil {
		i.more.In.Loose = append(i.more.In.Loose, m)
		i.more.calls = append(i.more.calls, calls...)
		return nil
	}
	err = i.write(ctx, i.branches[len(i.branches)-1], func(t *journal.Txn, _ *branch.Branch) error {
		if err := i.settle(t.Tx, msgs, calls); err != nil {
			return err
		}
		if err := t.Store1(m); err != nil {
			return err
		}
		return putNativeCalls(t, msgs, calls)
	})
	if err == nil {
		i.run.brought(i.context.ID, msgs)
		i.homes[m.ID] = pool.Home{}
	}
	return err
}

// erase counts messages of a context that was purged here.
func (i *NativeImport) erase(msgs []*pool.Message) {
	for _, m := range msgs {
		i.out[m.ID] = true
	}
}

// Tag names a message. If the message does not come before Finish, the name has no effect.
func (i *NativeImport) Tag(name string, message pool.ID) error {
	name, err := branchstore.ImportedName(name)
	if err != nil {
		return err
	}
	i.tags[name] = message
	return nil
}

// Mark marks a message pinned or excluded. If the message does not come before Finish, the mark has no effect.
func (i *NativeImport) Mark(message pool.ID, mark string) error {
	if err := base.CheckMark(mark); err != nil || mark == "" {
		return err
	}
	i.marks[message] = mark
	return nil
}

// resolve removes what refers to messages that did not come.
func (i *NativeImport) resolve() {
	i.cutSessions()
	maps.DeleteFunc(i.tags, func(_ string, id pool.ID) bool { return !i.seen[id] })
	maps.DeleteFunc(i.marks, func(id pool.ID, _ string) bool { return !i.seen[id] })
	all := i.sessions
	if i.more != nil {
		for n := range i.more.In.Branches {
			all = append(all, i.more.In.Branches[n].Sessions)
		}
	}
	for _, sessions := range all {
		for n := range sessions {
			if !i.seen[sessions[n].Summary] {
				sessions[n].Summary = pool.ID{}
			}
		}
	}
}

// cutSessions leaves out the sessions that may say what a message said that was purged here.
func (i *NativeImport) cutSessions() {
	for n, kept := range i.kept {
		first := slices.Index(kept, false)
		if i.more != nil {
			b := &i.more.In.Branches[n]
			b.Sessions = sessionsBefore(b.Sessions, first)
			continue
		}
		i.sessions[n] = sessionsBefore(i.sessions[n], first)
	}
}

// Drop gives the import up. Nothing of a new context stays; one that the store had already is as it was.
func (i *NativeImport) Drop(ctx context.Context) error {
	if i.more != nil || i.wiped || i.rec.Trashed == 0 {
		return nil
	}
	return i.run.store.Update(base.AsGate(ctx), func(tx kv.RwTx) error {
		rec, _, err := base.GetContext(tx, i.context.ID)
		if err != nil || rec == nil || rec.Trashed != i.rec.Trashed || rec.StoreLast != 0 { // another program has it now
			return err
		}
		return i.run.remove(i.run.store, tx, i.context.ID, rec)
	})
}

// Finish makes the context visible, as one operation.
func (i *NativeImport) Finish(ctx context.Context) (record.Imported, error) {
	if i.wiped {
		return record.Imported{Title: i.context.Title, Purged: len(i.out), Wiped: true}, nil
	}
	i.resolve()
	if len(i.branches) == 0 || i.named(i.context.Active) == nil {
		return record.Imported{}, base.Invalidf("conversation %q has no branch %q, which should be its active one", i.context.Title, i.context.Active)
	}
	var res record.Imported
	task, below := i.context.Task, true
	err := i.run.update(ctx, func(st *journal.StoreTxn) (err error) {
		if i.more == nil {
			res, err = i.finishNew(st)
			return err
		}
		if res, err = i.finishMore(ctx, st); err != nil {
			return err
		}
		rec, _, err := base.GetContext(st.Tx, i.context.ID)
		if err == nil {
			task = rec.Task
			below, err = cameIn(st.Tx, i.context.ID, rec)
		}
		return err
	})
	if err == nil && i.more != nil {
		i.run.brought(i.context.ID, slices.Concat(slices.Collect(maps.Values(i.more.known)), i.more.In.Loose))
	}
	res.Purged, res.Copied = len(i.out), i.copied
	if i.revived {
		i.back = len(i.seen)
	}
	if i.back > 0 {
		noteImported(&res, "it has again what was purged here: %s", plural.Count(i.back, "message"))
	}
	if err == nil && below {
		i.run.remember(i.context.ID, i.more == nil, task, i.renamed)
	}
	return res, err
}

func (i *NativeImport) finishNew(st *journal.StoreTxn) (record.Imported, error) {
	id, rec := i.context.ID, i.rec
	t := &journal.Txn{Tx: st.Tx, Store: st.Store, Now: max(i.context.Updated, 1), Dated: max(i.context.Updated, 1), ID: id, Rec: &rec, Branches: map[pool.ID]*journal.Loaded{}}
	for n := range i.branches {
		b := *i.branches[n]
		b.At, b.Sessions = i.to(b.At), i.sessions[n]
		i.sessionsTo(b.Sessions)
		if from := i.named(i.from[n]); from != nil {
			b.From = from.ID
		}
		if err := branchstore.Put(t.Tx, id, &b); err != nil {
			return record.Imported{}, err
		}
	}
	if err := i.putNames(t, i.tags, i.marks); err != nil {
		return record.Imported{}, err
	}
	if err := i.putSources(st); err != nil {
		return record.Imported{}, err
	}
	if err := t.Tx.Delete(base.RecentBucket, base.RecentKey(rec.ListedAt(), id)); err != nil {
		return record.Imported{}, err
	}
	if rec.Gated != "" {
		if err := base.MarkGated(st.Tx, st.Now, "", ""); err != nil {
			return record.Imported{}, err
		}
	}
	rec.Active, rec.Trashed, rec.Updated = i.named(i.context.Active).ID, 0, 0
	if err := st.Made(t, false); err != nil {
		return record.Imported{}, err
	}
	return record.Imported{Context: id, Title: rec.Title, Created: true, Messages: int(rec.Messages), Branches: len(i.branches),
		NewBranches: len(i.branches)}, nil
}

// putSources records the conversations that the context was made of as known, so that importing them again adds only what is new. It leaves records about
// other contexts alone.
func (i *NativeImport) putSources(st *journal.StoreTxn) error {
	ours := map[[2]string]bool{}
	for _, s := range i.sources {
		conversation := [2]string{s.format, s.conversation}
		mine, seen := ours[conversation]
		if !seen {
			key := base.SourceKey(s.format, s.conversation, "")
			old, err := st.Tx.Get(base.SourceBucket, key)
			if err != nil {
				return err
			}
			if mine = old == nil; mine {
				st.Changes = append(st.Changes, base.Change{Kind: base.RecordChange, Bucket: base.SourceBucket, Key: key})
				if err := base.PutRecord(st.Tx, base.SourceBucket, key, base.SourceRecord{Context: i.context.ID}); err != nil {
					return err
				}
				if err := adopt(st, record.SourceLink{Format: s.format, Conversation: s.conversation}, i.context.ID); err != nil {
					return err
				}
			}
			ours[conversation] = mine
		}
		if !mine || s.node == "" {
			continue
		}
		if err := st.Tx.Put(base.SourceBucket, base.SourceKey(s.format, s.conversation, s.node), s.known.Value()); err != nil {
			return err
		}
	}
	return nil
}

// putNames writes the tags and marks that the context does not have yet. A tag whose name belongs to another message here gets a number.
func (i *NativeImport) putNames(t *journal.Txn, tags map[string]pool.ID, marks map[pool.ID]string) error {
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		id, free := i.to(tags[name]), name
		for n := 2; ; n++ {
			was, err := i.putName(t, base.TagBucket, []byte(free), id[:])
			if err != nil {
				return err
			}
			if bytes.Equal(was, id[:]) {
				break
			}
			free = fmt.Sprintf("%s.%d", name, n)
		}
	}
	for id, mark := range marks {
		id = i.to(id)
		if _, err := i.putName(t, base.MarkBucket, id[:], []byte(mark)); err != nil {
			return err
		}
	}
	return nil
}

// putName writes a record if its key is free, and returns the value that the key has then.
func (i *NativeImport) putName(t *journal.Txn, bucket string, key, value []byte) ([]byte, error) {
	key = base.Under(t.ID, key...)
	old, err := t.Tx.Get(bucket, key)
	if err != nil || old != nil {
		return old, err
	}
	t.OnContext = true
	return value, t.PutRaw(bucket, key, value)
}

// nativeMore collects the file's state of a context that the store already has, as a tree.
type nativeMore struct {
	*Tree
	calls []NativeCall     // the states of calls in the file
	other []record.Untaken // what is beside the words of known messages
	late  map[pool.ID]bool // results that go to no model, as holdResults found in this or an earlier run of the transaction
}

// finishMore adds to the context what is new.
func (i *NativeImport) finishMore(ctx context.Context, st *journal.StoreTxn) (record.Imported, error) {
	res := record.Imported{Context: i.context.ID}
	t, err := journal.BeginAt(st.Store, st.Tx, i.context.ID)
	if err != nil {
		return res, err
	}
	t.What = "import"
	if err := base.MayDecide(ctx, st.Tx, st.Store, "another store's word on an agent's calls cannot be brought here", i.context.ID); err != nil {
		return res, err
	}
	if t.Rec.Gated == "" && i.rec.Gated != "" {
		t.Rec.Gated = i.rec.Gated
		err = base.MarkGated(st.Tx, t.Now, "", "")
	}
	if err != nil {
		return res, err
	}
	res.Title, res.Branches = t.Rec.Title, int(t.Rec.Branches)
	if err := i.settleMore(t.Tx); err != nil {
		return res, err
	}
	g, err := i.grafting(t)
	if err != nil {
		return res, err
	}
	for _, is := range i.changed {
		if is {
			res.Changed++
		}
	}
	if err := i.knownByID(g, &res); err != nil {
		return res, err
	}
	if t.Rec.Trashed != 0 {
		if back, err := g.comesBack(st, &res); err != nil || !back {
			return res, err
		}
	}
	if err := i.findUnheld(g); err != nil {
		return res, err
	}
	i.retell(t, &res)
	for _, u := range i.more.other {
		noteUntaken(&res, u.Message, "", u.What)
	}
	if err := g.extend(&res); err != nil {
		return res, err
	}
	for _, m := range i.more.In.Loose {
		if g.skipped[m.ID] && g.stored[m.ID] == (pool.ID{}) {
			noteUntaken(&res, m.CopiedFrom.String(), "", "text")
		}
	}
	if err := i.putMoreCalls(g, &res); err != nil {
		return res, err
	}
	if err := cmp.Or(i.keepReturned(g), i.putMoreNames(g, &res)); err != nil {
		return res, err
	}
	res.Branches = int(t.Rec.Branches)
	t.OnContext = t.OnContext || res.Messages > 0 || res.NewBranches > 0 // so that undo finds it on any branch
	done, err := t.Finish()
	if err == nil {
		res.Operation = done.Operation
	}
	return res, err
}

// grafting returns the graft of the file's tree into the context.
func (i *NativeImport) grafting(t *journal.Txn) (*graft, error) {
	g := &graft{t: t, in: &Incoming{Incoming: *i.more.In}, home: make([]pool.Home, len(i.more.In.Nodes)), twins: map[pool.ID][]int{}, stored: map[pool.ID]pool.ID{},
		skipped: map[pool.ID]bool{}, changed: map[int]bool{}, brought: map[pool.ID]bool{}, erased: map[pool.ID]bool{}, late: i.more.late}
	for n := range g.in.Nodes {
		id := g.in.Nodes[n].Message.ID
		g.twins[id] = append(g.twins[id], n)
	}
	for n := range g.in.Nodes {
		g.changed[n] = i.changed[g.in.Nodes[n].Message.ID]
	}
	for n := range g.in.Branches {
		id := g.in.Branches[n].ID
		if i.run.Purged || i.run.gone.id(id) != base.GoneBranch {
			continue
		}
		l, err := t.Load(id)
		if err != nil {
			return nil, err
		}
		g.erased[id] = l == nil
	}
	return g, nil
}

// settleMore calls settle for everything that was collected.
func (i *NativeImport) settleMore(tx kv.Tx) error {
	msgs := slices.Concat(slices.Collect(maps.Values(i.more.known)), i.more.In.Loose)
	if err := i.settle(tx, msgs, i.more.calls); err != nil {
		return err
	}
	for n := range i.more.In.Branches {
		b := &i.more.In.Branches[n]
		b.At = i.to(b.At)
		i.sessionsTo(b.Sessions)
	}
	i.more.known = map[pool.ID]*pool.Message{}
	for _, node := range i.more.In.Nodes {
		i.more.known[node.Message.ID] = node.Message
	}
	return nil
}

// putMoreCalls records what the file says of the calls of new messages, as said by the file. What it says of other calls has no effect, and is reported.
func (i *NativeImport) putMoreCalls(g *graft, res *record.Imported) error {
	t := g.t
	for n := range i.more.calls {
		c := i.more.calls[n]
		if !g.brought[c.Message] {
			what, err := besideCall(t, &c)
			if err != nil {
				return err
			}
			noteUntaken(res, c.Message.String(), "", what...)
			continue
		}
		m, err := poolstore.Get(t.Tx, t.ID, c.Message)
		if err != nil {
			return err
		}
		if m == nil {
			continue
		}
		if err := putNativeCalls(t, []*pool.Message{m}, []NativeCall{c}); err != nil {
			return err
		}
	}
	return nil
}

// knownByID finds the messages that the context has already.
func (i *NativeImport) knownByID(g *graft, res *record.Imported) error {
	held := map[pool.ID]bool{} // by branches that were not purged here
	for n := range g.in.Branches {
		if b := &g.in.Branches[n]; !g.erased[b.ID] {
			for _, node := range g.path(b.Leaf) {
				held[g.in.Nodes[node].Message.ID] = true
			}
		}
	}
	for id := range held {
		has, err := poolstore.Has(g.t.Tx, g.t.ID, id)
		if err != nil {
			return err
		}
		if has {
			res.Known++
		} else {
			res.Messages++
			g.brought[id] = true
		}
	}
	for n := range g.in.Nodes {
		m, err := g.t.Stored(g.in.Nodes[n].Message)
		if err != nil {
			return err
		}
		if m != nil {
			g.home[n], g.in.Nodes[n].Message = m.Home, m
		}
	}
	for _, m := range g.in.Loose {
		was, err := g.t.Stored(m)
		if err != nil {
			return err
		}
		if was != nil {
			res.Known++
			continue
		}
		if i.changed[m.ID] && !i.referred(m.ID) { // stored with a session that refers to it, if one does
			g.skipped[m.ID] = true
			res.Known++
			continue
		}
		res.Messages++
		g.brought[m.ID] = true
		if err := g.t.KeepNew(m); err != nil {
			return err
		}
	}
	return nil
}

// referred reports whether a tag or mark of the file names a message, by its id here.
func (i *NativeImport) referred(id pool.ID) bool {
	for _, of := range i.tags {
		if i.to(of) == id {
			return true
		}
	}
	for of := range i.marks {
		if i.to(of) == id {
			return true
		}
	}
	return false
}

// findUnheld finds the tagged and marked messages that no branch here holds: what the file says of those counts.
func (i *NativeImport) findUnheld(g *graft) error {
	g.unheld = map[pool.ID]bool{}
	for _, of := range slices.Concat(slices.Collect(maps.Values(i.tags)), slices.Collect(maps.Keys(i.marks))) {
		id := i.to(of)
		m := i.more.known[id]
		if m == nil || g.brought[id] {
			continue
		}
		holders, err := g.t.Holders(m.Home)
		if err != nil {
			return err
		}
		g.unheld[id] = len(holders) == 0
	}
	return nil
}

// keepReturned takes out of the messages that no branch held those that the import did not bring back: somebody took them off here, and they stay as they are.
func (i *NativeImport) keepReturned(g *graft) error {
	loose := map[pool.ID]bool{}
	for _, m := range i.more.In.Loose {
		loose[i.to(m.ID)] = true
	}
	for id, unheld := range g.unheld {
		if !unheld || loose[id] {
			continue
		}
		holders, err := g.t.Holders(i.more.known[id].Home)
		if err != nil {
			return err
		}
		g.unheld[id] = len(holders) > 0
	}
	return nil
}

// putMoreNames writes the tags and marks of messages that came with the file. What it has of messages that are here stays as it is here, and is reported.
func (i *NativeImport) putMoreNames(g *graft, res *record.Imported) error {
	here := func(of pool.ID, what, bucket string, key, value []byte) error {
		has, err := g.t.Tx.Get(bucket, base.Under(g.t.ID, key...))
		if err == nil && !bytes.Equal(has, value) {
			noteUntaken(res, of.String(), "", what)
		}
		return err
	}
	tags, marks := map[string]pool.ID{}, map[pool.ID]string{}
	for _, name := range slices.Sorted(maps.Keys(i.tags)) {
		of := i.tags[name]
		if id := i.to(of); g.brought[id] || g.unheld[id] {
			tags[name] = of
		} else if err := here(of, fmt.Sprintf("tag %q", name), base.TagBucket, []byte(name), id[:]); err != nil {
			return err
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(i.marks), compareIDs) {
		mark := i.marks[of]
		if id := i.to(of); g.brought[id] || g.unheld[id] {
			marks[of] = mark
		} else if err := here(of, fmt.Sprintf("mark %q", mark), base.MarkBucket, id[:], []byte(mark)); err != nil {
			return err
		}
	}
	return i.putNames(g.t, tags, marks)
}

// retell makes the title follow the file, unless somebody gave one here or the file is older than what is here. It reports what else the file says of the
// context otherwise than here.
func (i *NativeImport) retell(t *journal.Txn, res *record.Imported) {
	n, rec := &i.context, t.Rec
	t.Dated = min(max(n.Updated, rec.Updated), t.Now) // so that a later file is later, whenever this one comes
	switch {
	case n.Title == "" || n.Title == rec.Title || strings.Contains(rec.Title, base.RedactedMark):
	case !rec.Renamed && n.Updated >= rec.Updated && (rec.Derived || !n.Derived):
		noteImported(res, "its title follows the file; it was %q", rec.Title)
		rec.Title, rec.Derived, rec.RenamedThere, t.OnContext = n.Title, n.Derived, n.Renamed, true
		res.Title = n.Title
	default:
		noteUntaken(res, "", "", "title")
	}
	for _, l := range i.rec.Labels {
		if !slices.Contains(rec.Labels, l) {
			noteUntaken(res, "", "", fmt.Sprintf("label %q", l))
		}
	}
	noteUntaken(res, "", "", unlikeValues("setting", n.Settings, rec.Settings)...)
	noteUntaken(res, "", "", unlikeValues("app data", n.AppData, rec.AppData)...)
}

// knownContext returns the context that a conversation became, the zero id if there is none.
func knownContext(tx kv.Tx, in *Incoming) (pool.ID, error) {
	var src base.SourceRecord
	if in.Format == NativeFormat {
		var err error
		if src.Context, err = uuid.Parse(in.Conversation); err != nil {
			return pool.ID{}, nil
		}
	} else if in.Conversation == "" {
		return pool.ID{}, nil
	} else if _, err := base.GetRecord(tx, base.SourceBucket, base.SourceKey(in.Format, in.Conversation, ""), &src); err != nil {
		return pool.ID{}, err
	}
	rec, _, err := base.GetContext(tx, src.Context)
	if rec == nil {
		return pool.ID{}, err
	}
	return src.Context, nil
}
