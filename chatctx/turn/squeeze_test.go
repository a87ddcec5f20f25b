package turn

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/cost"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/window"
)

// squeezes reports whether a request asks a model to shorten a digest.
func squeezes(body string) bool { return strings.Contains(body, "You shorten notes") }

// squeezer answers requests to shorten with a few words, and the others with the next answer.
type squeezer struct {
	mu      sync.Mutex
	squeeze int
	fail    int // how many of the others fail first
}

func (s *squeezer) provider(t *testing.T, requests int) *provider {
	p := newProvider(t)
	for i := range requests {
		p.answers = append(p.answers, func(w *writer, r *http.Request) {
			s.mu.Lock()
			defer s.mu.Unlock()
			p.mu.Lock()
			body := p.bodies[i]
			p.mu.Unlock()
			switch {
			case squeezes(body):
				s.squeeze++
				says("They counted words.")(w, r)
			case s.fail > 0:
				s.fail--
				http.Error(w, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`, 529)
			default:
				says("Yes.")(w, r)
			}
		})
	}
	return p
}

// crowded returns a turn whose branch does not fit without shorter digests.
func crowded(t *testing.T, p *provider) *Turn {
	turn := newTurn(t, p)
	talked(t, turn, 30)
	set(t, turn, `{"budget":600,"keep_blocks":3,"digest_tokens":800,"squeeze":true,"steps.compact":false,"headroom":0}`)
	return turn
}

// TestPreviewsAskNobody: looking at a request calls no model; a paid result is stored before anything else can fail, and used by what follows.
func TestPreviewsAskNobody(t *testing.T) {
	s := &squeezer{fail: 1}
	p := s.provider(t, 20)
	turn := crowded(t, p)
	look := func() (noted bool) {
		for range 2 {
			req, err := turn.Request(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range req.Draft.Notes {
				noted = noted || n.Step == "squeeze" && strings.Contains(n.What, "when this is sent")
			}
			if fit, err := turn.Fit(t.Context()); err != nil || window.Of(fit).Forecast.Tokens != window.Of(req).Forecast.Tokens {
				t.Errorf("fit: %v, %+v, want %+v", err, window.Of(fit).Forecast, window.Of(req).Forecast)
			}
		}
		return noted
	}
	if !look() || len(p.bodies) > 0 {
		t.Fatalf("looking asked %d times", len(p.bodies))
	}
	if _, err := turn.Send(t.Context(), user("and now?")); err == nil {
		t.Fatal("the provider was to fail")
	}
	if s.squeeze == 0 {
		t.Fatal("nothing was squeezed")
	}
	first := s.squeeze
	if look() {
		t.Error("a look after it speaks of what is done")
	}
	out, err := turn.Send(t.Context())
	if err != nil || out.Reply().Text() != "Yes." {
		t.Fatal(err)
	}
	if s.squeeze != first {
		t.Errorf("squeezed %d times, then %d", first, s.squeeze)
	}
	if body := p.bodies[len(p.bodies)-1]; !strings.Contains(body, "They counted words.") {
		t.Errorf("the request does without the shorter digest: %.400s", body)
	}
	report, err := cost.Spent(t.Context(), turn.Context.Store(), cost.Query{By: cost.ByKind})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, g := range report.Kinds {
		kinds[g.Kind] = g.Replies
	}
	if kinds["digest"] != first || kinds["reply"] != 1 || kinds["digest"]+kinds["reply"] != len(p.bodies)-1 {
		t.Errorf("of %d requests, one of which failed, cost knows %v", len(p.bodies), kinds)
	}
	if _, err := turn.Context.Store().Maintenance().GC(t.Context(), record.GCOptions{}); err != nil {
		t.Fatal(err)
	}
	if again, err := cost.Spent(t.Context(), turn.Context.Store(), cost.Query{}); err != nil || again.Replies != report.Replies {
		t.Errorf("after gc %d replies are known, %d before: %v", again.Replies, report.Replies, err)
	}
}

// TestBranchesShareDigests: several branches of one send pay for a digest once, even if they ask at the same time.
func TestBranchesShareDigests(t *testing.T) {
	s := &squeezer{}
	turn := crowded(t, s.provider(t, 40))
	b := turn.Context.Begin("")
	b.Append(user("and now?"))
	shared := &window.Once{}
	var turns []*Turn
	for i := range 4 {
		own := *turn
		own.Branch, own.asides = fmt.Sprintf("b%d", i), shared
		turns = append(turns, &own)
		b.Fork(own.Branch, chatctx.ForkOptions{Stay: true})
	}
	if _, err := b.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, own := range turns {
		all.Go(func() {
			if _, err := own.Send(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	report, err := cost.Spent(t.Context(), turn.Context.Store(), cost.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if digests := report.Replies - 4; s.squeeze == 0 || digests != s.squeeze {
		t.Errorf("%d digests are paid for, %d were made", digests, s.squeeze)
	}
	one := s.squeeze
	alone := crowded(t, s.provider(t, 40))
	if _, err := alone.Send(t.Context(), user("and now?")); err != nil {
		t.Fatal(err)
	}
	if s.squeeze-one != one {
		t.Errorf("four branches squeezed %d times, one %d", one, s.squeeze-one)
	}
}
