package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
	"github.com/chatctx/chatctx/internal/operation"
)

// ErrNoAccess means that a request has no right to be answered: it has no token or session that counts.
var ErrNoAccess = errors.New("it needs a token: Authorization: Bearer TOKEN")

// The limits of sessions.
const (
	openingLife = 10 * time.Minute
	sessionLife = 30 * 24 * time.Hour
	mostOpen    = 100
)

// sessions are the ways to let a browser in: openings, each for one use, and the sessions that they began. Both are kept as hashes, only in memory.
type sessions struct {
	mu       sync.Mutex
	openings map[[32]byte]time.Time // when they expire
	sessions map[[32]byte]time.Time
	run      []secret // tokens that are valid until Close
}

// secret is the hash of a token, and its caller.
type secret struct {
	hash   [32]byte
	caller Caller
}

// RunToken returns a new token with all scopes that is valid until Close.
func (s *Server) RunToken() string {
	token := grant.NewSecret()
	s.access.mu.Lock()
	defer s.access.mu.Unlock()
	s.access.run = append(s.access.run, secret{sha256.Sum256([]byte(token)), Caller{Scopes: Scopes}})
	return token
}

// Opening returns the path of an address that opens the page in a browser, once and within ten minutes.
func (s *Server) Opening() string {
	token := grant.NewSecret()
	a := &s.access
	a.mu.Lock()
	defer a.mu.Unlock()
	a.openings = current(a.openings)
	a.openings[sha256.Sum256([]byte(token))] = time.Now().Add(openingLife)
	return "/open?token=" + token
}

// current removes expired entries from a set, and all entries if there are too many.
func current(set map[[32]byte]time.Time) map[[32]byte]time.Time {
	now := time.Now()
	for k, until := range set {
		if now.After(until) {
			delete(set, k)
		}
	}
	if set == nil || len(set) >= mostOpen {
		return map[[32]byte]time.Time{}
	}
	return set
}

// cookieName returns the name of the session's cookie. It includes the port, since the ports of a host share their cookies.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "0"
	}
	return "chatctx-" + port
}

// open begins a session for the token of an opening, and redirects to the page.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead { // who only looks at an address must not use it up
		w.Header().Set("Allow", http.MethodGet)
		fail(w, operation.Refused(http.StatusMethodNotAllowed, "usage", "/open takes GET"))
		return
	}
	a := &s.access
	hash := sha256.Sum256([]byte(r.URL.Query().Get("token")))
	a.mu.Lock()
	until, ok := a.openings[hash]
	delete(a.openings, hash)
	ok = ok && time.Now().Before(until)
	session := grant.NewSecret()
	if ok {
		a.sessions = current(a.sessions)
		a.sessions[sha256.Sum256([]byte(session))] = time.Now().Add(sessionLife)
	}
	a.mu.Unlock()
	if !ok {
		fail(w, operation.Refused(http.StatusForbidden, "forbidden", "this address was used already, or is too old: press Enter where chatctx runs for a new one"))
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil, MaxAge: int(sessionLife.Seconds())})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// caller returns who sent a request, or ErrNoAccess.
func (s *Server) caller(r *http.Request) (Caller, error) {
	if s.options.Access != nil {
		return s.options.Access(r)
	}
	if s.options.Trusted && overSocket(r) {
		return Caller{Scopes: Scopes}, nil
	}
	if header := r.Header.Get("Authorization"); header != "" {
		token, ok := strings.CutPrefix(header, "Bearer ")
		if !ok {
			return Caller{}, ErrNoAccess
		}
		return s.byToken(r, token)
	}
	cookie, err := r.Cookie(cookieName(r))
	if err != nil || !s.access.holds(cookie.Value) {
		return Caller{}, ErrNoAccess
	}
	return Caller{Scopes: Scopes}, sameOrigin(r)
}

// overSocket reports whether a request came over a Unix socket.
func overSocket(r *http.Request) bool {
	addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && addr.Network() == "unix"
}

func (s *Server) byToken(r *http.Request, token string) (Caller, error) {
	hash := sha256.Sum256([]byte(token))
	s.access.mu.Lock()
	for _, own := range s.access.run {
		if subtle.ConstantTimeCompare(own.hash[:], hash[:]) == 1 {
			s.access.mu.Unlock()
			return own.caller, nil
		}
	}
	s.access.mu.Unlock()
	t, err := grant.Of(r.Context(), base.Of(s.store), token)
	if errors.Is(err, chatctx.ErrNotFound) {
		return Caller{}, ErrNoAccess
	}
	if err != nil {
		return Caller{}, err
	}
	c := Caller{Name: t.Name, token: t}
	for _, scope := range t.Scopes {
		c.Scopes = append(c.Scopes, Scope(scope))
	}
	return c, nil
}

// holds reports whether a session is valid. It looks the hash up, so the time that this takes tells nothing about a secret.
func (a *sessions) holds(session string) bool {
	hash := sha256.Sum256([]byte(session))
	a.mu.Lock()
	defer a.mu.Unlock()
	until, ok := a.sessions[hash]
	return ok && time.Now().Before(until)
}

// sameOrigin refuses requests that a page of another site lets the browser send with its cookie.
func sameOrigin(r *http.Request) error {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return operation.Refused(http.StatusForbidden, "forbidden", "another site asks with this browser's session")
	}
	origin := r.Header.Get("Origin")
	switch {
	case origin == "https://"+r.Host, origin == "http://"+r.Host && r.TLS == nil: // a proxy may do TLS for us
		return nil
	case origin == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return nil
	}
	return operation.Refused(http.StatusForbidden, "forbidden", "with a session, changes come from its own page")
}

// checkHost refuses foreign host names, since another site can let its own name point to this machine.
func (s *Server) checkHost(r *http.Request) error {
	if s.options.Trusted && overSocket(r) {
		return nil
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() { // no other site can have these
		return nil
	}
	allowed := s.options.Hosts
	if slices.Contains(allowed, "*") || slices.Contains(allowed, host) {
		return nil
	}
	return operation.Refused(http.StatusMisdirectedRequest, "forbidden", fmt.Sprintf("%q is no name of this server", host))
}
