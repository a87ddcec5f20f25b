package record

import (
	"encoding/json"

	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/pool"
)

// ContextInfo describes a context.
type ContextInfo struct {
	ContextFacts
	Branches int `json:"branches" after:"branch"`
}

// ContextFacts are the facts of a context, without its branches.
type ContextFacts struct {
	ID         pool.ID                    `json:"context"`
	Title      string                     `json:"title"`
	Derived    bool                       `json:"-"` // the title was made from the first message
	Current    bool                       `json:"current"`
	Active     string                     `json:"branch"`
	Messages   int                        `json:"messages"` // in the pool
	Labels     []string                   `json:"labels"`   // sorted
	Updated    pool.Time                  `json:"updated_at" empty:"null"`
	Created    pool.Time                  `json:"created_at" empty:"null"`
	Listed     pool.Time                  `json:"-"`                    // its place among the last changed: Updated, or later if another program's clock was ahead
	Trashed    pool.Time                  `json:"trashed_at,omitempty"` // zero: not in the trash
	Parent     pool.ID                    `json:"parent,omitzero"`
	ParentGone bool                       `json:"-"`
	Settings   map[string]json.RawMessage `json:"-"`
	AppData    map[string]json.RawMessage `json:"-"`
	// Revision grows with each change of the conversation itself, undo included: its title, labels, tags, marks, settings, rules, tools and active branch.
	// Branches have revisions of their own.
	Revision uint64 `json:"-"`
}

// BranchInfo describes a branch.
type BranchInfo struct {
	ID       pool.ID                    `json:"-"`
	Name     string                     `json:"branch"`
	Active   bool                       `json:"active"`
	Messages int                        `json:"messages"`
	Turns    int                        `json:"turns"`
	Head     pool.ID                    `json:"head" empty:"null"`      // zero if the branch is empty
	Revision uint64                     `json:"revision"`               // grows with each change, undo included: one number never names two states
	From     string                     `json:"from" empty:"null"`      // the name of the branch from which it was forked; "" if it is no fork or that branch is gone
	At       pool.ID                    `json:"at" empty:"null"`        // the last message that both shared then
	SystemID string                     `json:"system_id" empty:"null"` // of the system prompt, the same for the same text; "" for none
	PromptID string                     `json:"prompt_id" empty:"null"` // of the user prompt
	Created  pool.Time                  `json:"-"`
	System   string                     `json:"-"` // the branch's system prompt
	Prompt   string                     `json:"-"` // its user prompt
	Settings map[string]json.RawMessage `json:"-"`
	AppData  map[string]json.RawMessage `json:"-"`
	Sessions []branch.Session           `json:"-"`
	Tokens   *branch.Tokens             `json:"-"` // figures that a program set; nil: none
}

// ListOptions narrow a list of contexts.
type ListOptions struct {
	Word         string    // in the title, ignoring case
	Since, Until pool.Time // last changed
	Trash        bool      // those in the trash instead
	Parent       pool.ID   // only children of this context
	Labels       []string  // only those that have all of these
	Folders      []string  // only those that were held in the folder of which these are names
	Empty        bool      // only those without a message
	Untitled     bool      // only those without a title of their own: none, or one made from the first message
	Orderly      bool      // pinned contexts first; archived ones only if Labels asks for them, or in the trash
	// After, if not nil, is a context of an earlier list: only those after it are returned. Those before it are not read.
	After *ContextInfo
}
