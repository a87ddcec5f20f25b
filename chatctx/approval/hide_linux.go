package approval

import (
	"os"
	"syscall"
)

// HideEnvironment keeps this process's environment and memory, which may hold keys of providers, from the tools that it runs: other processes of the same
// user, unless they may trace any process, cannot read them under /proc, nor attach a debugger. CHATCTX_DUMPABLE=1 leaves the process open for debuggers.
// On other systems it does nothing.
func HideEnvironment() {
	if os.Getenv("CHATCTX_DUMPABLE") != "1" {
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0)
	}
}
