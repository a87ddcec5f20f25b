package serve

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/testkit"
	"github.com/chatctx/chatctx/pool"
)

// heap returns the memory in use after a collection, in MB.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc >> 20)
}

// TestLargeAnswersThatNobodyReads: 30 clients ask for a message of 20 MB each and read nothing. A few answers wait in memory, the other requests are told to
// come again, and small requests are answered meanwhile.
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
		fmt.Fprintf(conn, "GET %s%s/messages/@1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", apiPath, main, a.token)
		res, err := http.ReadResponse(bufio.NewReaderSize(conn, 16), nil) // only the header
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

// TestLargeRequestsHaveRoom: bodies that come at the same time share the room, and one without room is refused.
func TestLargeRequestsHaveRoom(t *testing.T) {
	a := start(t, Options{})
	a.server.limits.patience = 10 * time.Millisecond
	_, main := a.context("Large")
	text := func(n int) object {
		return object{"messages": []object{{"role": "user", "content": strings.Repeat("x", n)}}}
	}
	a.server.shorts.most = 1 << 20
	a.server.shorts.add(1 << 19)
	a.want(a.do(503, "POST", main+"/messages", text(1<<19)), "busy", "error", "kind")
	a.want(a.do(503, "POST", "/artifacts", []byte(strings.Repeat("x", 1<<19))), "busy", "error", "kind")
	a.post(main+"/messages", text(freely/2))
	a.server.shorts.add(-1 << 19)
	a.post(main+"/messages", text(1<<18))
	nothingHeld(t, a.server.shorts)
}

// sendsSlowly sends the header of a request with a large body, and a little of the body.
func (a *api) sendsSlowly(path string, length int) net.Conn {
	a.t.Helper()
	conn, err := net.Dial("tcp", a.http.Listener.Addr().String())
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { conn.Close() })
	fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{\"mess", apiPath, path, a.token, length)
	return conn
}

// TestBodiesThatComeSlowly: a client that sends 64 MB and stops delays no small request, and is soon refused.
func TestBodiesThatComeSlowly(t *testing.T) {
	a := start(t, Options{})
	a.server.limits.patience, a.server.limits.grace = 10*time.Millisecond, time.Hour
	_, main := a.context("Slow")
	a.sendsSlowly(main+"/messages", mostBody)
	used := func() int { a.server.bodies.mu.Lock(); defer a.server.bodies.mu.Unlock(); return a.server.bodies.used }
	until(t, "the body has its room", func() bool { return used() == 2*mostBody })
	a.post(main+"/messages", object{"messages": []object{{"role": "user", "content": strings.Repeat("x", 1<<20)}}})
	a.want(a.do(503, "POST", main+"/messages", object{"messages": []object{{"role": "user", "content": strings.Repeat("x", small)}}}), "busy", "error", "kind")
	a.want(a.get(main), 1, "messages")

	b := start(t, Options{})
	_, main = b.context("Slow")
	b.server.limits.grace = 10 * time.Millisecond
	conn := b.sendsSlowly(main+"/messages", mostBody)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	if raw, _ := io.ReadAll(res.Body); res.StatusCode != 408 || !strings.Contains(string(raw), `"too_slow"`) {
		t.Errorf("who is slow gets %d %s", res.StatusCode, raw)
	}
	conn = b.sendsSlowly("/uploads", mostBody) // goes into a file, and holds no room
	conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a slow upload is answered: %v", err)
	}
	nothingHeld(t, b.server.bodies)
}

// nothingHeld waits until a room is empty: a request may give back what it held after its answer has arrived.
func nothingHeld(t *testing.T, r *room) {
	t.Helper()
	until(t, "nothing is counted any more", func() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.used == 0 })
}

// TestExportOfALargeConversation: it comes piece by piece, in every format that is written by lines or messages.
func TestExportOfALargeConversation(t *testing.T) {
	size, bar := 100, 60 // MB
	if testkit.Race {    // a fifth of it is much more than is read ahead, too
		size, bar = 40, 24
	}
	store, err := chatctx.Open(filepath.Join(t.TempDir(), "s.db"), chatctx.Options{Create: true, Program: "test"})
	if err != nil {
		t.Fatal(err)
	}
	a := over(t, store, Options{})
	id, main := a.context("Large")
	c, err := store.Context(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var all []*pool.Message
	for i := range size {
		all = append(all, pool.NewText([]pool.Role{pool.User, pool.Assistant}[i%2], strings.Repeat("a line\n", 1<<20/7)))
	}
	if _, err := c.Append(t.Context(), "main", all...); err != nil {
		t.Fatal(err)
	}
	all = nil
	for _, format := range []string{"chatctx", "anthropic-messages", "claude-code"} {
		req, err := http.NewRequest("GET", a.http.URL+apiPath+"/contexts/"+id+"/export?branch=main&format="+format, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+a.token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		before, most, n := heap(), 0, 0
		for buf := make([]byte, 4<<20); ; {
			k, err := io.ReadFull(res.Body, buf)
			if n += k; n>>20%16 == 0 {
				most = max(most, heap())
			}
			if err != nil {
				break
			}
		}
		res.Body.Close()
		if n < size<<20 || most-before > bar {
			t.Errorf("%s: %d MB came, %d MB were in use, and %d before", format, n>>20, most, before)
		}
	}
	a.post(main+"/fork", object{"name": "other", "at": "@1"})
	a.want(a.do(413, "GET", main+"/compare?with=main&with=other", nil), "too_large", "error", "kind")
	a.want(a.do(413, "GET", "/contexts/"+id+"/diff?a=main&b=other", nil), "too_large", "error", "kind")
	a.want(a.get(main+"/compare?with=main@3&with=other"), "main@3", "columns", 0, "ref")
	if _, kind, status := kindOf(fmt.Errorf("storing: %w", chatctx.ErrTooLarge)); kind != "too_large" || status != 413 {
		t.Errorf("what the store refuses for its size is %s, %d", kind, status)
	}
}
