package pgkv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/engine"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// mostTries bounds how often an Update runs. From holdFrom on it has the table to itself and cannot lose to others.
	mostTries = 12
	holdFrom  = 6
)

// Update implements kv.DB.
func (d *database) Update(ctx context.Context, fn func(kv.RwTx) error) error {
	if d.ReadOnly {
		return kv.ErrReadOnly
	}
	if err := d.door.Enter(ctx); err != nil {
		return err
	}
	defer d.door.Leave()
	lane := engine.Lane(ctx)
	leave, err := d.lanes.enter(ctx, lane)
	if err != nil {
		return err
	}
	defer leave()
	var away time.Time // the time at which it gives up on a lost server
	for try := 0; ; try++ {
		err, mine := d.attempt(ctx, fn, lane, try)
		switch {
		case err == nil || mine || errors.Is(err, kv.ErrUnknownOutcome): // running it again might store it twice
			return err
		case ctx.Err() != nil:
			return d.told(ctx, err)
		case conflict(err):
			switch {
			case try+1 < mostTries:
			case code(err) == outOfMemory:
				return d.explain(err)
			default:
				return fmt.Errorf("%w: others changed the same records in each of %d tries; try again later: %w", kv.ErrLocked, mostTries, err)
			}
		case isLost(err):
			if away.IsZero() {
				away = time.Now().Add(d.outcomeWait)
				d.pool.Reset()
			}
			fallthrough
		case !away.IsZero() && unreachable(err), ending(err):
			if away.IsZero() {
				away = time.Now().Add(d.wait)
			}
			if time.Now().After(away) {
				return d.told(ctx, err)
			}
		default:
			return d.updateError(ctx, err)
		}
		pause(ctx, try)
	}
}

// updateError takes a missing right for one to write.
func (d *database) updateError(ctx context.Context, err error) error {
	if code(err) == insufficientRights {
		return fmt.Errorf("%w: %w", kv.ErrReadOnly, d.explain(err))
	}
	return d.told(ctx, err)
}

func isLost(err error) bool { return errors.Is(err, errLost) }

// unreachable reports whether no connection could be made.
func unreachable(err error) bool {
	var connect *pgconn.ConnectError
	return errors.As(err, &connect) || errors.Is(err, kv.ErrAway)
}

// pause waits for a random time that grows with the tries.
func pause(ctx context.Context, try int) {
	most := min(8*time.Millisecond<<min(try, 10), 200*time.Millisecond)
	select {
	case <-time.After(mathrand.N(most)):
	case <-ctx.Done():
	}
}

// attempt runs fn once and commits. mine says that the error is fn's own.
func (d *database) attempt(ctx context.Context, fn func(kv.RwTx) error, lane string, try int) (err error, mine bool) {
	s := d.newSession(ctx, d.sql.beginUpdate)
	if s.erases { // others see the purpose, as in pg_stat_activity
		s.begin.sql += " -- " + engine.Purpose(ctx)
	}
	tx := &writer{reader{session: s, page: updatePage}}
	defer func() {
		tx.ended = true
		s.end()
	}()
	if try > 0 && lane != "" && !d.pooled {
		if err := s.queue(lane); err != nil {
			return err, false
		}
	}
	s.hold, s.aside = try >= holdFrom, d.guard != nil
	if err := fn(tx); s.failed == nil && err != nil {
		return err, true
	}
	tx.ended = true
	if s.failed != nil {
		return s.failed, false
	}
	return s.finish(), false
}

// queue waits for the lane's Updates of other processes before the transaction begins, so that its snapshot is later than these.
func (s *session) queue(lane string) error {
	conn, err := s.db.acquire(s.ctx)
	if err != nil {
		return err
	}
	s.conn = conn
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%s", s.db.schema, lane)
	key := int64(h.Sum64() | 1)
	if _, err = s.link().run(s.ctx, s.db.limit(), do(s.db.sql.lock, int8(key))); err == nil {
		s.locked = key
	}
	return err
}

// finish commits the function's writes. If the connection breaks meanwhile, it finds out the outcome.
func (s *session) finish() error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.stamp()
	writes := s.writes()
	if !s.begun && len(writes) == 0 {
		return nil
	}
	if s.conn == nil {
		conn, err := s.db.acquire(s.ctx)
		if err != nil {
			return err
		}
		s.conn = conn
	}
	var calls []call
	if !s.begun {
		calls = s.head()
	}
	head := calls
	calls = append(calls, writes...)
	var id [16]byte
	if len(s.wrote) > 0 {
		rand.Read(id[:])
		calls = append(calls, do(s.db.sql.mark, s.link().id[:], id[:]))
	}
	calls = append(calls, do(s.db.sql.commit))
	committed := len(calls) - 1
	if s.locked != 0 {
		calls = append(calls, do(s.db.sql.unlock, int8(s.locked)))
	}
	l, sent := s.link(), time.Now()
	// Once the commit is sent, its answer is awaited: a commit that is given up has an unknown outcome.
	results, err := l.run(context.WithoutCancel(s.ctx), s.db.limit(), calls...)
	if err == nil && results[committed].tag != "COMMIT" {
		err = fmt.Errorf("pgkv: the server answered the commit with %s", results[committed].tag)
	}
	switch {
	case err == nil:
		s.locked = 0
		s.db.clock.heard(sent, head, results)
	case isLost(err) && len(s.wrote) > 0:
		s.locked = 0
		if err = s.db.outcome(s.ctx, l.id, id, err); err != nil {
			return err
		}
	default:
		return err
	}
	s.db.tell(s.wrote, s.emptied)
	return nil
}

// lanes are the queues of the writers of this process.
type lanes struct {
	mu sync.Mutex
	of map[string]*lane
}

type lane struct {
	turn  chan struct{} // holds a value while somebody is in the lane
	users int
}

// enter waits for the lane. leave admits the one that has waited longest.
func (l *lanes) enter(ctx context.Context, name string) (leave func(), err error) {
	if name == "" {
		return func() {}, nil
	}
	l.mu.Lock()
	if l.of == nil {
		l.of = map[string]*lane{}
	}
	here := l.of[name]
	if here == nil {
		here = &lane{turn: make(chan struct{}, 1)}
		l.of[name] = here
	}
	here.users++
	l.mu.Unlock()
	gone := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if here.users--; here.users == 0 {
			delete(l.of, name)
		}
	}
	select {
	case here.turn <- struct{}{}:
		return func() { <-here.turn; gone() }, nil
	case <-ctx.Done():
		gone()
		return nil, ctx.Err()
	}
}
