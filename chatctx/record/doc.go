// Package record has the records of a store: tasks, tools, rules, calls with their decisions, claims, operations, and what an export has of contexts. Each is
// one struct. The tags of its fields have the key in the stored record and the name in JSON, which internal/codec reads and writes.
//
// It owns what a record is. It opens no store and reads no transaction; its methods look at the record alone.
package record

import (
	"fmt"

	"github.com/chatctx/chatctx/pool"
)

// Ref names a message: its id or a unique beginning or ending of it (4 digits or more), a tag, a turn's label (u3, a3), a branch's name (its head), @ (the
// head of the branch on which it is read), @-2 (two before the head), @3 (the third message), or BRANCH@… with any of these. tag:, branch: and id: before
// it say which is meant.
type Ref string

// RefTo returns the reference to an id.
func RefTo(id pool.ID) Ref { return Ref(id.String()) }

// CallRef names a call: MESSAGE:INDEX, where MESSAGE is a Ref and INDEX counts from 1, or the provider's id if that is unique.
type CallRef string

// CallRefTo returns the reference to a call; "" for the zero id.
func CallRefTo(message pool.ID, index int) CallRef {
	if message == (pool.ID{}) {
		return ""
	}
	return CallRef(fmt.Sprintf("%s:%d", message, index))
}

// invalid returns a pool.ErrInvalid that reads as the text alone.
func invalid(format string, args ...any) error { return &fault{fmt.Sprintf(format, args...)} }

type fault struct{ text string }

func (e *fault) Error() string { return e.text }

func (e *fault) Unwrap() error { return pool.ErrInvalid }
