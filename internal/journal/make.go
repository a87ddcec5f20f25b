package journal

import (
	"encoding/json"

	"github.com/fxamacker/cbor/v2"

	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/stored"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// NewContext begins a context in a transaction; Made ends it.
func (st *StoreTxn) NewContext(id pool.ID, title string, parent pool.ID, settings map[string]json.RawMessage) (*Txn, error) {
	set, _, err := view.ChangeSettings(nil, settings)
	if err != nil {
		return nil, err
	}
	base.KnowContext(st.Tx, id, "")
	t := &Txn{Tx: st.Tx, Store: st.Store, Now: st.Now, ID: id, Branches: map[pool.ID]*Loaded{},
		Rec: &base.ContextRecord{Title: title, Parent: parent, Settings: set, Created: st.Now, NextOperation: 1}}
	if t.Target, err = t.Create(base.MainBranch, nil); err == nil {
		t.Rec.Active = t.Target.ID
	}
	return t, err
}

// Made writes the record of a new context. An undo of this trashes the context.
func (st *StoreTxn) Made(t *Txn, current bool) error {
	was, err := stored.Marshal(max(t.Now, 1))
	if err != nil {
		return err
	}
	if current {
		if err := st.goTo(t.ID); err != nil {
			return err
		}
	}
	st.Changes = append(st.Changes, ContextChange(t.ID, map[uint64]cbor.RawMessage{trashedField: was}))
	st.Subjects = append(st.Subjects, t)
	return t.PutRecord()
}

// BeginWith gives a new context its prompts and first messages.
func (st *StoreTxn) BeginWith(t *Txn, n *record.NewContext) (err error) {
	b := t.Target
	if b.System, err = t.PutPrompt(n.System); err != nil {
		return err
	}
	if b.Prompt, err = t.PutPrompt(n.Prompt); err != nil {
		return err
	}
	if _, err := t.Append(b, n.Messages); err != nil {
		return err
	}
	return branchstore.Put(t.Tx, t.ID, b)
}
