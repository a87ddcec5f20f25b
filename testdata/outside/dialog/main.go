// Command dialog asks a person about each tool call that waits, and runs those that the person approves.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: dialog STORE")
	}
	store, err := chatctx.Open(os.Args[1], chatctx.Options{Program: "dialog", Judge: approval.Rules{}})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	if err := dialog(context.Background(), store, os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// dialog asks about the calls of all conversations, the oldest first. The input's end leaves the rest waiting.
func dialog(ctx context.Context, store *chatctx.Store, in io.Reader, out io.Writer) error {
	var waiting []*record.Call
	for c, err := range store.Calls(ctx, record.CallFilter{State: record.CallState(pool.Pending, pool.NotRun)}) {
		if err != nil {
			return err
		}
		waiting = append(waiting, c)
	}
	answers := bufio.NewScanner(in)
	for _, c := range waiting {
		fmt.Fprintf(out, "%s %s? [y, or why not] ", c.Tool, c.Arguments)
		if !answers.Scan() {
			fmt.Fprintln(out)
			return answers.Err()
		}
		if err := decide(ctx, store, c, strings.TrimSpace(answers.Text()), out); err != nil {
			return err
		}
	}
	return nil
}

// decide stores a person's answer, and runs the call if it is a yes.
func decide(ctx context.Context, store *chatctx.Store, c *record.Call, answer string, out io.Writer) error {
	v := record.Verdict{Status: pool.Denied, Reason: answer}
	if answer == "y" {
		v = record.Verdict{Status: pool.Approved}
	}
	b := store.Begin(c.Context.String(), c.Branch)
	b.Decide(c.Ref(), v)
	switch _, err := b.Commit(ctx); {
	case errors.Is(err, chatctx.ErrConflict): // somebody was faster, or a rule forbids it
		fmt.Fprintln(out, err)
		return nil
	case err != nil:
		return err
	case v.Status == pool.Denied:
		fmt.Fprintln(out, "denied")
		return nil
	}
	talk, err := store.Context(ctx, c.Context.String())
	if err != nil {
		return err
	}
	runs := &approval.Executor{Context: talk, Functions: map[string]approval.Function{"horn": horn}}
	defer runs.Close()
	report, err := runs.Run(ctx, c.Branch)
	if err != nil {
		return err
	}
	for _, r := range report.Ran {
		fmt.Fprintln(out, r.Last().Call.Tool, r.Last().Call.State())
	}
	return nil
}

// horn is a tool of this program.
func horn(context.Context, approval.Invocation) (pool.Result, error) {
	return pool.Result{Text: "toot"}, nil
}
