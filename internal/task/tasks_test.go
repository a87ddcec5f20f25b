package task_test

import (
	"encoding/json"
	"flag"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/storetest"
	"github.com/chatctx/chatctx/internal/task"
	"github.com/chatctx/chatctx/pool"
)

var update = flag.Bool("update", false, "write the golden files anew")

type step = storetest.Step

func does(what string, do func(s *storetest.Scene) (any, error)) step {
	return step{What: what, Do: do}
}

var parent = does("new", func(s *storetest.Scene) (_ any, err error) {
	s.C, err = s.Store.New(s.T.Context(), record.NewContext{Title: "Parent", System: "be short", Messages: []*pool.Message{pool.NewText(pool.User, "q"), pool.NewText(pool.Assistant, "a")}})
	if err == nil {
		b := s.C.Begin("main")
		b.AddRule(record.Rule{Effect: record.Ask, Tool: "w"}, record.RuleScope{})
		b.PutTool(record.Tool{Name: "t", Command: []string{"cat"}})
		b.SetContextSettings(map[string]json.RawMessage{"model": json.RawMessage(`"m-1"`)})
		b.Fork("side", chatctx.ForkOptions{At: "@1", Stay: true})
		_, err = b.Commit(s.T.Context())
	}
	return nil, err
})

// children have the tasks of each scene, in order.
var children = map[*storetest.Scene][]pool.ID{}

func start(on string, n record.NewTask) step { return below(-1, on, n) }

// below starts a task below a child, or below the parent.
func below(child int, on string, n record.NewTask) step {
	return does("start "+n.Goal, func(s *storetest.Scene) (any, error) {
		of := s.C.ID
		if child >= 0 {
			of = children[s][child]
		}
		id, err := task.Start(s.T.Context(), base.ContextOf(s.Store, of), on, n)
		if err == nil {
			children[s] = append(children[s], id)
		}
		return nil, err
	})
}

func read(child int) step {
	return does("read", func(s *storetest.Scene) (any, error) {
		return task.Read(s.T.Context(), base.ContextOf(s.Store, children[s][child]))
	})
}

func end(child int, e record.TaskEnd) step {
	return does("end "+e.State, func(s *storetest.Scene) (any, error) {
		return task.Finish(s.T.Context(), base.ContextOf(s.Store, children[s][child]), e)
	})
}

func of(goal string) record.NewTask {
	return record.NewTask{NewContext: record.NewContext{Title: goal, Messages: []*pool.Message{pool.NewText(pool.User, goal)}}, Task: record.Task{Goal: goal}}
}

func deep(most int) record.NewTask {
	n := of("deep")
	n.MaxDepth = most
	return n
}

func keeping(goal string) record.NewTask {
	n := of(goal)
	n.Tools = []record.Tool{{Name: "only", Command: []string{"cat"}}}
	n.Messages = append(n.Messages, &pool.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "c", Tool: "t", Arguments: []byte(`{}`)}}})
	return n
}

func undo(s *storetest.Scene) (any, error) {
	return s.Store.Undo(s.T.Context(), s.C.ID.String(), "", "")
}

func stories() []storetest.Story {
	return []storetest.Story{
		{What: "a task returns", Steps: []step{parent, start("", of("one")), read(0), end(0, record.TaskEnd{State: record.TaskReturned, Summary: "it is done"}), read(0), end(0, record.TaskEnd{State: record.TaskReturned, Summary: "twice"}), does("undo", undo), does("undo", undo)}},
		{What: "a task returns elsewhere and stays", Steps: []step{parent, start("main", of("one")), end(0, record.TaskEnd{State: record.TaskReturned, Summary: "s", Branch: "none"}), end(0, record.TaskEnd{State: record.TaskReturned, Summary: "s", Branch: "side", Keep: true}), read(0)}},
		{What: "a task fails", Steps: []step{parent, start("side", of("one")), end(0, record.TaskEnd{State: record.TaskFailed, Summary: "no"}), read(0), start("", of("two")), end(1, record.TaskEnd{State: record.TaskFailed, Summary: "cut", Unfinished: true, Partial: "half"}), read(1)}},
		{What: "a task is abandoned", Steps: []step{parent, start("", of("one")), end(0, record.TaskEnd{State: record.TaskAbandoned}), read(0), end(0, record.TaskEnd{State: "perhaps"}), start("none", of("two"))}},
		{What: "tasks below tasks", Steps: []step{parent, start("", deep(2)), below(0, "", of("two")), below(1, "", of("three")), read(1), start("", deep(99)), below(2, "", deep(1)), end(0, record.TaskEnd{State: record.TaskReturned, Summary: "s"}), read(1)}},
		{What: "a task with calls and tools", Steps: []step{parent, start("", keeping("one")), read(0), end(0, record.TaskEnd{State: record.TaskReturned, Summary: "s"}), read(0)}},
		{What: "what is no task", Steps: []step{parent, does("read", func(s *storetest.Scene) (any, error) {
			return task.Read(s.T.Context(), base.ContextOf(s.Store, s.C.ID))
		}),
			does("end", func(s *storetest.Scene) (any, error) {
				return task.Finish(s.T.Context(), base.ContextOf(s.Store, s.C.ID), record.TaskEnd{State: record.TaskReturned, Summary: "s"})
			})}},
	}
}

func TestTasks(t *testing.T) {
	storetest.Tell(t, "testdata/tasks.txt", *update, func() chatctx.Options { return chatctx.Options{Judge: approval.Rules{}} }, stories())
}
