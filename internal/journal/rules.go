package journal

import (
	"github.com/chatctx/chatctx/branch"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// copyRules gives a fork the rules of its branch.
func (t *Txn) copyRules(from, to *branch.Branch) error {
	all, err := view.RulesOf(t.Tx, t.ID)
	if err != nil {
		return err
	}
	for _, r := range all {
		if r.Branch != from.ID {
			continue
		}
		r.ID, r.Branch = pool.NewID(), to.ID
		raw, err := base.EncodeRecord(r)
		if err == nil {
			err = t.PutRaw(base.RuleBucket, view.RuleKey(t.ID, r.ID), raw)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
