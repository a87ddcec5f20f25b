package journal_test

import (
	"encoding/json"
	"flag"
	"testing"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

var update = flag.Bool("update", false, "write the golden files anew")

type step = storetest.Step

var batch = storetest.Batch

func asked(text string) *pool.Message    { return pool.NewText(pool.User, text) }
func answered(text string) *pool.Message { return pool.NewText(pool.Assistant, text) }

// calling is an answer with calls.
func calling(ids ...string) *pool.Message {
	m := &pool.Message{Role: pool.Assistant}
	for _, id := range ids {
		m.Calls = append(m.Calls, pool.Call{ID: id, Tool: "t", Arguments: []byte(`{"a":1}`)})
	}
	return m
}

func result(of, text string) *pool.Message {
	return &pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: of, Tool: "t", Text: text}}
}

// begin makes the first conversation.
func begin(messages ...*pool.Message) step {
	return step{What: "new", Do: func(s *storetest.Scene) (_ any, err error) {
		s.C, err = s.Store.New(s.T.Context(), record.NewContext{Title: "T", System: "be short", Messages: messages})
		return nil, err
	}}
}

func undo(op string) step {
	return step{What: "undo " + op, Do: func(s *storetest.Scene) (any, error) { return s.Store.Undo(s.T.Context(), s.C.ID.String(), "", op) }}
}

func undoOn(name string) step {
	return step{What: "undo on " + name, Do: func(s *storetest.Scene) (any, error) { return s.C.Undo(s.T.Context(), name) }}
}

var redo = step{What: "redo", Do: func(s *storetest.Scene) (any, error) { return s.Store.Redo(s.T.Context(), s.C.ID.String(), "") }}

// journalOf lists the operations, of the conversation and of the store.
var journalOf = step{What: "journal", Do: func(s *storetest.Scene) (any, error) {
	var all []*record.Operation
	for op, err := range s.Store.Operations(s.T.Context(), s.C.ID.String()) {
		if err != nil {
			return nil, err
		}
		all = append(all, op)
	}
	return all, nil
}}

// does is a step of its own.
func does(what string, do func(s *storetest.Scene) (any, error)) step {
	return step{What: what, Do: do}
}

func appending(on string, messages ...*pool.Message) step {
	return batch("append", on, func(b *chatctx.Batch) { b.Append(messages...) })
}

func fork(name, at string) step {
	return batch("fork "+name, "main", func(b *chatctx.Batch) { b.Fork(name, chatctx.ForkOptions{At: record.Ref(at), Stay: true}) })
}

func set(name, value string) map[string]json.RawMessage {
	return map[string]json.RawMessage{name: json.RawMessage(value)}
}

var threeTurns = []*pool.Message{asked("one"), answered("a"), asked("two"), answered("b"), asked("three"), answered("c")}

func turns() []*pool.Message {
	out := make([]*pool.Message, len(threeTurns))
	for i, m := range threeTurns {
		out[i] = pool.NewText(m.Role, m.Text())
	}
	return out
}

func stories() []storetest.Story {
	return []storetest.Story{
		{What: "appends are undone and redone one by one", Steps: []step{begin(turns()...), appending("main", asked("four"), answered("d")), appending("main", asked("five")),
			undo(""), undo(""), undo(""), redo, redo, redo, journalOf, undo(""), appending("main", asked("other")), redo, undo("1"), undo("99"), undo("x")}},
		{What: "an append by a key", Steps: []step{begin(), keyed("k", "one"), keyed("k", "one"), keyed("k", "two"), fork("side", "@1"), keyedOn("side", "k", "one"), keyed("l", "two"), undo(""), keyed("l", "two"), later(23 * time.Hour), keyed("k", "one"), later(2 * time.Hour), keyed("k", "one")}},
		{What: "an append that expects a revision", Steps: []step{begin(turns()...), expecting(0), expecting(1), expecting(2), expecting(1)}},
		{What: "ids that are known", Steps: []step{begin(turns()...), again("main", 2, ""), again("main", 2, "otherwise"), fork("side", "@2"), again("side", 4, ""), again("side", 4, "otherwise")}},
		{What: "histories cut and put in order", Steps: []step{begin(turns()...), history("insert", func(b *chatctx.Batch) { b.Insert("@3", asked("between")) }),
			history("drop", func(b *chatctx.Batch) { b.Drop("@2", "@5") }), history("rewind", func(b *chatctx.Batch) { b.Rewind("@-2") }), undo(""), history("clear", func(b *chatctx.Batch) { b.Clear() }),
			history("clear of nothing", func(b *chatctx.Batch) { b.Clear() }), undo(""), undo(""), undo(""), undo(""), redo, redo, redo, redo, redo, history("rewind too far", func(b *chatctx.Batch) { b.Rewind("@-9") })}},
		{What: "several steps are one operation", Steps: []step{begin(turns()...), batch("three steps", "main", func(b *chatctx.Batch) {
			b.Append(asked("four"))
			b.Fork("side", chatctx.ForkOptions{})
			b.Rewind("@-2")
			b.SetTitle("other")
		}), journalOf, undo(""), redo, batch("a step that fails", "main", func(b *chatctx.Batch) {
			b.Append(asked("never"))
			b.Drop("@99")
		})}},
		{What: "interrupted turns", Steps: []step{begin(turns()...), appending("main", asked("q"), calling("c1")), history("interrupt", func(b *chatctx.Batch) { b.Interrupt(chatctx.InterruptOptions{}) }), undo(""),
			history("interrupt with the question", func(b *chatctx.Batch) { b.Interrupt(chatctx.InterruptOptions{Question: true}) }), history("nothing to interrupt", func(b *chatctx.Batch) { b.Interrupt(chatctx.InterruptOptions{}) })}},
		{What: "branches are forked, renamed, removed and restored", Steps: []step{begin(turns()...), fork("side", "@4"), fork("side", "@2"), fork("../x", ""), appending("side", asked("on side")),
			batch("rename", "main", func(b *chatctx.Batch) { b.RenameBranch("side", "other") }), batch("remove", "main", func(b *chatctx.Batch) { b.RemoveBranch("other") }),
			appending("other", asked("x")), undo(""), undo(""), redo, redo, batch("remove the active one", "main", func(b *chatctx.Batch) { b.RemoveBranch("main") }),
			batch("restore", "main", func(b *chatctx.Batch) { b.RestoreBranch("other", "") }), batch("restore what is there", "main", func(b *chatctx.Batch) { b.RestoreBranch("other", "") }),
			fork("third", ""), batch("swap", "main", func(b *chatctx.Batch) {
				b.RenameBranch("third", "tmp")
				b.RenameBranch("other", "third")
				b.RenameBranch("tmp", "other")
			}), undo(""), journalOf}},
		{What: "the active branch", Steps: []step{begin(turns()...), batch("fork and go", "main", func(b *chatctx.Batch) { b.Fork("side", chatctx.ForkOptions{At: "@2"}) }),
			batch("switch", "", func(b *chatctx.Batch) { b.Switch("main") }), batch("switch to what is there", "", func(b *chatctx.Batch) { b.Switch("main") }), batch("switch nowhere", "", func(b *chatctx.Batch) { b.Switch("none") }),
			undo(""), undo(""), redo, undoOn("main"), undoOn("none")}},
		{What: "an edit", Steps: []step{begin(turns()...), batch("edit", "main", func(b *chatctx.Batch) { b.Edit("@3", "two, otherwise", record.EditOptions{}) }),
			batch("edit with the rest", "main", func(b *chatctx.Batch) {
				b.Edit("@3", "two again", record.EditOptions{Name: "whole", KeepRest: true})
			}), undo(""), undo(""), redo}},
		{What: "picks and merges", Steps: []step{begin(turns()...), fork("side", "@2"), appending("side", asked("s1"), answered("s2"), asked("s3")),
			batch("pick", "main", func(b *chatctx.Batch) { b.Pick("side", "@3", "@4") }), batch("merge", "main", func(b *chatctx.Batch) { b.Merge("side", chatctx.MergeOptions{}) }),
			batch("merge again", "main", func(b *chatctx.Batch) { b.Merge("side", chatctx.MergeOptions{}) }), batch("merge as a summary", "main", func(b *chatctx.Batch) { b.Merge("side", chatctx.MergeOptions{Summary: "in short"}) }),
			undo(""), undo(""), undo(""), undo(""), redo, redo}},
		{What: "take", Steps: []step{begin(turns()...), fork("side", "@3"), appending("side", answered("better"), calling("w")), batch("take", "main", func(b *chatctx.Batch) { b.Take("a1", record.TakeOptions{}) }), undo(""), redo, undo(""),
			takeFrom("main", "side", 4, record.TakeOptions{}), undo(""), takeFrom("main", "side", 4, record.TakeOptions{KeepRest: true}), undo(""), redo, takeFrom("main", "main", 2, record.TakeOptions{})}},
	}
}

func TestChanges(t *testing.T) {
	storetest.Tell(t, "testdata/changes.txt", *update, func() chatctx.Options { return chatctx.Options{Judge: approval.Rules{}} }, append(stories(), moreStories()...))
}

func history(what string, do func(b *chatctx.Batch)) step { return batch(what, "main", do) }

func keyed(key, text string) step { return keyedOn("main", key, text) }

func keyedOn(on, key, text string) step {
	return batch("append by the key "+key, on, func(b *chatctx.Batch) { b.AppendWith(chatctx.AppendOptions{Key: key}, asked(text)) })
}

func later(d time.Duration) step {
	return does("later", func(s *storetest.Scene) (any, error) {
		s.Now = s.Now.Add(d)
		return nil, nil
	})
}

func expecting(revision uint64) step {
	return batch("append at a revision", "main", func(b *chatctx.Batch) { b.AppendWith(chatctx.AppendOptions{Expect: &revision}, asked("x")) })
}

// again appends a message of main once more, with its id.
func again(on string, position int, text string) step {
	return does("append what is here", func(s *storetest.Scene) (any, error) {
		snap, err := s.C.Snapshot(s.T.Context(), "main")
		s.Must(err)
		page, err := snap.Page(s.T.Context(), position, position)
		s.Must(err)
		m := pool.NewText(page[0].Role, page[0].Text()+text)
		m.ID = page[0].ID
		return s.C.Append(s.T.Context(), on, m)
	})
}

func session(start int) branch.Session { return branch.Session{Start: start} }
