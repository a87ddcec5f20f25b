package contract

import (
	"time"

	"github.com/chatctx/chatctx/chatctx"
	"github.com/chatctx/chatctx/chatctx/record"
)

// Placed is a message that was put on a branch.
type Placed struct {
	Where
	Message  chatctx.ID `json:"message"`
	Position int        `json:"position"`
	Revision uint64     `json:"revision"`
	Again    bool       `json:"again,omitempty"`
}

// PlacedOf returns the JSON of the messages that the last step of a change placed.
func PlacedOf(c *record.Committed) []Placed {
	a := c.Last()
	list := make([]Placed, len(a.Placed))
	for i, p := range a.Placed {
		list[i] = Placed{Where{c.Operation, c.Context, a.Branch, c.Summaries, c.Title}, p.Message, p.Position, a.Revision, a.Again || p.Known}
	}
	return list
}

// Moved is a history that was changed, or would be.
type Moved struct {
	DryRun bool `json:"dry_run,omitempty"`
	Where
	Messages int         `json:"messages"`
	Head     *chatctx.ID `json:"head"`
	Removed  int         `json:"removed"`
	Added    []Added     `json:"added"`
	Revision uint64      `json:"revision,omitempty"` // after the change; a dry run has none
}

// Added is a message that a change put on a branch.
type Added struct {
	Message  chatctx.ID `json:"message"`
	Position int        `json:"position"`
}

// MovedOf returns the JSON of the history after the last step of a change.
func MovedOf(c *record.Committed) Moved {
	m := c.Last()
	v := Moved{false, WhereOf(c), m.Messages, ID(m.Head), m.Removed, []Added{}, c.Revision}
	for _, p := range m.Placed {
		v.Added = append(v.Added, Added{p.Message, p.Position})
	}
	return v
}

// Taken is an answer that was taken from another branch.
type Taken struct {
	Where
	Messages []Added `json:"messages"`
	MovedTo  *string `json:"moved_to"` // the branch that got the messages that were in its place
	Revision uint64  `json:"revision"`
}

// TakenOf returns the JSON of the answer that the last step of a change took.
func TakenOf(c *record.Committed) Taken {
	step := c.Last()
	v := Taken{WhereOf(c), []Added{}, String(step.Beside), c.Revision}
	for _, p := range step.Placed {
		v.Messages = append(v.Messages, Added{p.Message, p.Position})
	}
	return v
}

// Difference is what two branches do not share.
type Difference struct {
	Context  chatctx.ID       `json:"context"`
	A        string           `json:"a"`
	B        string           `json:"b"`
	Ancestor *chatctx.Entry   `json:"ancestor"`
	OnlyA    []*chatctx.Entry `json:"only_a"`
	OnlyB    []*chatctx.Entry `json:"only_b"`
}

// DifferenceOf returns the JSON of what two branches of a context do not share.
func DifferenceOf(c chatctx.ID, d *record.Difference) Difference {
	return Difference{c, d.A, d.B, d.Ancestor, Entries(d.OnlyA), Entries(d.OnlyB)}
}

// Tag is a tag that was set or removed.
type Tag struct {
	Where
	Tag     string      `json:"tag"`
	Message *chatctx.ID `json:"message,omitempty"`
}

// Undone is the result of an undo or redo.
type Undone struct {
	Where
	Undid  *record.Operation `json:"undid"`
	Broken []Broken          `json:"broken,omitempty"` // by rules that deny and are back in force
	Done   *record.Undone    `json:"-"`
}

// UndoneOf returns the JSON of the result of an undo or redo.
func UndoneOf(u *record.Undone) Undone {
	return Undone{WhereOf(&u.Committed), u.Undid, BrokenOf(u.Broken), u}
}

// Answer is an answer on a branch, or a message in the queue.
type Answer struct {
	Context   chatctx.ID     `json:"context"`
	Branch    string         `json:"branch"`
	Message   *chatctx.Entry `json:"message,omitempty"`
	Position  int            `json:"position,omitempty"`
	Revision  uint64         `json:"revision,omitempty"`
	Operation string         `json:"operation,omitempty"`
	Waiting   int            `json:"waiting"`        // number of calls that wait for a person
	Open      *Open          `json:"open,omitempty"` // with the last answer: the open calls
	Queued    bool           `json:"queued,omitempty"`
	// FinishReason is the provider's word. Outcome is what it means, empty for a normal answer: refused, filtered, cut_short, broken_off, empty or lost_call.
	FinishReason string  `json:"finish_reason,omitempty"`
	Outcome      string  `json:"outcome,omitempty" words:"refused filtered cut_short lost_call broken_off empty"`
	Refused      bool    `json:"refused"`
	Window       *Window `json:"window,omitempty"` // with the last answer
}

// Hit is a search result.
type Hit struct {
	What     string      `json:"what"`
	Context  chatctx.ID  `json:"context"`
	Title    string      `json:"title"`
	Trashed  bool        `json:"trashed"`
	Message  *chatctx.ID `json:"message"`
	Role     *string     `json:"role"`
	Model    *string     `json:"model"`
	Created  *time.Time  `json:"created_at"`
	Field    string      `json:"field"`
	Snippet  string      `json:"snippet"`
	Match    [2]int      `json:"match"`
	Branches []HitBranch `json:"branches"`
	Score    float64     `json:"score,omitempty"`

	Of *record.Hit `json:"-"`
}

// HitBranch is a branch that contains the result.
type HitBranch struct {
	Branch   string `json:"branch"`
	Position int    `json:"position,omitempty"`
}

// HitOf returns the JSON of a search result.
func HitOf(h *record.Hit) Hit {
	out := Hit{What: h.What, Context: h.Context, Title: h.Title, Trashed: h.Trashed, Field: h.Field, Snippet: h.Snippet,
		Match: [2]int{h.Match.From, h.Match.To}, Branches: []HitBranch{}, Score: h.Score, Of: h}
	if m := h.Message; m != nil {
		out.Message, out.Role, out.Model, out.Created = &m.ID, String(string(m.Role)), String(m.Meta.Model), Time(m.Created)
	}
	for _, b := range h.Branches {
		out.Branches = append(out.Branches, HitBranch{b.Name, b.Position})
	}
	return out
}
