package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange"
	_ "github.com/chatctx/chatctx/chatctx/exchange/all" // every format
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/input"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/internal/screen"
	"github.com/chatctx/chatctx/pool"
)

func exchangeCommands() []*command {
	return []*command{
		{name: "import", does: "bring in other tools' conversations: files, folders, ZIPs, - for standard input", scope: onStore, run: in(doImport),
			more: "The content of a file decides its format. Importing again adds only new messages. With --watch a message is taken when its tool marks it finished, or its file was still for 10 seconds; nothing is written or locked in the folders of other tools. Exit code 8: a record that should have been a message was left out; 1: nothing could be read.",
			json: "files, contexts, messages, branches, skipped, duplicated, repaired, structural, skipped_contexts, failed, purged, warnings[{file, line, text}], imported[{context, title, format, source_id, messages, branches, trashed}]; operations[{operation, context (none: of the store)}] (undo takes them back in this order), operation (if it is one); with --scan alone: places[{tool, path, files, bytes, changed_at}]; with --watch a line for each import: path, and the same",
			example: `chatctx import conversations.json
chatctx import ~/Downloads/chatgpt-export.zip --dry-run
chatctx import --scan --every-tool
chatctx import --watch claude-code codex`},
		{name: "export", does: "write conversations out: lossless JSON lines, Markdown of a branch, or a page of HTML", scope: onBranch, run: in(doExport),
			more:    exportFormats() + "\nSeveral conversations, by name or by the filters of ls, go into one file of JSON lines.",
			json:    "with -o: file, bytes, format; without: the lossless lines as they are, of another format: format, content",
			example: "chatctx export --all > backup.jsonl\nchatctx export -o talk.html"},
	}
}

// exportFormats lists the formats that can be written.
func exportFormats() string {
	var list []string
	for _, f := range exchange.ExportFormats() {
		list = append(list, f.Name+" ("+f.What+")")
	}
	return "Formats: " + strings.Join(list, ", ") + "."
}

type exportIn struct {
	Contexts []string `arg:"[CTX…]"`
	Format   string   `flag:"format,f" doc:"the {FORMAT}, one of the above; else by FILE's ending, else chatctx"`
	Out      string   `flag:"o" doc:"write to {FILE} instead of standard output"`
	All      bool     `flag:"all" doc:"every conversation that is not in the trash, instead of one"`
	Hidden   bool     `flag:"hidden" doc:"hidden messages too, in what is for reading: JSON always has them"`
	dryRunFlag
	yesFlag
	operation.Filters
}

// format returns the format that the flags ask for, by name or by the file's ending.
func (in *exportIn) format() string {
	if f := in.Format; f != "" {
		return f
	}
	for _, f := range exchange.ExportFormats() {
		if strings.EqualFold(filepath.Ext(in.Out), f.Extension) {
			return f.Name
		}
	}
	return exchange.ExportFormats()[0].Name
}

func doExport(r *run, in *exportIn) error {
	o := exchange.ExportOptions{Format: in.format(), Context: r.contextRef(), Branch: r.branchName(), All: in.All, Hidden: in.Hidden}
	target := in.Out
	if target != "" {
		if err := r.mayWrite(target, in.yesFlag); err != nil {
			return err
		}
	}
	st, err := r.reader()
	if err != nil {
		return err
	}
	if len(in.Contexts) > 0 || in.Given() || in.DryRun {
		done, err := r.exportChosen(in, &o)
		if done || err != nil {
			return err
		}
	}
	var left []string
	o.LeftOut = func(what string) { left = append(left, what) }
	if target == "" {
		if err := r.exportOut(st, o); err != nil {
			return contextHint(err)
		}
		return notHeld(o.Format, left)
	}
	n, err := r.writeFile(target, func(w io.Writer) error { return exchange.Export(r.ctx, st, o, w) })
	if err != nil {
		return contextHint(err)
	}
	err = r.emit(map[string]any{"file": target, "bytes": n, "format": o.Format}, func() {
		r.printf("wrote %s, %s, %s\n", clean(target), o.Format, size(n))
	})
	return cmp.Or(err, notHeld(o.Format, left))
}

// notHeld is the error of an export that left something out, nil if it left nothing out.
func notHeld(format string, left []string) error {
	if len(left) == 0 {
		return nil
	}
	return contract.Partly(fmt.Errorf("%s cannot hold all of the branch: %s", format, strings.Join(left, "; ")), "all else is written")
}

// exportChosen puts the contexts that the command line names, or that fit its filters, into the options. It returns done if the command was only to list
// them.
func (r *run) exportChosen(in *exportIn, o *exchange.ExportOptions) (done bool, err error) {
	if o.All || r.contextRef() != "" {
		return false, usagef("export takes one of these: names or filters, --context, --all")
	}
	names := in.Contexts
	if len(names) == 0 && !in.Given() {
		names = []string{r.contextRef()}
	}
	all, err := r.chosen(names, in.Filters)
	switch {
	case err != nil:
		return false, err
	case in.DryRun:
		return true, r.wouldDo(all, "write")
	case len(all) == 0:
		return false, base.Says(chatctx.ErrNotFound, "no conversation fits")
	case len(names) == 1:
		o.Context = all[0].ID.String()
		return false, nil
	}
	for _, info := range all {
		o.Contexts = append(o.Contexts, info.ID)
	}
	return false, nil
}

// exportOut writes to standard output.
func (r *run) exportOut(st *chatctx.Store, o exchange.ExportOptions) error {
	lossless := o.Format == exchange.ExportFormats()[0].Name
	if !r.json() || lossless {
		var w io.Writer = r.con.out
		switch {
		case r.con.tty && lossless:
			w = screen.JSONWriter(w)
		case r.con.tty:
			w = screen.TextWriter(w)
		}
		return exchange.Export(r.ctx, st, o, w)
	}
	var b strings.Builder
	if err := exchange.Export(r.ctx, st, o, &b); err != nil {
		return err
	}
	return r.printJSON(map[string]string{"format": o.Format, "content": b.String()})
}

// importSource is what an import reads.
type importSource struct {
	paths   []string
	options exchange.Options
	cleanup func()
}

type importIn struct {
	Paths []string `arg:"[PATH…]"`
	dryRunFlag
	Scan   bool `flag:"scan" doc:"list the conversations of tools on this machine; with tools' names as arguments, or with --every-tool, import them"`
	Purged bool `flag:"purged" doc:"bring what was purged here, too: without it, that stays away"`
	Watch  bool `flag:"watch" doc:"import tools by their names, or paths, and go on with what is written there, until Ctrl-C"`
	All    bool `flag:"every-tool" old:"all" doc:"with --scan or --watch: every tool that is found"`
}

func doImport(r *run, in *importIn) error {
	switch {
	case in.Scan && in.Watch:
		return usagef("import takes --scan or --watch, not both: --watch --every-tool takes in all that --scan lists")
	case in.Scan:
		return doScan(r, in)
	case in.Watch:
		return doWatch(r, in)
	case in.All:
		return usagef("import --every-tool needs --scan or --watch")
	case len(in.Paths) == 0:
		return usagef("import needs a file, a folder or - for standard input; --scan lists what tools of this machine keep")
	}
	return importPaths(r, in, in.Paths)
}

// importPaths imports files and folders.
func importPaths(r *run, in *importIn, paths []string) error {
	src := &importSource{paths: paths, options: exchange.Options{DryRun: in.DryRun, Purged: in.Purged, Stdin: r.con.in, Progress: r.progress()}, cleanup: func() {}}
	defer func() { src.cleanup() }()
	began := time.Now()
	if err := r.fromStore(src); err != nil {
		return err
	}
	rep, err := r.importFrom(src)
	r.endProgress()
	if rep == nil {
		return stopped(err, &exchange.Report{})
	}
	if err == nil && !src.options.DryRun {
		err = r.useImported(rep)
	}
	made, operation := []madeBy{}, ""
	if !src.options.DryRun && rep.Changed() {
		made = r.importOperations(rep, began)
	}
	if len(made) == 1 {
		operation = made[0].Operation
	}
	printErr := r.emit(struct {
		*exchange.Report
		Operation  string   `json:"operation,omitempty"`
		Operations []madeBy `json:"operations"`
	}{rep, operation, made}, func() { r.printReport(rep, made, src.options.DryRun) })
	if printErr != nil {
		return printErr
	}
	if err != nil && src.options.DryRun {
		return err
	}
	if err != nil {
		return stopped(err, rep)
	}
	switch rep.Outcome() {
	case exchange.Partial:
		return contract.Partly(errors.New("not everything could be read"), leftOut(rep))
	case exchange.Nothing:
		return errors.New("nothing could be read" + firstWarning(rep))
	}
	return nil
}

// stopped is the error of an import that ended before its end, with what is stored.
func stopped(err error, rep *exchange.Report) error {
	switch interrupted := errors.Is(err, context.Canceled); {
	case rep.Changed():
		return contract.Partly(err, fmt.Sprintf("%s in %s %s stored; the same import again adds the rest", count(rep.Messages, "message"), count(rep.Contexts, "conversation"), are(rep.Messages)))
	case interrupted:
		return contract.Partly(err, "nothing new is stored; the same import again begins anew")
	}
	return err
}

// fromStore makes the import read what a store of our own exports, if the one argument is such a file.
func (r *run) fromStore(src *importSource) error {
	at := slices.IndexFunc(src.paths, func(path string) bool { return isStore(path) })
	if at < 0 {
		return nil
	}
	path := src.paths[at]
	if len(src.paths) > 1 {
		return &usageError{path + " is a store of chatctx: import takes one such file, alone", r.onStore("import " + quote(path))}
	}
	if mine, err := r.storePath(); err == nil && sameFile(mine, path) {
		return usagef("%s is the store that this command works on", path)
	}
	other, err := chatctx.Open(path, chatctx.Options{ReadOnly: true, IdleHold: -1, Program: "chatctx"})
	if err != nil {
		return storeHint(err, path)
	}
	from, to := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		to.CloseWithError(errors.Join(exchange.Export(r.ctx, other, exchange.ExportOptions{All: true}, to), other.Close()))
	}()
	src.paths, src.options.Stdin = []string{"-"}, from
	before := src.cleanup
	src.cleanup = func() {
		from.Close()
		<-ended
		before()
	}
	return nil
}

// isStore reports whether a file is a store of this program, also a damaged one or one of another version.
func isStore(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	st, err := chatctx.Open(path, chatctx.Options{ReadOnly: true, IdleHold: -1, Program: "chatctx"})
	if err == nil {
		st.Close()
	}
	return !errors.Is(err, chatctx.ErrNotOurs) && !errors.Is(err, chatctx.ErrNotExist) && !errors.Is(err, fs.ErrPermission)
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, otherErr := os.Stat(b)
	return err == nil && otherErr == nil && os.SameFile(one, other)
}

// madeBy is an operation of an import: one of a conversation that was here, or the store's, which has no context.
type madeBy struct {
	Operation string     `json:"operation"`
	Context   chatctx.ID `json:"context,omitzero"`
}

// importOperations returns the operations of an import that began at since, in the order in which undo takes them back: what it added to each conversation
// that was here, then what it did to the store.
func (r *run) importOperations(rep *exchange.Report, since time.Time) (all []madeBy) {
	for _, i := range rep.Imported {
		id, err := uuid.Parse(i.Context)
		if err != nil {
			continue
		}
		for _, op := range slices.Backward(i.Operations) {
			all = append(all, madeBy{op, id})
		}
	}
	for op, err := range journal.StoreOperations(context.WithoutCancel(r.ctx), base.Of(r.st)) { // the newest alone; also after an import that was stopped
		if err == nil && op.What == "import" && op.At >= pool.TimeOf(since) {
			all = append(all, madeBy{Operation: op.ID})
		}
		break
	}
	return all
}

// leftOut says what an import could not take.
func leftOut(rep *exchange.Report) string {
	var words []string
	for _, n := range []struct {
		n    int
		what string
	}{{rep.Skipped, "message"}, {rep.SkippedContexts, "conversation"}, {rep.Failed, "file"}} {
		if n.n > 0 {
			words = append(words, count(n.n, n.what))
		}
	}
	return "left out: " + strings.Join(words, ", ")
}

func firstWarning(rep *exchange.Report) string {
	if len(rep.Warnings) == 0 {
		return ""
	}
	w := rep.Warnings[0]
	return ": " + strings.TrimPrefix(w.File+": "+w.Text, ": ")
}

// importFrom reads and stores. If there is no store yet, one is made only if there is something to put into it.
func (r *run) importFrom(src *importSource) (*exchange.Report, error) {
	defer frugal()()
	path, err := r.storePath()
	if err != nil {
		return nil, err
	}
	if _, err = os.Stat(path); isURL(path) {
		err = nil
	}
	switch none := errors.Is(err, fs.ErrNotExist); {
	case none && src.options.DryRun:
		st, err := chatctx.OpenMemory(chatctx.Options{})
		if err != nil {
			return nil, err
		}
		defer st.Close()
		return exchange.Import(r.ctx, st, src.paths, src.options)
	case none && !slices.ContainsFunc(src.paths, isPipe): // a pipe can be read once
		rep, found, err := r.anythingIn(src)
		if !found || err != nil {
			return rep, err
		}
	}
	open := r.creator
	if src.options.DryRun {
		open = r.reader
	}
	st, err := open()
	if err != nil {
		return nil, err
	}
	return exchange.Import(r.ctx, st, src.paths, src.options)
}

// isPipe reports whether a path leads to what can be read once.
func isPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && input.Waits(info.Mode())
}

// importMemory is about the memory in bytes above which the garbage collector works harder: a session with very many messages needs some 150 MB, and
// without a limit as much again would wait for collection.
const importMemory = 220 << 20

// frugal sets that limit unless there is one (GOMEMLIMIT), and returns the function that takes it back. A limit that is lower than what is in use would have
// the collector run all the time, so it is set anew after each collection.
func frugal() (done func()) {
	was := debug.SetMemoryLimit(-1)
	if was != math.MaxInt64 {
		return func() {}
	}
	var lock sync.Mutex
	over := false
	var collected func(*[16]byte)
	collected = func(*[16]byte) {
		lock.Lock()
		defer lock.Unlock()
		if !over {
			debug.SetMemoryLimit(limitAbove(inUse()))
			runtime.SetFinalizer(new([16]byte), collected) // the next collection finds it
		}
	}
	collected(nil)
	return func() {
		lock.Lock()
		defer lock.Unlock()
		over = true
		debug.SetMemoryLimit(was)
	}
}

// limitAbove returns the limit for so much memory in use: a third more may wait for collection.
func limitAbove(used uint64) int64 { return max(importMemory, int64(used/3*4)) }

// inUse returns the memory that the last collection found in use.
func inUse() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// anythingIn looks for a first conversation. What it reads from standard input is kept in a file for the next reader.
func (r *run) anythingIn(src *importSource) (rep *exchange.Report, found bool, err error) {
	o := src.options
	o.Progress = nil
	if slices.Contains(src.paths, "-") {
		f, err := os.CreateTemp("", leftover.Name("import"))
		if err != nil {
			return nil, false, err
		}
		before, in := src.cleanup, o.Stdin
		src.cleanup = func() { before(); f.Close(); os.Remove(f.Name()) }
		o.Stdin = io.TeeReader(in, f)
		defer func() {
			if _, seekErr := f.Seek(0, io.SeekStart); err == nil {
				err = seekErr
			}
			src.options.Stdin = io.MultiReader(f, in)
		}()
	}
	ctx, enough := context.WithCancel(r.ctx)
	defer enough()
	rep, err = exchange.Look(ctx, src.paths, o, func(*record.Incoming) error {
		found = true
		enough()
		return ctx.Err()
	})
	if found {
		return nil, true, nil
	}
	return rep, false, err
}

// useImported makes the context of an import of one conversation the current one.
func (r *run) useImported(rep *exchange.Report) error {
	if r.st == nil || len(rep.Imported) != 1 || rep.Imported[0].Context == "" || rep.Imported[0].Trashed {
		return nil
	}
	_, err := r.st.Use(r.ctx, rep.Imported[0].Context)
	return err
}

// shownContexts is how many contexts of an import are listed for a person.
const shownContexts = 12

// printReport prints the result of an import.
func (r *run) printReport(rep *exchange.Report, made []madeBy, dry bool) {
	did := "imported"
	if dry {
		did = "would import"
	}
	if rep.Outcome() == exchange.Nothing {
		return // the error says everything
	}
	r.printf("%s %s in %s, %s, from %s\n", did, count(rep.Messages, "message"), count(rep.Contexts, "conversation"), count(rep.Branches, "new branch"), count(rep.Files, "file"))
	for _, n := range []struct {
		n    int
		what string
	}{{rep.Duplicated, "message%s there already"}, {rep.Purged, "message%s purged here before"}, {rep.Skipped, "message%s left out"}, {rep.Repaired, "message%s repaired"}, {rep.Structural, "record%s without a message"}, {rep.SkippedContexts, "conversation%s left out"}, {rep.Failed, "file%s could not be read"}} {
		if n.n > 0 {
			s := "s"
			if n.n == 1 {
				s = ""
			}
			r.printf("  %d "+n.what+"\n", n.n, s)
		}
	}
	for i, c := range rep.Imported {
		if i == shownContexts {
			r.printf("  … and %d more; chatctx ls lists them\n", len(rep.Imported)-i)
			break
		}
		id := c.Context
		if len(id) > 8 {
			id = id[len(id)-8:]
		}
		r.printf("  %s %s  %s, %s\n", r.paint(yellow, id), cut(oneLine(c.Title), 60), count(c.Messages, "new message"), count(c.Branches, "branch"))
	}
	for _, w := range rep.Warnings {
		r.note("%s", strings.TrimPrefix(warningText(w), ": "))
	}
	if rep.MoreWarnings > 0 {
		r.note("and %s more", count(rep.MoreWarnings, "warning"))
	}
	if dry || !rep.Changed() {
		return
	}
	look := r.onStore("use CTX")
	if len(rep.Imported) == 1 {
		look = r.onStore("tree")
		if c, err := r.st.Context(r.ctx, rep.Imported[0].Context); err == nil {
			look = r.lineAbout("tree", subject{context: c.ID})
		}
	}
	take := "look at it: " + look + "   undo with: "
	for _, op := range made {
		r.note("%s%s", take, r.lineAbout("undo "+op.Operation, subject{context: op.Context}))
		take = "and: "
	}
}

func warningText(w exchange.Warning) string {
	where := clean(w.File)
	switch {
	case w.Line > 0:
		where += fmt.Sprintf(":%d", w.Line)
	case w.Index > 0:
		where += fmt.Sprintf(" (item %d)", w.Index)
	}
	return where + ": " + clean(w.Text)
}

// progress returns the function that shows the progress of an import on a terminal; nil elsewhere.
func (r *run) progress() func(exchange.Progress) {
	if !r.con.errs || r.json() {
		return nil
	}
	const pause = 100 * time.Millisecond
	next := time.Now().Add(3 * pause)
	return func(p exchange.Progress) {
		now := time.Now()
		if now.Before(next) {
			return
		}
		next = now.Add(pause)
		fmt.Fprintf(r.con.err, "\r\x1b[K%s", cut(progressLine(p), r.con.width-1))
		r.con.barShown = true
	}
}

// progressLine is the bar with the figures.
func progressLine(p exchange.Progress) string {
	line := fmt.Sprintf("%s, %s, %s", size(p.Read), count(p.Conversations, "conversation"), count(p.Messages, "message"))
	if p.Total <= 0 {
		return line
	}
	const slots = 24
	share := min(float64(p.Read)/float64(p.Total), 1)
	done := int(share * slots)
	return fmt.Sprintf("[%s%s] %3.0f%%  %s", strings.Repeat("=", done), strings.Repeat(" ", slots-done), share*100, line)
}

// endProgress removes the bar from the terminal.
func (r *run) endProgress() {
	if r.con.barShown {
		fmt.Fprint(r.con.err, "\r\x1b[K")
		r.con.barShown = false
	}
}
