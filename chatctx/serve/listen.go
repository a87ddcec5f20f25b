package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
	"github.com/chatctx/chatctx/internal/leftover"
)

// Idle time-outs, and limits of a connection.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	stallTime  = time.Minute // in which a body or an answer must make progress
	mostHeader = 64 << 10
	mostStream = 100 // concurrent requests of an HTTP/2 connection
)

// Listen opens an address: HOST:PORT, only a port for this machine, or unix:PATH for a socket that only this user may use. "" means a free port of this
// machine.
func Listen(address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(path)
	}
	switch {
	case address == "":
		address = "127.0.0.1:0"
	case !strings.Contains(address, ":"):
		address = "127.0.0.1:" + address
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", address, err)
	}
	return l, nil
}

// listenUnix makes the socket in a private folder first, so that nobody can use it before its permissions are set.
func listenUnix(path string) (net.Listener, error) {
	if c, err := net.Dial("unix", path); err == nil {
		c.Close()
		return nil, &record.ConflictError{Text: "another program listens on " + path}
	}
	if st, err := os.Lstat(path); err == nil {
		if st.Mode()&os.ModeSocket == 0 {
			return nil, &record.ConflictError{Text: path + " is there already and is no socket"}
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), leftover.Name("socket"))
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "s")
	l, err := net.Listen("unix", made)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", path, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	err = os.Chmod(made, 0o600)
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		l.Close()
		return nil, err
	}
	return &socket{l, path}, nil
}

// socket removes its file when it is closed.
type socket struct {
	net.Listener
	path string
}

func (s *socket) Close() error {
	os.Remove(s.path)
	return s.Listener.Close()
}

// Beyond reports whether other machines can reach a listener.
func Beyond(l net.Listener) bool {
	a, ok := l.Addr().(*net.TCPAddr)
	return ok && !a.IP.IsLoopback()
}

// ErrNoToken means that other machines can reach the address, but there is no token to let any of them in.
var ErrNoToken = errors.New("others can reach this address, and there is no token that lets them in")

// MayServe returns ErrNoToken if other machines can reach a listener and the store has no token.
func (s *Server) MayServe(ctx context.Context, l net.Listener) error {
	if !Beyond(l) || s.options.Access != nil {
		return nil
	}
	tokens, err := grant.List(ctx, base.Of(s.store))
	if err == nil && len(tokens) == 0 {
		err = ErrNoToken
	}
	return err
}

// Serve answers on a listener until ctx ends, over TLS if cert is not nil. It closes the listener. It first checks MayServe.
func (s *Server) Serve(ctx context.Context, l net.Listener, cert *tls.Certificate) error {
	defer l.Close()
	if err := s.MayServe(ctx, l); err != nil {
		return err
	}
	l = &crowd{Listener: l, most: s.limits.connections, each: s.limits.ofOne}
	h := &http.Server{Handler: s, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: mostHeader, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: mostStream}, BaseContext: func(net.Listener) context.Context { return s.ctx }}
	stop := context.AfterFunc(ctx, func() {
		s.end() // this ends streams, for which Shutdown would wait
		late, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if h.Shutdown(late) != nil {
			h.Close()
		}
	})
	defer stop()
	var err error
	if cert != nil {
		h.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12}
		err = h.ServeTLS(l, "", "")
	} else {
		err = h.Serve(l)
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}
