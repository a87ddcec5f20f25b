package pgkv

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chatctx/chatctx/chatctx/kv/internal/watch"
)

// After its commit, one sender for each process tells other processes what an Update wrote: a NOTIFY within the transaction would make all commits of the
// database wait for each other. A program that is killed in between tells nobody, so listeners look for themselves from time to time.

const (
	// toldKey is how many bytes of a key others are told: a conversation's id.
	toldKey = 16
	// mostTold bounds a notification; PostgreSQL takes less than 8,000 bytes.
	mostTold = 7900
	// slowPoll is how often all watchers of a listening process look for changes that nobody told them.
	slowPoll = 30 * time.Second
	// fastPoll is how often a process that cannot listen asks whether anything was written.
	fastPoll = 200 * time.Millisecond
)

// notice tells of some commits. Keys is nil if there are too many: anything may have changed.
type notice struct {
	From string              `json:"from"`
	Keys map[string][][]byte `json:"keys,omitempty"`
}

func (a *address) channel() string {
	sum := sha256.Sum256([]byte(a.schema))
	return "chatctx_" + hex.EncodeToString(sum[:12])
}

// news sends notices.
type news struct {
	d    *database
	from string // marks this process's notices for its own listener, which ignores them

	mu      sync.Mutex
	keys    map[place]struct{}
	sweep   map[string][][]byte // records that were emptied, by bucket
	sending bool
	cleaned bool // the rows of old connections were removed
	ctx     context.Context
	stop    context.CancelFunc
	sends   sync.WaitGroup
}

func newNews(d *database) *news {
	n := &news{d: d, from: rand.Text(), keys: map[place]struct{}{}, sweep: map[string][][]byte{}}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// tell wakes the watchers of this process, and has the others told and the emptied records swept.
func (d *database) tell(wrote []watch.Key, gone []emptied) {
	if len(wrote) == 0 {
		return
	}
	d.hub.Wrote(wrote)
	n := d.news
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, k := range wrote {
		n.keys[place{k.Bucket, string(k.Key[:min(len(k.Key), toldKey)])}] = struct{}{}
	}
	for _, e := range gone {
		n.sweep[e.bucket] = append(n.sweep[e.bucket], e.keys...)
	}
	if !n.sending {
		n.sending = true
		n.sends.Go(n.send)
	}
}

// send sends notices until there are none. What cannot be sent now is left for the next time and for the slow poll.
func (n *news) send() {
	for {
		keys, sweep := n.take()
		if keys == nil {
			return
		}
		calls := []call{do(n.d.sql.notify, []byte(n.d.channel()), n.text(keys))}
		for bucket, gone := range sweep {
			calls = append(calls, do(n.d.sql.sweep, []byte(bucket), byteaArray(gone)))
		}
		if !n.cleaned {
			n.cleaned = true
			calls = append(calls, do(n.d.sql.forget))
		}
		conn, err := n.d.acquire(n.ctx)
		if err == nil {
			_, err = linkOf(conn.Conn()).run(n.ctx, n.d.limit(), calls...)
			conn.Release()
		}
		if err != nil {
			n.mu.Lock()
			for k := range keys {
				n.keys[k] = struct{}{}
			}
			for bucket, gone := range sweep {
				n.sweep[bucket] = append(n.sweep[bucket], gone...)
			}
			n.sending = false
			n.mu.Unlock()
			return
		}
	}
}

// take returns what is to be told and swept, nil if nothing is: then the sender ends.
func (n *news) take() (keys map[place]struct{}, sweep map[string][][]byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.keys) == 0 {
		n.sending = false
		return nil, nil
	}
	keys, sweep = n.keys, n.sweep
	n.keys, n.sweep = map[place]struct{}{}, map[string][][]byte{}
	return keys, sweep
}

func (n *news) text(keys map[place]struct{}) []byte {
	told := notice{From: n.from, Keys: map[string][][]byte{}}
	for k := range keys {
		told.Keys[k.bucket] = append(told.Keys[k.bucket], []byte(k.key))
	}
	text, err := json.Marshal(told)
	if err != nil || len(text) > mostTold {
		text, _ = json.Marshal(notice{From: n.from})
	}
	return text
}

// close sends what is left, if the server is there.
func (n *news) close() {
	limit := time.AfterFunc(n.d.wait, n.stop)
	n.sends.Wait()
	limit.Stop()
	n.stop()
}

// ears is the listener of a process. It has a connection of its own while somebody watches.
type ears struct {
	mu   sync.Mutex
	now  *listening // nil if nothing listens
	stop context.CancelFunc
	done sync.WaitGroup
}

// listening is one run of the listener.
type listening struct {
	ready chan struct{} // closed once the first connection listens or has failed
	err   error         // why it failed
}

// Watch implements kv.DB. It returns once the server reports changes.
func (d *database) Watch(ctx context.Context, bucket string, prefix []byte) (c <-chan struct{}, err error) {
	err = d.watch(ctx, func(watched context.Context) (err error) {
		c, err = d.hub.Add(watched, bucket, prefix)
		return err
	})
	return c, err
}

// WatchNames implements engine.Namer. Changes that only a slow poll or a new connection finds have no names.
func (d *database) WatchNames(ctx context.Context, bucket string, prefix []byte) (c <-chan struct{}, changed func() ([][]byte, bool), err error) {
	err = d.watch(ctx, func(watched context.Context) (err error) {
		c, changed, err = d.hub.AddNames(watched, bucket, prefix)
		return err
	})
	return c, changed, err
}

func (d *database) watch(ctx context.Context, add func(context.Context) error) error {
	if err := d.door.Enter(ctx); err != nil {
		return err
	}
	defer d.door.Leave()
	watched, cancel := context.WithCancel(ctx)
	err := add(watched)
	if err != nil {
		cancel()
		return err
	}
	l := d.startListening()
	select {
	case <-l.ready:
		err = l.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return d.told(ctx, err)
	}
	context.AfterFunc(ctx, cancel)
	return nil
}

func (d *database) startListening() *listening {
	e := &d.ears
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.now == nil {
		ctx, stop := context.WithCancel(context.Background())
		l := &listening{ready: make(chan struct{})}
		e.now, e.stop = l, stop
		e.done.Go(func() { d.listen(ctx, l) })
	}
	return e.now
}

func (e *ears) close() {
	e.mu.Lock()
	if e.stop != nil {
		e.stop()
	}
	e.mu.Unlock()
	e.done.Wait()
}

// listen listens until nobody watches any more or the database is closed, over one connection after the other.
func (d *database) listen(ctx context.Context, l *listening) {
	heard := false
	for try := 0; ; try++ {
		err := d.hear(ctx, func() {
			try = 0
			if heard {
				d.hub.All() // changes without a connection are unknown
				return
			}
			heard = true
			close(l.ready)
		})
		switch {
		case errors.Is(err, errDeaf):
			return
		case !heard:
			d.deaf()
			l.err = err
			close(l.ready)
			return
		case ctx.Err() != nil:
			d.deaf()
			return
		}
		pause(ctx, try+6)
	}
}

// deaf records that nothing listens any more.
func (d *database) deaf() {
	d.ears.mu.Lock()
	defer d.ears.mu.Unlock()
	d.ears.now = nil
}

// errDeaf: nobody watches.
var errDeaf = errors.New("pgkv: nobody watches")

// hear connects and passes on what it hears until the connection is lost.
func (d *database) hear(ctx context.Context, listening func()) error {
	conn, err := pgx.ConnectConfig(ctx, d.config.ConnConfig.Copy())
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	if d.pooled {
		return d.poll(ctx, newLink(conn, true), listening)
	}
	if _, err := conn.PgConn().Exec(ctx, "listen "+d.channel()).ReadAll(); err != nil {
		return err
	}
	listening()
	for {
		limited, cancel := context.WithTimeout(ctx, slowPoll)
		n, err := conn.WaitForNotification(limited)
		quiet := limited.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			d.heard(n.Payload)
		case !quiet:
			return err
		case !d.look():
			return errDeaf
		}
	}
}

// look makes all watchers look for themselves, and reports whether there are any. If not, the listener ends; a later Watch starts another one.
func (d *database) look() bool {
	e := &d.ears
	e.mu.Lock()
	defer e.mu.Unlock()
	if d.hub.Len() == 0 {
		e.now = nil
		return false
	}
	d.hub.All()
	return true
}

func (d *database) heard(text string) {
	var told notice
	if err := json.Unmarshal([]byte(text), &told); err != nil || told.Keys == nil && told.From != d.news.from {
		d.hub.All()
		return
	}
	if told.From == d.news.from {
		return
	}
	var keys []watch.Key
	for bucket, of := range told.Keys {
		for _, key := range of {
			keys = append(keys, watch.Key{Bucket: bucket, Key: key})
		}
	}
	d.hub.Near(keys)
}

// poll asks whether the server wrote anything at all, in any database.
func (d *database) poll(ctx context.Context, l *link, listening func()) error {
	last := ""
	tick := time.NewTicker(fastPoll)
	defer tick.Stop()
	for {
		results, err := l.run(ctx, d.limit(), do(plain("select pg_current_wal_insert_lsn()::text")))
		if err != nil {
			return err
		}
		now := string(results[0].rows[0][0])
		switch {
		case last == "":
			listening()
		case now != last && !d.look():
			return errDeaf
		}
		last = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
