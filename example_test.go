package chatctx_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/pool"
)

// The library in fifteen lines: a conversation, a fork with another prompt, and both read.
func Example() {
	dir, err := os.MkdirTemp("", "chatctx")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	ctx := context.Background()
	store, err := chatctx.Open(filepath.Join(dir, "chats.db"), chatctx.Options{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	c, err := store.New(ctx, record.NewContext{Title: "Names for a boat"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := c.Append(ctx, "", pool.NewText(pool.User, "A name for a boat?"), pool.NewText(pool.Assistant, "Petrel.")); err != nil {
		log.Fatal(err)
	}

	b := c.Begin("main") // several changes as one operation
	b.Fork("french", chatctx.ForkOptions{At: "@1"})
	b.SetSystem("Answer in French.")
	b.Append(pool.NewText(pool.Assistant, "Le Pétrel."))
	if _, err := b.Commit(ctx); err != nil {
		log.Fatal(err)
	}

	for _, name := range []string{"main", "french"} {
		snap, err := c.Snapshot(ctx, name)
		if err != nil {
			log.Fatal(err)
		}
		for e, err := range snap.Entries(ctx, 1, 0) {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(name, e.Turn, e.Role, e.Text())
		}
	}
	// Output:
	// main u1 user A name for a boat?
	// main a1 assistant Petrel.
	// french u1 user A name for a boat?
	// french a1 assistant Le Pétrel.
}
