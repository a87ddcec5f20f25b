//go:build unix

// Package pgtest gives tests a PostgreSQL server of their own.
package pgtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Cluster is a server that has its data in a folder of its own and listens on a socket there. It ends with the process that started it, even if that process is
// killed.
type Cluster struct {
	// Settings are passed to the server at each start, "name=value".
	Settings []string

	dir   string // holds the data and the socket
	bin   string
	leash io.Closer // closing it ends the server: see the script leash
}

// ErrMissing says that PostgreSQL's server programs are not on this machine.
var ErrMissing = errors.New("PostgreSQL's server programs are not on this machine (Debian: apt-get install --no-install-recommends postgresql)")

// Main is for TestMain: it starts a server, runs the tests and returns their exit code. If the server programs are missing, Server is nil and the tests skip;
// in CI (the variable CI is set) Main fails.
func Main(run func() int, settings ...string) int {
	c, err := Start(settings...)
	switch {
	case errors.Is(err, ErrMissing) && os.Getenv("CI") == "":
		fmt.Println("skipped:", err)
	case err != nil:
		fmt.Println("failed:", err)
		return 1
	default:
		Server = c
		defer c.Remove()
	}
	return run()
}

// Server is the server that Main started, nil if there is none.
var Server *Cluster

// BinFolder returns the folder of the server programs, those of the highest version if there are several. It returns ErrMissing if there are none.
func BinFolder() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(real), nil
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", ErrMissing
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

// prefix begins the names of the folders. They are short because the path of a socket has to be.
const prefix = "cctxpg"

// Start creates a cluster and starts its server. Settings are "name=value". Nothing is durable unless a setting asks for it: "fsync=on". It returns ErrMissing
// if the server programs are missing.
func Start(settings ...string) (*Cluster, error) {
	bin, err := BinFolder()
	if err != nil {
		return nil, err
	}
	sweep()
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	c := &Cluster{dir: dir, bin: bin, Settings: append([]string{"fsync=off"}, settings...)}
	if err := c.init(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := c.Up(); err != nil {
		return nil, errors.Join(err, c.log(), os.RemoveAll(dir))
	}
	return c, nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *Cluster) init() error {
	if err := os.WriteFile(c.owner(), fmt.Append(nil, os.Getpid()), 0o600); err != nil {
		return err
	}
	if err := HandOver(c.dir); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(c.bin, "initdb"), "-A", "trust", "-N", "-U", "postgres", "--locale=C.UTF-8", "-D", c.data())
	cmd.Dir = c.dir
	cmd.SysProcAttr = Credential()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

func (c *Cluster) owner() string { return filepath.Join(c.dir, "owner") }

// sweep removes the folders of clusters whose processes were killed. Their servers have ended by themselves.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range dirs {
		text, err := os.ReadFile(filepath.Join(dir, "owner"))
		if err != nil {
			continue
		}
		pid, err := strconv.Atoi(string(text))
		if err == nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			_ = os.RemoveAll(dir)
		}
	}
}

// leash is a shell script that starts the server, prints its process id, and ends the server when the script's standard input ends.
const leash = `exec 3<&0; "$0" "$@" </dev/null 3<&- >>log 2>&1 & p=$!; echo $p; (read x <&3; kill -INT $p) & w=$!; wait $p; kill $w`

// Up starts the server and returns once it accepts connections. It retries for a minute, because child processes of a killed server may hold its data for a
// moment.
func (c *Cluster) Up() error {
	deadline := time.Now().Add(time.Minute)
	for {
		err := c.up(deadline)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (c *Cluster) up(deadline time.Time) error {
	args := []string{"-c", leash, filepath.Join(c.bin, "postgres"), "-D", c.data(), "-k", c.dir, "-c", "listen_addresses="}
	for _, s := range c.Settings {
		args = append(args, "-c", s)
	}
	cmd := exec.Command("/bin/sh", args...)
	cmd.Dir, cmd.SysProcAttr = c.dir, Credential()
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.leash = in
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for {
		if noted, ready := c.note(); ready && noted == pid {
			return nil
		}
		select {
		case <-ended:
			_ = in.Close()
			return errors.New("the server ended at once")
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.New("the server does not get ready")
		}
	}
}

// note reads the server's process id, and whether it is ready, from the file that the server writes.
func (c *Cluster) note() (pid int, ready bool) {
	text, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		return 0, false
	}
	lines := strings.Split(string(text), "\n")
	pid, _ = strconv.Atoi(lines[0])
	return pid, pid > 1 && strings.Contains(string(text), "ready")
}

// Kill ends the server as a crash does, and returns once it has ended.
func (c *Cluster) Kill() error {
	pid, _ := c.note()
	if pid <= 1 {
		return errors.New("no server runs")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	return c.wait(pid)
}

// Down shuts the server down, with its users' connections, and returns once it has ended.
func (c *Cluster) Down() error {
	pid, _ := c.note()
	if pid <= 1 {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil {
		return err
	}
	return c.wait(pid)
}

func (c *Cluster) wait(pid int) error {
	_ = c.leash.Close()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return nil
		}
	}
	return errors.New("the server does not end")
}

// Remove ends the server and removes its folder.
func (c *Cluster) Remove() {
	_ = c.Down()
	_ = os.RemoveAll(c.dir)
}

// Socket returns the path of the server's socket.
func (c *Cluster) Socket() string { return filepath.Join(c.dir, ".s.PGSQL.5432") }

// Dir returns the folder of the socket. A test may create a socket of its own there.
func (c *Cluster) Dir() string { return c.dir }

func (c *Cluster) log() error {
	text, _ := os.ReadFile(filepath.Join(c.dir, "log"))
	return fmt.Errorf("the server's log: %s", text)
}

var count atomic.Int64

// Name returns a name for a schema that no other test of this process has.
func Name() string { return fmt.Sprintf("test%d", count.Add(1)) }

// URL returns the address of a schema on the server, with further settings "name=value".
func (c *Cluster) URL(schema string, settings ...string) string {
	return URLAt(c.dir, schema, settings...)
}

// URLAt returns the address of a schema through the socket in another folder.
func URLAt(dir, schema string, settings ...string) string {
	return fmt.Sprintf("postgres://postgres@/postgres?host=%s&search_path=%s%s", dir, schema, strings.Join(append([]string{""}, settings...), "&"))
}

// Asked reports whether the tests that run on any engine should run on PostgreSQL: CHATCTX_TEST_STORE is postgres.
func Asked() bool { return os.Getenv("CHATCTX_TEST_STORE") == "postgres" }
