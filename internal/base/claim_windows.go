package base

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/windows"

	"github.com/chatctx/chatctx/pool"
)

// bootID is empty: not every version of Windows has such an id. A claim's process is distinguished from a later one with its id, also after a restart, by
// the time at which it began.
func bootID() string { return "" }

// thisBegun returns the time at which this process began.
var thisBegun = sync.OnceValue(func() pool.Time {
	begun, _ := begunAt(windows.CurrentProcess())
	return begun
})

// begunAt returns the time at which a process began; ok is false if that is not visible.
func begunAt(p windows.Handle) (begun pool.Time, ok bool) {
	var created, ended, inKernel, inUser windows.Filetime
	if windows.GetProcessTimes(p, &created, &ended, &inKernel, &inUser) != nil {
		return 0, false
	}
	return pool.TimeOf(time.Unix(0, created.Nanoseconds())), true
}

// processAlive reports whether the process with that id and beginning still runs. It takes another user's process, whose beginning is not visible, for
// alive.
func processAlive(pid int, begun pool.Time) bool {
	p, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return !errors.Is(err, windows.ERROR_INVALID_PARAMETER) // this error means that there is no such process
	}
	defer windows.CloseHandle(p)
	if state, err := windows.WaitForSingleObject(p, 0); err == nil && state == windows.WAIT_OBJECT_0 {
		return false // it has an exit code; a handle of it is still open
	}
	at, ok := begunAt(p)
	return !ok || begun == 0 || at == begun
}
