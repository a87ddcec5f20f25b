package journal_test

import (
	"strings"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/pool"
)

// moreStories are of what is beside histories.
func moreStories() []storetest.Story {
	return append(storiesOfCalls(), []storetest.Story{
		{What: "titles, labels, tags and marks", Steps: []step{begin(turns()...), one("title", func(b *chatctx.Batch) { b.SetTitle("other") }), one("the same title", func(b *chatctx.Batch) { b.SetTitle("other") }),
			one("label", func(b *chatctx.Batch) { b.Label("work"); b.Label("home") }), one("unlabel", func(b *chatctx.Batch) { b.Unlabel("work") }),
			one("tag", func(b *chatctx.Batch) { b.Tag("best", "@2") }), one("tag another", func(b *chatctx.Batch) { b.Tag("best", "@4") }), one("mark", func(b *chatctx.Batch) { b.Mark("@1", "pinned"); b.Mark("@2", "excluded") }),
			one("no mark", func(b *chatctx.Batch) { b.Mark("@1", "") }), one("untag", func(b *chatctx.Batch) { b.Untag("best") }), one("untag nothing", func(b *chatctx.Batch) { b.Untag("none") }),
			undo("2"), undo("4"), undo("5"), undo("6"), undo("7"), undo("8"), undo("9"), journalOf, redo, redo, redo}},
		{What: "what several operations changed", Steps: []step{begin(turns()...), one("title", func(b *chatctx.Batch) { b.SetTitle("two") }), one("title again", func(b *chatctx.Batch) { b.SetTitle("three") }),
			one("a setting", func(b *chatctx.Batch) { b.SetSettings(set("model", `"m-1"`)) }), undo("2"), undo("3"), undo("2"), journalOf, redo, redo, redo}},
		{What: "prompts and settings", Steps: []step{begin(turns()...), one("system", func(b *chatctx.Batch) { b.SetSystem("be long") }), one("prompt", func(b *chatctx.Batch) { b.SetPrompt("say") }),
			one("no system", func(b *chatctx.Batch) { b.SetSystem("") }), one("settings", func(b *chatctx.Batch) { b.SetSettings(set("model", `"m-1"`)); b.SetSettings(set("temperature", `0.5`)) }),
			one("settings of the conversation", func(b *chatctx.Batch) { b.SetContextSettings(set("model", `"m-2"`)) }), one("an address", func(b *chatctx.Batch) { b.SetSettings(set("base_url", `"http://a"`)) }),
			one("a key", func(b *chatctx.Batch) { b.SetSettings(set("key_env", `"K"`)) }), one("a setting less", func(b *chatctx.Batch) { b.SetSettings(set("model", "null")) }), one("a wrong one", func(b *chatctx.Batch) { b.SetSettings(set("temperature", `"x"`)) }),
			undo("7"), undo("5"), undo(""), undo(""), undo(""), redo, redo, fork("side", "@2"),
			does("settings of the store", func(s *storetest.Scene) (any, error) {
				return s.Store.SetSettings(s.T.Context(), set("model", `"m-3"`))
			}), undo(""), redo}},
		{What: "data of programs", Steps: []step{begin(turns()...), one("of the conversation", func(b *chatctx.Batch) {
			b.SetContextData("app", []byte(`{"x":1}`))
			b.SetContextData("other", []byte(`2`))
		}),
			one("of the branch", func(b *chatctx.Batch) { b.SetBranchData("app", []byte(`[1]`)) }), one("of a message", func(b *chatctx.Batch) { b.SetMessageData("@2", "app", []byte(`true`)) }),
			one("none", func(b *chatctx.Batch) { b.SetContextData("app", nil) }), one("tokens", func(b *chatctx.Batch) { b.SetTokens(branch.Tokens{}) }), undo("2"), undo(""), undo(""), undo(""), redo}},
		{What: "sessions", Steps: []step{begin(turns()...), compacted, one("a message before", func(b *chatctx.Batch) { b.Insert("@2", asked("early")) }), one("a message less", func(b *chatctx.Batch) { b.Drop("@1") }),
			fork("side", "@2"), fork("late", ""), one("cut", func(b *chatctx.Batch) { b.Rewind("@2") }), undo(""), undo(""), one("no sessions", func(b *chatctx.Batch) { b.SetSessions(nil) }), undo(""), redo,
			one("sessions that are none", func(b *chatctx.Batch) { b.SetSessions([]branch.Session{session(3), session(2)}) })}},
		{What: "rules and tools", Steps: []step{begin(turns()...), one("rules", func(b *chatctx.Batch) {
			b.AddRule(record.Rule{Effect: record.Ask, Tool: "a", Reason: "r"}, record.RuleScope{})
			b.AddRule(record.Rule{Effect: record.Deny, Tool: "b"}, record.RuleScope{Branch: true})
		}), fork("side", "@2"), one("a tool", func(b *chatctx.Batch) { b.PutTool(record.Tool{Name: "mine", Command: []string{"cat"}}) }),
			one("another tool", func(b *chatctx.Batch) { b.PutTool(record.Tool{Name: "mine", Command: []string{"dog"}}) }), one("no tool", func(b *chatctx.Batch) { b.RemoveTool("mine") }), one("no such tool", func(b *chatctx.Batch) { b.RemoveTool("mine") }),
			undo(""), undo(""), undo(""), undo("2"), redo,
			does("a rule of the store", func(s *storetest.Scene) (any, error) {
				return s.Store.AddRule(s.T.Context(), record.Rule{Effect: record.Ask, Tool: "w*"})
			}), undo(""), redo}},
		{What: "conversations", Steps: []step{begin(turns()...), newContext("Second"), use("T"), use("Second"), trash("T"), appending("main", asked("in the trash")), restore("T"), undo("s1"), undo(""), undo(""), redo, trash("T", "Second"), undo(""), undo("s9"),
			does("copy", func(s *storetest.Scene) (any, error) {
				_, err := s.Store.Copy(s.T.Context(), "T", "Copy", true)
				return nil, err
			}), journalOf, undo("")}},
		{What: "what another command did between", Steps: []step{begin(turns()...), together("main", "four", "side"), appending("main", asked("between")), undo(""), undo(""), redo, redo, journalOf}},
		{What: "questions and answers", Steps: []step{begin(), send("q1"), save("half"), appending("main", asked("meanwhile")), history("drop below an answer", func(b *chatctx.Batch) { b.Drop("@1") }), undo(""), one("remove it", func(b *chatctx.Batch) { b.RemoveBranch("main") }),
			send("waits"), finish("a1", false), finish("a1", true), undo(""), redo, send("q2"), save("half of it"), later(base.ClaimLife * 2), settle, undo(""), undo(""), journalOf}},
		{What: "a title that is given for a conversation", Steps: []step{begin(turns()...), does("given", func(s *storetest.Scene) (any, error) {
			return journal.NewTitles(base.Of(s.Store)).Give(s.T.Context(), s.C.ID.String(), "given", asked("what it took"))
		}), one("by hand", func(b *chatctx.Batch) { b.SetTitle("mine") }), does("given again", func(s *storetest.Scene) (any, error) {
			return journal.NewTitles(base.Of(s.Store)).Give(s.T.Context(), s.C.ID.String(), "again", asked("what it took"))
		}), undo(""), undo("")}},
		{What: "many short pieces", Steps: []step{begin(asked(strings.Repeat("x", 10))), inserts(40), fork("side", ""), inserts(40), undo("")}},
	}...)
}

func one(what string, do func(b *chatctx.Batch)) step { return batch(what, "main", do) }

// compacted begins a session after the fourth message, with a summary of those before.
var compacted = one("compact", func(b *chatctx.Batch) {
	summary := asked("what was before")
	b.PutLoose(summary)
	b.SetSessions([]branch.Session{{Start: 5, Summary: summary.ID}})
})

func newContext(title string) step {
	return does("new "+title, func(s *storetest.Scene) (any, error) {
		_, err := s.Store.New(s.T.Context(), record.NewContext{Title: title, Messages: []*pool.Message{asked("hello")}})
		return nil, err
	})
}

func use(ref string) step {
	return does("use "+ref, func(s *storetest.Scene) (any, error) {
		_, err := s.Store.Use(s.T.Context(), ref)
		return nil, err
	})
}

func trash(refs ...string) step {
	return does("trash", func(s *storetest.Scene) (any, error) { return s.Store.Trash(s.T.Context(), refs...) })
}

func restore(ref string) step {
	return does("restore", func(s *storetest.Scene) (any, error) { return s.Store.Restore(s.T.Context(), ref) })
}

// together is an append and a fork of one command.
func together(on, text, name string) step {
	return does("an append and a fork of one command", func(s *storetest.Scene) (any, error) {
		first, next := s.C.Begin(on), s.C.Begin(on)
		first.Append(asked(text))
		next.Together(first)
		next.Fork(name, chatctx.ForkOptions{Stay: true})
		if _, err := first.Commit(s.T.Context()); err != nil {
			return nil, err
		}
		return next.Commit(s.T.Context())
	})
}

// replies has the reply under way of each scene.
var replies = map[*storetest.Scene]*chatctx.Reply{}

func send(text string) step {
	return does("send "+text, func(s *storetest.Scene) (any, error) {
		begun, err := s.C.BeginReply(s.T.Context(), "main", chatctx.AppendOptions{}, asked(text))
		if err == nil && begun.Reply != nil {
			replies[s] = begun.Reply
		}
		return nil, err
	})
}

func save(text string) step {
	return does("save "+text, func(s *storetest.Scene) (any, error) { return nil, replies[s].Save(s.T.Context(), answered(text)) })
}

func finish(text string, stop bool) step {
	return does("finish "+text, func(s *storetest.Scene) (any, error) {
		_, err := replies[s].Finish(s.T.Context(), chatctx.Ending{Messages: []*pool.Message{answered(text)}, Stop: stop})
		return nil, err
	})
}

var settle = does("settle", func(s *storetest.Scene) (any, error) {
	return s.C.Settle(s.T.Context(), "main", chatctx.SettleOptions{})
})

// inserts puts many messages before the last one, in one operation.
func inserts(n int) step {
	return one("many inserts", func(b *chatctx.Batch) {
		for range n {
			b.Insert("@-1", asked("i"))
		}
	})
}

func takeFrom(on, from string, position int, o record.TakeOptions) step {
	return does("take", func(s *storetest.Scene) (any, error) {
		snap, err := s.C.Snapshot(s.T.Context(), from)
		s.Must(err)
		page, err := snap.Page(s.T.Context(), position, position)
		s.Must(err)
		b := s.C.Begin(on)
		b.Take(record.Ref(page[0].ID.String()), o)
		return b.Commit(s.T.Context())
	})
}
