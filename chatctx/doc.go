// Package chatctx keeps conversations with language models: branching histories that several programs share in one file.
//
// A [Store] is an open file, or a server's database. A [ChatContext] in it is one conversation with all its branches; a branch is an ordered history of messages
// (package pool), a prompt, settings. Nothing is ever lost: a fork copies no messages, an edit makes a branch, and each change is an operation that [Store.Undo]
// takes back.
//
//	store, err := chatctx.Open("chats.db", chatctx.Options{Create: true})
//	c, err := store.New(ctx, record.NewContext{Title: "Boats"})
//	done, err := c.Append(ctx, "", pool.NewText(pool.User, "A name for a boat?"))
//	snap, err := c.Snapshot(ctx, "")
//	for e, err := range snap.Entries(ctx, 1, 0) { … }
//
// The names of conversations and branches are arguments everywhere, and "" is the current one: the store's current conversation, the conversation's active branch. A message
// is named by a [Ref].
//
//   - A [Batch] collects changes and makes them in one transaction, all or none; [record.Committed] has the result of each step.
//   - A [Snapshot] reads a branch as it was at one moment, and holds no lock or file.
//   - A [Draft] is the material of a request to a model. Packages enhancer and adapter make a request of it.
//   - A [Reply] is the right to answer on a branch, which one program has at a time. Package turn asks a model and stores its answer.
//   - A [record.Call] is a tool call of a message. It waits for a decision ([Batch.Decide]) by a person or a rule, is claimed by the program that runs it ([Store.ClaimCall]), and is
//     answered once ([CallClaim.Resolve]). Package approval applies rules and runs tools.
//   - A task ([ChatContext.StartTask]) is a conversation that does something for another one and returns to it. Package subtask runs it.
//   - [Store.Maintenance] takes care of the file: check, gc, purge, backup, repair.
//
// A change that returned without an error is on the disk. Many goroutines may use a Store at the same time, and other programs may use the file: a change that
// does not fit the present state is an [ErrConflict], and [Store.Watch] reports the changes of others.
//
// This package is the front door; the rooms behind it are in internal. What a caller fills in or gets is a struct of package chatctx/record.
//
// docs/embedding.md has three complete programs.
package chatctx
