package serve

import (
	"slices"
	"sync"
)

// methods is the table of everything that the API does. It is made at the first use, since few commands serve.
var methods = sync.OnceValue(func() []*method {
	return slices.Concat(contextMethods(), labelMethods(), branchMethods(), messageMethods(), sendMethods(), historyMethods(), compareMethods(), findMethods(), settingMethods(), journalMethods(), callMethods(), ruleMethods(),
		taskMethods(), fileMethods(), changeMethods(), tokenMethods())
})

// methodNamed returns an entry of the table, nil if there is none.
func methodNamed(name string) *method {
	if i := slices.IndexFunc(methods(), func(m *method) bool { return m.name == name }); i >= 0 {
		return methods()[i]
	}
	return nil
}
