package chatctx_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// boats is a store in memory with a conversation of two messages.
func boats(ctx context.Context) (*chatctx.Store, *chatctx.ChatContext) {
	store, err := chatctx.OpenMemory(chatctx.Options{Program: "example", By: "ann"})
	check(err)
	c, err := store.New(ctx, record.NewContext{Title: "Boats", Messages: []*chatctx.Message{
		pool.NewText(pool.User, "A name for a boat?"), pool.NewText(pool.Assistant, "Petrel.")}})
	check(err)
	return store, c
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func ExampleStore() {
	ctx := context.Background()
	store, _ := boats(ctx)
	defer store.Close()
	for info, err := range store.Contexts(ctx, record.ListOptions{}) {
		check(err)
		fmt.Println(info.Title, info.Messages)
	}
	// Output: Boats 2
}

func ExampleChatContext() {
	ctx := context.Background()
	store, c := boats(ctx)
	defer store.Close()
	done, err := c.Append(ctx, "", pool.NewText(pool.User, "Another one?"))
	check(err)
	fmt.Println(done.Branch, done.Last().Placed[0].Position)
	undone, err := store.Undo(ctx, "Boats", "", "")
	check(err)
	fmt.Println("took back:", undone.Undid.What)
	// Output:
	// main 3
	// took back: append
}

func ExampleBatch() {
	ctx := context.Background()
	store, c := boats(ctx)
	defer store.Close()
	b := c.Begin("main")
	b.Fork("french", chatctx.ForkOptions{At: "@1"})
	b.SetSystem("Answer in French.")
	b.Append(pool.NewText(pool.Assistant, "Le Pétrel."))
	done, err := b.Commit(ctx)
	check(err)
	for _, s := range done.Steps {
		fmt.Println(s.What, s.Branch, s.Messages)
	}
	// Output:
	// fork french 1
	// system  0
	// append french 2
}

func ExampleSnapshot() {
	ctx := context.Background()
	store, c := boats(ctx)
	defer store.Close()
	snap, err := c.Snapshot(ctx, "")
	check(err)
	_, err = c.Append(ctx, "", pool.NewText(pool.User, "Later.")) // the snapshot stays as it is
	check(err)
	for e, err := range snap.Entries(ctx, 1, 0) {
		check(err)
		fmt.Println(e.Position, e.Role, e.Text())
	}
	// Output:
	// 1 user A name for a boat?
	// 2 assistant Petrel.
}

func ExampleDraft() {
	ctx := context.Background()
	store, c := boats(ctx)
	defer store.Close()
	b := c.Begin("")
	b.SetSystem("Be brief.")
	b.Mark("@1", "pinned")
	_, err := b.Commit(ctx)
	check(err)
	d, err := c.Draft(ctx, "")
	check(err)
	fmt.Println(d.System)
	for _, m := range d.Messages {
		fmt.Println(m.Role, m.Pinned)
	}
	// Output:
	// Be brief.
	// user true
	// assistant false
}

func ExampleReply() {
	ctx := context.Background()
	store, c := boats(ctx)
	defer store.Close()
	begun, err := c.BeginReply(ctx, "", chatctx.AppendOptions{}, pool.NewText(pool.User, "Another one?"))
	check(err)
	answer := pool.NewText(pool.Assistant, "Te")
	check(begun.Reply.Save(ctx, answer)) // if the program died now, this would be on the branch, unfinished
	answer.Content[0].Text = "Tern."
	ended, err := begun.Reply.Finish(ctx, chatctx.Ending{Messages: []*chatctx.Message{answer}})
	check(err)
	fmt.Println(ended.Last().Placed[0].Position)
	// Output: 4
}

func ExampleCall() {
	ctx := context.Background()
	store, c := boats(ctx)
	defer store.Close()
	_, err := c.Append(ctx, "", &chatctx.Message{Role: pool.Assistant, Calls: []pool.Call{{ID: "1", Tool: "look", Arguments: json.RawMessage(`{}`)}}})
	check(err)
	b := c.Begin("")
	b.Decide("1", record.Verdict{Status: pool.Approved})
	done, err := b.Commit(ctx)
	check(err)
	fmt.Println(done.Last().Call.State())
	claim, err := store.ClaimCall(ctx, "", "", "1", record.ClaimOptions{}) // of several programs one gets it
	check(err)
	done, err = claim.Resolve(ctx, record.CallAnswer{Result: pool.Result{Text: "a blue boat"}})
	check(err)
	fmt.Println(done.Last().Call.State(), done.Last().Placed[0].Position)
	// Output:
	// approved/none
	// approved/done 4
}

func ExampleNewTask() {
	ctx := context.Background()
	store, c := boats(ctx)
	defer store.Close()
	n := record.NewTask{}
	n.Title, n.Goal = "Harbours", "Find a harbour."
	child, err := c.StartTask(ctx, "", n)
	check(err)
	ended, err := child.EndTask(ctx, record.TaskEnd{State: record.TaskReturned, Summary: "Kiel."})
	check(err)
	fmt.Println(ended.Parent.Branch, ended.Position)
	// Output: main 3
}
