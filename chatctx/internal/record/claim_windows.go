package record

import (
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/windows"

	"github.com/chatctx/chatctx/pool"
)

// bootID: Windows has none that every version tells. The time at which a claim's process began tells it from one that got its id later, a new start of the machine too.
func bootID() string { return "" }

// thisBegun is when this process began.
var thisBegun = sync.OnceValue(func() pool.Time {
	begun, _ := begunAt(windows.CurrentProcess())
	return begun
})

// begunAt is when a process began; ok is false where that cannot be seen.
func begunAt(p windows.Handle) (begun pool.Time, ok bool) {
	var created, ended, inKernel, inUser windows.Filetime
	if windows.GetProcessTimes(p, &created, &ended, &inKernel, &inUser) != nil {
		return 0, false
	}
	return pool.TimeOf(time.Unix(0, created.Nanoseconds())), true
}

// processAlive reports whether the process of that id that began then still runs; one of another user, which cannot be looked at, counts.
func processAlive(pid int, begun pool.Time) bool {
	p, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return !errors.Is(err, windows.ERROR_INVALID_PARAMETER) // which is how it says that there is none
	}
	defer windows.CloseHandle(p)
	if state, err := windows.WaitForSingleObject(p, 0); err == nil && state == windows.WAIT_OBJECT_0 {
		return false // its exit code is there; somebody has it open yet
	}
	at, ok := begunAt(p)
	return !ok || begun == 0 || at == begun
}
