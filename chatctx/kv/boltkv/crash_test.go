package boltkv_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/kv/boltkv"
	"github.com/chatctx/chatctx/internal/testkit"
)

// TestKilledWriters kills writers at any moment, some while another process rewrites the file, which is killed too. All that
// they had said is stored is there, in a file without a fault.
func TestKilledWriters(t *testing.T) {
	path := created(t)
	told, kills := 0, 0
	for seed := range testkit.Seeds(t, 7) {
		vacuum := start(t, "vacuum", path)
		var writers []*process
		for range 3 {
			writers = append(writers, start(t, "append", path))
		}
		acknowledged := make([]int, len(writers))
		for i, w := range writers {
			acknowledged[i] = readUntilKilled(t, w, 20+5*i+int(seed%3))
		}
		if err := vacuum.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = vacuum.Wait()
		kills += 1 + len(writers)
		for i, w := range writers {
			told += acknowledged[i]
			wantRecords(t, path, w.Process.Pid, acknowledged[i])
		}
		checkBolt(t, path)
	}
	t.Logf("%d kills, %d acknowledged appends, all there", kills, told)
	db := open(t, path, boltkv.Options{})
	defer closeDB(t, db)
	if err := db.(kv.Keeper).Rewrite(ctx, nil); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + ".rewrite"); !os.IsNotExist(err) {
		t.Errorf("a killed rewrite's file was left by the next one: %v", err)
	}
}

// readUntilKilled kills the process after some lines and returns how many it wrote in all.
func readUntilKilled(t *testing.T, p *process, after int) (lines int) {
	for lines < after {
		p.line(t)
		lines++
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for p.lines.Scan() {
		lines++
	}
	_ = p.Wait()
	return lines
}

func wantRecords(t *testing.T, path string, pid, n int) {
	t.Helper()
	db := open(t, path, boltkv.Options{IdleHold: -1})
	defer closeDB(t, db)
	found := 0
	err := db.View(ctx, func(tx kv.Tx) error {
		return tx.Scan("log", kv.Prefix(fmt.Appendf(nil, "%d/", pid)), func(key, value []byte) error {
			if string(key) != fmt.Sprintf("%d/%08d", pid, found) || len(value) != 1000 {
				t.Errorf("record %d is %q with %d bytes", found, key, len(value))
			}
			found++
			return nil
		})
	})
	if err != nil || found < n || found > n+1 {
		t.Errorf("process %d: %d records of %d that were stored, %v", pid, found, n, err)
	}
}
