package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/care"
)

func copyCommand() *command {
	return &command{name: "copy", does: "move a store with everything in it from a file to a server or another file, or copy it from a server", scope: onProgram, run: in(doCopy),
		more: `The journal with undo, the search index and everything else go along; claims of running programs end in the copy. TO must not be there yet, or be an empty store. A file moves: as soon as the copy begins, FROM no longer opens and says where the store went; --keep leaves it in use. A store on a server stays in use, and only its owner can copy it; --move moves it.
--reopen takes back a store that has moved; what was changed in the copy stays there. If a copy was cut short, the same command goes on with it. At the end TO is checked whole and has the same digest over all records.`,
		json: "from, to, records, digest, contexts, messages; with --reopen store, moved_to", example: "chatctx copy chats.db 'postgres://me@db.example.org/team?search_path=chats'"}
}

type copyIn struct {
	From   string `arg:"[FROM]"`
	To     string `arg:"[TO]"`
	Keep   bool   `flag:"keep" doc:"leave FROM in use; TO is a store of its own then (the default from a server)"`
	Move   bool   `flag:"move" doc:"FROM no longer opens, and says where the store went (the default from a file)"`
	Reopen bool   `flag:"reopen" doc:"take back FROM, or the store in use, which has moved: it opens again, and the copy goes on by itself"`
}

func doCopy(r *run, in *copyIn) error {
	switch {
	case in.Reopen:
		return doReopen(r, in)
	case in.To == "":
		return usagef("copy needs two stores: chatctx copy FROM TO")
	case in.Keep && in.Move:
		return usagef("copy takes --keep or --move, not both")
	}
	from, to := in.From, in.To
	r.notePassword(from, to)
	if !isURL(to) {
		if _, err := os.Stat(filepath.Dir(to)); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the folder of %s is not there: make it first, or correct the path: %w", to, fs.ErrNotExist)
		}
	}
	next := time.Now().Add(time.Second)
	done, err := chatctx.CopyStore(r.ctx, from, to, chatctx.Options{Program: "chatctx", IdleHold: -1}, record.CopyOptions{
		Keep: in.Keep || isURL(from) && !in.Move,
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

// doReopen takes back a store that has moved.
func doReopen(r *run, in *copyIn) error {
	if in.To != "" || in.Keep || in.Move {
		return usagef("copy --reopen takes one store, and no other flag")
	}
	store, err := r.storePath()
	if in.From != "" {
		store, err = in.From, nil
	}
	if err != nil {
		return err
	}
	r.notePassword(store)
	to, err := care.Reopen(r.ctx, store, chatctx.Options{Program: "chatctx", IdleHold: -1})
	if err != nil {
		return err
	}
	return r.emit(map[string]any{"store": shownStore(store), "moved_to": to}, func() {
		r.printf("%s opens again; the copy in %s goes on by itself, and what was changed there is not here\n", clean(shownStore(store)), clean(to))
	})
}
