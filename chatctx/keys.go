package chatctx

import (
	"github.com/chatctx/chatctx/chatctx/internal/journal"
)

// again reports whether the batch was made before: its appends have keys, and all of these are known.
func (b *Batch) again(t *journal.Txn) (bool, error) {
	keyed := false
	for _, a := range b.appends {
		known, err := t.Known(a.O.Key, a.Res)
		if err != nil || a.O.Key != "" && !known {
			return false, err
		}
		keyed = keyed || known
	}
	return keyed, nil
}

// Together makes later batches parts of one command with this one: Undo takes them back together. A batch is tied to itself where
// only replies follow (Reply.Together). It returns the batch.
func (b *Batch) Together(with *Batch) *Batch {
	if with.group == nil {
		with.group = journal.NewGroup()
	}
	b.group = with.group
	return b
}
