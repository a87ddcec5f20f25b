package serve

import "slices"

// methods is the table of everything that the API does.
var methods = slices.Concat(contextMethods(), labelMethods(), branchMethods(), messageMethods(), sendMethods(), historyMethods(), compareMethods(), findMethods(), settingMethods(), journalMethods(), callMethods(), ruleMethods(),
	taskMethods(), fileMethods(), changeMethods(), tokenMethods())
