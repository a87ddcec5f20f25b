package serve

import (
	"context"
	"slices"
	"sync"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/grant"
)

// guests are the long requests with a token of the store: they end when any program removes the token.
type guests struct {
	mu       sync.Mutex
	all      map[*guest]struct{}
	watching bool
}

type guest struct {
	token base.Token
	end   context.CancelCauseFunc
}

// admit returns a context that ends when the request's token is removed. Call leave when the request ends.
func (s *Server) admit(ctx context.Context, who Caller) (_ context.Context, leave func(), err error) {
	if who.token == nil {
		return ctx, func() {}, nil
	}
	ctx, end := context.WithCancelCause(ctx)
	g := &guest{*who.token, end}
	leave = func() {
		s.guests.mu.Lock()
		delete(s.guests.all, g)
		s.guests.mu.Unlock()
		end(nil)
	}
	if err := s.watchTokens(g); err != nil {
		leave()
		return ctx, nil, err
	}
	s.dismiss(ctx) // it may be gone already
	return ctx, leave, nil
}

// watchTokens adds a guest, and begins to watch the tokens with the first one.
func (s *Server) watchTokens(g *guest) error {
	a := &s.guests
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.watching {
		news, err := base.Of(s.store).DB.Watch(s.ctx, base.TokenBucket, nil)
		if err != nil {
			return err
		}
		a.watching, a.all = true, map[*guest]struct{}{}
		go func() {
			for range news {
				s.dismiss(s.ctx)
			}
		}()
	}
	a.all[g] = struct{}{}
	return nil
}

// dismiss ends the requests whose tokens are gone.
func (s *Server) dismiss(ctx context.Context) {
	a := &s.guests
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.all) == 0 {
		return
	}
	tokens, err := grant.List(ctx, base.Of(s.store))
	if err != nil {
		return // the next change of the store checks again
	}
	for g := range a.all {
		if !slices.ContainsFunc(tokens, func(t base.Token) bool { return t.Name == g.token.Name && t.Created == g.token.Created }) {
			g.end(ErrNoAccess)
		}
	}
}
