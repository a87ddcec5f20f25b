package serve

import (
	"slices"
	"sync"

	"github.com/chatctx/chatctx/internal/operation"
)

// methods is the table of everything that the API does: all operations, and what a server alone knows of. It is made at the first use, since few commands serve.
var methods = sync.OnceValue(func() (all []*method) {
	for _, o := range operation.All() {
		if o.Path != "" {
			all = append(all, methodOf(o))
		}
	}
	return slices.Concat(all, fileMethods(), changeMethods())
})

// methodNamed returns an entry of the table, nil if there is none.
func methodNamed(name string) *method {
	if i := slices.IndexFunc(methods(), func(m *method) bool { return m.Name == name }); i >= 0 {
		return methods()[i]
	}
	return nil
}
