// Command delegate gives a task to a child conversation, which works on it with a model, and brings the summary back.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	_ "example.org/outside/acme"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/chatctx/turn"
	"github.com/chatctx/chatctx/pool"
	"github.com/chatctx/chatctx/subtask"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: delegate STORE CONVERSATION GOAL")
	}
	store, err := chatctx.Open(os.Args[1], chatctx.Options{Program: "delegate", Judge: approval.Rules{}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := delegate(context.Background(), store, os.Args[2], os.Args[3], os.Getenv, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// delegate starts a task on a conversation's active branch and lets it talk until it ends, or until one of its calls waits for a person.
func delegate(ctx context.Context, store *chatctx.Store, conversation, goal string, getenv func(string) string, out io.Writer) error {
	parent, err := store.Context(ctx, conversation)
	if err != nil {
		return err
	}
	child, err := subtask.Start(ctx, parent, "", subtask.Options{Goal: goal, MaxRounds: 5}, nil)
	if err != nil {
		return err
	}
	runner := subtask.Runner{Turn: func(child *chatctx.ChatContext) *turn.Turn {
		tools := &approval.Executor{Context: child, Functions: map[string]approval.Function{"tide": tide}}
		return &turn.Turn{Context: child, Calls: tools.Calls, Getenv: getenv}
	}}
	done, err := runner.Run(ctx, child)
	if err != nil {
		return err
	}
	switch done.State {
	case record.TaskWaiting:
		fmt.Fprintf(out, "%d calls wait for a decision\n", done.Waiting)
	case record.TaskReturned:
		fmt.Fprintln(out, done.Summary)
	default:
		fmt.Fprintln(out, done.State+":", done.Cause)
	}
	return nil
}

// tide is a tool of this program.
func tide(context.Context, approval.Invocation) (pool.Result, error) {
	return pool.Result{Text: "high at 06:12"}, nil
}
