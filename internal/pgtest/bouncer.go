//go:build unix

package pgtest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// ErrNoBouncer says that PgBouncer is not on this machine.
var ErrNoBouncer = errors.New("PgBouncer is not on this machine (Debian: apt-get install --no-install-recommends pgbouncer)")

// Bouncer is a running PgBouncer in front of a cluster.
type Bouncer struct {
	dir string
	cmd *exec.Cmd
}

// Bounce starts PgBouncer in a pool mode: session or transaction. It returns ErrNoBouncer if the program is missing.
func (c *Cluster) Bounce(mode string) (*Bouncer, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		return nil, ErrNoBouncer
	}
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	b := &Bouncer{dir: dir}
	config := fmt.Sprintf("[databases]\npostgres = host=%s dbname=postgres user=postgres\n[pgbouncer]\nlisten_addr =\nlisten_port = 5432\nunix_socket_dir = %s\nauth_type = any\n"+
		"pool_mode = %s\nmax_client_conn = 500\ndefault_pool_size = 40\nlogfile = %s/log\n", c.dir, dir, mode, dir)
	file := filepath.Join(dir, "pgbouncer.ini")
	err = errors.Join(os.WriteFile(file, []byte(config), 0o644), os.Chmod(dir, 0o755))
	if uid, gid, ok := server(); ok && err == nil {
		err = errors.Join(os.Chown(dir, uid, gid), os.Chown(file, uid, gid))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	b.cmd = exec.Command(program, "-q", file)
	b.cmd.Dir, b.cmd.SysProcAttr = dir, Credential()
	if err := b.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("unix", filepath.Join(dir, filepath.Base(c.Socket())))
		if err == nil {
			return b, conn.Close()
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			b.Close()
			return nil, fmt.Errorf("PgBouncer does not get ready: %w: %s", err, log)
		}
	}
}

// URL returns the address of a schema through PgBouncer, with further settings "name=value".
func (b *Bouncer) URL(schema string, settings ...string) string {
	return URLAt(b.dir, schema, settings...)
}

// Close ends PgBouncer and removes its folder.
func (b *Bouncer) Close() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
	_ = os.RemoveAll(b.dir)
}
