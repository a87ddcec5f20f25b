package exchange

import (
	"fmt"
	"github.com/chatctx/chatctx/chatctx/record"
	"io"
	"slices"
	"sync"
)

// Format is a kind of file that can be read. Name is its name in reports and in the source of messages.
//
// Detect reports from the beginning of a file, up to 1 MB, unpacked and as UTF-8, whether it is of this kind. It is called for every imported file, so it must
// look for something that no other program writes.
//
// Read reads one file that Detect recognised. It returns an error only if nothing more can be read; for a bad part it warns and goes on.
type Format struct {
	Name   string
	Detect func(beginning []byte) bool
	Read   func(r *Reading) error
}

// Reading is a file of a registered Format that is being read. It is not safe for concurrent use.
type Reading struct{ r *reading }

// Content returns the file from its beginning, unpacked and as UTF-8. It returns an error when the import ends.
func (r *Reading) Content() io.Reader { return r.r.buf }

// Beside returns another file of the same folder or archive, of at most max bytes, by its path there. A path that leads out of it is an error.
func (r *Reading) Beside(path string, max int64) ([]byte, error) {
	f, err := r.r.file.sibling(path)
	if err != nil {
		return nil, err
	}
	return f.read(max)
}

// Path returns the file's path in its folder or archive, with slashes.
func (r *Reading) Path() string { return r.r.file.path }

// Warn reports a fact about the file that the person should know. line counts from 1; 0 means the file as a whole.
func (r *Reading) Warn(line int, text string) { r.r.warn(atLine(line), "%s", text) }

// Skip reports n records that should have been messages and are left out, and why. line is that of Warn.
func (r *Reading) Skip(n, line int, why string) { r.r.skip(n, atLine(line), "%s", why) }

// Emit passes a conversation on. An error ends the reading: return it.
func (r *Reading) Emit(in *record.Incoming) error { return r.r.emit(in) }

// registered has the arguments of Register and RegisterExport, in the order of their names.
var registered struct {
	sync.RWMutex
	formats []format
	exports []ExportFormat
}

// Register makes a format readable by Import and Read. A package calls it mostly in its init function, and a program imports that package for its effect, as
// with drivers of database/sql. Registered formats are tried after the store's own and before the others of this package. It panics if the name is taken or a
// field is missing.
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

// RegisterExport makes a format writable by Export, in the same way. It panics if the name is taken or a field is missing.
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

// ExportFormats returns all formats that can be written: this package's and the registered ones. The first is the store's own.
func ExportFormats() []ExportFormat {
	registered.RLock()
	defer registered.RUnlock()
	return slices.Concat(exportFormats, registered.exports)
}

// registeredFormats returns the registered formats that can be read.
func registeredFormats() []format {
	registered.RLock()
	defer registered.RUnlock()
	return registered.formats
}
