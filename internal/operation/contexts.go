package operation

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "Conversations", Of: contextOperations}) }

func contextOperations() []*Operation {
	const at = "/contexts/{context}"
	return []*Operation{
		Define("contexts.list", "GET /contexts", Read, "list conversations, the latest change first", listContexts),
		Define("contexts.new", "POST /contexts", Write, "make a conversation with the branch main", newContext),
		Define("contexts.get", "GET "+at, Read, "get one conversation", getContext),
		Define("contexts.rename", "POST "+at+"/rename", Write, "give a conversation another title", renameContext).
			As("rename", `chatctx rename holiday "Portugal in May"`),
		Define("contexts.copy", "POST "+at+"/copy", Write, "copy a conversation with all its branches", copyContext),
		Define("contexts.trash", "POST "+at+"/trash", Write, "move a conversation to the trash", trashContext),
		Define("contexts.restore", "POST "+at+"/restore", Write, "take a conversation out of the trash", restoreContext),
		Define("contexts.activate", "POST "+at+"/activate", Write, "go on in a conversation", activateContext).
			With("CTX is an id or a part of it, a title, or a part of a title that no other conversation has. Without CTX, on a terminal, you choose from a list.").
			As("use", "chatctx use holiday"),
	}
}

// The limits of a page.
const (
	pageItems = 100
	mostItems = 1000
)

// limitOf returns how many items a page has if n were requested.
func limitOf(n int) (int, error) {
	switch {
	case n < 0 || n > mostItems:
		return 0, chatctx.Invalid("limit is %d, and has to be from 1 to %d", n, mostItems)
	case n == 0:
		return pageItems, nil
	}
	return n, nil
}

// timeOf returns a time of a request in the store's form, 0 for nil.
func timeOf(t *time.Time) pool.Time {
	if t == nil {
		return 0
	}
	return pool.TimeOf(*t)
}

type listing struct {
	Word   string     `json:"word,omitempty" doc:"only conversations whose title contains this"`
	Since  *time.Time `json:"since,omitempty" doc:"only conversations last changed then or later"`
	Until  *time.Time `json:"until,omitempty" doc:"only conversations last changed before then"`
	Trash  bool       `json:"trash,omitempty" doc:"list those in the trash instead"`
	Parent string     `json:"parent,omitempty" doc:"only the sub-contexts of this conversation"`
	Labels []string   `json:"labels,omitempty" doc:"only conversations that have all these labels"`
	After  string     `json:"after,omitempty" doc:"the cursor next of the previous page"`
	Limit  int        `json:"limit,omitempty" doc:"the most conversations, up to 1000; 0 means 100"`
}

func listContexts(r *Request, in *listing) (List[*record.ContextInfo], error) {
	var out List[*record.ContextInfo]
	o := chatctx.ListOptions{Word: in.Word, Since: timeOf(in.Since), Until: timeOf(in.Until), Trash: in.Trash, Labels: in.Labels}
	limit, err := limitOf(in.Limit)
	if err == nil && in.Parent != "" {
		var c *chatctx.ChatContext
		if c, err = r.Store.Context(r.Ctx, in.Parent); err == nil {
			o.Parent = c.ID
		}
	}
	if err == nil && in.After != "" {
		o.After, err = readCursor(in.After)
	}
	if err != nil {
		return out, err
	}
	var items []*record.ContextInfo
	var last *record.ContextInfo
	for info, err := range r.Store.Contexts(r.Ctx, o) {
		if err != nil {
			return out, err
		}
		if len(items) == limit {
			out.Next = cursorOf(last)
			break
		}
		items, last = append(items, info), info
	}
	out.Items = ListOf(items).Items
	return out, nil
}

// cursorOf returns the cursor for the place of a conversation in the list.
func cursorOf(i *record.ContextInfo) string {
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(i.Listed)), i.ID[:]...))
}

func readCursor(s string) (*record.ContextInfo, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 24 {
		return nil, chatctx.Invalid("after is no cursor of a page")
	}
	return &record.ContextInfo{ContextFacts: record.ContextFacts{Listed: pool.Time(binary.BigEndian.Uint64(b)), ID: chatctx.ID(b[8:])}}, nil
}

type newParams struct {
	Keyed
	Title    string                     `json:"title,omitempty" doc:"the title; by default the first words of the first message"`
	System   string                     `json:"system,omitempty" doc:"the system prompt of main"`
	Prompt   string                     `json:"prompt,omitempty" doc:"the user prompt of main"`
	Settings map[string]json.RawMessage `json:"settings,omitempty" doc:"settings of the conversation"`
	Activate bool                       `json:"activate,omitempty" doc:"make it the terminal's current conversation"`
}

func newContext(r *Request, in *newParams) (contract.Named, error) {
	if err := r.maySet(in.Settings); err != nil {
		return contract.Named{}, err
	}
	c, err := r.Store.New(r.Ctx, record.NewContext{Title: in.Title, System: in.System, Prompt: in.Prompt, Settings: in.Settings, Stay: !in.Activate})
	if err != nil {
		return contract.Named{}, err
	}
	return r.named(c)
}

// named returns the description of a new conversation.
func (r *Request) named(c *chatctx.ChatContext) (contract.Named, error) {
	info, err := c.Info(r.Ctx)
	if err != nil {
		return contract.Named{}, err
	}
	return contract.Named{Where: contract.Where{Context: c.ID, Branch: info.Active}, Title: info.Title}, nil
}

// shownContext is a conversation with its branches.
type shownContext struct {
	record.ContextFacts
	Revision uint64                     `json:"revision"` // of the conversation's own data: title, labels, tags, marks, settings, rules, tools
	Branches []*record.BranchInfo       `json:"branches"`
	Settings map[string]json.RawMessage `json:"settings"`
}

func getContext(r *Request, in *Conversation) (shownContext, error) {
	var out shownContext
	c, info, err := r.conversation(in.Context)
	if err != nil {
		return out, err
	}
	branches, err := c.Branches(r.Ctx)
	if err != nil {
		return out, err
	}
	return shownContext{info.ContextFacts, info.Revision, branches, info.Settings}, nil
}

// NewTitle is a title for a conversation, which the command line names first.
type NewTitle struct {
	Context string  `json:"context" arg:"CTX" doc:"the conversation: its id, or its title if that is unique"`
	Title   string  `json:"title" arg:"TITLE" doc:"the new title"`
	Expect  *uint64 `json:"expect,omitempty" doc:"the revision that the conversation must have; any other is a conflict. Over HTTP also If-Match"`
	Keyed
}

// Expected returns what a change is about, and the revision that it must have.
func (c *NewTitle) Expected() (context, branch string, revision *uint64) {
	return c.Context, "", c.Expect
}

func renameContext(r *Request, in *NewTitle) (contract.Named, error) {
	done, err := r.onContext(in.Context, func(b *chatctx.Batch) { b.SetTitle(in.Title) })
	if err != nil {
		return contract.Named{}, err
	}
	return contract.Named{Where: contract.WhereOf(done), Title: in.Title}, nil
}

type copyParams struct {
	Conversation
	Keyed
	Title    string `json:"title,omitempty" doc:"the copy's title; by default the title of the original"`
	Activate bool   `json:"activate,omitempty" doc:"make the copy the terminal's current conversation"`
}

func copyContext(r *Request, in *copyParams) (contract.Named, error) {
	c, err := r.Store.Copy(r.Ctx, in.Context, in.Title, false)
	if err == nil && in.Activate {
		_, err = r.Store.Use(r.Ctx, c.ID.String())
	}
	if err != nil {
		return contract.Named{}, err
	}
	return r.named(c)
}

// Chosen is the conversation to go on in. The command line may let a person choose it.
type Chosen struct {
	Context string `json:"context" arg:"[CTX]" doc:"the conversation: its id, or its title if that is unique"`
	Keyed
}

// Current is the conversation that is the terminal's current one now.
type Current struct {
	contract.Named
	Was chatctx.ID `json:"-"` // zero if there was none
}

func trashContext(r *Request, in *ContextChange) (contract.Named, error) {
	return namedDone(r.Store.Trash(r.Ctx, in.Context))
}

func restoreContext(r *Request, in *ContextChange) (contract.Named, error) {
	return namedDone(r.Store.Restore(r.Ctx, in.Context))
}

func namedDone(done *chatctx.Committed, err error) (contract.Named, error) {
	if err != nil {
		return contract.Named{}, err
	}
	return contract.Named{Where: contract.WhereOf(done), Title: done.Title}, nil
}

func activateContext(r *Request, in *Chosen) (Current, error) {
	var out Current
	if was, err := r.Store.Context(r.Ctx, ""); err == nil {
		out.Was = was.ID
	}
	info, err := r.Store.Use(r.Ctx, in.Context)
	if err != nil {
		return Current{}, err
	}
	out.Named = contract.Named{Where: contract.Where{Context: info.ID, Branch: info.Active}, Title: info.Title}
	return out, nil
}
