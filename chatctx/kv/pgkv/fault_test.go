//go:build unix

package pgkv

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/pgtest"
	"github.com/chatctx/chatctx/internal/testkit"
)

// durable starts a server of its own whose commits are on the disk when they are answered.
func durable(t *testing.T) (*pgtest.Cluster, string) {
	t.Helper()
	server(t)
	c, err := pgtest.Start("fsync=on")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Remove)
	url := c.URL(pgtest.Name())
	if err := initialise(ctx, url, nil); err != nil {
		t.Fatal(err)
	}
	return c, url
}

// appendTo writes the next record of a writer's log. A change that is lost, or made twice, shows in the numbers.
func appendTo(db kv.DB, writer string) (n uint64, err error) {
	err = db.Update(ctx, func(tx kv.RwTx) error {
		value, err := tx.Get("last", []byte(writer))
		if err != nil {
			return err
		}
		n = 1
		if value != nil {
			n = binary.BigEndian.Uint64(value) + 1
		}
		number := binary.BigEndian.AppendUint64(nil, n)
		return errors.Join(tx.Put("last", []byte(writer), number), tx.Put("log", append([]byte(writer+"/"), number...), make([]byte, 300)))
	})
	return n, err
}

// logOf counts a writer's records and holds them against its last number.
func logOf(t *testing.T, db kv.DB, writer string) (n uint64) {
	t.Helper()
	err := db.View(ctx, func(tx kv.Tx) error {
		value, err := tx.Get("last", []byte(writer))
		if err != nil {
			return err
		}
		err = tx.Scan("log", kv.Prefix([]byte(writer+"/")), func(key, _ []byte) error {
			n++
			if got := binary.BigEndian.Uint64(key[len(writer)+1:]); got != n {
				return fmt.Errorf("record %d has the number %d", n, got)
			}
			return nil
		})
		if value != nil && binary.BigEndian.Uint64(value) != n {
			err = errors.Join(err, fmt.Errorf("%d records, the last number is %d", n, binary.BigEndian.Uint64(value)))
		}
		return err
	})
	if err != nil {
		t.Errorf("writer %s: %v", writer, err)
	}
	return n
}

// backends are the server's processes that serve our connections.
func backends(t *testing.T, db kv.DB) (pids []int) {
	t.Helper()
	d := db.(*database)
	conn, err := d.acquire(ctx)
	if err != nil {
		return nil
	}
	defer conn.Release()
	results, err := linkOf(conn.Conn()).run(ctx, time.Minute, do(plain("select pid::text from pg_stat_activity where backend_type = 'client backend'")))
	if err != nil {
		return nil
	}
	for _, row := range results[0].rows {
		pid, _ := strconv.Atoi(string(row[0]))
		pids = append(pids, pid)
	}
	return pids
}

// TestKilledServers has writers append while processes of the server are killed, terminated, and the whole server is. Every
// append succeeds, and is there once.
func TestKilledServers(t *testing.T) {
	c, url := durable(t)
	db := openWaiting(t, url, time.Minute) // the server may take that long to come back
	defer closeDB(t, db)
	other := openWaiting(t, url, time.Minute)
	defer closeDB(t, other)
	var stop atomic.Bool
	var writers sync.WaitGroup
	acknowledged := make([]atomic.Uint64, 6)
	for i := range acknowledged {
		writers.Go(func() {
			for !stop.Load() {
				if _, err := appendTo(db, fmt.Sprint("w", i)); err != nil {
					t.Errorf("writer %d after %d appends: %v", i, acknowledged[i].Load(), err)
					stop.Store(true)
					return
				}
				acknowledged[i].Add(1)
			}
		})
	}
	kills := 0
	more := func(n uint64) { // waits until the writers have got further
		before := acknowledged[0].Load()
		for deadline := time.Now().Add(40 * time.Second); acknowledged[0].Load() < before+n && !stop.Load() && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}
	for seed := range testkit.Seeds(t, 8) {
		more(3 + rand.New(rand.NewPCG(seed, 0)).Uint64N(20))
		switch seed % 4 {
		case 3:
			if err := c.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := c.Up(); err != nil {
				t.Fatal(err)
			}
			kills++
		default:
			signal := []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM}[seed%4]
			for i, pid := range backends(t, other) {
				if i%2 == 0 && syscall.Kill(pid, signal) == nil {
					kills++
				}
			}
		}
	}
	more(5)
	stop.Store(true)
	writers.Wait()
	total := uint64(0)
	for i := range acknowledged {
		told := acknowledged[i].Load()
		total += told
		if n := logOf(t, db, fmt.Sprint("w", i)); n != told {
			t.Errorf("writer %d: %d records, %d acknowledged", i, n, told)
		}
	}
	t.Logf("%d kills, %d acknowledged appends, each there once", kills, total)
	if kills < 6 || total < 50 {
		t.Errorf("%d kills and %d appends: too few to tell anything", kills, total)
	}
}

// TestKilledClients kills writing programs at any moment. What they said is stored is there, and at most one more.
func TestKilledClients(t *testing.T) {
	_, url := durable(t)
	rounds, told := 0, uint64(0)
	const atATime = 5
	for seed := range testkit.Seeds(t, 5) {
		rng := rand.New(rand.NewPCG(seed, 1))
		rounds += atATime
		var group sync.WaitGroup
		var said [atATime]uint64
		for i := range atATime {
			after := 1 + rng.IntN(12)
			group.Go(func() { said[i] = killedAfter(t, url, fmt.Sprintf("p%d-%d", seed, i), after) })
		}
		group.Wait()
		db := open(t, url)
		for i := range atATime {
			told += said[i]
			if n := logOf(t, db, fmt.Sprintf("p%d-%d", seed, i)); n != said[i] && n != said[i]+1 {
				t.Errorf("program %d-%d: %d records, %d were said to be stored", seed, i, n, said[i])
			}
		}
		closeDB(t, db)
	}
	t.Logf("%d programs killed, %d acknowledged appends", rounds, told)
}

// killedAfter runs a program that appends, kills it after some lines, and gives the last number that it said.
func killedAfter(t *testing.T, url, writer string, lines int) (last uint64) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PGKV_PLAY="+url, "PGKV_WRITER="+writer)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return 0
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return 0
	}
	scanner := bufio.NewScanner(out)
	for n := 1; scanner.Scan(); n++ {
		if last, err = strconv.ParseUint(strings.TrimSpace(scanner.Text()), 10, 64); err != nil {
			t.Errorf("the program said %q", scanner.Text())
		}
		if n == lines {
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Error("the program ended before it was killed")
	}
	return last
}

// play has the test binary be a program that appends until it is killed.
func play() bool {
	url := os.Getenv("PGKV_PLAY")
	if url == "" {
		return false
	}
	db, err := kv.Open(ctx, url, kv.OpenOptions{})
	for err == nil {
		var n uint64
		if n, err = appendTo(db, os.Getenv("PGKV_WRITER")); err == nil {
			fmt.Println(n)
		}
	}
	fmt.Println(err)
	return true
}
