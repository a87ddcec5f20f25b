package chatctx

import (
	"context"
	"encoding/json"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/poolstore"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// Draft is a branch on its way to a provider: a copy that enhancers change and adapters read.
type Draft struct {
	Context  ID
	Branch   string
	Revision uint64
	Settings map[string]json.RawMessage // in force
	// Ignored lists the settings of the branch, the context and the store that are not in force, because this version does not know them or their values
	// are not possible.
	Ignored []error
	System  string // the branch's system prompt
	Prompt  string // the branch's user prompt
	// Summary stands for what came before Messages: the summary of the previous session. Nil: none.
	Summary *DraftMessage
	// Messages are those of the current session, in order, preceded by the pinned and the system messages from before it.
	Messages []*DraftMessage
	Tools    []record.Tool
	Session  branch.Session // the current session; its ID is zero if the branch was never compacted
	Notes    []Note
	// Artifact reads the bytes of an image, a document or an output that was stored as an artifact.
	Artifact func(pool.Hash) ([]byte, error)
}

// DraftMessage is a message of a draft. Its Message belongs to the draft alone and shares no slices with others.
type DraftMessage struct {
	Entry
	State  string // in, pruned, digested, summarised, pinned, excluded, trimmed
	Step   string // the enhancer that set State last
	Pinned bool
	Tokens int  // 0: not counted yet
	Cache  bool // a cache breakpoint stands after it
	// Leads: a system message from before the session's start that begins the branch. If a system prompt is set, that is sent instead.
	Leads bool
	// Left: it goes to no provider, whatever State says: a result without its call, or a system message that repeats an earlier one. The step that counts
	// tokens finds this out.
	Left bool
}

// Note records what an enhancer did or an adapter repaired.
type Note struct {
	Step          string // the enhancer's name, or adapter
	Message       ID     // zero: the draft as a whole
	What          string
	Before, After int // tokens, if the step counts them
}

// Draft reads one consistent snapshot of a branch; "" means the active one. It begins with the branch's current session.
func (c *ChatContext) Draft(ctx context.Context, branchName string) (*Draft, error) {
	return c.DraftIn(ctx, branchName, nil)
}

// DraftIn is like Draft, and begins with the session that choose returns: an index of the branch's sessions, or -1 for the whole history. choose gets the
// settings in force, may be called again, and changes nothing. Nil chooses the current session.
func (c *ChatContext) DraftIn(ctx context.Context, branchName string, choose func(sessions []branch.Session, inForce map[string]json.RawMessage) int) (*Draft, error) {
	if choose == nil {
		choose = func(sessions []branch.Session, _ map[string]json.RawMessage) int {
			return branchstore.Current(sessions)
		}
	}
	d := &Draft{Context: c.ID, Artifact: func(h pool.Hash) ([]byte, error) {
		data, _, err := c.store.Artifact(ctx, h)
		return data, err
	}}
	var snap *Snapshot
	var marked map[ID]string
	err := view.On(ctx, c.at(), branchName, func(tx kv.Tx, rec *base.ContextRecord, b *branch.Branch) error {
		if err := kv.Fetch(tx, view.DescribedKeys(c.ID, b)...); err != nil {
			return err
		}
		info, err := view.DescribeBranch(tx, c.ID, rec, b)
		if err != nil {
			return err
		}
		snap = c.snapshot(info)
		d.Branch, d.Revision, d.System, d.Prompt = b.Name, b.Revision, info.SystemText, info.PromptText
		places, err := view.Places(tx, rec, b)
		if err != nil {
			return err
		}
		d.Settings, d.Ignored = settings.InForce(places...), settings.Ignored(places...)
		if d.Tools, err = view.ToolsFor(tx, c.ID); err != nil {
			return err
		}
		if marked, err = view.Marks(tx, c.ID); err != nil {
			return err
		}
		return d.setSession(tx, b, choose(b.Sessions, d.Settings))
	}, append(view.ToolsKeys(c.ID), view.MarksKey(c.ID), view.SettingsKey)...)
	if err != nil {
		return nil, err
	}
	start := max(d.Session.Start, 1)
	d.Messages = make([]*DraftMessage, 0, max(snap.Len()-start+1, 0))
	if start <= snap.Len() { // a session that was just opened is empty
		for e, err := range snap.Entries(ctx, start, 0) {
			if err != nil {
				return nil, err
			}
			d.Messages = append(d.Messages, draftMessage(*e, marked[e.ID]))
		}
	}
	return d, d.keepEarly(ctx, snap, marked, start)
}

func draftMessage(e Entry, mark string) *DraftMessage {
	m := &DraftMessage{Entry: e, State: "in", Pinned: mark == base.Pinned}
	if mark != "" {
		m.State = mark
	}
	return m
}

// setSession sets the session with an index, none if it is -1, and reads the summary before it.
func (d *Draft) setSession(tx kv.Tx, b *branch.Branch, i int) error {
	if i < 0 || i >= len(b.Sessions) {
		return nil
	}
	d.Session = b.Sessions[i]
	if d.Session.Summary == (ID{}) {
		return nil
	}
	m, err := poolstore.Get(tx, d.Context, d.Session.Summary)
	if err != nil {
		return err
	}
	if m == nil {
		return base.Damaged("the summary %s of a session of branch %q is missing", d.Session.Summary, b.Name)
	}
	d.Summary = draftMessage(Entry{Message: m, Session: i}, "")
	return nil
}
