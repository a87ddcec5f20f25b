package serve

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/pool"
)

// heap is what is in use after a collection, in MB.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc >> 20)
}

// TestLargeAnswersThatNobodyReads: 30 clients ask for a message of 20 MB each and read nothing. A few answers wait in memory, the other requests are told to come again, and what is small is answered meanwhile.
func TestLargeAnswersThatNobodyReads(t *testing.T) {
	const size, clients, bar = 20 << 20, 30, 100
	store, err := chatctx.Open(filepath.Join(t.TempDir(), "s.db"), chatctx.Options{Create: true, Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	a := over(t, store, Options{})
	a.server.limits.patience = 10 * time.Millisecond
	id, main := a.context("Large")
	c, err := store.Context(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(t.Context(), "main", pool.NewText(pool.User, strings.Repeat("a line\n", size/7))); err != nil {
		t.Fatal(err)
	}
	before := heap()
	most := func() int { a.server.room.mu.Lock(); defer a.server.room.mu.Unlock(); return a.server.room.used }
	held, busy := 0, 0
	for range clients {
		conn, err := net.Dial("tcp", a.http.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.(*net.TCPConn).SetReadBuffer(4096)
		fmt.Fprintf(conn, "GET %s%s/messages/@1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", base, main, a.token)
		res, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil) // the head alone
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case res.StatusCode == 200:
			held++
		case res.StatusCode == 503 && res.Header.Get("Retry-After") != "":
			busy++
		default:
			t.Errorf("a client gets %d", res.StatusCode)
		}
		if n := most(); n > a.server.room.most {
			t.Errorf("%d bytes are in a room of %d", n, a.server.room.most)
		}
	}
	if held == 0 || held*size > a.server.room.most || held+busy != clients {
		t.Errorf("%d answers wait, and %d clients are told to come again", held, busy)
	}
	if now := heap(); now-before > bar {
		t.Errorf("%d MB are in use, and %d were", now, before)
	}
	a.want(a.get(main), 1, "messages")
}

// TestLargeRequestsHaveRoom: bodies that come at the same time have room together, and one that has none is refused.
func TestLargeRequestsHaveRoom(t *testing.T) {
	a := start(t, Options{})
	a.server.limits.patience = 10 * time.Millisecond
	_, main := a.context("Large")
	text := func(n int) object {
		return object{"messages": []object{{"role": "user", "content": strings.Repeat("x", n)}}}
	}
	a.server.bodies.most = 1 << 20
	a.server.bodies.add(1 << 19)
	a.want(a.do(503, "POST", main+"/messages", text(1<<19)), "busy", "error", "kind")
	a.want(a.do(503, "POST", "/artifacts", []byte(strings.Repeat("x", 1<<19))), "busy", "error", "kind")
	a.post(main+"/messages", text(freely/2))
	a.server.bodies.add(-1 << 19)
	a.post(main+"/messages", text(1<<18))
	if a.server.bodies.used != 0 {
		t.Errorf("%d bytes are still counted", a.server.bodies.used)
	}
}
