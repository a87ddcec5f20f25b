package operation

import (
	"encoding/json"
	"errors"
	"os"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/internal/window"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "Conversations", Of: statusOperations}) }

func statusOperations() []*Operation {
	return []*Operation{
		Define("status", "GET", Read, "where you are: conversation, branch, model, how much of the window is used, session, open calls, queue, cache", status).
			As("status", "chatctx status"),
	}
}

// Status is where a person is.
type Status struct {
	Store    string          `json:"store"`
	Context  chatctx.ID      `json:"context"`
	Title    string          `json:"title"`
	Branch   string          `json:"branch"`
	Messages int             `json:"messages"`
	Turns    int             `json:"turns"`
	Head     *chatctx.ID     `json:"head"`
	Revision uint64          `json:"revision"`
	SystemID *string         `json:"system_id"`
	Model    json.RawMessage `json:"model"`
	Provider json.RawMessage `json:"provider"`
	Mode     json.RawMessage `json:"mode"`
	Tokens   branch.Tokens   `json:"tokens"`
	contract.Window
	Cache     *CacheUse     `json:"cache"`
	Session   int           `json:"session"`
	OpenCalls int           `json:"open_calls"`
	Open      contract.Open `json:"open"` // the same, by what they wait for
	Queued    int           `json:"queued"`
	Replying  *Replying     `json:"replying"`

	Trashed pool.Time `json:"-"`
	Next    *Foreseen `json:"-"` // nil if it is unknown
}

// CacheUse is what the last reply read from the provider's prompt cache and wrote to it.
type CacheUse struct {
	Read    *int64 `json:"read_tokens"`
	Written *int64 `json:"written_tokens"`
}

// Replying is who works on a reply on a branch.
type Replying struct {
	*record.Claim
	Since pool.Time `json:"since" empty:"null"`
}

func status(r *Request, in *Target) (*Status, error) {
	c, snap, err := r.snapshot(*in)
	if err != nil {
		return nil, err
	}
	info, err := c.Info(r.Ctx)
	if err != nil {
		return nil, err
	}
	s := &Status{Store: r.Name, Context: c.ID, Title: info.Title, Trashed: info.Trashed, Branch: snap.Info.Name,
		SystemID: contract.String(snap.Info.SystemID), Messages: snap.Len(), Turns: snap.Info.Turns, Head: contract.ID(snap.Info.Head),
		Revision: snap.Info.Revision, Session: max(branchstore.Current(snap.Info.Sessions)+1, 1)}
	for _, fill := range []func(*Request, *chatctx.ChatContext, *chatctx.Snapshot) error{s.figures, s.window, s.work} {
		if err := fill(r, c, snap); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// window sets the model and how much of its window is used.
func (s *Status) window(r *Request, c *chatctx.ChatContext, snap *chatctx.Snapshot) error {
	own, err := c.Effective(r.Ctx, s.Branch)
	if err != nil {
		return err
	}
	inForce := settings.WithEnv(own, os.Getenv)
	s.Model, s.Provider, s.Mode = inForce["model"], inForce["provider"], inForce["mode"]
	next, err := r.foresee(r.turnOn(c, s.Branch))
	if errors.Is(err, settings.ErrSetting) {
		return nil // the operations that use it report it
	}
	if err != nil {
		return err
	}
	if i := window.Of(next.Request).Options.SessionOf(snap.Info.Sessions); i >= 0 {
		s.Session = i + 1
	}
	s.Window, s.Next = contract.WindowOf(window.Of(next.Request).Forecast), next
	return nil
}

// lookback bounds how many messages are searched for the last reply, so that the length of a branch does not matter.
const lookback = 200

// figures sets the branch's tokens, those that were set or the last reply's, and the last reply's cache figures.
func (s *Status) figures(r *Request, _ *chatctx.ChatContext, snap *chatctx.Snapshot) error {
	for e, err := range snap.Entries(r.Ctx, snap.Len(), max(snap.Len()-lookback, 1)) {
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
			s.Cache = &CacheUse{m.CacheRead, m.CacheWrite}
		}
		break
	}
	if set := snap.Info.Tokens; set != nil {
		s.Tokens = *set
	}
	return nil
}

// work sets what waits and who works.
func (s *Status) work(r *Request, c *chatctx.ChatContext, _ *chatctx.Snapshot) (err error) {
	if _, s.Open, err = r.OpenOn(c, s.Branch); err != nil {
		return err
	}
	s.OpenCalls = s.Open.All()
	here := base.ContextOf(c.Store(), c.ID)
	queued, err := view.Queued(r.Ctx, here, s.Branch)
	if err != nil {
		return err
	}
	s.Queued = len(queued)
	claim, err := view.Running(r.Ctx, here, s.Branch)
	if err == nil && base.Held(claim, base.Of(r.Store).Now()) {
		s.Replying = &Replying{claim, claim.Since}
	}
	return err
}

// OpenOn returns the open calls of a branch, and how many wait for what. A call that a rule decides waits for a program that applies the rule.
func (r *Request) OpenOn(c *chatctx.ChatContext, branchName string) (calls []*record.Call, open contract.Open, err error) {
	calls, err = toolcall.OpenCalls(r.Ctx, base.ContextOf(c.Store(), c.ID), branchName)
	for _, call := range calls {
		if err != nil {
			break
		}
		what := call.WaitsFor()
		if call.Status == pool.Pending {
			j, judged := toolcall.Judge(r.Ctx, base.Of(r.Store), call)
			if err = judged; err == nil && j.Effect != record.Ask {
				what = record.WaitsForProgram
			}
		}
		open.Add(what)
	}
	return calls, open, err
}
