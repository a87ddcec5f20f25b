package record

import (
	"os"
	"testing"
	"time"

	"github.com/chatctx/chatctx/pool"
)

// A process that began after the claim has the id of one that is gone.
func TestIDTakenAgain(t *testing.T) {
	now := pool.Now()
	if !processAlive(os.Getpid(), now) {
		t.Error("this process is taken for gone")
	}
	if processAlive(os.Getpid(), now-pool.Time(time.Hour/time.Microsecond)) {
		t.Error("this process is taken for one of an hour ago")
	}
}
