package serve

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
	"github.com/chatctx/chatctx/internal/leftover"
	"github.com/chatctx/chatctx/internal/operation"
	"github.com/chatctx/chatctx/pool"
)

// serveOn answers on a listener until the test ends.
func (a *api) serveOn(s *Server, l net.Listener, cert *tls.Certificate) (end func()) {
	a.t.Helper()
	ctx, cancel := context.WithCancel(a.t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l, cert) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			a.t.Error(err)
		}
	}
}

// TestASocketIsThisUsersAlone: a user who may open its file needs no token; nobody else can open it.
func TestASocketIsThisUsersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions of sockets are Unix's")
	}
	a := start(t, Options{})
	dir, err := os.MkdirTemp("", "cc") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := Listen("unix:" + path)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the socket has the mode %v %v", st.Mode(), err)
	}
	s := New(a.store, Options{Trusted: true})
	defer s.Close()
	end := a.serveOn(s, l, nil)
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	res, err := client.Get("http://chatctx" + apiPath + "/contexts")
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("over the socket: %v %v", res, err)
	}
	res.Body.Close()
	if _, err := Listen("unix:" + path); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("a second program listens: %v", err)
	}
	client.CloseIdleConnections()
	end()
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's file stays: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if err := os.WriteFile(path, []byte("no socket"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen("unix:" + path); !errors.Is(err, chatctx.ErrConflict) {
		t.Errorf("a file is taken for a socket: %v", err)
	}
}

// beyond is a listener that claims that others can reach it.
type beyond struct{ net.Listener }

func (b beyond) Addr() net.Addr {
	a := *b.Listener.Addr().(*net.TCPAddr)
	a.IP = net.IPv4zero
	return &a
}

func TestTokensAreAMustBeyondThisMachine(t *testing.T) {
	a := start(t, Options{})
	l, err := Listen("")
	if err != nil {
		t.Fatal(err)
	}
	s := New(a.store, Options{Hosts: []string{"*"}})
	defer s.Close()
	if err := s.Serve(t.Context(), beyond{l}, nil); !errors.Is(err, ErrNoToken) {
		t.Errorf("without a token: %v", err)
	}
	if l, err = Listen("0"); err != nil {
		t.Fatal(err)
	}
	secret, err := grant.Add(t.Context(), base.Of(a.store), "phone", []string{"read"})
	if err != nil {
		t.Fatal(err)
	}
	cert, roots := certificate(t)
	defer a.serveOn(s, beyond{l}, cert)()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	for token, status := range map[string]int{secret: 200, "": 401} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "https://"+l.Addr().String()+apiPath+"/contexts", nil)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != status {
			t.Errorf("the token %.8s gets %d", token, res.StatusCode)
		}
	}
}

// certificate returns a self-signed certificate.
func certificate(t *testing.T) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	raw, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, roots
}

// TestChangesGoOn: changes continue after a cursor, and say reset if something is no longer known; they end with the server.
func TestChangesGoOn(t *testing.T) {
	a := start(t, Options{})
	l, err := Listen("")
	if err != nil {
		t.Fatal(err)
	}
	end := a.serveOn(a.server, l, nil)
	watch := func(after string) *bufio.Scanner {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+l.Addr().String()+apiPath+"/changes", nil)
		req.Header.Set("Authorization", "Bearer "+a.token)
		if after != "" {
			req.Header.Set("Last-Event-ID", after)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return bufio.NewScanner(res.Body)
	}
	next := func(in *bufio.Scanner) (id, event string) {
		for in.Scan() && in.Text() != "" {
			switch key, value, _ := strings.Cut(in.Text(), ": "); key {
			case "id":
				id = value
			case "event":
				event = value
			}
		}
		return id, event
	}
	first := watch("")
	begin, event := next(first)
	if event != "ready" {
		t.Fatalf("the first event is %s", event)
	}
	_, main := a.context("Boats", "One")
	if _, event := next(first); event != "change" {
		t.Errorf("then comes %s", event)
	}
	again := watch(begin)
	if at, event := next(again); event != "ready" || at != begin {
		t.Errorf("a cursor goes on with %s at %s, not %s", event, at, begin)
	}
	if _, event := next(again); event != "change" {
		t.Errorf("what came between is %s", event)
	}
	for _, cursor := range []string{"0123456789abcdef-1", "nonsense", begin + "99"} {
		if _, event := next(watch(cursor)); event != "reset" {
			t.Errorf("the cursor %s gives %s", cursor, event)
		}
	}
	for i := range keptChanges + 10 {
		a.server.feed.add(record.Change{Kind: "append", Operation: string(rune('a' + i%26))})
	}
	if _, event := next(watch(begin)); event != "reset" {
		t.Errorf("a cursor that is too old gives %s", event)
	}
	a.post(main+"/clear", nil)
	end() // with all of these open
	for first.Scan() {
	}
}

// TestChangesOfOthersMoveTheCursor: a listener to one conversation learns the position of the feed while only others change, and continues from there without a
// gap.
func TestChangesOfOthersMoveTheCursor(t *testing.T) {
	a := start(t, Options{})
	id, _ := a.context("Quiet")
	feed, err := a.server.changes()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var heard []string
	cursor := ""
	r := &request{server: a.server, Request: operation.Request{Ctx: ctx, Store: a.store, Tell: func(event string, v any) error {
		heard, cursor = append(heard, event), v.(changed).Cursor
		switch event {
		case "ready":
			for range keptChanges/2 + mostNews {
				feed.add(record.Change{Context: pool.NewID(), Kind: "append"})
			}
		case "cursor":
			cancel()
		}
		return nil
	}}}
	if _, err := watchChanges(r, &changesParams{Context: id}); err != nil {
		t.Fatal(err)
	}
	for range keptChanges - mostNews {
		feed.add(record.Change{Context: pool.NewID(), Kind: "append"})
	}
	if _, gap := feed.from(cursor); gap || strings.Join(heard, " ") != "ready cursor" {
		t.Errorf("heard %v; from there there is a gap: %v", heard, gap)
	}
}

// TestUploadsOfKilledServersGo: the next server removes the files that a killed one left in the folder for temporary files.
func TestUploadsOfKilledServersGo(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	gone := exec.Command(os.Args[0], "-test.run=^$")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(dir, strings.Replace(filepath.Base(leftover.Path(dir, "uploads-1")), fmt.Sprint(os.Getpid()), fmt.Sprint(gone.Process.Pid), 1))
	if err := os.MkdirAll(filepath.Join(left, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	st, err := chatctx.Open(filepath.Join(t.TempDir(), "chats.db"), chatctx.Options{Create: true}) // what each server does first
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	a := start(t, Options{})
	a.do(200, "POST", "/uploads?name=x", []byte("x"))
	c := a.stdio()
	c.call("initialize", nil)
	all, err := filepath.Glob(filepath.Join(dir, ".chatctx-tmp-*"))
	if err != nil || len(all) != 1 || all[0] == left {
		t.Errorf("there are %v, %v", all, err)
	}
}
