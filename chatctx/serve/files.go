package serve

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/chatctx/chatctx/internal/operation"
)

func fileMethods() []*method {
	return []*method{
		define("uploads.add", "POST /uploads", operation.Write, "upload a file, or the next part of one, for import; the server keeps it for an hour", addUpload).takesBytes().fails("not_found"),
		define("import", "POST /import", operation.Write, "import uploaded files, and report the progress", importUploads).stream(operation.Tells[progress]("progress", "how far a file is, in bytes, and what came of it")).fails("not_found"),
		define("places", "GET /places", operation.Admin, "list the conversations that tools on the server's machine keep, and where", listPlaces),
		define("places.import", "POST /places/import", operation.Admin, "import the conversations that tools keep, and report the progress", importPlaces).stream(operation.Tells[progress]("progress", "how far a file is, in bytes, and what came of it")).fails("not_found"),
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
	operation.Keyed
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
		return 0, operation.Refused(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("all uploads together have at most %d MB, until they are imported or an hour is over", f.most>>20))
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
			return "", nil, base.NotFound("upload", in.Upload)
		}
		if up.busy {
			return "", nil, &record.ConflictError{Text: "another part of the upload is on its way"}
		}
		up.busy = true
		return in.Upload, up, nil
	}
	if len(u.all) >= mostUploads {
		return "", nil, operation.Refused(http.StatusTooManyRequests, "too_many", "too many uploads wait for an import")
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
	up := &upload{path: filepath.Join(dir, operation.PlainName(in.Name)), owner: owner, busy: true}
	up.timer = time.AfterFunc(uploadLife, func() { u.expire(id) })
	u.all[id] = up
	return id, up, nil
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
	operation.Keyed
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
			return nil, base.Invalid("the upload %q is named twice", id)
		}
		_, up, err := u.take(&uploadParams{Upload: id}, r.who.Name)
		if id == "" {
			err = base.NotFound("upload", id)
		}
		if err != nil {
			return nil, err
		}
		paths = append(paths, up.path)
	}
	return r.bring(paths, exchange.Options{DryRun: in.DryRun, Purged: in.Purged})
}

func listPlaces(r *request, _ *struct{}) (operation.List[exchange.Place], error) {
	return operation.ListOf(r.places()), nil
}

func (r *request) places() []exchange.Place {
	if r.server.options.Places == nil {
		return nil
	}
	return r.server.options.Places()
}

type placesParams struct {
	operation.Keyed
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
			return nil, base.NotFound("tool with conversations on this machine", tool)
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
			_ = r.Tell("progress", progress{filepath.Base(p.File), p.Read, p.Total, p.Conversations, p.Messages}) // a reader that has gone ends the context
		}
	}
	rep, err := exchange.Import(r.Ctx, r.Store, paths, o)
	if rep != nil {
		for i := range rep.Warnings {
			rep.Warnings[i].File = filepath.Base(rep.Warnings[i].File)
		}
	}
	if err == nil && rep.Outcome() == exchange.Nothing {
		err = operation.Refused(http.StatusUnprocessableEntity, "failed", "nothing could be read"+firstWarning(rep))
	}
	return rep, err
}

func firstWarning(rep *exchange.Report) string {
	if len(rep.Warnings) == 0 {
		return ""
	}
	return ": " + rep.Warnings[0].File + ": " + rep.Warnings[0].Text
}
