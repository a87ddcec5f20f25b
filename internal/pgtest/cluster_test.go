//go:build unix

package pgtest

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m.Run)) }

// TestKillAndUp: the server ends as in a crash and comes back with its data.
func TestKillAndUp(t *testing.T) {
	if Server == nil {
		t.Skip(ErrMissing)
	}
	first, ready := Server.note()
	if !ready {
		t.Fatal("the server is not ready")
	}
	if err := Server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := Server.Up(); err != nil {
		t.Fatal(err)
	}
	second, ready := Server.note()
	if !ready || second == first {
		t.Errorf("after a kill: process %d, before it %d, ready %t", second, first, ready)
	}
	if err := Server.Down(); err != nil {
		t.Fatal(err)
	}
	if pid, ready := Server.note(); ready {
		t.Errorf("the server %d is said to run after its end", pid)
	}
}
