package serve

import (
	"net"
	"sync"
)

// crowd limits how many connections of a listener are open, in all and from one address. It closes those beyond the limit at once. Programs of this machine may
// use all of them.
type crowd struct {
	net.Listener
	most, each int

	mu  sync.Mutex
	all int
	by  map[string]int
}

func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := from(conn)
		if c.enter(from) {
			return &visitor{Conn: conn, crowd: c, from: from}, nil
		}
		conn.Close()
	}
}

// from returns the address of a connection's client without its port, "" for one on this machine.
func from(conn net.Conn) string {
	a, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || a.IP.IsLoopback() {
		return ""
	}
	return a.IP.String()
}

func (c *crowd) enter(from string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= c.most || from != "" && c.by[from] >= c.each {
		return false
	}
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.all++
	c.by[from]++
	return true
}

func (c *crowd) leave(from string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.by[from]--; c.by[from] == 0 {
		delete(c.by, from)
	}
}

// visitor is a connection that counts until it is closed.
type visitor struct {
	net.Conn
	crowd *crowd
	from  string
	once  sync.Once
}

func (v *visitor) Close() error {
	v.once.Do(func() { v.crowd.leave(v.from) })
	return v.Conn.Close()
}
