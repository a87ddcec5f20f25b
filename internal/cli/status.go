package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

// statusJSON is where a person is.
type statusJSON struct {
	Store    string          `json:"store"`
	Context  chatctx.ID      `json:"context"`
	Title    string          `json:"title"`
	Branch   string          `json:"branch"`
	Messages int             `json:"messages"`
	Head     *chatctx.ID     `json:"head"`
	Revision uint64          `json:"revision"`
	Model    json.RawMessage `json:"model"`
	Provider json.RawMessage `json:"provider"`
	Mode     json.RawMessage `json:"mode"`
	Tokens   branch.Tokens   `json:"tokens"`
	contract.Window
	Cache     *cacheJSON    `json:"cache"`
	Session   int           `json:"session"`
	OpenCalls int           `json:"open_calls"`
	Open      contract.Open `json:"open"` // the same, by what they wait for
	Queued    int           `json:"queued"`
	Replying  *replyingJSON `json:"replying"`

	forecast *window.Forecast
	over     error
}

// cacheJSON is what the last reply read from the provider's prompt cache and wrote to it.
type cacheJSON struct {
	Read    *int64 `json:"read_tokens"`
	Written *int64 `json:"written_tokens"`
}

// replyingJSON is who works on a reply on the branch.
type replyingJSON struct {
	*record.Claim
	Since pool.Time `json:"since" empty:"null"`
}

func doStatus(r *run) error {
	c, snap, err := r.snapshot()
	if err != nil {
		return err
	}
	info, err := c.Info(r.ctx)
	if err != nil {
		return err
	}
	path, err := r.storePath()
	if err != nil {
		return err
	}
	s := &statusJSON{Store: shownStore(path), Context: c.ID, Title: info.Title, Branch: snap.Info.Name, Messages: snap.Len(),
		Head: idOrNull(snap.Info.Head), Revision: snap.Info.Revision, Session: max(branchstore.Current(snap.Info.Sessions)+1, 1)}
	for _, fill := range []func(*run, *chatctx.ChatContext, *chatctx.Snapshot) error{s.figures, s.window, s.work} {
		if err := fill(r, c, snap); err != nil {
			return err
		}
	}
	return r.emit(s, func() {
		s.print(r)
		if info.Trashed != 0 {
			r.note("it is in the trash; take it out: %s", r.again("restore "+short(c.ID)))
		}
	})
}

// window sets the model and how much of its window is used.
func (s *statusJSON) window(r *run, c *chatctx.ChatContext, snap *chatctx.Snapshot) error {
	own, err := c.Effective(r.ctx, snap.Info.Name)
	if err != nil {
		return err
	}
	inForce := settings.WithEnv(own, os.Getenv)
	s.Model, s.Provider, s.Mode = inForce["model"], inForce["provider"], inForce["mode"]
	req, over, err := r.foresee(r.turn(c, snap.Info.Name))
	if errors.Is(err, settings.ErrSetting) {
		return nil // the commands that use it report it
	}
	if err != nil {
		return err
	}
	if i := req.Options.SessionOf(snap.Info.Sessions); i >= 0 {
		s.Session = i + 1
	}
	s.Window, s.forecast, s.over = contract.WindowOf(req.Forecast), req.Forecast, over
	return nil
}

// lookback bounds how many messages are searched for the last reply, so that the length of a branch does not matter.
const lookback = 200

// figures sets the branch's tokens, those that were set or the last reply's, and the last reply's cache figures.
func (s *statusJSON) figures(r *run, _ *chatctx.ChatContext, snap *chatctx.Snapshot) error {
	for e, err := range snap.Entries(r.ctx, snap.Len(), max(snap.Len()-lookback, 1)) {
		if err != nil {
			return err
		}
		m := &e.Meta
		if e.Role != pool.Assistant || m.InputTokens == nil {
			continue
		}
		s.Tokens.Input = *m.InputTokens
		if m.OutputTokens != nil {
			s.Tokens.Output = *m.OutputTokens
		}
		if m.CacheRead != nil || m.CacheWrite != nil {
			s.Cache = &cacheJSON{m.CacheRead, m.CacheWrite}
		}
		break
	}
	if set := snap.Info.Tokens; set != nil {
		s.Tokens = *set
	}
	return nil
}

// work sets what waits and who works.
func (s *statusJSON) work(r *run, c *chatctx.ChatContext, snap *chatctx.Snapshot) error {
	_, open, err := r.openOn(c, snap.Info.Name)
	if err != nil {
		return err
	}
	s.Open, s.OpenCalls = open.Open, open.all()
	queued, err := view.Queued(r.ctx, base.ContextOf(c.Store(), c.ID), snap.Info.Name)
	if err != nil {
		return err
	}
	s.Queued = len(queued)
	claim, err := view.Running(r.ctx, base.ContextOf(c.Store(), c.ID), snap.Info.Name)
	if err != nil {
		return err
	}
	if base.Held(claim, base.Of(r.st).Now()) {
		s.Replying = &replyingJSON{claim, claim.Since}
	}
	return nil
}

// print lists what is known.
func (s *statusJSON) print(r *run) {
	line := func(name, value string) {
		if value != "" {
			r.printf("%-12s %s\n", name, value)
		}
	}
	line("store", clean(s.Store))
	line("conversation", named(s.Title, s.Context))
	head := "empty"
	if s.Head != nil {
		head = fmt.Sprintf("%s, head %s", count(s.Messages, "message"), short(*s.Head))
	}
	line("branch", fmt.Sprintf("%s: %s, revision %d", clean(s.Branch), head, s.Revision))
	model := cmp.Or(plainValue(s.Model), "none is set")
	if provider := plainValue(s.Provider); provider != "" {
		model += ", provider " + provider
	}
	line("model", model)
	line("mode", plainValue(s.Mode))
	if s.forecast != nil {
		line("window", "the next request: "+s.forecast.String())
	}
	if s.over != nil {
		line("", clean(s.over.Error()))
	}
	if s.Tokens != (branch.Tokens{}) {
		line("reported", fmt.Sprintf("%d tokens in, %d out for the last reply", s.Tokens.Input, s.Tokens.Output))
	}
	if s.Cache != nil {
		line("cache", fmt.Sprintf("%s tokens read, %s written by the last reply", figure(s.Cache.Read), figure(s.Cache.Written)))
	}
	line("session", strconv.Itoa(s.Session))
	line("calls", cmp.Or((&waits{s.Open}).String(), "no open calls"))
	if s.Queued > 0 {
		line("queue", count(s.Queued, "message"))
	}
	if s.Replying != nil {
		line("replying", fmt.Sprintf("%s, process %d on %s", clean(s.Replying.Program), s.Replying.PID, clean(s.Replying.Host)))
	}
}

// figure is a count that may be unknown.
func figure(n *int64) string {
	if n == nil {
		return "?"
	}
	return strconv.FormatInt(*n, 10)
}

// plainValue returns a setting for people: text without quotes.
func plainValue(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return clean(s)
	}
	return clean(string(raw))
}
