package base

import (
	"os"
	"testing"
)

// A process that began at another time has the id of one that is gone, whatever the clock was set to since.
func TestIDTakenAgain(t *testing.T) {
	if thisBegun() == 0 || !processAlive(os.Getpid(), thisBegun()) {
		t.Error("this process is taken for gone")
	}
	if processAlive(os.Getpid(), thisBegun()-1) {
		t.Error("this process is taken for one that began earlier")
	}
	if !processAlive(os.Getpid(), 0) {
		t.Error("a claim that does not say when its process began is taken for dead")
	}
}
