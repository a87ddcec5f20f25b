package chatctx

import (
	"context"
	"encoding/json"
	"sort"
	"time"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Tool is a tool that a model may call.
type Tool struct {
	Name        string          `cbor:"1,keyasint"`
	Description string          `cbor:"2,keyasint,omitempty"`
	Schema      json.RawMessage `cbor:"3,keyasint,omitempty"` // JSON Schema of the arguments; nil: any object
	// How it is run: a command's argument list, or an MCP server's or its URL; none of them: by a Go function of the program.
	Command    []string          `cbor:"4,keyasint,omitempty"`
	MCP        bool              `cbor:"5,keyasint,omitempty"`
	URL        string            `cbor:"6,keyasint,omitempty"`
	Dir        string            `cbor:"7,keyasint,omitempty"`
	Env        map[string]string `cbor:"8,keyasint,omitempty"`
	Timeout    time.Duration     `cbor:"9,keyasint,omitempty"`  // 0: the executor's
	Repeatable bool              `cbor:"10,keyasint,omitempty"` // running it twice does no harm
	Prune      string            `cbor:"11,keyasint,omitempty"` // prune, summarise, keep; "": the policy's
	Remotes    []Remote          `cbor:"12,keyasint,omitempty"` // of an MCP server's record: the tools that it offers
	// Remote is the name that the MCP server knows the tool by. Only a tool of a draft has it.
	Remote string `cbor:"-"`
}

// toolBucket has a context's tools, and under the zero id those for all contexts.
const toolBucket = "tool"

// Draft is a branch on its way to a provider: a copy that enhancers change and adapters read.
type Draft struct {
	Context  ID
	Branch   string
	Revision uint64
	Settings map[string]json.RawMessage // in force
	System   string                     // the branch's system prompt
	Prompt   string                     // the branch's user prompt
	// Summary stands for what came before Messages: the summary of the session before. Nil: none.
	Summary *DraftMessage
	// Messages are those of the current session, in order.
	Messages []*DraftMessage
	Tools    []Tool
	Session  branch.Session // the current one; its ID is zero where the branch was never compacted
	Notes    []Note
	// Artifact reads the bytes of an image, a document, an output that was put aside.
	Artifact func(pool.Hash) ([]byte, error)
}

// DraftMessage is a message of a draft. The Message it points to belongs to the draft alone; slices inside it are shared with nobody else.
type DraftMessage struct {
	Entry
	State  string // in, pruned, digested, summarised, pinned, excluded, trimmed
	Step   string // which enhancer set State last
	Pinned bool
	Tokens int  // counted; 0: not yet
	Cache  bool // a cache breakpoint stands after it
}

// Note records what an enhancer did or an adapter repaired.
type Note struct {
	Step          string // the enhancer's name, or adapter
	Message       ID     // zero: the draft as a whole
	What          string
	Before, After int // tokens, where a step counts them
}

// Draft reads one consistent snapshot of a branch, "" for the active one.
func (c *ChatContext) Draft(ctx context.Context, branchName string) (*Draft, error) {
	d := &Draft{Context: c.ID, Artifact: func(h pool.Hash) ([]byte, error) {
		data, _, err := c.store.Artifact(ctx, h)
		return data, err
	}}
	var snap *Snapshot
	var marked map[ID]string
	err := c.view(ctx, func(tx kv.Tx, rec *contextRecord) error {
		b, err := branchOf(tx, c.ID, rec, branchName)
		if err != nil {
			return err
		}
		info, err := branchInfo(tx, c.ID, rec, b)
		if err != nil {
			return err
		}
		snap = &Snapshot{ctx: c, Info: info}
		d.Branch, d.Revision, d.System, d.Prompt = b.Name, b.Revision, info.SystemText, info.PromptText
		if d.Settings, err = effective(tx, rec, b); err != nil {
			return err
		}
		if d.Tools, err = toolsFor(tx, c.ID); err != nil {
			return err
		}
		if marked, err = marks(tx, c.ID); err != nil {
			return err
		}
		return d.setSession(tx, b)
	})
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
	return d, d.keepPinned(ctx, snap, marked, start)
}

func draftMessage(e Entry, mark string) *DraftMessage {
	m := &DraftMessage{Entry: e, State: "in", Pinned: mark == "pinned"}
	if mark != "" {
		m.State = mark
	}
	return m
}

// setSession finds the current session and reads the summary before it.
func (d *Draft) setSession(tx kv.Tx, b *branch.Branch) error {
	if len(b.Sessions) == 0 {
		return nil
	}
	d.Session = b.Sessions[len(b.Sessions)-1]
	if d.Session.Summary == (ID{}) {
		return nil
	}
	m, err := pool.Get(tx, d.Context, d.Session.Summary)
	if err != nil {
		return err
	}
	if m == nil {
		return damaged("the summary %s of a session of branch %q is missing", d.Session.Summary, b.Name)
	}
	d.Summary = draftMessage(Entry{Message: m, Session: len(b.Sessions) - 1}, "")
	return nil
}

// toolsFor gives the tools of a context, its own winning over those for all, by name. Those of MCP servers come one by one.
func toolsFor(tx kv.Tx, id ID) ([]Tool, error) {
	kept, err := keptTools(tx, id)
	if err != nil {
		return nil, err
	}
	tools := make([]Tool, 0, len(kept))
	for _, t := range kept {
		tools = append(tools, t.offers()...)
	}
	return tools, nil
}

// keptTools gives the tools of a context and those for all as they are kept.
func keptTools(tx kv.Tx, id ID) ([]KeptTool, error) {
	byName := map[string]KeptTool{}
	for _, scope := range []ID{{}, id} {
		err := tx.Scan(toolBucket, kv.Prefix(scope[:]), func(key, value []byte) error {
			t := KeptTool{Store: scope == ID{}}
			if err := decMode.Unmarshal(value, &t.Tool); err != nil {
				return damaged("the tool %q: %v", key[16:], err)
			}
			byName[t.Name] = t
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	tools := make([]KeptTool, 0, len(byName))
	for _, t := range byName {
		tools = append(tools, t)
	}
	sort.Slice(tools, func(i, j int) bool { return tools[i].Name < tools[j].Name })
	return tools, nil
}
