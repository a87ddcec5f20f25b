package operation

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/contract"
	"github.com/chatctx/chatctx/pool"
)

func init() { Register(Group{Heading: "Conversations", Of: contextOperations}) }

func contextOperations() []*Operation {
	const at = "/contexts/{context}"
	return []*Operation{
		Define("contexts.list", "GET /contexts", Read, "list conversations, newest change first", listContexts).Fails("not_found", "ambiguous", "purged").
			As("ls", "chatctx ls --word holiday --since 30d\nchatctx ls --label work --older-than 90d").
			With("Conversations with the label pinned come first. Conversations with the label archived are listed only if --label asks for them."),
		Define("contexts.new", "POST /contexts", Write, "make a conversation with the branch main", newContext).With("It is the current conversation then.").
			As("new", `chatctx new "Holiday plans" --system "Answer briefly." --model gpt-4o`).Creating().Fails("not_found", "ambiguous", "purged"),
		Define("contexts.get", "GET "+at, Read, "get one conversation", getContext),
		Define("contexts.rename", "POST "+at+"/rename", Write, "give a conversation another title", renameContext).
			As("rename", `chatctx rename holiday "Portugal in May"`),
		Define("contexts.copy", "POST "+at+"/copy", Write, "copy a conversation with all its branches", copyContext),
		Define("contexts.trash", "POST "+at+"/trash", Write, "put conversations into the trash", trashContexts).
			As("rm", "chatctx rm holiday --dry-run\nchatctx rm --empty --older-than 30d --dry-run").ForEach().
			With("Their sub-contexts go with them. Nothing is lost: restore or undo brings them back, all at once, so the command does not ask. In place of names it takes the filters of ls."),
		Define("contexts.restore", "POST "+at+"/restore", Write, "take a conversation out of the trash", restoreContext).As("restore", "chatctx restore holiday"),
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
		return 0, base.Invalid("limit is %d, and has to be from 1 to %d", n, mostItems)
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

// Listing says which conversations to list.
type Listing struct {
	Word   string     `json:"word,omitempty" flag:"word" doc:"only those with {WORD} in the title"`
	Since  *time.Time `json:"since,omitempty" flag:"since" doc:"only what came or changed since {WHEN}"`
	Until  *time.Time `json:"until,omitempty" flag:"until" doc:"only what came or last changed before {WHEN}"`
	Trash  bool       `json:"trash,omitempty" flag:"trash" doc:"those in the trash instead"`
	Limit  *int       `json:"limit,omitempty" flag:"n" doc:"at most {N}" api:"up to 1000; 100 without it"`
	Parent string     `json:"parent,omitempty" doc:"only the sub-contexts of this conversation"`
	After  string     `json:"after,omitempty" doc:"the cursor next of the previous page"`
	Filters
}

// options are those that select the conversations, but for the words. Pages follow the order of changes; only a list that is read whole has the pinned ones first.
func (in *Listing) options(r *Request) (o record.ListOptions, err error) {
	o = in.Filters.options()
	o.Word, o.Trash, o.Since, o.Orderly = in.Word, in.Trash, timeOf(in.Since), r.Page == 0
	if in.Until != nil {
		o.Until = timeOf(in.Until)
	}
	if in.Parent != "" {
		c, err := r.Store.Context(r.Ctx, in.Parent)
		if err != nil {
			return o, err
		}
		o.Parent = c.ID
	}
	if in.After != "" {
		o.After, err = readCursor(in.After)
	}
	return o, err
}

func listContexts(r *Request, in *Listing) (out List[*record.ContextInfo], err error) {
	o, err := in.options(r)
	if err != nil {
		return out, err
	}
	return PageOf(r, listed(r.Ctx, r.Store, o, in.Words), in.Limit, cursorOf)
}

// cursorOf returns the cursor for the place of a conversation in the list.
func cursorOf(i *record.ContextInfo) string {
	return base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(i.Listed)), i.ID[:]...))
}

func readCursor(s string) (*record.ContextInfo, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 24 {
		return nil, base.Invalid("after is no cursor of a page")
	}
	return &record.ContextInfo{ContextFacts: record.ContextFacts{Listed: pool.Time(binary.BigEndian.Uint64(b)), ID: chatctx.ID(b[8:])}}, nil
}

// NewConversation describes a conversation to make.
type NewConversation struct {
	Keyed
	Title    string                     `json:"title,omitempty" arg:"[TITLE]" doc:"the title; by default the first words of the first message"`
	System   string                     `json:"system,omitempty" flag:"system" doc:"the system prompt {TEXT}, - for standard input"`
	Prompt   string                     `json:"prompt,omitempty" flag:"prompt" doc:"the user prompt {TEXT}"`
	Model    string                     `json:"-" flag:"model,m" doc:"the {MODEL}; else the setting model, else CHATCTX_MODEL"`
	Mode     string                     `json:"-" flag:"mode" doc:"the {MODE}, a word that tools and rules can ask for"`
	From     string                     `json:"-" flag:"copy-of" old:"from" doc:"copy everything from the conversation {CTX}"`
	Branch   string                     `json:"-" flag:"branch" doc:"with --copy-of: copy only the branch {BRANCH}"`
	Settings map[string]json.RawMessage `json:"settings,omitempty" doc:"settings of the conversation"`
	Activate bool                       `json:"activate,omitempty" doc:"make it the terminal's current conversation"`
	RawInput
}

// wantsStore reports whether a store is made for it: a copy needs one that has the original.
func (in *NewConversation) wantsStore() bool { return in.From == "" }

func newContext(r *Request, in *NewConversation) (v contract.Named, err error) {
	if err := r.maySet(in.Settings); err != nil {
		return v, err
	}
	var c *chatctx.ChatContext
	if in.From != "" {
		c, err = r.Store.CopyBranch(r.Ctx, in.From, in.Branch, in.Title, in.Activate)
	} else {
		c, err = r.Store.New(r.Ctx, record.NewContext{Title: in.Title, System: in.System, Prompt: in.Prompt, Settings: in.Settings, Stay: !in.Activate})
	}
	if err != nil {
		return v, err
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

// ConversationArgument names a conversation to change, which the command line names as an argument.
type ConversationArgument struct {
	Context string  `json:"context" arg:"CTX" doc:"the conversation: its id, or its title if that is unique"`
	Expect  *uint64 `json:"expect,omitempty" doc:"the revision that the conversation must have; any other is a conflict. Over HTTP also If-Match"`
	Keyed
}

// Expected returns what a change is about, and the revision that it must have.
func (c *ConversationArgument) Expected() (context, branch string, revision *uint64) {
	return c.Context, "", c.Expect
}

// NewTitle is a title for a conversation.
type NewTitle struct {
	ConversationArgument
	Title string `json:"title" arg:"TITLE" doc:"the new title"`
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
	Branch   string `json:"branch,omitempty" doc:"copy only this branch"`
	Activate bool   `json:"activate,omitempty" doc:"make the copy the terminal's current conversation"`
}

func copyContext(r *Request, in *copyParams) (contract.Named, error) {
	c, err := r.Store.CopyBranch(r.Ctx, in.Context, in.Branch, in.Title, false)
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

// Family is a conversation, and those below it that went the same way with it. On the command line each is a line.
type Family struct {
	contract.Named
	Others []contract.Named `json:"others,omitempty"`
}

// Each calls fn with every conversation.
func (f Family) Each(fn func(any) error) error {
	if f.Context == (chatctx.ID{}) {
		return nil
	}
	for _, one := range append([]contract.Named{f.Named}, f.Others...) {
		if err := fn(one); err != nil {
			return err
		}
	}
	return nil
}

// familyOf describes the conversations of an operation.
func (r *Request) familyOf(done *record.Committed, all []*record.ContextInfo) (f Family) {
	for i, info := range all {
		one := contract.Named{Where: contract.Where{Operation: done.Operation, Context: info.ID}, Title: info.Title}
		if i == 0 {
			f.Named = one
			continue
		}
		f.Others = append(f.Others, one)
	}
	r.Done = &record.Committed{Operation: done.Operation} // undone wherever one is
	return f
}

// Trashing names conversations for the trash.
type Trashing struct {
	ContextChange
	all []string
	Unasked
}

// ForAll names several conversations.
func (in *Trashing) ForAll(ids []string) { in.all = ids }

// Concerned adds the conversations below those that were chosen.
func (in *Trashing) Concerned(r *Request, chosen []*record.ContextInfo, _ bool) ([]*record.ContextInfo, error) {
	return r.withThoseBelow(chosen)
}

func trashContexts(r *Request, in *Trashing) (f Family, err error) {
	if in.all == nil {
		in.all = []string{in.Context}
	}
	all, err := r.infos(in.all)
	if err == nil {
		all, err = r.withThoseBelow(all)
	}
	if err != nil {
		return f, err
	}
	done, err := r.Store.Trash(r.Ctx, in.all...)
	if err != nil {
		return f, err
	}
	return r.familyOf(done, all), nil
}

func restoreContext(r *Request, in *ConversationArgument) (f Family, err error) {
	before, err := r.inTrash()
	if err != nil {
		return f, err
	}
	done, err := r.Store.Restore(r.Ctx, in.Context)
	if err != nil {
		return f, err
	}
	after, err := r.inTrash()
	if err != nil {
		return f, err
	}
	var back []*record.ContextInfo // the one that was named first
	for _, info := range before {
		switch {
		case info.ID == done.Context:
			back = slices.Insert(back, 0, info)
		case !slices.ContainsFunc(after, func(i *record.ContextInfo) bool { return i.ID == info.ID }):
			back = append(back, info)
		}
	}
	return r.familyOf(done, back), nil
}

// inTrash returns the conversations in the trash.
func (r *Request) inTrash() (all []*record.ContextInfo, err error) {
	for info, err := range r.Store.Contexts(r.Ctx, record.ListOptions{Trash: true}) {
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

func namedDone(done *record.Committed, err error) (contract.Named, error) {
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
