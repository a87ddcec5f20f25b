package record

import (
	"errors"
	"time"

	"golang.org/x/sys/windows"

	"github.com/chatctx/chatctx/pool"
)

// bootID: Windows has none that every version tells. A process that began after its claim is not the claim's, which tells a new start of the machine too.
func bootID() string { return "" }

// clockSlack is how far the clock may have been set back between a process's begin and its claim.
const clockSlack = pool.Time(time.Minute / time.Microsecond)

// processAlive reports whether the process that had this id at that time still runs; one of another user, which cannot be looked at, counts.
func processAlive(pid int, since pool.Time) bool {
	p, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		return !errors.Is(err, windows.ERROR_INVALID_PARAMETER) // which is how it says that there is none
	}
	defer windows.CloseHandle(p)
	if state, err := windows.WaitForSingleObject(p, 0); err == nil && state == windows.WAIT_OBJECT_0 {
		return false // its exit code is there; somebody has it open yet
	}
	var begun, ended, inKernel, inUser windows.Filetime
	if windows.GetProcessTimes(p, &begun, &ended, &inKernel, &inUser) != nil {
		return true
	}
	return pool.TimeOf(time.Unix(0, begun.Nanoseconds())) <= since+clockSlack
}
