package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/internal/leftover"
)

func fileMethods() []*method {
	return []*method{
		define("uploads.add", "POST /uploads", Write, "upload a file, or the next part of one, for import; the server keeps it for an hour", addUpload).takesBytes(),
		define("import", "POST /import", Write, "import uploaded files, and report the progress", importUploads).stream(tells[progress]("progress", "how far a file is, in bytes, and what came of it")),
		define("places", "GET /places", Admin, "list the conversations that tools on the server's machine keep, and where", listPlaces),
		define("places.import", "POST /places/import", Admin, "import the conversations that tools keep, and report the progress", importPlaces).stream(tells[progress]("progress", "how far a file is, in bytes, and what came of it")),
		define("export", "GET /contexts/{context}/export", Read, "export a conversation as a file", export).bytes(),
		define("export.formats", "GET /export/formats", Read, "list the formats of export", exportFormats),
	}
}

// The limits of uploads, besides that of their bytes.
const (
	mostUploads = 1000 // that wait for an import
	uploadLife  = time.Hour
)

// uploads are files that wait for an import, each in a folder of its own.
type uploads struct {
	mu   sync.Mutex
	dir  string // "" until the first upload
	all  map[string]*upload
	size int64 // of all
}

type upload struct {
	path  string
	size  int64
	owner string
	busy  bool
	timer *time.Timer
}

type uploadParams struct {
	keyed
	Upload string `json:"upload,omitempty" doc:"the upload that these bytes continue; by default they begin a new one"`
	Name   string `json:"name,omitempty" doc:"the file's name"`
}

// uploaded is a file that waits for an import.
type uploaded struct {
	Upload string `json:"upload"`
	Size   int64  `json:"size"`
}

func addUpload(r *request, in *uploadParams) (uploaded, error) {
	u := &r.server.uploads
	id, up, err := u.take(in, r.who.Name)
	if err != nil {
		return uploaded{}, err
	}
	whole := up.size
	f, err := os.OpenFile(up.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		_, err = io.Copy(&filling{f, u, up, r.server.limits.uploads}, r.body)
		err = errors.Join(err, f.Close())
	}
	if err != nil && (in.Upload == "" || u.cut(up, whole) != nil) {
		u.remove(id)
		return uploaded{}, err
	}
	u.release(id)
	return uploaded{id, up.size}, err
}

// cut removes the bytes of a part that broke off from an upload, so that the part can be sent again.
func (u *uploads) cut(up *upload, whole int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.size -= up.size - whole
	up.size = whole
	return os.Truncate(up.path, whole)
}

// filling writes bytes to an upload, up to the limit for all uploads together.
type filling struct {
	io.Writer
	u    *uploads
	up   *upload
	most int64
}

func (f *filling) Write(p []byte) (int, error) {
	f.u.mu.Lock()
	full := f.u.size+int64(len(p)) > f.most
	if !full {
		f.u.size += int64(len(p))
		f.up.size += int64(len(p))
	}
	f.u.mu.Unlock()
	if full {
		return 0, &refusal{http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("all uploads together have at most %d MB, until they are imported or an hour is over", f.most>>20)}
	}
	return f.Writer.Write(p)
}

// take returns the upload to continue, or begins one; no other request gets it until release.
func (u *uploads) take(in *uploadParams, owner string) (string, *upload, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if in.Upload != "" {
		up := u.all[in.Upload]
		if up == nil || up.owner != owner {
			return "", nil, chatctx.NotFound("upload", in.Upload)
		}
		if up.busy {
			return "", nil, &chatctx.ConflictError{Text: "another part of the upload is on its way"}
		}
		up.busy = true
		return in.Upload, up, nil
	}
	if len(u.all) >= mostUploads {
		return "", nil, &refusal{http.StatusTooManyRequests, "too_many", "too many uploads wait for an import"}
	}
	if u.dir == "" {
		dir, err := os.MkdirTemp("", leftover.Name("uploads"))
		if err != nil {
			return "", nil, err
		}
		u.dir, u.all = dir, map[string]*upload{}
	}
	id := randomName()
	dir := filepath.Join(u.dir, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	up := &upload{path: filepath.Join(dir, plainName(in.Name)), owner: owner, busy: true}
	up.timer = time.AfterFunc(uploadLife, func() { u.expire(id) })
	u.all[id] = up
	return id, up, nil
}

// plainName returns a safe name for a file: the last part of its path, without characters that are special to a file system or a terminal.
func plainName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`<>:"|?*`, r) || r == 0x7f {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	if name = strings.Trim(name, ". "); name == "" || len(name) > 200 {
		return "upload"
	}
	return name
}

func (u *uploads) release(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if up := u.all[id]; up != nil {
		up.busy = false
	}
}

// expire removes an unused upload.
func (u *uploads) expire(id string) {
	u.mu.Lock()
	up := u.all[id]
	if up != nil && up.busy {
		up.timer.Reset(uploadLife)
		up = nil
	}
	u.mu.Unlock()
	if up != nil {
		u.remove(id)
	}
}

// remove removes an upload with its file.
func (u *uploads) remove(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if up := u.all[id]; up != nil {
		up.timer.Stop()
		os.RemoveAll(filepath.Dir(up.path))
		u.size -= up.size
		delete(u.all, id)
	}
}

// close removes all uploads.
func (u *uploads) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id, up := range u.all {
		up.timer.Stop()
		delete(u.all, id)
	}
	if u.dir != "" {
		os.RemoveAll(u.dir)
		u.dir = ""
	}
	u.size = 0
}

type importParams struct {
	keyed
	Uploads []string `json:"uploads" doc:"the uploads that uploads.add returned; the import removes them"`
	DryRun  bool     `json:"dry_run,omitempty" doc:"only report what an import would do; store nothing and keep the uploads"`
	Purged  bool     `json:"purged,omitempty" doc:"bring what was purged here, too"`
}

// progress says how far an import is.
type progress struct {
	File          string `json:"file"`
	Read          int64  `json:"read"`
	Total         int64  `json:"total"`
	Conversations int    `json:"conversations"`
	Messages      int    `json:"messages"`
}

func importUploads(r *request, in *importParams) (rep *exchange.Report, err error) {
	u := &r.server.uploads
	var paths []string
	defer func() {
		for _, id := range in.Uploads[:len(paths)] {
			if u.release(id); !in.DryRun && err == nil {
				u.remove(id)
			}
		}
	}()
	for i, id := range in.Uploads {
		if slices.Contains(in.Uploads[:i], id) {
			return nil, chatctx.Invalid("the upload %q is named twice", id)
		}
		_, up, err := u.take(&uploadParams{Upload: id}, r.who.Name)
		if id == "" {
			err = chatctx.NotFound("upload", id)
		}
		if err != nil {
			return nil, err
		}
		paths = append(paths, up.path)
	}
	return r.bring(paths, exchange.Options{DryRun: in.DryRun, Purged: in.Purged})
}

func listPlaces(r *request, _ *struct{}) (list[exchange.Place], error) {
	return listOf(r.places()), nil
}

func (r *request) places() []exchange.Place {
	if r.server.options.Places == nil {
		return nil
	}
	return r.server.options.Places()
}

type placesParams struct {
	keyed
	Tools  []string `json:"tools" doc:"the tools, by their names in places"`
	Purged bool     `json:"purged,omitempty" doc:"bring what was purged here, too"`
}

func importPlaces(r *request, in *placesParams) (*exchange.Report, error) {
	found := r.places()
	var paths []string
	for _, tool := range in.Tools {
		at := len(paths)
		for _, p := range found {
			if p.Tool == tool {
				paths = append(paths, p.Path)
			}
		}
		if len(paths) == at {
			return nil, chatctx.NotFound("tool with conversations on this machine", tool)
		}
	}
	return r.bring(paths, exchange.Options{Purged: in.Purged})
}

// bring imports files and reports progress.
func (r *request) bring(paths []string, o exchange.Options) (*exchange.Report, error) {
	next := time.Now()
	o.Progress = func(p exchange.Progress) {
		if now := time.Now(); !now.Before(next) {
			next = now.Add(100 * time.Millisecond)
			_ = r.tell("progress", progress{filepath.Base(p.File), p.Read, p.Total, p.Conversations, p.Messages}) // a reader that has gone ends the context
		}
	}
	rep, err := exchange.Import(r.ctx, r.store, paths, o)
	if rep != nil {
		for i := range rep.Warnings {
			rep.Warnings[i].File = filepath.Base(rep.Warnings[i].File)
		}
	}
	if err == nil && rep.Outcome() == exchange.Nothing {
		err = &refusal{http.StatusUnprocessableEntity, "failed", "nothing could be read" + firstWarning(rep)}
	}
	return rep, err
}

func firstWarning(rep *exchange.Report) string {
	if len(rep.Warnings) == 0 {
		return ""
	}
	return ": " + rep.Warnings[0].File + ": " + rep.Warnings[0].Text
}

type exportParams struct {
	conversation
	Branch string `json:"branch" doc:"the branch to export, for formats that hold only one"`
	Format string `json:"format,omitempty" doc:"the format; by default chatctx, which loses nothing"`
	Hidden bool   `json:"hidden,omitempty" doc:"include hidden messages in formats for reading"`
}

// mediaTypes are the media types of formats, by extension.
var mediaTypes = map[string]string{".html": "text/html; charset=utf-8", ".md": "text/markdown; charset=utf-8", ".json": "application/json", ".jsonl": "application/x-ndjson"}

func export(r *request, in *exportParams) (written, error) {
	format := in.Format
	all := exchange.ExportFormats()
	if format == "" {
		format = all[0].Name
	}
	i := slices.IndexFunc(all, func(f exchange.ExportFormat) bool { return f.Name == format })
	if i < 0 {
		return written{}, chatctx.Invalid("no format %q", format)
	}
	c, err := r.store.Context(r.ctx, in.Context)
	if err != nil {
		return written{}, err
	}
	info, err := c.Info(r.ctx)
	if err == nil {
		_, err = c.Branch(r.ctx, in.Branch) // formats with all branches would ignore a missing one
	}
	if err != nil {
		return written{}, err
	}
	out := written{MediaType: mediaTypes[all[i].Extension], Name: plainName(info.Title) + all[i].Extension}
	out.MediaType = cmp.Or(out.MediaType, "application/octet-stream")
	w := &late{open: func() (io.Writer, error) { return r.write(out.MediaType, out.Name) }}
	err = exchange.Export(r.ctx, r.store, exchange.ExportOptions{Format: format, Context: c.ID.String(), Branch: in.Branch, Hidden: in.Hidden}, w)
	out.Size = w.n
	return out, err
}

// late opens its writer with the first bytes, so that an error before them can still be reported.
type late struct {
	open func() (io.Writer, error)
	w    io.Writer
	n    int64
}

func (l *late) Write(p []byte) (int, error) {
	if l.w == nil {
		var err error
		if l.w, err = l.open(); err != nil {
			return 0, err
		}
	}
	n, err := l.w.Write(p)
	l.n += int64(n)
	return n, err
}

// formatInfo is a format for exports.
type formatInfo struct {
	Format    string `json:"format"`
	Extension string `json:"extension"`
	What      string `json:"what"`
}

func exportFormats(*request, *struct{}) (list[formatInfo], error) {
	return listEach(exchange.ExportFormats(), nil, func(f exchange.ExportFormat) formatInfo { return formatInfo{f.Name, f.Extension, f.What} })
}
