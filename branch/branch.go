// Package branch has the records of branches: what a branch is besides its messages, the sessions between its compactions, and their digests.
package branch

import (
	"encoding/json"

	"github.com/chatctx/chatctx/pool"
)

// Piece has the entries from From to To-1 of a segment.
type Piece struct {
	_        struct{} `cbor:",toarray"`
	Segment  uint64
	From, To uint64
}

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

	Unknown string `cbor:"-" json:"-"`

	// Ended is the end of the segment at some time, if it is known without reading. The rooms that write set it; a copy does not have it.
	Ended End `cbor:"-" json:"-"`
}

// End is the end of a segment: where its branch writes next, and how many turns it has begun. Entries before an end never change, so an End stays true.
type End struct{ Segment, High, Turns uint64 }

// Tokens are token counts of a whole branch.
type Tokens struct {
	Input  int64 `cbor:"1,keyasint" json:"input_tokens"`
	Output int64 `cbor:"2,keyasint" json:"output_tokens"`

	Unknown string `cbor:"-" json:"-"`
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

	Unknown string `cbor:"-" json:"-"`
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

	Unknown string `cbor:"-" json:"-"`
}
