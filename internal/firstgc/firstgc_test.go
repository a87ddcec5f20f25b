package firstgc

import (
	"os"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

// TestUsualAfterTheFirst looks that one collection brings the usual percent back.
func TestUsualAfterTheFirst(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("GOGC is set")
	}
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		metrics.Read(percent)
		if percent[0].Value.Uint64() == usual {
			return
		}
		if time.Since(begun) > 30*time.Second {
			t.Fatalf("the collector still works at %d percent", percent[0].Value.Uint64())
		}
	}
}
