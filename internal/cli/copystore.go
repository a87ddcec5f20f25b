package cli

import (
	"fmt"
	"time"

	"github.com/chatctx/chatctx/chatctx"
)

func copyCommand() *command {
	return &command{name: "copy", args: "FROM TO", does: "move a store with everything in it from a file to a server, back, or to another file", scope: onProgram, do: doCopy,
		flags: []*flag{
			{name: "keep", kind: onOff, usage: "leave FROM in use; TO is a store of its own then"},
		},
		more: `Journal, undo, search index and all go along; what a program is at work on ends there. TO is not there yet, or an empty store. From the beginning on FROM opens no more and says where it went;
--keep leaves it as it is. A copy that was cut short is gone on with by the same command. In the end TO is checked whole and has the same digest over all records.`,
		json: "from, to, records, digest, contexts, messages", example: "chatctx copy chats.db 'postgres://me@db.example.org/team?search_path=chats'"}
}

func doCopy(r *run) error {
	from, to := r.arg(0), r.arg(1)
	r.notePassword(from, to)
	next := time.Now().Add(time.Second)
	done, err := chatctx.CopyStore(r.ctx, from, to, chatctx.Options{Program: "chatctx", IdleHold: -1}, chatctx.CopyOptions{
		Keep: r.is("keep"),
		Progress: func(records int) {
			if now := time.Now(); now.After(next) {
				next = now.Add(time.Second)
				r.note("%s", count(records, "record"))
			}
		},
	})
	if err != nil {
		return err
	}
	digest := fmt.Sprintf("%x", done.Digest[:])
	return r.emit(map[string]any{"from": shownStore(from), "to": shownStore(to), "records": done.Records, "digest": digest,
		"contexts": done.Stats.Contexts, "messages": done.Stats.Messages}, func() {
		r.printf("%s is what %s was: %s, %s, %s\n", clean(shownStore(to)), clean(shownStore(from)), count(done.Stats.Contexts, "context"), count(done.Stats.Messages, "message"), count(done.Records, "record"))
		r.printf("digest %s\n", digest)
	})
}
