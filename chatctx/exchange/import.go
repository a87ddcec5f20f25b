package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/care"
	"github.com/chatctx/chatctx/internal/intake"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/pool"
)

// Import reads files, folders and archives ("-" is Options.Stdin) into the store. Conversations are stored in batches, each conversation whole or not at all,
// while the next ones are read; what is known already, by format, conversation and node, is not stored again. Import returns an error only if ctx ends or the
// store fails; then what was stored before stays and is in the report. Problems of the files are only in the report.
//
// A dry run does the same in a trial of the store, so that its report is that of the import, without the ids of contexts that would be new.
func Import(ctx context.Context, s *chatctx.Store, paths []string, o Options) (*Report, error) {
	rep := &Report{}
	if !o.DryRun {
		return rep, importTo(ctx, s, paths, o, rep)
	}
	return rep, s.Trial(func(trial *chatctx.Store) error { return importTo(ctx, trial, paths, o, rep) })
}

func importTo(ctx context.Context, s *chatctx.Store, paths []string, o Options, rep *Report) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	st := &storing{ctx: ctx, store: s, run: intake.NewImportRun(base.Of(s), care.RemoveContext), work: make(chan func() error), done: make(chan struct{})}
	if o.DryRun {
		st.result.hidden = map[chatctx.ID]bool{}
	}
	go st.storeAll(cancel)
	im := newImporter(ctx, o, rep, st.add)
	im.release = st.release
	im.native, im.below, im.artifact, im.settings, im.known = st.native, st.below, st.artifact, st.settings, st.unchanged
	im.knownFile, im.note, im.counted = st.knownFile, st.note, st.counted
	if st.run.Purged = o.Purged; o.Purged { // what is known may lack what was purged
		im.known, im.knownFile = nil, nil
	}
	err := im.paths(paths)
	if err == nil {
		err = st.flush()
	}
	close(st.work)
	<-st.done
	base.Of(s).Indexing.Await(ctx)
	st.addTo(rep)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return err
}

// batchBytes is the approximate size of a batch.
const batchBytes = 8 << 20

// storing takes conversations from the reader and stores them in its own goroutine.
type storing struct {
	ctx   context.Context
	store *chatctx.Store
	run   *intake.ImportRun // so that one undo undoes the whole import
	work  chan func() error
	done  chan struct{}

	batch []*intake.Incoming    // the batch that the reader fills
	files []record.ImportedFile // to be noted with the batch
	size  int

	result Report // of the goroutine, until done
}

// add adds a conversation. It waits while a batch is full and the previous one is being stored.
func (st *storing) add(c *record.Incoming) error {
	in := &intake.Incoming{Incoming: *c}
	if err := st.run.Ready(in); err != nil {
		if !refused(err) {
			return err
		}
		return st.do(func() error {
			st.leaveOut(in, err)
			return nil
		})
	}
	st.batch = append(st.batch, in)
	if st.size += weight(in); st.size >= batchBytes {
		return st.flush()
	}
	return nil
}

// unchanged reports whether the store has exactly this conversation, and counts it in the report if so.
func (st *storing) unchanged(from record.SourceLink, digest pool.Hash) (bool, error) {
	done, same, err := intake.Unchanged(st.ctx, base.Of(st.store), from, digest)
	if err != nil || !same {
		return false, ofStore(err)
	}
	return true, st.do(func() error {
		st.result.count("", from.Format, from.Conversation, &done)
		return nil
	})
}

// knownFile returns the note of a file if the store has all its contents.
func (st *storing) knownFile(f record.ImportedFile, sum func() (pool.Hash, error)) (*record.ImportedFile, []record.Imported, error) {
	return intake.KnownFile(st.ctx, base.Of(st.store), f, sum)
}

// note records a file together with the last of its conversations.
func (st *storing) note(f record.ImportedFile) { st.files = append(st.files, f) }

// counted counts the conversations of a known file in the report.
func (st *storing) counted(links []record.SourceLink, done []record.Imported) error {
	return st.do(func() error {
		for i := range done {
			st.result.count("", links[i].Format, links[i].Conversation, &done[i])
		}
		return nil
	})
}

// release closes a shelf when everything on it is stored.
func (st *storing) release(s *shelf) error {
	if s.file == nil {
		return nil
	}
	err := st.flush()
	if err == nil {
		err = st.do(func() error { s.close(); return nil })
	}
	if err != nil {
		s.close()
	}
	return err
}

func (st *storing) flush() error {
	if len(st.batch) == 0 && len(st.files) == 0 {
		return nil
	}
	batch, files := st.batch, st.files
	st.batch, st.files, st.size = nil, nil, 0
	return st.do(func() error {
		for _, f := range files {
			st.run.Note(f)
		}
		return st.storeBatch(batch)
	})
}

// do lets the goroutine run f after all earlier work.
func (st *storing) do(f func() error) error {
	select {
	case st.work <- f:
		return nil
	case <-st.ctx.Done():
		return context.Cause(st.ctx)
	}
}

// native begins a context of the store's own export. It reports whether that names a parent that does not count.
func (st *storing) native(n record.Native) (target nativeTarget, alone bool, err error) {
	in, err := st.run.Native(st.ctx, n)
	if err != nil {
		return nil, false, ofStore(err)
	}
	return &nativeStored{in: in, st: st, id: n.ID.String()}, in.Alone, nil
}

// below puts a context of the file below one that came later, and reports whether it did.
func (st *storing) below(child, parent chatctx.ID, task *record.Task) (done bool, err error) {
	result := make(chan error, 1)
	err = st.do(func() (err error) {
		done, err = st.run.Below(st.ctx, child, parent, task)
		result <- err
		return nil
	})
	if err == nil {
		err = <-result
	}
	return done, ofStore(err)
}

func (st *storing) artifact(data []byte, mediaType string) error {
	_, err := st.store.PutArtifact(st.ctx, data, mediaType)
	return ofStore(err)
}

// settings holds the settings of the store that the file has.
func (st *storing) settings(set map[string]json.RawMessage) error {
	return st.do(func() error { return st.run.Hold(st.ctx, set) })
}

// nativeStored is a context that is being stored; Finish makes it visible in the goroutine that stores everything. If the store refuses something, that is the
// file's fault; any other error is the store's and ends the import.
type nativeStored struct {
	in *intake.NativeImport
	st *storing
	id string
}

func (n *nativeStored) Put(ctx context.Context, run ...record.Streamed) error {
	return ofStore(n.in.Put(ctx, run...))
}

func (n *nativeStored) drop(ctx context.Context) error { return ofStore(n.in.Drop(ctx)) }

// refused reports whether an error means that the store refused its input, and did not fail itself.
func refused(err error) bool {
	return errors.Is(err, chatctx.ErrInvalid) || errors.Is(err, chatctx.ErrConflict) || errors.Is(err, pool.ErrInvalid) || errors.Is(err, kv.ErrTooLarge)
}

// ofStore marks an error that is the store's.
func ofStore(err error) error {
	if err == nil || refused(err) {
		return err
	}
	return sinkError{err}
}

func (n *nativeStored) finish(ctx context.Context) (done record.Imported, err error) {
	result := make(chan error, 1)
	err = n.st.do(func() (err error) {
		if done, err = n.in.Finish(ctx); err == nil {
			counted := done // the reader names what is not taken with its lines
			counted.Untaken, counted.UntakenCount = nil, max(0, done.UntakenCount-len(done.Untaken))
			n.st.result.count("", nativeName, n.id, &counted)
		}
		result <- err
		return nil
	})
	if err == nil {
		err = <-result
	}
	return done, ofStore(err)
}

// weight returns the approximate size of a conversation in bytes.
func weight(in *intake.Incoming) int {
	n := 500
	for _, node := range in.Nodes {
		n += poolstore.Weight(node.Message)
	}
	return n
}

// storeAll does its work until there is no more. An error of the store ends the import.
func (st *storing) storeAll(fail context.CancelCauseFunc) {
	defer close(st.done)
	st.result.limit = 10_000
	for f := range st.work {
		if err := f(); err != nil {
			fail(err)
		}
	}
}

// storeBatch stores a batch at once. If a conversation is refused, it stores them one by one and leaves that one out.
func (st *storing) storeBatch(batch []*intake.Incoming) error {
	done, err := st.run.Import(st.ctx, batch)
	if err == nil {
		for i := range done {
			st.result.count(batch[i].File, batch[i].Format, batch[i].Conversation, &done[i])
		}
		return nil
	}
	if !refused(err) {
		return err
	}
	if len(batch) == 1 {
		st.leaveOut(batch[0], err)
		return nil
	}
	for _, in := range batch {
		if err := st.storeBatch([]*intake.Incoming{in}); err != nil {
			return err
		}
	}
	return nil
}

func (st *storing) leaveOut(in *intake.Incoming, err error) {
	st.result.Skipped += len(in.Nodes)
	st.result.SkippedContexts++
	st.result.warn(Warning{File: in.File, Text: fmt.Sprintf("the %s conversation %q is left out: %v", in.Format, show.Clip(in.Title, 60), err)})
}

// count adds the result of a conversation of a file to the report.
func (r *Report) count(file, format, source string, done *record.Imported) {
	r.Messages += done.Messages
	r.Duplicated += done.Known
	r.Branches += done.NewBranches
	r.Purged += done.Purged
	switch title := show.Clip(done.Title, 60); {
	case done.Wiped:
		r.warn(Warning{File: file, Text: fmt.Sprintf("the conversation %q was purged here and is not brought back (import --purged brings it)", title)})
		return
	case done.Purged > 0:
		r.warn(Warning{File: file, Text: fmt.Sprintf("of the conversation %q, %s that %s purged here %s not brought back (import --purged brings what was purged)", title,
			plural.Count(done.Purged, "message"), was(done.Purged), are(done.Purged))})
	}
	if done.UntakenCount > 0 {
		r.warn(Warning{File: file, Text: fmt.Sprintf("the conversation %q is here already; what the file says otherwise is not taken: %s", show.Clip(done.Title, 60), untakenList(done.Untaken, done.UntakenCount))})
	}
	if done.Changed > 0 && len(done.ChangedOn) > 0 {
		r.warn(Warning{File: file, Text: fmt.Sprintf("the file has other words for %s of %q than the store: %s", plural.Count(done.Changed, "message"), show.Clip(done.Title, 60),
			branchList(done.ChangedOn))})
	}
	if len(done.Notes) > 0 {
		r.warn(Warning{File: file, Text: fmt.Sprintf("the conversation %q: %s", show.Clip(done.Title, 60), notesList(done.Notes))})
	}
	if done.Trashed {
		r.trashed = append(r.trashed, show.Clip(done.Title, 60))
	}
	if done.Restored {
		r.warn(Warning{File: file, Text: fmt.Sprintf("the conversation %q was in the trash and is restored, since the file has something new", show.Clip(done.Title, 60))})
	}
	r.list(format, source, done)
}

func was(n int) string { return map[bool]string{true: "was", false: "were"}[n == 1] }
func are(n int) string { return map[bool]string{true: "is", false: "are"}[n == 1] }

// list adds a conversation to those of the report, once: it may stand in several files.
func (r *Report) list(format, source string, done *record.Imported) {
	at, listed := r.places[done.Context]
	if !listed {
		at = len(r.Imported)
		r.Imported = append(r.Imported, Imported{Format: format, SourceID: source})
	}
	if r.places == nil {
		r.places = map[chatctx.ID]int{}
	}
	if done.Created && r.hidden != nil {
		r.hidden[done.Context] = true
	}
	i := &r.Imported[at]
	i.Title, i.Branches, i.Trashed, i.Messages = done.Title, done.Branches, done.Trashed, i.Messages+done.Messages
	if done.Context != (chatctx.ID{}) {
		r.places[done.Context] = at
	}
	if done.Context != (chatctx.ID{}) && !r.hidden[done.Context] {
		i.Context = done.Context.String()
	}
	if r.hidden == nil && done.Operation != "" {
		i.Operations = append(i.Operations, done.Operation)
	}
	if changed := done.Created || done.Restored || done.Messages > 0 || done.NewBranches > 0; changed && !i.counted {
		i.counted = true
		r.Contexts++
	}
}

// notesListed is how many notes about a conversation are listed, and trashListed how many conversations that stay in the trash.
const notesListed, trashListed = 20, 5

func notesList(notes []string) string {
	more := ""
	if n := len(notes) - notesListed; n > 0 {
		notes, more = notes[:notesListed], fmt.Sprintf("; and %d more", n)
	}
	out := make([]string, len(notes))
	for i, n := range notes {
		out[i] = show.Clip(n, 2*mostOfPlace)
	}
	return strings.Join(out, "; ") + more
}

// staysInTrash reports the conversations that are in the trash and of which the files have nothing new.
func (r *Report) staysInTrash() {
	if len(r.trashed) == 0 {
		return
	}
	titles := make([]string, 0, trashListed)
	for _, t := range r.trashed[:min(trashListed, len(r.trashed))] {
		titles = append(titles, fmt.Sprintf("%q", t))
	}
	if n := len(r.trashed) - trashListed; n > 0 {
		titles = append(titles, fmt.Sprintf("%d more", n))
	}
	r.warn(Warning{Text: fmt.Sprintf("%s in the trash, of which the files have nothing new, and there %s: %s", plural.Count(len(r.trashed), "conversation"),
		map[bool]string{true: "it stays", false: "they stay"}[len(r.trashed) == 1], strings.Join(titles, ", "))})
}

// mostOfPlace is how many characters are named of a place in a value, which a file may make as long as it likes.
const mostOfPlace = 120

// untakenList names what was not taken of a conversation, with the messages by their ids in the file.
func untakenList(list []record.Untaken, all int) string {
	var out []string
	for len(list) > 0 {
		u, what := list[0], []string{}
		for len(list) > 0 && list[0].Message == u.Message && list[0].Branch == u.Branch {
			what, list = append(what, show.Clip(list[0].What, mostOfPlace)), list[1:]
			all--
		}
		text := strings.Join(what, ", ")
		switch {
		case u.Message != "":
			text += " of the message " + show.Clip(u.Message, 60)
		case u.Branch != "":
			text += " of the branch " + show.Clip(u.Branch, 60)
		}
		out = append(out, text)
	}
	if all > 0 {
		out = append(out, fmt.Sprintf("and %d more", all))
	}
	return strings.Join(out, "; ")
}

// branchList names the branches with the change.
func branchList(names []string) string {
	if len(names) == 1 {
		return "the branch " + names[0] + " has it"
	}
	return "the branches " + strings.Join(names, ", ") + " have it"
}

// addTo adds the goroutine's counts to the reader's report.
func (st *storing) addTo(rep *Report) {
	r := &st.result
	r.staysInTrash()
	rep.Contexts += r.Contexts
	rep.Messages += r.Messages
	rep.Branches += r.Branches
	rep.Purged += r.Purged
	rep.Skipped += r.Skipped
	rep.SkippedContexts += r.SkippedContexts
	rep.Duplicated += r.Duplicated
	for _, w := range r.Warnings {
		rep.warn(w)
	}
	rep.MoreWarnings += r.MoreWarnings
	rep.Imported = append(rep.Imported, r.Imported...)
}
