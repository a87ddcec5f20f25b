//go:build unix

package exchange

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chatctx/chatctx/internal/storetest"
)

// TestAPipeIsImported: a file that can be read only once is read like standard input; an import does not outlast its context, even if nobody writes to the
// pipe.
func TestAPipeIsImported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		wrote <- os.WriteFile(path, []byte(`{"messages":[{"role":"user","content":"through the pipe"},{"role":"assistant","content":"it came"}]}`), 0o600)
	}()
	s := memoryStore(t)
	rep, err := Import(context.Background(), s, []string{path}, Options{})
	if err != nil || rep.Messages != 2 || rep.Outcome() != Complete || <-wrote != nil {
		t.Fatalf("%v %+v", err, rep)
	}
	storetest.Check(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := Import(ctx, s, []string{path}, Options{})
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	rep, err = Import(context.Background(), s, []string{os.DevNull}, Options{})
	if err != nil || rep.Failed != 1 || !strings.Contains(rep.Warnings[0].Text, "not a known format") {
		t.Errorf("%v %+v", err, rep)
	}
}
