//go:build unix

package pgtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Fate is what a Proxy does with a request.
type Fate int

const (
	// Pass lets the request and its answer through.
	Pass Fate = iota
	// DropRequest breaks the connection before the server sees the request.
	DropRequest
	// DropAnswer breaks the connection once the server has answered.
	DropAnswer
	// Keep breaks the program's connection but not the server's: Late sends the request later.
	Keep
)

// Proxy stands between a program and a server, shows each round trip and can break connections. Set its fields before its first use.
type Proxy struct {
	// Delay is added to each round trip.
	Delay time.Duration
	// Judge decides about a request: all messages up to the one that asks for an answer. nil passes all.
	Judge func(request []byte) Fate
	// Scanned is called with each bucket that is scanned in a transaction that may write. nil is not called.
	Scanned func(bucket string)

	dir      string
	upstream string
	listener net.Listener
	mu       sync.Mutex
	late     []func() ([]byte, error)
	conns    []net.Conn
	group    sync.WaitGroup
}

// NewProxy starts a proxy that listens on a socket of its own.
func (c *Cluster) NewProxy() (*Proxy, error) {
	dir, err := os.MkdirTemp("", prefix)
	if err != nil {
		return nil, err
	}
	p := &Proxy{dir: dir, upstream: c.Socket()}
	if p.listener, err = net.Listen("unix", filepath.Join(dir, filepath.Base(c.Socket()))); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p.group.Go(p.accept)
	return p, nil
}

// URL returns the address of a schema through the proxy. Connections that another process makes after the call see the fields as they were set before it.
func (p *Proxy) URL(schema string, settings ...string) string {
	p.mu.Lock() // accept locks it for each connection
	defer p.mu.Unlock()
	return URLAt(p.dir, schema, settings...)
}

// Close ends the proxy and its connections.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.group.Wait()
	_ = os.RemoveAll(p.dir)
}

// Late sends the kept requests to the server, and returns its answers in the same order.
func (p *Proxy) Late() (answers [][]byte, err error) {
	p.mu.Lock()
	late := p.late
	p.late = nil
	p.mu.Unlock()
	for _, send := range late {
		answer, err := send()
		if err != nil {
			return answers, err
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.upstream)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		c := &proxied{Proxy: p, client: client, server: server, quiet: make(chan struct{})}
		p.group.Go(c.answers)
		p.group.Go(c.requests)
	}
}

// proxied is one connection.
type proxied struct {
	*Proxy
	client, server net.Conn
	dropping       atomic.Bool
	kept           atomic.Bool
	quiet          chan struct{} // closed once the answers are no longer read
	seen           statements
}

func (c *proxied) close() {
	_ = c.client.Close()
	if !c.kept.Load() {
		_ = c.server.Close()
	}
}

func (c *proxied) requests() {
	defer c.close()
	startup, err := message(c.client, 0)
	if err != nil {
		return
	}
	_, err = c.server.Write(startup)
	for err == nil {
		var request []byte
		if request, err = c.request(); err == nil {
			err = c.pass(request)
		}
	}
}

// request reads messages up to the one that asks for an answer.
func (c *proxied) request() ([]byte, error) {
	var all []byte
	for {
		m, err := message(c.client, 1)
		if err != nil {
			return nil, err
		}
		all = append(all, m...)
		switch m[0] {
		case 'S', 'Q', 'X', 'p', 'H':
			return all, nil
		}
	}
}

func (c *proxied) pass(request []byte) error {
	if c.Scanned != nil {
		c.seen.look(request, c.Scanned)
	}
	fate := Pass
	if c.Judge != nil {
		fate = c.Judge(request)
	}
	time.Sleep(c.Delay)
	switch fate {
	case DropRequest:
		return io.EOF
	case Keep:
		c.kept.Store(true)
		c.mu.Lock()
		c.late = append(c.late, func() ([]byte, error) {
			defer c.server.Close()
			<-c.quiet
			_ = c.server.SetDeadline(time.Now().Add(time.Minute))
			if _, err := c.server.Write(request); err != nil {
				return nil, err
			}
			return answer(c.server)
		})
		c.mu.Unlock()
		return io.EOF
	case DropAnswer:
		c.dropping.Store(true)
	}
	_, err := c.server.Write(request)
	return err
}

// answers passes the server's answers on to the program. It reads with a short deadline, so that it notices when a request is kept and leaves the server's next
// answer to Late.
func (c *proxied) answers() {
	defer close(c.quiet)
	defer c.close()
	for !c.kept.Load() {
		_ = c.server.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		buffer := make([]byte, 32<<10)
		n, err := c.server.Read(buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) && n == 0 {
			continue
		}
		if c.dropping.Load() {
			if n > 0 {
				return
			}
		} else if n > 0 {
			if _, err := c.client.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// answer reads up to the message by which the server says that it is ready for the next request.
func answer(r net.Conn) ([]byte, error) {
	var all bytes.Buffer
	for {
		m, err := message(r, 1)
		if err != nil {
			return all.Bytes(), err
		}
		all.Write(m)
		if m[0] == 'Z' {
			return all.Bytes(), nil
		}
	}
}

// message reads one message. typed is 1 if a type byte comes before the length, 0 in the first message of a connection.
func message(r io.Reader, typed int) ([]byte, error) {
	head := make([]byte, typed+4)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[typed:])
	if length < 4 || length > 1<<30 {
		return nil, errors.New("pgtest: no message of PostgreSQL's")
	}
	rest := make([]byte, length-4)
	_, err := io.ReadFull(r, rest)
	return append(head, rest...), err
}
