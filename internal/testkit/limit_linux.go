package testkit

import (
	"os/signal"
	"syscall"
	"testing"
)

// LimitFiles keeps this process from writing files beyond a size, so that writes fail with EFBIG, until lift is called or the test ends. The test has to be Alone:
// the limit is also that of the log that go test has each process write.
func LimitFiles(t testing.TB, size uint64) (lift func()) {
	t.Helper()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	signal.Ignore(syscall.SIGXFSZ)
	set := func(l syscall.Rlimit) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
			t.Error(err)
		}
	}
	lift = func() { set(before) }
	t.Cleanup(func() {
		lift()
		signal.Reset(syscall.SIGXFSZ)
	})
	set(syscall.Rlimit{Cur: size, Max: before.Max})
	return lift
}
