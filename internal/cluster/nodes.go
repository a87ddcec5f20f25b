//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/chatctx/chatctx/internal/pgtest"
)

// cluster is etcd and the nodes, all in one folder. The working folder of each process tells where it belongs: a server's is its data.
type cluster struct {
	dir, bin string
	nodes    []*node
	keeper   *exec.Cmd
	leash    io.Closer // ends the keeper
}

// node is a Patroni with its server.
type node struct {
	name, dir string
	port, api int // of the server, of Patroni
}

func newCluster() (*cluster, error) {
	bin, err := pgtest.BinFolder()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "chatctx-cluster")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: dir, bin: bin, keeper: exec.Command("/proc/self/exe", "keep", dir)}
	c.keeper.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // an interrupt from the keyboard is not for it
	if c.leash, err = c.keeper.StdinPipe(); err == nil {
		err = c.keeper.Start()
	}
	return c, errors.Join(err, pgtest.HandOver(dir))
}

// keep ends all that lives in a folder once the program that started it has gone, and removes it.
func keep(dir string) {
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = killAll(dir)
	_ = os.RemoveAll(dir)
}

func (c *cluster) close() {
	_ = c.leash.Close()
	_ = c.keeper.Wait()
}

// start makes the cluster and waits until it is whole.
func (c *cluster) start(ctx context.Context) error {
	ports, err := freePorts(8)
	if err != nil {
		return err
	}
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	err = run(filepath.Join(c.dir, "etcd"), "etcd", "--name", "e", "--data-dir", "data", "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "e="+peer)
	for i := range 3 {
		n := &node{name: fmt.Sprintf("node%d", i+1), dir: filepath.Join(c.dir, fmt.Sprintf("node%d", i+1)), port: ports[2+2*i], api: ports[3+2*i]}
		c.nodes = append(c.nodes, n)
		if err == nil {
			err = os.WriteFile(n.dir+".yml", []byte(n.config(c.bin, ports[0])), 0o644)
		}
		if err == nil {
			err = n.start()
		}
	}
	if err != nil {
		return err
	}
	took, err := await(ctx, "the cluster was whole", c.whole)
	fmt.Printf("three nodes after %s, in %s\n", took, c.dir)
	return err
}

// config is Patroni's. 20 s is the shortest lease of a leader that it takes.
func (n *node) config(bin string, etcd int) string {
	return strings.NewReplacer("NAME", n.name, "API", fmt.Sprint(n.api), "PORT", fmt.Sprint(n.port), "ETCD", fmt.Sprint(etcd), "BIN", bin).Replace(`scope: trial
name: NAME
restapi: {listen: "127.0.0.1:API", connect_address: "127.0.0.1:API"}
etcd3: {host: "127.0.0.1:ETCD"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 3
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql:
      use_pg_rewind: true
      parameters: {max_connections: 200, wal_keep_size: 1GB}
  initdb: [{encoding: UTF8}, {locale: C.UTF-8}, data-checksums]
  pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
postgresql:
  listen: "127.0.0.1:PORT"
  connect_address: "127.0.0.1:PORT"
  data_dir: data
  bin_dir: BIN
  pgpass: pgpass
  authentication: {superuser: {username: postgres}, replication: {username: postgres}}
  parameters: {unix_socket_directories: ""}
`)
}

func (n *node) start() error {
	_ = os.Remove(filepath.Join(n.dir, "data", "postmaster.pid")) // of a server that was killed
	return run(n.dir, "patroni", n.dir+".yml")
}

// run starts a program in a folder of its own, as the user who may run a server.
func run(dir, program string, args ...string) error {
	if err := errors.Join(os.MkdirAll(dir, 0o700), pgtest.HandOver(dir)); err != nil {
		return err
	}
	log, err := os.OpenFile(dir+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = dir, log, log, pgtest.Credential()
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// showLogs says what etcd and the nodes said last.
func (c *cluster) showLogs() {
	logs, _ := filepath.Glob(filepath.Join(c.dir, "*.log"))
	for _, file := range logs {
		text, _ := os.ReadFile(file)
		fmt.Printf("== %s\n%s\n", file, text[max(0, len(text)-3000):])
	}
}

// member is what Patroni says of a node.
type member struct {
	Name, Role, State string
	Timeline          int
}

// members asks the nodes until one answers.
func (c *cluster) members() []member {
	client := http.Client{Timeout: 2 * time.Second}
	for _, n := range c.nodes {
		answer, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/cluster", n.api))
		if err != nil {
			continue
		}
		var told struct{ Members []member }
		err = json.NewDecoder(answer.Body).Decode(&told)
		_ = answer.Body.Close()
		if err == nil && len(told.Members) > 0 {
			return told.Members
		}
	}
	return nil
}

func (c *cluster) leader() *node {
	for _, m := range c.members() {
		for _, n := range c.nodes {
			if m.Role == "leader" && m.Name == n.name {
				return n
			}
		}
	}
	return nil
}

// whole: all nodes run on one timeline, and a commit has a second place to go to.
func (c *cluster) whole() bool {
	all, roles := c.members(), map[string]int{}
	for _, m := range all {
		if (m.State == "running" || m.State == "streaming") && m.Timeline == all[0].Timeline {
			roles[m.Role]++
		}
	}
	return roles["leader"] == 1 && roles["sync_standby"] >= 1 && roles["leader"]+roles["sync_standby"]+roles["replica"] == len(c.nodes)
}

// freePorts gives ports that nobody listens on.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// living are the processes whose working folder is dir or in it.
func living(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		at, err := os.Readlink(link)
		if err != nil || at != dir && !strings.HasPrefix(at, dir+"/") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killAll kills all that lives in a folder, and what they start meanwhile.
func killAll(dir string) error {
	for range 3000 {
		pids := living(dir)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("processes in %s do not end", dir)
}

// stopAll freezes all that lives in a folder, and what they start meanwhile.
func stopAll(dir string) error {
	stopped := map[int]bool{}
	for before := -1; len(stopped) > before; {
		before = len(stopped)
		for _, pid := range living(dir) {
			if syscall.Kill(pid, syscall.SIGSTOP) == nil {
				stopped[pid] = true
			}
		}
	}
	return nil
}

func continueAll(dir string) {
	for _, pid := range living(dir) {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
}
