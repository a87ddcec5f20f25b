package cli

import (
	"math"
	"runtime"
	"runtime/debug"
	"testing"
)

// TestTheLimitIsAboveWhatIsInUse: an import that needs more than its limit does not have the collector run all the time; afterwards there is no limit, and one
// that was set from outside stays.
func TestTheLimitIsAboveWhatIsInUse(t *testing.T) {
	for used, want := range map[uint64]int64{0: importMemory, 100 << 20: importMemory, 300 << 20: 400 << 20, 3 << 30: 4 << 30} {
		if got := limitAbove(used); got != want {
			t.Errorf("with %d bytes in use the limit is %d, want %d", used, got, want)
		}
	}
	done := frugal()
	held := make([]byte, 300<<20)
	for tries := 0; debug.SetMemoryLimit(-1) <= importMemory; tries++ {
		if runtime.GC(); tries == 1000 {
			t.Fatalf("the limit is %d with %d bytes in use", debug.SetMemoryLimit(-1), len(held))
		}
	}
	runtime.KeepAlive(held)
	done()
	if got := debug.SetMemoryLimit(-1); got != math.MaxInt64 {
		t.Errorf("a limit of %d stays", got)
	}
	debug.SetMemoryLimit(1 << 30)
	defer debug.SetMemoryLimit(math.MaxInt64)
	done = frugal()
	runtime.GC()
	done()
	if got := debug.SetMemoryLimit(-1); got != 1<<30 {
		t.Errorf("the limit from outside became %d", got)
	}
}
