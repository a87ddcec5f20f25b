package contract

import (
	"encoding/json"
	"strings"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/settings"
	"github.com/chatctx/chatctx/pool"
)

// Named is a context that a command created or chose.
type Named struct {
	Where
	Title string `json:"title"`
}

// Forked is a new branch.
type Forked struct {
	Where
	From     string      `json:"from"`
	At       *chatctx.ID `json:"at"`
	Messages int         `json:"messages"`
}

// ForkedOf returns the JSON of the branch that the last step of a change created.
func ForkedOf(c *record.Committed) Forked {
	f := c.Last()
	return Forked{Where{Operation: c.Operation, Context: c.Context, Branch: f.Branch, Title: c.Title}, f.From, ID(f.At), f.Messages}
}

// Tree is a branch among those of its context.
type Tree struct {
	Branch   string      `json:"branch"`
	Active   bool        `json:"active"`
	From     *string     `json:"from"`
	At       *chatctx.ID `json:"at"`
	Shared   int         `json:"shared"`
	Messages int         `json:"messages"`
	Head     *chatctx.ID `json:"head"`
	Tags     []string    `json:"tags"`
}

// Prompt is a prompt of a branch.
type Prompt struct {
	Where
	ID   *string `json:"id"` // the same for the same text
	Text *string `json:"text"`
}

// Settings are those of the store, of a context or of a branch.
type Settings struct {
	Operation string                     `json:"operation,omitempty"`
	Context   *chatctx.ID                `json:"context,omitempty"`
	Branch    string                     `json:"branch,omitempty"`
	Settings  map[string]json.RawMessage `json:"settings"`
	// Ignored says which settings are not in force, because this version does not know them or their values are not valid.
	Ignored []string `json:"not_in_force,omitempty"`
}

// SettingRow is a row of the table of all settings.
type SettingRow struct {
	Name     string   `json:"name"` // a name that ends in a dot stands for all names that begin with it
	Group    string   `json:"group"`
	Type     string   `json:"type"`
	Takes    string   `json:"takes"` // the valid values, with their range
	Words    []string `json:"words,omitempty"`
	Default  string   `json:"default,omitempty"`
	Scope    string   `json:"scope"`
	Env      string   `json:"env,omitempty"`
	Harmless bool     `json:"harmless"`
	Does     string   `json:"does"`
}

// SettingTable is the table of all settings.
type SettingTable struct {
	Settings []SettingRow `json:"settings"`
}

// SettingTableOf returns the JSON of package settings' table.
func SettingTableOf() SettingTable {
	out := SettingTable{Settings: []SettingRow{}}
	for _, s := range settings.All() {
		out.Settings = append(out.Settings, SettingRow{s.Name, string(s.Group), string(s.Type), s.Takes(), strings.Fields(s.Words), s.Default, s.Scope.String(), s.Env(), s.Harmless, s.Does})
	}
	return out
}

// Texts returns the texts of errors.
func Texts(errs []error) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return out
}

// Task is a sub-context.
type Task struct {
	Context chatctx.ID `json:"context"`
	Title   string     `json:"title"`
	Parent  chatctx.ID `json:"parent"`
	*record.Task
	Call       record.CallRef `json:"call,omitempty" after:"branch"`
	Open       int            `json:"open_calls" after:"depth"`
	ParentGone bool           `json:"parent_gone" after:"reason"`
	// ParentState is how the parent, itself a sub-context, has ended; empty if it has not.
	ParentState string     `json:"parent_state,omitempty" after:"parent_gone"`
	BranchGone  bool       `json:"branch_gone" after:"parent_state"`
	Kept        bool       `json:"kept" after:"branch_gone"`
	Started     pool.Time  `json:"started_at" empty:"null" after:"kept"`
	Message     chatctx.ID `json:"message,omitzero"`
	Position    int        `json:"position,omitempty"`
	Operation   string     `json:"operation,omitempty"`

	Info  *record.TaskInfo  `json:"-"`
	Below int               `json:"-"` // how many of its parents are listed before it
	End   *record.TaskEnded `json:"-"`
}

// TaskOf returns the JSON of a sub-context.
func TaskOf(i *record.TaskInfo) Task {
	return Task{Context: i.ID, Title: i.Title, Parent: i.Parent, Task: &i.Task, Call: callOfTask(&i.Task), Open: i.Open, ParentGone: i.ParentGone, ParentState: i.ParentState,
		BranchGone: i.BranchGone, Kept: i.Trashed == 0, Started: i.Created, Info: i}
}
