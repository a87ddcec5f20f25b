package cli

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/chatctx/chatctx/chatctx"
)

// TestLocked: a program that never lets the file go ends the wait of others with 11, and nothing is done; a completion is silent.
func TestLocked(t *testing.T) {
	t.Parallel()
	path := filledStore(t, 1)
	f, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart} // every byte that may be locked
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLKW, &all); err != nil {
		t.Fatal(err)
	}
	st, err := chatctx.Open(path, chatctx.Options{Wait: time.Hour}) // it does not wait
	if err != nil {
		t.Fatal(err)
	}
	st.Close()
	cmd := program(t, path, "add", "user", "too late", "--json")
	var errs strings.Builder
	cmd.Stderr = &errs
	if code := exitCode(cmd.Run()); code != exitLocked || !strings.Contains(errs.String(), `"kind":"locked"`) {
		t.Errorf("add beside a holder that keeps the file: %d %s", code, errs.String())
	}
	if out := must(t, path, "__complete", "--", "--store", path, "switch", ""); out != "" {
		t.Errorf("completion says %q", out)
	}
	f.Close()
	if out := must(t, path, "log"); strings.Contains(out, "too late") {
		t.Error("what was refused is there")
	}
}
