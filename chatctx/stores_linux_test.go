package chatctx

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/testkit"
)

// dying is an engine that kills the program at a write.
type dying struct {
	kv.DB
	at int
}

func (d *dying) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	return d.DB.Update(ctx, func(tx kv.RwTx) error { return fn(&dyingTx{tx, d}) })
}

type dyingTx struct {
	kv.RwTx
	of *dying
}

func (t *dyingTx) Put(bucket string, key, value []byte) error {
	if t.of.at--; t.of.at == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return t.RwTx.Put(bucket, key, value)
}

// TestBringUpChild is the program that TestBringUpKilled kills.
func TestBringUpChild(t *testing.T) {
	path, at := os.Getenv("CHATCTX_TEST_BRING_UP"), os.Getenv("CHATCTX_TEST_DIE_AT")
	if path == "" {
		t.Skip("it is a part of TestBringUpKilled")
	}
	db, err := boltkv.Open(path, boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, _ := strconv.Atoi(at)
	s, err := OpenDB(&dying{db, n}, Options{Program: "test", Judge: byName{}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Context(t.Context(), "A call")
	if err == nil {
		_, err = c.Append(t.Context(), "", says("x")...)
	}
	fmt.Println("survived", err, s.at().Close())
}

// TestBringUpKilled kills a program at some of the writes with which it brings a store up: the store stays as it was, and the next change brings it up.
func TestBringUpKilled(t *testing.T) {
	for _, at := range []int{1, 2, 50, 300, 313, 314, 318} {
		path := storeFile(t, "format-2-long")
		child := exec.Command(os.Args[0], "-test.run=^TestBringUpChild$")
		child.Env = append(os.Environ(), "CHATCTX_TEST_BRING_UP="+path, "CHATCTX_TEST_DIE_AT="+strconv.Itoa(at))
		out, err := child.CombinedOutput()
		if status, ok := child.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("at write %d it was not killed: %v\n%s", at, err, out)
		}
		bringUp(t, func() (*Store, error) { return Open(path, Options{Program: "test", Judge: byName{}}) }, 2, "format-2.json", func() {})
	}
}

// TestBringUpOnAFullDisk: where there is no room to bring the store up, the change fails, and everything stays as it was.
func TestBringUpOnAFullDisk(t *testing.T) {
	if !testkit.Alone(t) {
		return
	}
	path := storeFile(t, "format-2-long")
	s, err := Open(path, Options{Program: "test", Judge: byName{}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Context(t.Context(), "Long")
	if err != nil {
		t.Fatal(err)
	}
	lift := testkit.LimitFiles(t, 64<<10) // the first pages alone can be written
	_, err = c.Append(t.Context(), "", says("x")...)
	lift()
	if !errors.Is(err, syscall.EFBIG) {
		t.Fatalf("the change that has no room: %v", err)
	}
	if base.Of(s).Format.Number() != 2 || len(s.Warnings()) != 0 {
		t.Errorf("it is of format %d, with warnings %q", base.Of(s).Format.Number(), s.Warnings())
	}
	closeChecked(t, s)
	bringUp(t, func() (*Store, error) { return Open(path, Options{Program: "test", Judge: byName{}}) }, 2, "format-2.json", func() {})
}
