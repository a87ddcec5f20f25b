// Package branch holds histories: the messages of each branch in order, and its prompts and settings.
//
// A history is a piece table. Message ids are appended to segments, each written by one branch alone; a branch is a list of closed pieces (segment, from,
// to) of segments. Entries never change, so a list of pieces is a snapshot for good.
package branch

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/chatctx/chatctx/pool"
)

// Piece has the entries from From to To-1 of a segment.
type Piece struct {
	_        struct{} `cbor:",toarray"`
	Segment  uint64
	From, To uint64
}

// Len returns the number of entries.
func (p Piece) Len() int { return int(p.To - p.From) }

// Branch is the record of a branch.
type Branch struct {
	ID     pool.ID `cbor:"1,keyasint"`
	Name   string  `cbor:"17,keyasint"`
	Pieces []Piece `cbor:"2,keyasint,omitempty"`
	// Segment is the segment to which this branch appends, 0 before the first append. High is its high-water mark, the next position to write. Segment and
	// High never go back, not even by an undo.
	Segment uint64 `cbor:"3,keyasint,omitempty"`
	High    uint64 `cbor:"4,keyasint,omitempty"`
	// System and Prompt are the ids of the branch's prompts in the prompt bucket, "" for none.
	System   string                     `cbor:"5,keyasint,omitempty"`
	Prompt   string                     `cbor:"6,keyasint,omitempty"`
	Settings map[string]json.RawMessage `cbor:"7,keyasint,omitempty"`
	Sessions []Session                  `cbor:"8,keyasint,omitempty"`
	// From is the branch from which this one was forked, which may be gone by now; At is the last message that they shared. Both are zero if it is no fork.
	From pool.ID `cbor:"9,keyasint,omitzero"`
	At   pool.ID `cbor:"10,keyasint,omitzero"`
	// Revision grows by one with each change of the branch, undo included, and never goes back: one number never names two states.
	Revision uint64                     `cbor:"11,keyasint,omitempty"`
	AppData  map[string]json.RawMessage `cbor:"12,keyasint,omitempty"`
	Created  pool.Time                  `cbor:"13,keyasint,omitempty"`
	// Last is the newest operation on this branch that has not been undone, Newest the newest of all; 0 means none.
	Last   uint64 `cbor:"14,keyasint,omitempty"`
	Newest uint64 `cbor:"15,keyasint,omitempty"`
	// Tokens has figures that a program set for the branch, nil for none.
	Tokens *Tokens `cbor:"16,keyasint,omitempty"`
	// Removed is the time of the branch's removal, 0 if it is not removed. The record of a removed branch stays as long as something can bring it back, so
	// that High and Revision do not start again; it has no name in the index and does not count.
	Removed pool.Time `cbor:"18,keyasint,omitempty"`

	Unknown pool.Unknown `cbor:"-" json:"-"`

	end *End // the end of the segment, if it is known without reading
}

// End is the end of a segment: where its branch writes next, and how many turns it has begun. Entries before an end never change, so an End stays true.
type End struct{ Segment, High, Turns uint64 }

// End returns the end of the branch's segment, or the zero End if it was not read or written yet.
func (b *Branch) End() End {
	if b.end == nil || b.end.Segment != b.Segment || b.end.High != b.High {
		return End{}
	}
	return *b.end
}

// Ends tells the branch an earlier end of its segment. If it is still the end, an append need not read the last entry.
func (b *Branch) Ends(e End) { b.end = &e }

// Tokens are token counts of a whole branch.
type Tokens struct {
	Input  int64 `cbor:"1,keyasint" json:"input_tokens"`
	Output int64 `cbor:"2,keyasint" json:"output_tokens"`

	Unknown pool.Unknown `cbor:"-" json:"-"`
}

// Session is a stretch of a branch between two compactions.
type Session struct {
	ID    pool.ID `cbor:"1,keyasint" json:"id"`
	Start int     `cbor:"2,keyasint" json:"start"` // position of its first message, from 1
	// Summary is the message that stands for everything before Start. It is in the pool but in no piece. Zero: none.
	Summary pool.ID   `cbor:"3,keyasint,omitzero" json:"summary"`
	Created pool.Time `cbor:"4,keyasint,omitempty" json:"created_at"`
	// PrunedTo is the last position whose tool result is sent as one line; 0 for none.
	PrunedTo int `cbor:"5,keyasint,omitempty" json:"pruned_to"`
	// Digests has the results of the history step for ranges of positions, so that each is made once.
	Digests []Digest `cbor:"6,keyasint,omitempty" json:"digests"`
	// Data belongs to the enhancers.
	Data map[string]json.RawMessage `cbor:"7,keyasint,omitempty" json:"data"`
	// Apart are the positions before Start, in order, of the messages of which the summary does not tell, as they were pinned or excluded when it was made. They
	// are sent themselves.
	Apart []int `cbor:"8,keyasint,omitempty" json:"apart"`
	// Provider made the summary itself, with Model, and only they can read it. Requests to others begin with the session before. "": anybody can read it.
	Provider string `cbor:"9,keyasint,omitempty" json:"provider"`
	Model    string `cbor:"10,keyasint,omitempty" json:"model"`

	Unknown pool.Unknown `cbor:"-" json:"-"`
}

// Digest stands for the messages at positions From to To, both included.
type Digest struct {
	From     int    `cbor:"1,keyasint" json:"from"`
	To       int    `cbor:"2,keyasint" json:"to"`
	Text     string `cbor:"3,keyasint" json:"text"`
	Squeezed bool   `cbor:"4,keyasint,omitempty" json:"squeezed"`
	// Kept: somebody asked for this digest, so it is not merged with others.
	Kept bool `cbor:"7,keyasint,omitempty" json:"kept"`
	// Of is a hash of the ids of these messages: if other messages are there by now, the digest no longer counts.
	Of pool.Hash `cbor:"5,keyasint,omitzero" json:"of"`
	// Message records what a model took for Text; it is in the pool but on no branch. Zero: no model made the text.
	Message pool.ID `cbor:"6,keyasint,omitzero" json:"message"`
	// By is who wrote Text: "text" for a person, model, or digest for rules. "" is of before: a person unless Message is set.
	By string `cbor:"8,keyasint,omitempty" json:"by"`

	Unknown pool.Unknown `cbor:"-" json:"-"`
}

// Current returns the index of the session in which a branch is, -1 if it has none. A session that a provider began is only that of requests to this provider.
func Current(sessions []Session) int {
	for i, s := range slices.Backward(sessions) {
		if s.Provider == "" {
			return i
		}
	}
	return -1
}

// CurrentFor returns the index of the session with which a request begins whose model can read the sessions of a provider that ours accepts: the newest of them,
// if it is newer than the one for anybody.
func CurrentFor(sessions []Session, ours func(s *Session) bool) int {
	own := Current(sessions)
	for i := len(sessions) - 1; i > own; i-- {
		if ours(&sessions[i]) {
			return i
		}
	}
	return own
}

// FirstWith returns the index of the session that a summary was made for: those that resume it, or an earlier one, begin with it too.
func FirstWith(sessions []Session, summary pool.ID) int {
	return slices.IndexFunc(sessions, func(o Session) bool { return o.Summary == summary })
}

// Covered returns the messages before a session's start of which its summary tells, and those after them up to its start that do not go to the model at all,
// each as the position of the last one, 0 for none. i is the session's index.
func Covered(sessions []Session, i int) (summarised, gone int) {
	if i < 0 {
		return 0, 0
	}
	s := &sessions[i]
	if s.Summary != (pool.ID{}) {
		summarised = min(sessions[FirstWith(sessions, s.Summary)].Start, s.Start) - 1
	}
	if s.Start-1 > summarised {
		gone = s.Start - 1
	}
	return summarised, gone
}

// Written reports whether somebody wrote the text of a digest that was asked for. Such a text outlives a compaction.
func (d *Digest) Written() bool {
	return d.Kept && (d.By == "text" || d.By == "" && d.Message == pool.ID{})
}

// CheckSessions refuses sessions with positions that no history has. They need not be sorted by Start: a resumed session begins at 1 again.
func CheckSessions(sessions []Session) error {
	for i := range sessions {
		s := &sessions[i]
		if s.Start < 0 || s.PrunedTo < 0 {
			return fmt.Errorf("session %d begins at position %d and is pruned to %d: neither may be negative", i+1, s.Start, s.PrunedTo)
		}
		for _, d := range s.Digests {
			if d.From < 1 || d.To < d.From {
				return fmt.Errorf("session %d has a digest of the positions %d to %d: the first must be 1 or more, and not behind the last", i+1, d.From, d.To)
			}
		}
		for k, at := range s.Apart {
			if at < 1 || at >= s.Start || k > 0 && at <= s.Apart[k-1] {
				return fmt.Errorf("session %d begins at position %d and sends the messages at %d before it: they must stand there, and be in order", i+1, s.Start, s.Apart)
			}
		}
	}
	return nil
}

// Copy returns a branch that shares nothing with b that may change.
func (b *Branch) Copy() *Branch {
	c := *b
	c.end = nil
	c.Pieces, c.Sessions = slices.Clone(b.Pieces), slices.Clone(b.Sessions)
	c.Settings, c.AppData = maps.Clone(b.Settings), maps.Clone(b.AppData)
	for i := range c.Sessions {
		s := &c.Sessions[i]
		s.Digests, s.Data = slices.Clone(s.Digests), maps.Clone(s.Data)
		s.Apart = slices.Clone(s.Apart)
	}
	if b.Tokens != nil {
		tokens := *b.Tokens
		c.Tokens = &tokens
	}
	return &c
}

// Len returns the number of messages on the branch.
func (b *Branch) Len() int {
	n := 0
	for _, p := range b.Pieces {
		n += p.Len()
	}
	return n
}
