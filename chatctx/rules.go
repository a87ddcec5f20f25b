package chatctx

import (
	"context"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/internal/view"
)

// AddRule adds a rule to the context, prepared by the store's Judge. The step has the rule as it was stored: with its maker, time and scope, and with an id
// if r has none. A default replaces the default of its scope. It is an ErrConflict if it breaks an example of a rule, except for a deny and a default:
// their step lists the broken examples.
func (b *Batch) AddRule(r record.Rule, scope record.RuleScope) {
	b.prepare = append(b.prepare, func() error { return toolcall.ReadyRule(b.store.at(), &r) })
	b.step("rules add", b.tried().Add(b.branch, &r, scope))
}

// RemoveRule removes a rule of the context. It is an ErrNotFound if the reference (an id, or a unique beginning or ending of one) names none, and an
// ErrConflict if an example of another rule would break. The step has the rule.
func (b *Batch) RemoveRule(ref string) {
	b.step("rules rm", b.tried().Remove(ref))
}

// tried collects the batch's changes of rules, which are tried together before the transaction.
func (b *Batch) tried() *toolcall.TriedRules {
	if b.rules == nil {
		b.rules = &toolcall.TriedRules{Store: b.store.at()}
	}
	return b.rules
}

// AddRule adds a rule for all contexts, like Batch.AddRule.
func (s *Store) AddRule(ctx context.Context, r record.Rule) (*record.Committed, error) {
	return toolcall.AddRule(ctx, s.at(), r)
}

// RemoveRule removes a rule for all contexts, like Batch.RemoveRule.
func (s *Store) RemoveRule(ctx context.Context, ref string) (*record.Committed, error) {
	return toolcall.RemoveRule(ctx, s.at(), ref)
}

// Rules returns the rules that hold in a context: its own, those of its parent contexts, unless it has OwnRules, and those of the store. If a context is no
// task but only names a parent, as imports do, the rules of that parent that allow are left out. Expired rules are left out. The zero id means the store's
// rules alone.
func (s *Store) Rules(ctx context.Context, context ID) ([]*record.Rule, error) {
	var out []*record.Rule
	err := s.at().DB.View(ctx, func(tx kv.Tx) (err error) {
		out, err = view.RulesFor(tx, context, s.at().Now())
		return err
	})
	return out, err
}
