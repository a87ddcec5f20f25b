package boltkv_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/internal/engine"
)

var ctx = context.Background()

// The tests with several processes start the test binary again, in one of these roles, on the file in BOLTKV_PATH. A role
// ends at the end of its standard input or when it is killed.
var roles = map[string]func(db kv.DB, end <-chan struct{}) error{
	"append": roleAppend,
	"hold":   roleHold,
	"read":   roleRead,
	"count":  roleCount,
	"vacuum": roleVacuum,
}

func TestMain(m *testing.M) {
	role := roles[os.Getenv("BOLTKV_ROLE")]
	if role == nil {
		os.Exit(m.Run())
	}
	end := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(end)
	}()
	if err := play(role, end); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func play(role func(kv.DB, <-chan struct{}) error, end <-chan struct{}) error {
	db, err := boltkv.Open(os.Getenv("BOLTKV_PATH"), boltkv.Options{})
	if err != nil {
		return err
	}
	return errors.Join(role(db, end), db.Close())
}

func over(end <-chan struct{}) bool {
	select {
	case <-end:
		return true
	default:
		return false
	}
}

// roleAppend appends numbers under its process id, and says each once it is stored.
func roleAppend(db kv.DB, end <-chan struct{}) error {
	for n := uint64(0); !over(end); n++ {
		err := db.Update(ctx, func(tx kv.RwTx) error {
			key := fmt.Appendf(nil, "%d/%08d", os.Getpid(), n)
			return tx.Put("log", key, []byte(strings.Repeat("x", 1000)))
		})
		if err != nil {
			return err
		}
		fmt.Println(n)
	}
	return nil
}

// roleHold stays inside an Update.
func roleHold(db kv.DB, end <-chan struct{}) error {
	return db.Update(engine.WithPurpose(ctx, os.Getenv("BOLTKV_PURPOSE")), func(tx kv.RwTx) error {
		fmt.Println("inside")
		<-end
		return nil
	})
}

// roleRead reads without a pause.
func roleRead(db kv.DB, end <-chan struct{}) error {
	for n := 0; !over(end); n++ {
		if err := db.View(ctx, func(tx kv.Tx) error { _, err := tx.Get("log", []byte("x")); return err }); err != nil {
			return err
		}
		if n == 0 {
			fmt.Println("reading")
		}
	}
	return nil
}

func addOne(tx kv.RwTx) error {
	value, err := tx.Get("count", []byte("n"))
	if err != nil {
		return err
	}
	n := uint64(1)
	if value != nil {
		n += binary.BigEndian.Uint64(value)
	}
	return tx.Put("count", []byte("n"), binary.BigEndian.AppendUint64(nil, n))
}

func count(t testing.TB, db kv.DB) (n uint64) {
	t.Helper()
	err := db.View(ctx, func(tx kv.Tx) error {
		value, err := tx.Get("count", []byte("n"))
		if value != nil {
			n = binary.BigEndian.Uint64(value)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// roleCount adds 100 to the one counter.
func roleCount(db kv.DB, end <-chan struct{}) error {
	for range 100 {
		if err := db.Update(ctx, addOne); err != nil {
			return err
		}
	}
	fmt.Println("counted")
	return nil
}

// roleVacuum rewrites the file again and again.
func roleVacuum(db kv.DB, end <-chan struct{}) error {
	for !over(end) {
		if err := db.(kv.Keeper).Rewrite(ctx, nil); err != nil {
			return err
		}
		fmt.Println("rewritten")
	}
	return nil
}

// process is another process in a role.
type process struct {
	*exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func start(t testing.TB, role, path string, env ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "BOLTKV_ROLE="+role, "BOLTKV_PATH="+path)...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, stdin, bufio.NewScanner(stdout)}
	t.Cleanup(func() {
		if p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	return p
}

// line waits for the next line that the process writes.
func (p *process) line(t testing.TB) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("%s ended: %v", p.Env[len(p.Env)-2], p.lines.Err())
	}
	return p.lines.Text()
}

// end lets the process come to its end.
func (p *process) end(t testing.TB) {
	t.Helper()
	p.stdin.Close()
	for p.lines.Scan() {
	}
	if err := p.Wait(); err != nil {
		t.Errorf("%s: %v", p.Env[len(p.Env)-2], err)
	}
}
