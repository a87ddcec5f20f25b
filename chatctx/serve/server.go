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

// Options of New.
type Options struct {
	// Access says who asks: ErrNoAccess for nobody. Nil: whoever has a token of the store, or a session that Server.Open began. A program with a login of its own gives
	// its own, and then answers for requests that another site has a browser send.
	Access func(*http.Request) (Caller, error)
	// Hosts are the names that requests may have been sent to, without a port; besides those of this machine to itself. A name that another site points to this
	// machine is no such name. "*" stands for all, where no session is used.
	Hosts []string
	// Trusted: requests over a Unix socket need no token, since the permissions of its file say who may send them.
	Trusted bool
	// Executor runs tools in a conversation, until end is called; nil: one with the tools that are kept in the store.
	Executor func(*chatctx.ChatContext) (e *approval.Executor, end func())
	// Places finds what tools of this machine keep, for whoever may import it; nil: nothing.
	Places func() []exchange.Place
	// Turn readies a turn before it asks a model; nil: as it is.
	Turn func(*turn.Turn)
	// Page has the files of a page that is served at /, such as page.Files; nil: none.
	Page fs.FS
}

// Server speaks for a store. Its methods may be called by several goroutines.
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
	room    *room // of answers that wait to be read
	bodies  *room // of requests that came whole
	shorts  *room // of those of them that are small, which so do not wait for large ones

	ctx    context.Context // of what goes on beside requests
	end    context.CancelFunc
	once   sync.Once
	feed   *feed
	failed error // of beginning the feed
}

// limits are what tests make smaller.
type limits struct {
	line int // bytes of a line over standard input and output, in either direction
	page int // about how large an answer gets

	connections int   // that are open at a time
	ofOne       int   // those of one address
	requests    int   // that run at a time
	uploads     int64 // bytes that wait for imports, in all

	patience time.Duration // how long a request waits for room
	grace    time.Duration // how long a body may take to come that holds room, and longer as it comes
	rate     int           // bytes of it that come in a second, after that
}

// New makes a handler that speaks for a store, which stays the caller's. Close ends what it began.
func New(store *chatctx.Store, o Options) *Server {
	s := &Server{store: store, options: o, limits: limits{line: 16 << 20, page: 4 << 20, connections: 512, ofOne: 128, requests: 1000, uploads: 16 << 30, patience: 10 * time.Second, grace: 10 * time.Second, rate: 256 << 10}}
	s.room, s.bodies, s.shorts = &room{most: waiting * s.limits.page}, &room{most: mostHeld}, &room{most: mostHeld / 4}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.route()
	return s
}

// Close ends all streams, and takes uploads away that no import took.
func (s *Server) Close() {
	s.end()
	s.uploads.close()
}

// changes is the feed of the store's changes, which begins with the first reader.
func (s *Server) changes() (*feed, error) {
	s.once.Do(func() { s.feed, s.failed = newFeed(s.ctx, s.store) })
	return s.feed, s.failed
}

// executor runs tools in a conversation.
func (s *Server) executor(c *chatctx.ChatContext) (e *approval.Executor, end func()) {
	if s.options.Executor != nil {
		return s.options.Executor(c)
	}
	e = &approval.Executor{Context: c}
	return e, e.Close
}

// randomName is a name that cannot be guessed.
func randomName() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
