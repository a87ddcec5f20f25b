package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/chatctx/chatctx/chatctx"
)

func copyCommand() *command {
	return &command{name: "copy", args: "FROM TO", does: "move a store with everything in it from a file to a server, back, or to another file", scope: onProgram, do: doCopy,
		flags: []*flag{
			{name: "keep", kind: onOff, usage: "leave FROM in use; TO is a store of its own then"},
		},
		more: `The journal with undo, the search index and everything else go along; claims of running programs end in the copy. TO must not be there yet, or be an empty store. As soon as the copy begins, FROM no longer opens and says where the store went;
--keep leaves FROM in use. If a copy was cut short, the same command goes on with it. At the end TO is checked whole and has the same digest over all records.`,
		json: "from, to, records, digest, contexts, messages", example: "chatctx copy chats.db 'postgres://me@db.example.org/team?search_path=chats'"}
}

func doCopy(r *run) error {
	from, to := r.arg(0), r.arg(1)
	r.notePassword(from, to)
	if !isURL(to) {
		if _, err := os.Stat(filepath.Dir(to)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the folder of %s is not there: make it first, or correct the path: %w", to, fs.ErrNotExist)
		}
	}
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
		r.printf("%s is what %s was: %s, %s, %s\n", clean(shownStore(to)), clean(shownStore(from)), count(done.Stats.Contexts, "conversation"), count(done.Stats.Messages, "message"), count(done.Records, "record"))
		r.printf("digest %s\n", digest)
	})
}
