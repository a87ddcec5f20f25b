package serve

import "slices"

// methods is the table of everything that the API does.
var methods = slices.Concat(contextMethods(), labelMethods(), branchMethods(), messageMethods(), sendMethods(), historyMethods(), compareMethods(), findMethods(), settingMethods(), journalMethods(), callMethods(), ruleMethods(),
	taskMethods(), fileMethods(), changeMethods(), tokenMethods())

// methodNamed returns an entry of the table, nil if there is none.
func methodNamed(name string) *method {
	if i := slices.IndexFunc(methods, func(m *method) bool { return m.name == name }); i >= 0 {
		return methods[i]
	}
	return nil
}
