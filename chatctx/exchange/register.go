package exchange

import (
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/chatctx/chatctx/chatctx"
)

// Format is a kind of file that can be read. Name is what reports and the source of messages call it.
//
// Detect tells from the beginning of a file, up to 1 MB, unpacked and as UTF-8, whether it is of this kind. It is asked of every file that is
// imported, so it looks for what no other program writes.
//
// Read reads one file that Detect knew. It returns an error only where nothing more can be read; what is wrong with a part it warns of and goes on.
type Format struct {
	Name   string
	Detect func(beginning []byte) bool
	Read   func(r *Reading) error
}

// Reading is one file of a registered Format being read, by one goroutine.
type Reading struct{ r *reading }

// Content is the file, unpacked and as UTF-8, from its beginning. It ends with an error when the import ends.
func (r *Reading) Content() io.Reader { return r.r.buf }

// OnDisk gives the path of the file, unpacked, for what has to be read at random. done removes it where it is a copy. Call it in place of
// Content, not after it.
func (r *Reading) OnDisk() (path string, done func(), err error) { return r.r.onDisk() }

// Beside reads another file of the same folder or archive, of at most max bytes, by its path there. A path that leads out of it is an error.
func (r *Reading) Beside(path string, max int64) ([]byte, error) {
	f, err := r.r.file.sibling(path)
	if err != nil {
		return nil, err
	}
	return f.read(max)
}

// Path is the file's path in its folder or archive, with slashes.
func (r *Reading) Path() string { return r.r.file.path }

// Warn puts something about the file on the report that the person should know. line counts from 1; 0 is the file as a whole.
func (r *Reading) Warn(line int, text string) { r.r.warn(atLine(line), "%s", text) }

// Skip reports n records that should have been messages and are left out, and why.
func (r *Reading) Skip(n, line int, why string) { r.r.skip(n, atLine(line), "%s", why) }

// Emit hands a conversation on. An error ends the reading: return it.
func (r *Reading) Emit(in *chatctx.Incoming) error { return r.r.emit(in) }

// registered are what Register and RegisterExport were given, in the order of names.
var registered struct {
	sync.RWMutex
	formats []format
	exports []ExportFormat
}

// Register makes a format readable by Import and Read, mostly from the init function of a package that a program imports for it, as drivers of
// database/sql do. Registered formats are tried before those of this package but for the store's own. It panics where the name is taken or something is missing.
func Register(f Format) {
	if f.Name == "" || f.Detect == nil || f.Read == nil {
		panic("exchange: Register of a format without a name, Detect or Read")
	}
	own := format{f.Name, func(h *head) bool { return f.Detect(h.text) }, func(r *reading) error { return f.Read(&Reading{r}) }}
	registered.Lock()
	defer registered.Unlock()
	if slices.ContainsFunc(slices.Concat(formats, registered.formats), func(x format) bool { return x.name == f.Name }) {
		panic(fmt.Sprintf("exchange: the format %q is registered twice", f.Name))
	}
	registered.formats = append(slices.Clone(registered.formats), own)
	slices.SortFunc(registered.formats, func(a, b format) int { return naturalOrder(a.name, b.name) })
}

// RegisterExport makes a format writable by Export, in the same way. It panics where the name is taken or something is missing.
func RegisterExport(f ExportFormat) {
	if f.Name == "" || f.Write == nil {
		panic("exchange: RegisterExport of a format without a name or Write")
	}
	registered.Lock()
	defer registered.Unlock()
	if slices.ContainsFunc(slices.Concat(exportFormats, registered.exports), func(x ExportFormat) bool { return x.Name == f.Name }) {
		panic(fmt.Sprintf("exchange: the format %q is registered twice", f.Name))
	}
	registered.exports = append(slices.Clone(registered.exports), f)
	slices.SortFunc(registered.exports, func(a, b ExportFormat) int { return naturalOrder(a.Name, b.Name) })
}

// ExportFormats are all that can be written: this package's and the registered ones. The first is the store's own.
func ExportFormats() []ExportFormat {
	registered.RLock()
	defer registered.RUnlock()
	return slices.Concat(exportFormats, registered.exports)
}

// registeredFormats are the registered ones that can be read.
func registeredFormats() []format {
	registered.RLock()
	defer registered.RUnlock()
	return registered.formats
}
