package record

import (
	"github.com/chatctx/chatctx/pool"
)

// Comparison is how several histories continue after what all of them share.
type Comparison struct {
	Ancestor *pool.Entry // the last message that all share; nil: none
	Columns  []*ComparedHistory
	Turns    []*ComparedTurn
}

// ComparedHistory is one of the histories: a branch up to a message.
type ComparedHistory struct {
	Ref    Ref // as requested
	Branch string
	Len    int // how many messages of the branch count
}

// ComparedTurn is a turn of each history: the messages of each column after the ancestor. A column without such a turn has no messages.
type ComparedTurn struct {
	Turn  int // its number, as in u3 and a3
	Cells [][]*pool.Entry
}

// Difference is what two branches do not share.
type Difference struct {
	A, B         string
	Ancestor     *pool.Entry // the last message of the common beginning; nil: none
	OnlyA, OnlyB []*pool.Entry
}
