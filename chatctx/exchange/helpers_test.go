package exchange

import "slices"

// What the tests of package machine, which stands on this one, use of those here.
var (
	CCText      = ccText
	MemoryStore = memoryStore
	ContextsOf  = contextsOf
	SaidOn      = saidOn
	Write       = write
	Only        = only
	Exported    = exported
	ImportInto  = importInto
)

// Reads reports whether files of a format are read.
func Reads(name string) bool {
	return slices.ContainsFunc(formats, func(f format) bool { return f.name == name })
}
