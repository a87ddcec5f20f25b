//go:build unix

package input_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chatctx/chatctx/internal/input"
)

func pipe(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAPipeIsRead(t *testing.T) {
	path, wrote := pipe(t), make(chan error, 1)
	go func() { wrote <- os.WriteFile(path, []byte("through the pipe"), 0o600) }()
	f, err := input.Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil || string(b) != "through the pipe" || <-wrote != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// TestWaitsEndWithTheContext: for the other end of a pipe, and for what it writes.
func TestWaitsEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	opened := make(chan error, 1)
	path := pipe(t)
	go func() {
		_, err := input.Open(ctx, path)
		opened <- err
	}()
	cancel()
	if err := <-opened; !errors.Is(err, context.Canceled) {
		t.Errorf("opening ended with %v", err)
	}

	ctx, cancel = context.WithCancel(context.Background())
	path = pipe(t)
	end := make(chan *os.File, 1)
	go func() {
		f, _ := os.OpenFile(path, os.O_WRONLY, 0)
		end <- f
	}()
	f, err := input.Open(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	other := <-end
	defer other.Close()
	read := make(chan error, 1)
	go func() {
		_, err := f.Read(make([]byte, 10))
		read <- err
	}()
	cancel()
	if err := <-read; !errors.Is(err, context.Canceled) {
		t.Errorf("reading ended with %v", err)
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Skip(err) // the folder's name is too long for a socket
	}
	defer l.Close()
	for path, want := range map[string]string{dir: "is a folder", filepath.Join(dir, "s"): "is a socket"} {
		if _, err := input.Open(context.Background(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := input.Open(context.Background(), filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}
