package boltkv

import (
	"context"
	"errors"
	"time"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/internal/engine"
)

// errOutOfPatience ends a wait; the lease turns it into a *kv.LockedError.
var errOutOfPatience = errors.New("boltkv: waited long enough")

// patience is the rest of a bounded wait. One goroutine uses it.
type patience struct {
	ctx    context.Context
	left   time.Duration
	unpaid time.Duration // time waited that may or may not count
	begun  time.Time
	never  bool // it does not wait at all
	// long returns who holds the store for a long purpose, or nil. Waiting for that does not count.
	long func() *kv.Holder
	told bool // that somebody does
}

const (
	soon   = time.Second            // after that a wait without a limit is reported
	glance = 100 * time.Millisecond // how often a wait checks who holds the store
	poll   = time.Millisecond       // between two tries if the system has no lock that waits
)

// newPatience returns a patience for a wait of that length; a negative one is over before it begins.
func newPatience(ctx context.Context, wait time.Duration) *patience {
	return &patience{
		ctx: ctx, left: wait, begun: time.Now(), never: wait < 0, long: func() *kv.Holder { return nil },
	}
}

// wait returns what arrives on done, or the error that ended the wait.
func (p *patience) wait(done <-chan error) error {
	for {
		err, came := p.slice(done, glance)
		if came || err != nil {
			return err
		}
	}
}

// pause waits between two tries.
func (p *patience) pause() error {
	err, _ := p.slice(nil, poll)
	return err
}

// slice waits for at most d and reports whether something came.
func (p *patience) slice(done <-chan error, d time.Duration) (err error, came bool) {
	if p.spent() {
		return errOutOfPatience, false
	}
	if rest := p.left - p.unpaid; rest > 0 {
		d = min(d, rest)
	}
	begun := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case err := <-done:
		came = true
		p.unpaid += time.Since(begun)
		return err, came
	case <-p.ctx.Done():
		return p.ctx.Err(), false
	case <-timer.C:
	}
	if p.unpaid += time.Since(begun); p.unpaid >= glance {
		p.pay()
	}
	return nil, false
}

func (p *patience) pay() {
	by := p.long()
	if by == nil {
		p.left -= p.unpaid
	}
	p.unpaid = 0
	if tell := engine.Waiting(p.ctx); by != nil && tell != nil && !p.told && time.Since(p.begun) >= soon {
		p.told = true
		tell(*by)
	}
}

func (p *patience) spent() bool {
	if p.never || p.left > p.unpaid {
		return p.never
	}
	p.pay()
	return p.left <= 0 && p.long() == nil
}

// over reports whether err ended the wait, as opposed to being what was waited for.
func (p *patience) over(err error) bool {
	return errors.Is(err, errOutOfPatience) || (err != nil && err == p.ctx.Err())
}
