package view_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"testing"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

var update = flag.Bool("update", false, "write the golden files anew")

func says(role pool.Role, text string) *pool.Message { return pool.NewText(role, text) }

func values(name, value string) map[string]json.RawMessage {
	return map[string]json.RawMessage{name: json.RawMessage(value)}
}

// made is a step that makes something to read.
func made(do func(s *storetest.Scene) error) storetest.Step {
	return storetest.Step{What: "made", Do: func(s *storetest.Scene) (any, error) { return nil, do(s) }}
}

// reads is a step that reads something of the first conversation.
func reads(what string, read func(ctx context.Context, c *base.Conversation) (any, error)) storetest.Step {
	return storetest.Step{What: what, Do: func(s *storetest.Scene) (any, error) { return read(s.T.Context(), base.ContextOf(s.Store, s.C.ID)) }}
}

// looks is reads within a transaction.
func looks(what string, look func(tx kv.Tx, c *base.Conversation, rec *base.ContextRecord) (any, error)) storetest.Step {
	return reads(what, func(ctx context.Context, c *base.Conversation) (out any, err error) {
		return out, view.At(ctx, c, func(tx kv.Tx, rec *base.ContextRecord) error {
			out, err = look(tx, c, rec)
			return err
		})
	})
}

// all collects a sequence.
func all[T any](seq func(func(T, error) bool)) (out []T, err error) {
	for v, e := range seq {
		if e != nil {
			return out, e
		}
		out = append(out, v)
	}
	return out, nil
}

// library makes conversations with something of each kind.
func library() []storetest.Step {
	return []storetest.Step{made(func(s *storetest.Scene) (err error) {
		s.C, err = s.Store.New(s.T.Context(), record.NewContext{Title: "Trains of Europe", System: "be short", Settings: values("model", `"m-1"`), Messages: []*pool.Message{
			says(pool.User, "one"), says(pool.Assistant, "a"), says(pool.User, "two"), says(pool.Assistant, "b"), says(pool.User, "three")}})
		return err
	}), storetest.Batch("calls, tags and more", "main", func(b *chatctx.Batch) {
		b.Append(&pool.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "c1", Tool: "t", Arguments: []byte(`{}`)}, {ID: "c2", Tool: "u", Arguments: []byte(`{}`)}}})
		b.Append(&pool.Message{Role: pool.ToolRole, Result: &pool.Result{RequestID: "c1", Tool: "t", Text: "result"}})
		b.Tag("best", "@2")
		b.Tag("worst", "@4")
		b.Mark("@1", "pinned")
		b.Label("work")
		b.SetSettings(values("temperature", `0.5`))
		b.SetContextData("app", []byte(`1`))
		b.AddRule(record.Rule{Effect: record.Ask, Tool: "t", Reason: "r"}, record.RuleScope{})
		b.AddRule(record.Rule{Effect: record.Deny, Tool: "u"}, record.RuleScope{Branch: true})
		b.PutTool(record.Tool{Name: "t", Description: "own", Command: []string{"cat"}})
	}), storetest.Batch("fork", "main", func(b *chatctx.Batch) { b.Fork("side", chatctx.ForkOptions{At: "@3", Stay: true}) }),
		storetest.Batch("on side", "side", func(b *chatctx.Batch) { b.Append(says(pool.Assistant, "other"), says(pool.User, "three")) }),
		storetest.Batch("fork", "main", func(b *chatctx.Batch) { b.Fork("gone", chatctx.ForkOptions{Stay: true}) }),
		storetest.Batch("remove", "main", func(b *chatctx.Batch) { b.RemoveBranch("gone") }),
		storetest.Batch("session", "side", func(b *chatctx.Batch) {
			summary := says(pool.User, "before")
			b.PutLoose(summary)
			b.SetSessions([]branch.Session{{Start: 3, Summary: summary.ID}})
			b.SetTokens(branch.Tokens{})
		}),
		made(func(s *storetest.Scene) error {
			for _, title := range []string{"Train to Rome", "Boats", "boats again"} {
				if _, err := s.Store.New(s.T.Context(), record.NewContext{Title: title, Messages: []*pool.Message{says(pool.User, "hi")}}); err != nil {
					return err
				}
			}
			_, err := s.Store.PutTool(s.T.Context(), record.Tool{Name: "u", Description: "of the store", Command: []string{"cat"}})
			s.Must(err)
			_, err = s.Store.PutTool(s.T.Context(), record.Tool{Name: "t", Description: "hidden", Command: []string{"cat"}})
			s.Must(err)
			_, err = s.Store.AddRule(s.T.Context(), record.Rule{Effect: record.Allow, Tool: "*"})
			s.Must(err)
			_, err = s.Store.SetSettings(s.T.Context(), values("max_tokens", `100`))
			s.Must(err)
			_, err = s.Store.Trash(s.T.Context(), "Boats")
			s.Must(err)
			_, err = s.C.StartTask(s.T.Context(), "side", record.NewTask{NewContext: record.NewContext{Title: "Task", Messages: []*pool.Message{says(pool.User, "do")}}, Task: record.Task{Goal: "g"}})
			return err
		})}
}

// questions are what is asked of the library.
func questions() []storetest.Step {
	out := append(library(), reads("info", func(ctx context.Context, c *base.Conversation) (any, error) { return view.Info(ctx, c) }),
		reads("labels", func(ctx context.Context, c *base.Conversation) (any, error) { return view.Labels(ctx, c.Store) }),
		reads("facts", func(ctx context.Context, c *base.Conversation) (any, error) { return all(view.Facts(ctx, c)) }),
		reads("recent", func(ctx context.Context, c *base.Conversation) (any, error) { return view.Recent(ctx, c.Store) }),
		reads("tokens", func(ctx context.Context, c *base.Conversation) (any, error) { return view.Tokens(ctx, c, "side") }),
		reads("offered tools", func(ctx context.Context, c *base.Conversation) (any, error) {
			return view.OfferedTools(ctx, c.Store, c.ID)
		}),
		looks("branches", func(tx kv.Tx, c *base.Conversation, rec *base.ContextRecord) (any, error) {
			return view.BranchInfos(tx, c.ID, rec)
		}),
		looks("removed branches", func(tx kv.Tx, c *base.Conversation, rec *base.ContextRecord) (any, error) {
			return view.RemovedBranches(tx, c.ID, rec)
		}),
		looks("marks", func(tx kv.Tx, c *base.Conversation, _ *base.ContextRecord) (any, error) {
			marks, err := view.Marks(tx, c.ID)
			return fmt.Sprint(marks), err
		}),
		looks("kept tools", func(tx kv.Tx, c *base.Conversation, _ *base.ContextRecord) (any, error) {
			return view.KeptTools(tx, c.ID)
		}),
		looks("rules", func(tx kv.Tx, c *base.Conversation, _ *base.ContextRecord) (any, error) {
			return view.RulesFor(tx, c.ID, c.Store.Now())
		}))
	for _, name := range []string{"t", "u", "none"} {
		out = append(out, looks("tool "+name, func(tx kv.Tx, c *base.Conversation, _ *base.ContextRecord) (any, error) {
			return view.ToolNamed(tx, c.ID, name)
		}))
	}
	for _, o := range []record.ListOptions{{}, {Word: "TRAIN"}, {Trash: true}, {Labels: []string{"work"}}, {Labels: []string{"work", "home"}}} {
		out = append(out, reads(fmt.Sprintf("list %+v", o), func(ctx context.Context, c *base.Conversation) (any, error) {
			return all(view.Contexts(ctx, c.Store, o))
		}))
	}
	for _, name := range []string{"", "main", "side", "gone", "none"} {
		out = append(out, looks("effective on "+name, func(tx kv.Tx, c *base.Conversation, rec *base.ContextRecord) (any, error) {
			b, err := view.BranchOf(tx, c.ID, rec, name)
			if err != nil {
				return nil, err
			}
			return view.Effective(tx, rec, b)
		}), looks("entries of "+name, func(tx kv.Tx, c *base.Conversation, rec *base.ContextRecord) (any, error) {
			b, err := view.BranchOf(tx, c.ID, rec, name)
			if err != nil {
				return nil, err
			}
			return view.ReadEntries(tx, c.ID, b, 2, min(5, len(b.Name)+1))
		}))
	}
	for _, ref := range []string{"", "Trains of Europe", "train", "trains", "boats", "Boats", "again", "nothing", "00"} {
		out = append(out, reads("conversation "+ref, func(ctx context.Context, c *base.Conversation) (any, error) { return view.Find(ctx, c.Store, ref) }))
	}
	for _, pair := range [][2]string{{"main", "side"}, {"side", "main"}, {"main", "main"}, {"main", "none"}} {
		out = append(out, reads("diff "+pair[0]+" "+pair[1], func(ctx context.Context, c *base.Conversation) (any, error) {
			return view.Diff(ctx, c, pair[0], pair[1])
		}), reads("size of it", func(ctx context.Context, c *base.Conversation) (any, error) {
			return view.DiffSize(ctx, c, pair[0], pair[1])
		}))
	}
	for _, refs := range [][]record.Ref{{"main:@4", "side:@4"}, {"@2", "@4"}, {"@4", "side"}, {"@1"}, {}} {
		out = append(out, reads(fmt.Sprint("compare ", refs), func(ctx context.Context, c *base.Conversation) (any, error) {
			return view.Compare(ctx, c, "main", refs...)
		}))
	}
	return append(out, placeQuestions()...)
}

// placeQuestions resolve references to messages.
func placeQuestions() (out []storetest.Step) {
	for _, on := range []string{"main", "side"} {
		for _, ref := range []record.Ref{"@", "@1", "@3", "@8", "@-1", "@-7", "@-8", "@0", "u1", "u3", "u4", "a1", "a2", "a9", "u-1", "a-1", "best", "worst", "none", "side:@4", "main:u3", "side:u9", "none:@1", "x y", "@1..@2", ""} {
			out = append(out, looks(fmt.Sprintf("%s on %s", ref, on), func(tx kv.Tx, c *base.Conversation, rec *base.ContextRecord) (any, error) {
				b, err := view.BranchOf(tx, c.ID, rec, on)
				if err != nil {
					return nil, err
				}
				id, at, err := view.Reader{Tx: tx, ID: c.ID}.Find(b, ref)
				return []any{id, at}, err
			}))
		}
	}
	return out
}

func TestReading(t *testing.T) {
	stories := []storetest.Story{{What: "a library", Steps: questions()}}
	storetest.Tell(t, "testdata/reading.txt", *update, func() chatctx.Options { return chatctx.Options{Judge: approval.Rules{}} }, stories)
}
