package exchange

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/exchange/internal/show"
	"github.com/chatctx/chatctx/pool"
)

// The store's own export is JSON Lines. Each line is an object with one member, whose name says what the line is:
//
//	chatctx   comes first: the format's version, and the number of contexts; with it the store's settings if the whole store is exported
//	context   begins a context
//	branch    begins one of its branches; its history begins with the first messages of another one, as many as like says, and goes on with
//	message   a message that is new in this context, with everything that chatctx knows of it, or
//	again     earlier messages, by their ids
//	loose     a message on no branch: a session's summary, or a tagged message
//	call      the state of a call, with its decisions, after its message
//	artifact  the bytes of an image or a document, before the first message that names them
//	tag, mark  a message's second name; pinned or excluded
//	end       ends the context and counts its contents: a context without it was cut off
//
// Rules and tools are not exported: they say what may run on a machine, and a conversation must not bring them along.

const (
	nativeName    = chatctx.NativeFormat
	nativeVersion = 1
)

type nativeHeader struct {
	Version  int                        `json:"chatctx"`
	Contexts int                        `json:"contexts,omitempty"` // the number in the file
	Settings map[string]json.RawMessage `json:"settings,omitempty"`
}

type nativeContext struct {
	ID       chatctx.ID                 `json:"id"`
	Title    string                     `json:"title"`
	Derived  bool                       `json:"derived,omitempty"`
	Renamed  bool                       `json:"renamed,omitempty"`
	Parent   *chatctx.ID                `json:"parent,omitempty"`
	Settings map[string]json.RawMessage `json:"settings,omitempty"`
	AppData  map[string]json.RawMessage `json:"app_data,omitempty"`
	Labels   []string                   `json:"labels,omitempty"`
	Active   string                     `json:"active"`
	Created  stamp                      `json:"created_at,omitzero"`
	Updated  stamp                      `json:"updated_at,omitzero"`
	Task     *nativeTask                `json:"task,omitempty"`
}

// nativeTask makes a context a sub-context. Its fields are those of chatctx.Task, in their order.
type nativeTask struct {
	Goal       string      `json:"goal,omitempty"`
	Branch     chatctx.ID  `json:"branch"`
	BranchName string      `json:"branch_name"`
	Message    *chatctx.ID `json:"message,omitempty"`
	Index      int         `json:"index,omitempty"`
	State      string      `json:"state"`
	Depth      int         `json:"depth"`
	MaxDepth   int         `json:"max_depth,omitempty"`
	MaxRounds  int         `json:"max_rounds,omitempty"`
	MaxTokens  int64       `json:"max_tokens,omitempty"`
	OwnRules   bool        `json:"own_rules,omitempty"`
	Keep       bool        `json:"keep,omitempty"`
	Summary    *chatctx.ID `json:"summary,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Ended      stamp       `json:"ended_at,omitzero"`
	Linked     bool        `json:"linked,omitempty"`
}

type nativeBranch struct {
	ID       chatctx.ID                 `json:"id"`
	Name     string                     `json:"name"`
	Like     *nativeLike                `json:"like,omitempty"`
	System   string                     `json:"system,omitempty"`
	Prompt   string                     `json:"prompt,omitempty"`
	Settings map[string]json.RawMessage `json:"settings,omitempty"`
	Sessions []nativeSession            `json:"sessions,omitempty"`
	AppData  map[string]json.RawMessage `json:"app_data,omitempty"`
	From     string                     `json:"from,omitempty"`
	At       *chatctx.ID                `json:"at,omitempty"`
	Created  stamp                      `json:"created_at,omitzero"`
	Tokens   *branch.Tokens             `json:"tokens,omitempty"`
}

// nativeLike says that a history begins with the first messages of an earlier branch.
type nativeLike struct {
	Branch   string `json:"branch"`
	Messages int    `json:"messages"`
}

type nativeSession struct {
	ID       chatctx.ID                 `json:"id"`
	Start    int                        `json:"start"`
	Summary  *chatctx.ID                `json:"summary,omitempty"`
	Created  stamp                      `json:"created_at,omitzero"`
	PrunedTo int                        `json:"pruned_to,omitempty"`
	Digests  []nativeDigest             `json:"digests,omitempty"`
	Data     map[string]json.RawMessage `json:"data,omitempty"`
	Apart    []int                      `json:"apart,omitempty"`
	Provider string                     `json:"provider,omitempty"`
	Model    string                     `json:"model,omitempty"`
}

type nativeDigest struct {
	From     int         `json:"from"`
	To       int         `json:"to"`
	Text     string      `json:"text"`
	Squeezed bool        `json:"squeezed,omitempty"`
	Kept     bool        `json:"kept,omitempty"`
	Of       string      `json:"of,omitempty"` // hex
	Message  *chatctx.ID `json:"message,omitempty"`
	By       string      `json:"by,omitempty"`
}

type nativeArtifact struct {
	SHA256    string `json:"sha256"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

type nativeTag struct {
	Name    string     `json:"name"`
	Message chatctx.ID `json:"message"`
}

type nativeMark struct {
	Mark    string     `json:"mark"`
	Message chatctx.ID `json:"message"`
}

type nativeCall struct {
	Message   chatctx.ID       `json:"message"`
	Index     int              `json:"index"`
	CallID    string           `json:"call_id"`
	Tool      string           `json:"tool_name"`
	Status    pool.Status      `json:"approval_status"`
	Execution pool.Execution   `json:"execution"`
	Reason    string           `json:"reason,omitempty"`
	Since     stamp            `json:"since,omitzero"`
	Effective json.RawMessage  `json:"effective_arguments,omitempty"`
	Expires   stamp            `json:"expires,omitzero"`
	Decisions []nativeDecision `json:"decisions,omitempty"`
}

type nativeDecision struct {
	At         stamp           `json:"at,omitzero"`
	From       string          `json:"from"`
	To         string          `json:"to"`
	ByKind     string          `json:"by_kind"`
	ByName     string          `json:"by_name,omitempty"`
	Program    string          `json:"program,omitempty"`
	User       string          `json:"user,omitempty"`
	Claimed    string          `json:"claimed,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	ArgsSHA256 string          `json:"arguments_sha256,omitempty"`
	Arguments  json.RawMessage `json:"arguments,omitempty"`
	Runs       *nativeRuns     `json:"runs,omitempty"`
}

// nativeRuns is chatctx.Runs.
type nativeRuns struct {
	Command []string `json:"command,omitempty"`
	MCP     bool     `json:"mcp,omitempty"`
	URL     string   `json:"url,omitempty"`
	Dir     string   `json:"cwd,omitempty"`
	Env     []string `json:"env,omitempty"`
	Headers []string `json:"headers,omitempty"`
	Stdin   bool     `json:"stdin,omitempty"`
	Dashes  bool     `json:"dashes,omitempty"`
}

type nativeEnd struct {
	Context  chatctx.ID `json:"context"`
	Messages int        `json:"messages"`
	Branches int        `json:"branches"`
}

// stamp is a pool.Time that is RFC 3339 in JSON.
type stamp pool.Time

func (t stamp) MarshalJSON() ([]byte, error) {
	return json.Marshal(pool.Time(t).Time().Format(time.RFC3339Nano))
}

func (t *stamp) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, s)
	*t = stamp(pool.TimeOf(at))
	return err
}

// hashText returns a hash in hex, "" for none.
func hashText(h pool.Hash) string {
	if h == (pool.Hash{}) {
		return ""
	}
	return h.String()
}

func parseHashText(s string) (pool.Hash, error) {
	if s == "" {
		return pool.Hash{}, nil
	}
	h, err := pool.ParseHash(s)
	if err != nil {
		return h, fmt.Errorf("%q is not a SHA-256: %w", show.Clip(s, 80), err)
	}
	return h, nil
}

// idOrNil returns nil for the zero id, to leave it out of JSON.
func idOrNil(id chatctx.ID) *chatctx.ID {
	if id == (chatctx.ID{}) {
		return nil
	}
	return &id
}

func idOf(p *chatctx.ID) chatctx.ID {
	if p == nil {
		return chatctx.ID{}
	}
	return *p
}

func taskOut(t *chatctx.Task) *nativeTask {
	if t == nil {
		return nil
	}
	return &nativeTask{t.Goal, t.Branch, t.BranchName, idOrNil(t.Message), t.Index, t.State, t.Depth, t.MaxDepth, t.MaxRounds, t.MaxTokens,
		t.OwnRules, t.Keep, idOrNil(t.Summary), t.Reason, stamp(t.Ended), t.Linked}
}

func taskIn(n *nativeTask) *chatctx.Task {
	if n == nil {
		return nil
	}
	return &chatctx.Task{Goal: n.Goal, Branch: n.Branch, BranchName: n.BranchName, Message: idOf(n.Message), Index: n.Index, State: n.State,
		Depth: n.Depth, MaxDepth: n.MaxDepth, MaxRounds: n.MaxRounds, MaxTokens: n.MaxTokens, OwnRules: n.OwnRules, Keep: n.Keep,
		Summary: idOf(n.Summary), Reason: n.Reason, Ended: pool.Time(n.Ended), Linked: n.Linked}
}

func sessionsOut(list []branch.Session) []nativeSession {
	var out []nativeSession
	for _, s := range list {
		n := nativeSession{ID: s.ID, Start: s.Start, Summary: idOrNil(s.Summary), Created: stamp(s.Created), PrunedTo: s.PrunedTo, Data: s.Data, Apart: s.Apart, Provider: s.Provider, Model: s.Model}
		for _, d := range s.Digests {
			n.Digests = append(n.Digests, nativeDigest{From: d.From, To: d.To, Text: d.Text, Squeezed: d.Squeezed, Kept: d.Kept, Of: hashText(d.Of), Message: idOrNil(d.Message), By: d.By})
		}
		out = append(out, n)
	}
	return out
}

func sessionsIn(list []nativeSession) ([]branch.Session, error) {
	var out []branch.Session
	for _, n := range list {
		s := branch.Session{ID: n.ID, Start: n.Start, Summary: idOf(n.Summary), Created: pool.Time(n.Created), PrunedTo: n.PrunedTo, Data: n.Data, Apart: n.Apart, Provider: n.Provider, Model: n.Model}
		for _, d := range n.Digests {
			of, err := parseHashText(d.Of)
			if err != nil {
				return nil, err
			}
			s.Digests = append(s.Digests, branch.Digest{From: d.From, To: d.To, Text: d.Text, Squeezed: d.Squeezed, Kept: d.Kept, Of: of, Message: idOf(d.Message), By: d.By})
		}
		out = append(out, s)
	}
	return out, branch.CheckSessions(out)
}

func callOut(c *chatctx.NativeCall) nativeCall {
	n := nativeCall{Message: c.Message, Index: c.Index, CallID: c.CallID, Tool: c.Tool, Status: c.Status, Execution: c.Execution, Reason: c.Reason,
		Since: stamp(c.Since), Effective: c.Effective, Expires: stamp(c.Expires)}
	for _, d := range c.Decisions {
		n.Decisions = append(n.Decisions, nativeDecision{At: stamp(d.At), From: d.From, To: d.To, ByKind: d.ByKind, ByName: d.ByName,
			Program: d.Program, User: d.User, Claimed: d.Claimed, Reason: d.Reason, ArgsSHA256: hashText(d.ArgsSHA256), Arguments: d.Arguments, Runs: (*nativeRuns)(d.Runs)})
	}
	return n
}

func callIn(n *nativeCall) (chatctx.NativeCall, error) {
	switch n.Status {
	case pool.Pending, pool.Approved, pool.Denied:
	default:
		return chatctx.NativeCall{}, fmt.Errorf("approval_status %q is none of pending, approved, denied", n.Status)
	}
	switch n.Execution {
	case pool.NotRun, pool.Running, pool.Done, pool.Failed, pool.Uncertain:
	default:
		return chatctx.NativeCall{}, fmt.Errorf("execution %q is none of none, running, done, failed, uncertain", n.Execution)
	}
	c := chatctx.NativeCall{Message: n.Message, Index: n.Index, CallID: n.CallID, Tool: n.Tool, Status: n.Status, Execution: n.Execution,
		Reason: n.Reason, Since: pool.Time(n.Since), Effective: n.Effective, Expires: pool.Time(n.Expires)}
	for _, d := range n.Decisions {
		h, err := parseHashText(d.ArgsSHA256)
		if err != nil {
			return c, err
		}
		c.Decisions = append(c.Decisions, chatctx.Decision{At: pool.Time(d.At), From: d.From, To: d.To, ByKind: d.ByKind, ByName: d.ByName,
			Program: d.Program, User: d.User, Claimed: d.Claimed, Reason: d.Reason, ArgsSHA256: h, Arguments: d.Arguments, Runs: (*chatctx.Runs)(d.Runs)})
	}
	return c, nil
}
