package exchange

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/input"
	"github.com/chatctx/chatctx/internal/plural"
	"github.com/chatctx/chatctx/internal/sqlite"
	"github.com/chatctx/chatctx/pool"
)

// Options are options of Import and Read. The zero Options store everything, with the default limits.
type Options struct {
	DryRun   bool           // read and report, but store nothing
	Progress func(Progress) // called from time to time, by the goroutine that reads; nil means never
	Stdin    io.Reader      // the input for the path "-"
	Purged   bool           // bring what was purged here, too
	Limits   Limits         // zero fields mean the defaults

	Finished bool // leaves out answers that may still be written: nothing follows them, and their program did not mark them as finished
}

// Limits bound what an import accepts from files that may be malicious. A zero field means its default.
type Limits struct {
	Line     int   // bytes of a line of JSON Lines: 64 MB. Longer ones are skipped
	Item     int   // bytes of a conversation, or of a file that is one JSON value: 128 MB. Larger ones are skipped
	Members  int   // of a ZIP: 200,000
	Unpacked int64 // bytes up to which Ratio does not apply: 1 GB
	Ratio    int   // how many times larger than its packed form something may be: 200
	Spool    int64 // bytes of a ZIP or database that must be copied to be read: 16 GB
	Memory   int   // bytes of one conversation's messages that stay in memory while it is read; the others go to a temporary file: 16 MB
	Asset    int64 // bytes of one image or other file of a message: 256 MB
	Warnings int   // how many the report keeps, while the rest is only counted: 10,000
}

func (l Limits) withDefaults() Limits {
	set := func(p *int, n int) {
		if *p == 0 {
			*p = n
		}
	}
	set64 := func(p *int64, n int64) {
		if *p == 0 {
			*p = n
		}
	}
	set(&l.Line, 64<<20)
	set(&l.Item, 128<<20)
	set(&l.Members, 200_000)
	set(&l.Memory, 16<<20)
	set64(&l.Unpacked, 1<<30)
	set(&l.Ratio, 200)
	set64(&l.Spool, 16<<30)
	set64(&l.Asset, 256<<20)
	set(&l.Warnings, 10_000)
	return l
}

// Progress says how far an import is.
type Progress struct {
	File          string
	Read          int64 // bytes of all files so far, as on disk
	Total         int64 // bytes of all files, 0 if unknown
	Conversations int
	Messages      int
}

// Warning is a fact about a file that the person should know.
type Warning struct {
	File  string `json:"file"`
	Line  int    `json:"line,omitempty"`  // of JSON Lines, from 1
	Index int    `json:"index,omitempty"` // of an item of an array, from 1
	Text  string `json:"text"`
}

// Report is the result of an import. The files have Messages + Skipped + Duplicated + Structural + Purged messages in all.
type Report struct {
	Files           int        `json:"files"`    // that were read and have a known format
	Contexts        int        `json:"contexts"` // that are new or got something new
	Messages        int        `json:"messages"` // that were added
	Branches        int        `json:"branches"` // that were added
	Skipped         int        `json:"skipped"`  // records that should have been messages and were left out
	Duplicated      int        `json:"duplicated"`
	Repaired        int        `json:"repaired"` // messages that were stored only after a change
	Structural      int        `json:"structural"`
	SkippedContexts int        `json:"skipped_contexts"`
	Failed          int        `json:"failed"`           // files that could not be read, or not to their end
	Purged          int        `json:"purged,omitempty"` // messages that were purged here, and are not brought back
	Warnings        []Warning  `json:"warnings"`
	MoreWarnings    int        `json:"more_warnings,omitempty"` // that are only counted
	Imported        []Imported `json:"imported"`

	limit  int
	hidden map[chatctx.ID]bool // contexts that a dry run made; nil if it is none
	// trashed are the titles of conversations that stay in the trash; places has each context's place in Imported.
	trashed []string
	places  map[chatctx.ID]int
}

// Imported is a conversation of the report.
type Imported struct {
	Context  string `json:"context,omitempty"`
	Title    string `json:"title"`
	Format   string `json:"format"`
	SourceID string `json:"source_id"`
	Messages int    `json:"messages"`          // that were added
	Branches int    `json:"branches"`          // that it has
	Trashed  bool   `json:"trashed,omitempty"` // it is in the trash and stays there
	// Operations changed a conversation that was here, the oldest first.
	Operations []string `json:"-"`

	counted bool // among Report.Contexts
}

func (r *Report) warn(w Warning) {
	if len(r.Warnings) >= r.limit {
		r.MoreWarnings++
		return
	}
	r.Warnings = append(r.Warnings, w)
}

// Outcome sums up an import.
type Outcome int

// Complete means that everything is stored, or was already. Partial means that a record that should have been a message, a conversation or a file was left out.
// Nothing means that no file could be read, or nothing of any: all that should have been a conversation was left out.
const (
	Complete Outcome = iota
	Partial
	Nothing
)

// Outcome sums up the report.
func (r *Report) Outcome() Outcome {
	leftOut := r.Skipped > 0 || r.SkippedContexts > 0 || r.Failed > 0
	switch {
	case r.Files == 0 || leftOut && len(r.Imported) == 0:
		return Nothing
	case leftOut:
		return Partial
	}
	return Complete
}

// Changed reports whether the import changed the store.
func (r *Report) Changed() bool {
	return r.Contexts > 0 || slices.ContainsFunc(r.Imported, func(i Imported) bool { return len(i.Operations) > 0 })
}

// Read reads files, folders and archives ("-" is Options.Stdin) and passes each conversation to sink, with all its branches, as in the file: it uses no store.
// The report counts what was read as Messages and Branches. Read returns an error only if ctx ends or sink fails; problems of the files are in the report.
func Read(ctx context.Context, paths []string, o Options, sink func(*record.Incoming) error) (*Report, error) {
	return read(ctx, paths, o, nil, sink)
}

// Look is Read for an overview, and takes less memory: the contents of a large conversation's messages must be requested with Incoming.Contents, before sink
// returns.
func Look(ctx context.Context, paths []string, o Options, sink func(*record.Incoming) error) (*Report, error) {
	return read(ctx, paths, o, closeShelf, sink)
}

func closeShelf(s *shelf) error {
	s.close()
	return nil
}

func read(ctx context.Context, paths []string, o Options, release func(*shelf) error, sink func(*record.Incoming) error) (*Report, error) {
	rep := &Report{}
	im := newImporter(ctx, o, rep, func(in *record.Incoming) error {
		rep.Contexts++
		n := fileMessages(in)
		rep.Messages += n
		rep.Branches += len(in.Branches)
		rep.Imported = append(rep.Imported, Imported{
			Title: in.Title, Format: in.Format, SourceID: in.Conversation, Messages: n, Branches: len(in.Branches),
		})
		return sink(in)
	})
	im.release = release
	return rep, im.paths(paths)
}

// fileMessages returns the number of messages that a conversation has in its file.
func fileMessages(in *record.Incoming) int {
	n := 0
	for i := range in.Nodes {
		if !in.Nodes[i].Further {
			n++
		}
	}
	return n
}

// importer reads the arguments of one import.
type importer struct {
	ctx      context.Context
	opts     Options
	limits   Limits
	report   *Report
	sink     func(*record.Incoming) error
	native   func(record.Native) (target nativeTarget, alone bool, err error)
	below    func(child, parent chatctx.ID, task *record.Task) (bool, error)
	artifact func(data []byte, mediaType string) error
	settings func(map[string]json.RawMessage) error
	known    func(record.SourceLink, pool.Hash) (bool, error)
	// What the store knows of whole files and their contents; nil if nothing is stored.
	knownFile func(f record.ImportedFile, sum func() (pool.Hash, error)) (*record.ImportedFile, []record.Imported, error)
	note      func(record.ImportedFile)
	counted   func([]record.SourceLink, []record.Imported) error
	release   func(*shelf) error // takes a file's shelf after the file is read; nil means that messages stay in memory
	passing   *passing           // the file that is being read; nil if none is
	progress  Progress
	exact     float64   // bytes read so far; of packed files, fractions of bytes
	notOurs   []notOurs // files of the current folder or archive that are not conversations
}

func newImporter(ctx context.Context, o Options, rep *Report, sink func(*record.Incoming) error) *importer {
	im := &importer{ctx: ctx, opts: o, limits: o.Limits.withDefaults(), report: rep}
	rep.limit, rep.Warnings, rep.Imported = im.limits.Warnings, []Warning{}, []Imported{}
	im.sink = func(in *record.Incoming) error {
		im.progress.Conversations++
		im.progress.Messages += fileMessages(in)
		im.passing.see(in.Format, in.Conversation, fileMessages(in))
		return sinkError{sink(in)}.orNil()
	}
	im.native = im.dry
	return im
}

// sinkError marks an error that is not the file's.
type sinkError struct{ err error }

func (e sinkError) Error() string { return e.err.Error() }
func (e sinkError) Unwrap() error { return e.err }
func (e sinkError) orNil() error {
	if e.err == nil {
		return nil
	}
	return e
}

// paths imports each argument.
func (im *importer) paths(paths []string) error {
	for _, p := range paths {
		im.progress.Total += diskSize(p)
	}
	for _, p := range paths {
		if err := im.ended(im.path(p), p); err != nil {
			return err
		}
	}
	return nil
}

// ended handles an error: one of the context or the sink ends the import, any other is the file's and goes into the report.
func (im *importer) ended(err error, name string) error {
	var sink sinkError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &sink):
		return sink.err
	case im.ctx.Err() != nil:
		return im.ctx.Err()
	}
	im.report.Failed++
	im.report.warn(Warning{File: name, Text: plainError(err)})
	return nil
}

// plainError returns an error's text without the path, which the report has already.
func plainError(err error) string {
	var pe *fs.PathError
	switch {
	case errors.As(err, &pe):
		return pe.Err.Error()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "a packed file (gzip or zstd) that is cut off"
	case errors.Is(err, zip.ErrFormat):
		return "a damaged ZIP: it is cut off, or its list of members is damaged"
	}
	return err.Error()
}

func diskSize(p string) int64 {
	info, err := os.Stat(p)
	if err != nil || !info.IsDir() {
		if err == nil && info.Mode().IsRegular() {
			return info.Size()
		}
		return 0
	}
	var n int64
	filepath.WalkDir(p, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

func (im *importer) path(p string) error {
	if p == "-" {
		return im.stdin()
	}
	info, err := os.Stat(p)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return im.folder(p)
	}
	if !info.Mode().IsRegular() {
		in, err := input.Open(im.ctx, p)
		if err != nil {
			return err
		}
		defer in.Close()
		return im.stream(p, in)
	}
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return err
	}
	f, err := folder{root: filepath.Dir(real)}.get(filepath.Base(real))
	if err != nil {
		return err
	}
	f.name = p
	return im.file(f, 0, true)
}

func (im *importer) stdin() error {
	if im.opts.Stdin == nil {
		return errors.New("no standard input is given")
	}
	return im.stream("-", im.opts.Stdin)
}

// stream imports an input that can be read only once.
func (im *importer) stream(name string, in io.Reader) error {
	used := false
	f := &file{name: name, path: "-", size: -1, open: func() (io.ReadCloser, error) {
		if used {
			return nil, fmt.Errorf("%s can be read once", name)
		}
		used = true
		return io.NopCloser(in), nil
	}}
	return im.file(f, 0, true)
}

func (im *importer) folder(p string) error {
	d := folder{root: p, deep: true}
	names, err := d.list()
	if err != nil {
		return err
	}
	before := im.report.Files
	if err := im.all(d, names, p, 0); err != nil {
		return err
	}
	if im.report.Files == before {
		return errors.New("no file in this folder has a known format")
	}
	return nil
}

// all imports the files of a container. It names those that are not conversations in one warning.
func (im *importer) all(c container, names []string, where string, depth int) (refused error) {
	outer := im.notOurs
	im.notOurs = nil
	used := map[string]bool{}
	for i, n := range names {
		if companion(n, names) {
			continue
		}
		f, err := c.get(n)
		if err == nil {
			err = im.file(f, depth, false)
			for _, other := range f.uses {
				used[other] = true
			}
		}
		if err := im.ended(err, filepath.Join(where, n)); err != nil {
			return err
		}
		if a, is := c.(*archive); is && a.all.over() != nil {
			refused = fmt.Errorf("%w; %s not read", a.all.over(), plural.Count(len(names)-i-1, "further member"))
			break
		}
	}
	im.warnOfOthers(where, used)
	im.notOurs = outer
	return refused
}

// companion reports whether a file belongs to a database beside it and is read with that.
func companion(name string, names []string) bool {
	for _, ending := range []string{"-wal", "-shm"} {
		if of, ok := strings.CutSuffix(name, ending); ok && slices.Contains(names, of) {
			return true
		}
	}
	return false
}

// notOurs is a file of an unknown format, with a description.
type notOurs struct{ path, seen string }

// warnOfOthers names the files that are not conversations and do not belong to one.
func (im *importer) warnOfOthers(where string, used map[string]bool) {
	var shown []string
	more := 0
	for _, f := range im.notOurs {
		switch {
		case used[f.path]:
		case len(shown) == 8:
			more++
		default:
			shown = append(shown, fmt.Sprintf("%s (%s)", f.path, show.Clip(f.seen, 60)))
		}
	}
	if len(shown) == 0 {
		return
	}
	text := "these files hold no conversations: " + strings.Join(shown, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	im.report.warn(Warning{File: where, Text: text})
}

// file imports one file. named means that the person named this very file, so that an unknown format is an error.
func (im *importer) file(f *file, depth int, named bool) error {
	im.progress.File = f.name
	if done, err := im.again(f); done || err != nil {
		return err
	}
	opened, sum := f.summed()
	c, err := openContent(im.ctx, opened, im.limits, func(n int64) { im.read(float64(n) * f.diskShare()) })
	if err != nil {
		return err
	}
	defer c.Close()
	text, err := c.Peek(c.Size())
	if err != nil && err != io.EOF {
		return err
	}
	if isZip(text) {
		return im.zip(f, c, depth)
	}
	h := newHead(text, err == io.EOF)
	if strings.HasPrefix(string(text[:min(len(text), len(sqlite.Magic))]), sqlite.Magic) {
		db, done, err := im.openDatabase(f, c)
		if errors.Is(err, sqlite.ErrDamaged) && !named {
			im.notOurs = append(im.notOurs, notOurs{f.path, err.Error()})
			return nil
		}
		if err != nil {
			return err
		}
		defer done()
		h.db = db
	}
	if h.array && h.whole && len(h.values) == 0 && !bytes.ContainsRune(text, '{') {
		im.report.Files++ // an empty list: whatever its format, it has nothing
		return nil
	}
	fm, known := detect(h)
	if !known {
		if named {
			return errors.New("not a known format: " + h.seen())
		}
		im.notOurs = append(im.notOurs, notOurs{f.path, h.seen()})
		return nil
	}
	im.report.Files++
	r := &reading{ctx: im.ctx, format: fm.name, file: f, head: h, db: h.db, buf: c.Reader, onDisk: func() (string, func(), error) { return im.onDisk(f, c) }, limits: im.limits, report: im.report, finished: im.opts.Finished,
		sink: im.sink, native: im.native, below: im.below, artifact: im.artifact, settings: im.settings, unchanged: im.unchanged()}
	im.beginNote()
	if err := im.shelved(r, fm.read); err != nil || fm.name == nativeName {
		im.passing = nil
		return err
	}
	if h.db != nil {
		if err := r.unknownColumns(); err != nil && !errors.Is(err, sqlite.ErrDamaged) {
			return err
		}
	}
	if h.db != nil && h.db.Changed() {
		r.warn(place{}, "another program wrote to the database while it was read; import it again")
		im.passing = nil
		return nil
	}
	return im.endNote(f, sum)
}

// shelved reads a file with a shelf for the contents of its messages.
func (im *importer) shelved(r *reading, read func(*reading) error) error {
	if im.release == nil {
		return read(r)
	}
	r.shelf = &shelf{room: im.limits.Memory}
	err := read(r)
	return cmp.Or(err, im.release(r.shelf))
}

// read counts bytes for the progress.
func (im *importer) read(n float64) {
	im.exact += n
	im.progress.Read = int64(im.exact)
	if im.progress.Total > 0 {
		im.progress.Read = min(im.progress.Read, im.progress.Total)
	}
	if im.opts.Progress != nil {
		im.opts.Progress(im.progress)
	}
}

// zip imports the files in an archive. depth counts the archives around it: an archive within another is read, but not one within that.
func (im *importer) zip(f *file, c *content, depth int) error {
	if depth > 1 {
		im.report.warn(Warning{File: f.name, Text: "a ZIP in a ZIP in a ZIP is not opened"})
		return nil
	}
	disk, done, err := im.onDisk(f, c)
	if err != nil {
		return err
	}
	defer done()
	a, closeZIP, err := openArchive(f.name, disk, im.limits)
	if err != nil {
		return err
	}
	defer closeZIP()
	a.share = f.diskShare()
	if all := f.together(); all != nil {
		a.all = all
	}
	for _, n := range a.escaping() {
		im.report.Failed++
		im.report.warn(Warning{File: f.name, Text: fmt.Sprintf("the member %q leads out of the archive and is not read", n)})
	}
	if len(a.twice) > 0 {
		im.report.warn(Warning{File: f.name, Text: "several members have one name, and each is read as a file of its own: " + show.Clip(strings.Join(a.twice, ", "), 500)})
	}
	names, err := a.list()
	if err != nil {
		return err
	}
	before := im.report.Files
	if err := im.all(a, names, f.name, depth+1); err != nil {
		return err
	}
	if im.report.Files == before {
		return errors.New("no file in this ZIP has a known format")
	}
	return nil
}
