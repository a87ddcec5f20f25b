package journal

import (
	"slices"

	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/branchstore"
	"github.com/chatctx/chatctx/internal/find"
	"github.com/chatctx/chatctx/pool"
)

// PutPrompt writes a prompt's text and lists it for the search index.
func (t *Txn) PutPrompt(text string) (string, error) {
	id, err := branchstore.PutPrompt(t.Tx, t.ID, text)
	if id == "" || err != nil {
		return id, err
	}
	return id, find.Wait(t.Tx, t.Now, find.DocOf(find.PromptDoc, t.ID, pool.ID([]byte(id))))
}

// PutRecord writes the context's record. It lists a new title for the search index.
func (t *Txn) PutRecord() error {
	if t.Rec.Title != t.Was.Title {
		if err := find.Wait(t.Tx, t.Now, find.DocOf(find.TitleDoc, t.ID, pool.ID{})); err != nil {
			return err
		}
	}
	if err := t.indexLabels(); err != nil {
		return err
	}
	raw, err := base.EncodeRecord(t.Rec)
	if err == nil {
		err = t.Tx.Put(base.ContextBucket, base.Under(t.ID), raw)
	}
	if err == nil {
		t.Store.Hints.Contexts.Note(t.ID, raw, t.Rec, (*base.ContextRecord).Copy)
	}
	return err
}

// indexLabels makes the index of labels match the context's labels.
func (t *Txn) indexLabels() error {
	for _, l := range t.Was.Labels {
		if !slices.Contains(t.Rec.Labels, l) {
			if err := t.Tx.Delete(base.LabelBucket, base.LabelKey(l, t.ID)); err != nil {
				return err
			}
		}
	}
	for _, l := range t.Rec.Labels {
		if !slices.Contains(t.Was.Labels, l) {
			if err := t.Tx.Put(base.LabelBucket, base.LabelKey(l, t.ID), []byte{}); err != nil {
				return err
			}
		}
	}
	t.Was.Labels = t.Rec.Labels
	return nil
}
