// Package branch holds histories: which messages a branch has, in what order, and its prompts and settings.
//
// A history is a piece table. Message ids are appended to segments, each written by one branch alone; a branch is a list of
// closed pieces (segment, from, to) of them. Entries never change, so a list of pieces is a snapshot for good.
package branch

import (
	"encoding/json"
	"fmt"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/pool"
)

// Piece is the entries From (included) to To (not included) of a segment.
type Piece struct {
	_        struct{} `cbor:",toarray"`
	Segment  uint64
	From, To uint64
}

// Len is the number of entries.
func (p Piece) Len() int { return int(p.To - p.From) }

// Branch is a branch's record.
type Branch struct {
	ID     pool.ID `cbor:"1,keyasint"`
	Name   string  `cbor:"17,keyasint"`
	Pieces []Piece `cbor:"2,keyasint,omitempty"`
	// Segment is the one that this branch appends to, 0 before the first append. High is its high-water mark: the next position to write.
	// It never goes back, not even by an undo.
	Segment uint64 `cbor:"3,keyasint,omitempty"`
	High    uint64 `cbor:"4,keyasint,omitempty"`
	// System and Prompt are the ids of the branch's prompts in the prompt bucket, "" for none.
	System   string                     `cbor:"5,keyasint,omitempty"`
	Prompt   string                     `cbor:"6,keyasint,omitempty"`
	Settings map[string]json.RawMessage `cbor:"7,keyasint,omitempty"`
	Sessions []Session                  `cbor:"8,keyasint,omitempty"`
	// From and At: the branch that this one was forked from, which may be gone by now, and the last message they shared.
	From pool.ID `cbor:"9,keyasint,omitzero"`
	At   pool.ID `cbor:"10,keyasint,omitzero"`
	// Revision goes up by one with each change of the branch, undo included, and never back: one number never names two states.
	Revision uint64                     `cbor:"11,keyasint,omitempty"`
	AppData  map[string]json.RawMessage `cbor:"12,keyasint,omitempty"`
	Created  pool.Time                  `cbor:"13,keyasint,omitempty"`
	// Last is the newest operation on this branch that has not been undone, Newest the newest one at all; 0 for none.
	Last   uint64 `cbor:"14,keyasint,omitempty"`
	Newest uint64 `cbor:"15,keyasint,omitempty"`
	// Tokens are figures that a program set for the branch, nil for none.
	Tokens *Tokens `cbor:"16,keyasint,omitempty"`
	// Removed is when the branch was removed, 0 for one that is there. The record of a removed branch stays for as long as something can bring it back, so
	// that its mark and its revision do not begin anew; it has no name in the index and counts nowhere.
	Removed pool.Time `cbor:"18,keyasint,omitempty"`

	end *End // where the segment ends, if that is known without reading
}

// End is the end of a segment: where its branch writes next, and how many turns it has begun. What stands before an end never changes, so an end holds for good.
type End struct{ Segment, High, Turns uint64 }

// End is where the branch's segment ends, the zero End where that was not read or written.
func (b *Branch) End() End {
	if b.end == nil || b.end.Segment != b.Segment || b.end.High != b.High {
		return End{}
	}
	return *b.end
}

// Ends says where the branch's segment ended once. It counts where that is still so, and spares an append the read of the last entry.
func (b *Branch) Ends(e End) { b.end = &e }

// Tokens are the figures of a branch as a whole.
type Tokens struct {
	Input  int64 `cbor:"1,keyasint" json:"input_tokens"`
	Output int64 `cbor:"2,keyasint" json:"output_tokens"`
}

// Session is a stretch of a branch between two compactions.
type Session struct {
	ID    pool.ID `cbor:"1,keyasint"`
	Start int     `cbor:"2,keyasint"` // position of its first message, from 1
	// Summary is the message that stands for everything before Start; it lies in the pool and in no piece. Zero: none.
	Summary pool.ID   `cbor:"3,keyasint,omitzero"`
	Created pool.Time `cbor:"4,keyasint,omitempty"`
	// PrunedTo is the position up to which (included) tool results are sent as one line; 0 for none.
	PrunedTo int `cbor:"5,keyasint,omitempty"`
	// Digests hold for ranges of positions what the history step made of them, so that it is made once.
	Digests []Digest `cbor:"6,keyasint,omitempty"`
	// Data belongs to the enhancers.
	Data map[string]json.RawMessage `cbor:"7,keyasint,omitempty"`

	Extra map[uint64]cbor.RawMessage `cbor:"-"`
}

// Digest stands for the messages at positions From to To, both included.
type Digest struct {
	From     int    `cbor:"1,keyasint"`
	To       int    `cbor:"2,keyasint"`
	Text     string `cbor:"3,keyasint"`
	Squeezed bool   `cbor:"4,keyasint,omitempty"`
	// Of is a hash of the ids of the messages that it stands for: where they are others by now, it counts no more.
	Of pool.Hash `cbor:"5,keyasint,omitzero"`
	// Message lies in the pool and on no branch: what a model was paid for Text. Zero: no model made it.
	Message pool.ID `cbor:"6,keyasint,omitzero"`
	// Kept: somebody asked for this one. It is not merged with others.
	Kept bool `cbor:"7,keyasint,omitempty"`
}

// CheckSessions refuses sessions that name positions which no history has. They need not be in the order of their starts: one that is resumed begins at 1 again.
func CheckSessions(sessions []Session) error {
	for i := range sessions {
		s := &sessions[i]
		if s.Start < 0 || s.PrunedTo < 0 {
			return fmt.Errorf("session %d begins at position %d and is pruned to %d", i+1, s.Start, s.PrunedTo)
		}
		for _, d := range s.Digests {
			if d.From < 1 || d.To < d.From {
				return fmt.Errorf("session %d has a digest of the positions %d to %d", i+1, d.From, d.To)
			}
		}
	}
	return nil
}

// Len is the number of messages on the branch.
func (b *Branch) Len() int {
	n := 0
	for _, p := range b.Pieces {
		n += p.Len()
	}
	return n
}
