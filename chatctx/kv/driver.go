package kv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Driver is an engine that is chosen by the scheme of a URL. Its package registers it, so a program has the engines whose packages it imports.
type Driver struct {
	// Open opens a database that Init made. Its errors are ErrNotExist, ErrNotOurs, ErrTooNew, ErrAway, fs.ErrPermission if the user lacks a right, the
	// error of OpenOptions.Check, or the engine's own.
	Open func(ctx context.Context, url string, o OpenOptions) (DB, error)
	// Init makes a database, and fill writes its first records; afterwards both exist, or neither. If there is a database already, it returns fs.ErrExist.
	Init func(ctx context.Context, url string, fill func(RwTx) error) error
}

// OpenOptions are options of Open.
type OpenOptions struct {
	ReadOnly bool          // refuse every Update with ErrReadOnly
	Wait     time.Duration // the longest wait of a transaction for others; 0: 5 s
	Program  string        // the name that others see; "": the executable's
	Check    func(Tx) error
	Checks   []Key // the records that Check reads, to be fetched with it
}

// known maps schemes to the packages of this module that register their engines.
var known = map[string]string{
	"postgres":   "github.com/chatctx/chatctx/chatctx/kv/pgkv",
	"postgresql": "github.com/chatctx/chatctx/chatctx/kv/pgkv",
}

var drivers = struct {
	sync.Mutex
	of map[string]Driver
}{of: map[string]Driver{}}

// Register registers a driver for a scheme in lower case. It panics if the scheme has one already.
func Register(scheme string, d Driver) {
	drivers.Lock()
	defer drivers.Unlock()
	if _, there := drivers.of[scheme]; there {
		panic("kv: a second driver for " + scheme)
	}
	drivers.of[scheme] = d
}

// Scheme returns the scheme of a URL in lower case, "" if the text is the path of a file.
func Scheme(text string) string {
	scheme, _, is := strings.Cut(text, "://")
	if !is || scheme == "" || strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+") != "" {
		return ""
	}
	return strings.ToLower(scheme)
}

// Open opens the database at a URL with the driver of its scheme.
func Open(ctx context.Context, url string, o OpenOptions) (DB, error) {
	d, err := driver(url)
	if err != nil {
		return nil, err
	}
	return d.Open(ctx, url, o)
}

// Init makes a database at a URL with the driver of its scheme.
func Init(ctx context.Context, url string, fill func(RwTx) error) error {
	d, err := driver(url)
	if err != nil {
		return err
	}
	return d.Init(ctx, url, fill)
}

func driver(url string) (Driver, error) {
	scheme := Scheme(url)
	drivers.Lock()
	defer drivers.Unlock()
	if d, there := drivers.of[scheme]; there {
		return d, nil
	}
	if path, is := known[scheme]; is {
		return Driver{}, fmt.Errorf("this program was built without the engine for %s:// stores: import _ %q", scheme, path)
	}
	have := "none"
	if len(drivers.of) > 0 {
		have = strings.Join(slices.Sorted(maps.Keys(drivers.of)), "://, ") + "://"
	}
	return Driver{}, fmt.Errorf("no engine opens %s:// stores; this program has: %s", scheme, have)
}

// Clock is implemented by engines whose users all share one clock.
type Clock interface {
	// Now returns the server's time. It seldom asks the server: it is accurate to a tenth of a second or to the time of a round trip, whichever is longer.
	Now(ctx context.Context) (time.Time, error)
}

// ErrAway means that the server that keeps the database does not answer.
var ErrAway = errors.New("the store's server cannot be reached")
