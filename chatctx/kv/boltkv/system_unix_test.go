//go:build unix

package boltkv_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
)

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }

// stop does what Ctrl-Z does to a process.
func stop(t *testing.T, p *process) {
	if err := p.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

func goOn(t *testing.T, p *process) {
	if err := p.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// TestStoppedAtTheGate: who stands behind a program that was stopped while it waited to enter learns its name.
func TestStoppedAtTheGate(t *testing.T) {
	path := created(t)
	inside := start(t, "hold", path)
	inside.line(t)
	next := start(t, "hold", path, "BOLTKV_PURPOSE=backup")
	for text := []byte{}; !bytes.Contains(text, []byte(`"waits":true`)); time.Sleep(time.Millisecond) {
		var err error
		if text, err = os.ReadFile(path + ".lock"); err != nil {
			t.Fatal(err)
		}
	}
	stop(t, next)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(next.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it was not stopped: %v", err)
	}
	inside.end(t)
	db := open(t, path, boltkv.Options{Wait: 20 * time.Millisecond})
	defer closeDB(t, db)
	err := db.View(ctx, func(kv.Tx) error { return nil })
	var locked *kv.LockedError
	if !errors.As(err, &locked) || locked.Holder.PID != next.Process.Pid || !locked.Holder.Waits {
		t.Errorf("behind it: %v", err)
	}
	goOn(t, next)
	next.line(t)
	next.end(t)
	if err := db.View(ctx, func(kv.Tx) error { return nil }); err != nil {
		t.Error(err)
	}
}

// asNobody runs the test again as a user for whom rights count.
func asNobody(t *testing.T) {
	dir, err := os.MkdirTemp("", "boltkv")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	binary, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	program := dir + "/boltkv.test"
	if err := os.WriteFile(program, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.Env = dir, []string{"TMPDIR=" + dir, "HOME=" + dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

// TestAWaiterIsNoHolder: while a program without the lock file has the store, whoever waits for it is named as one who waits, and not as the holder.
func TestAWaiterIsNoHolder(t *testing.T) {
	path := created(t)
	outside, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	if err := syscall.Flock(int(outside.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	next := start(t, "hold", path)
	for text := []byte{}; !bytes.Contains(text, []byte(`"waits":true`)); time.Sleep(time.Millisecond) {
		if text, err = os.ReadFile(path + ".lock"); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	db := open(t, path, boltkv.Options{Wait: 20 * time.Millisecond})
	defer closeDB(t, db)
	err = db.View(ctx, func(kv.Tx) error { return nil })
	var locked *kv.LockedError
	if !errors.As(err, &locked) || locked.Holder.PID != next.Process.Pid || !locked.Holder.Waits {
		t.Errorf("behind it: %v", err)
	}
	if err := syscall.Flock(int(outside.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	next.line(t)
	if err := db.View(ctx, func(kv.Tx) error { return nil }); !errors.As(err, &locked) || locked.Holder.Waits {
		t.Errorf("behind the holder: %v", err)
	}
	next.end(t)
}
