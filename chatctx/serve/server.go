package serve

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io/fs"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/approval"
	"github.com/chatctx/chatctx/chatctx/exchange"
	"github.com/chatctx/chatctx/chatctx/turn"
)

// Options are options of New.
type Options struct {
	// Access returns the caller of a request, or ErrNoAccess. Nil means that callers need a token of the store, or a session that Server.Opening began. A
	// program with its own login sets this, and must then refuse forged requests of other sites itself.
	Access func(*http.Request) (Caller, error)
	// Hosts are the names, without a port, under which requests may reach the server, besides those of this machine for itself. This keeps out another site's
	// name that points to this machine. "*" means all; use it only without sessions.
	Hosts []string
	// Trusted means that requests over a Unix socket need no token, since the permissions of its file say who may send them.
	Trusted bool
	// Executor returns what runs tools in a conversation, until end is called; nil means one with the tools in the store.
	Executor func(*chatctx.ChatContext) (e *approval.Executor, end func())
	// Places finds the data of tools on this machine, for callers that may import it; nil means none.
	Places func() []exchange.Place
	// Turn prepares a turn before it asks a model; nil means no change.
	Turn func(*turn.Turn)
	// Page has the files of a page to serve at /, such as page.Files; nil means none.
	Page fs.FS
}

// Server serves a store to other programs. It is safe for concurrent use.
type Server struct {
	store   *chatctx.Store
	options Options
	limits  limits
	mux     *http.ServeMux
	running atomic.Int64 // requests over HTTP
	uploads uploads
	keys    keys
	access  sessions
	guests  guests
	room    *room // for answers that wait to be read
	bodies  *room // for requests that are read whole
	shorts  *room // for the small ones among them, so that they do not wait for large ones

	ctx    context.Context // for everything beside requests
	end    context.CancelFunc
	once   sync.Once
	feed   *feed
	failed error // to begin the feed
}

// limits are those that tests reduce.
type limits struct {
	line int // bytes of a line over standard input and output, in either direction
	page int // the approximate largest size of an answer, in bytes

	connections int   // open connections
	ofOne       int   // open connections of one address
	requests    int   // running requests
	uploads     int64 // bytes that wait for imports, in all

	patience time.Duration // how long a request waits for room
	grace    time.Duration // how long a body that holds room may take to arrive, with more time as it arrives
	rate     int           // bytes a second at which it must arrive after that
}

// New returns a Server for a store. The caller still owns the store, and calls Close at the end.
func New(store *chatctx.Store, o Options) *Server {
	s := &Server{store: store, options: o, limits: limits{line: 16 << 20, page: 4 << 20, connections: 512, ofOne: 128, requests: 1000, uploads: 16 << 30, patience: 10 * time.Second, grace: 10 * time.Second, rate: 256 << 10}}
	s.room, s.bodies, s.shorts = &room{most: waiting * s.limits.page}, &room{most: mostHeld}, &room{most: mostHeld / 4}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.route()
	return s
}

// Close ends all streams, and removes uploads that were not imported.
func (s *Server) Close() {
	s.end()
	s.uploads.close()
}

// changes returns the feed of the store's changes, which begins with the first reader.
func (s *Server) changes() (*feed, error) {
	s.once.Do(func() { s.feed, s.failed = newFeed(s.ctx, s.store) })
	return s.feed, s.failed
}

// executor returns what runs tools in a conversation.
func (s *Server) executor(c *chatctx.ChatContext) (e *approval.Executor, end func()) {
	if s.options.Executor != nil {
		return s.options.Executor(c)
	}
	e = &approval.Executor{Context: c}
	return e, e.Close
}

// randomName returns a name that cannot be guessed.
func randomName() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
