package toolcall

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"

	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/chatctx/record"
	"github.com/chatctx/chatctx/internal/base"
	"github.com/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/pool"
)

// setScope sets where a rule holds.
func setScope(sc record.RuleScope, s *base.Store, tx kv.Tx, id pool.ID, branchName string, r *record.Rule) error {
	r.Context, r.Branch, r.Message, r.Index = id, pool.ID{}, pool.ID{}, 0
	if !sc.Branch && sc.Call == "" {
		return nil
	}
	rec, _, err := base.GetContext(tx, id)
	if err != nil {
		return err
	}
	if err := s.Placed(id, rec); err != nil {
		return err
	}
	on, err := view.BranchOf(tx, id, rec, branchName)
	if err != nil {
		return err
	}
	if sc.Branch {
		r.Branch = on.ID
	}
	if sc.Call == "" {
		return nil
	}
	at, err := FindCall(view.Reader{Tx: tx, ID: id}, on, branchName != "", sc.Call)
	if err == nil {
		r.Message, r.Index = at.Message.ID, at.Index+1
	}
	return err
}

// TriedRules are changes of rules that are tried before the transaction that makes them.
type TriedRules struct {
	Store   *base.Store
	changes []changeRules
	stamp   pool.Hash
	broken  []record.Broken
	checked bool
}

// changeRules finds out which rules of a context change.
type changeRules func(kv.Tx, pool.ID) ([]RuleChange, error)

// Add collects a new rule, gives it an id if it has none, and returns the step that adds it. The rule must be ready (ReadyRule) when the changes are tried.
func (t *TriedRules) Add(branchName string, made *record.Rule, scope record.RuleScope) func(*journal.Txn, *record.Step) error {
	if made.ID == (pool.ID{}) {
		made.ID = pool.NewID()
	}
	t.changes = append(t.changes, func(tx kv.Tx, id pool.ID) ([]RuleChange, error) {
		rule := *made
		if err := setScope(scope, t.Store, tx, id, branchName, &rule); err != nil {
			return nil, err
		}
		return []RuleChange{{Add: &rule}}, nil
	})
	return func(tx *journal.Txn, s *record.Step) error {
		if err := t.same(tx.Tx); err != nil {
			return err
		}
		rule := *made
		rule.By, rule.Created = tx.Store.Maker(), tx.Now
		if err := setScope(scope, t.Store, tx.Tx, tx.ID, branchName, &rule); err != nil {
			return err
		}
		s.Rule, s.Broken, tx.OnContext = &rule, t.broken, true
		return putRule(tx.Tx, tx.PutRaw, &rule)
	}
}

// Remove collects the removal of a rule and returns the step that removes it.
func (t *TriedRules) Remove(ref string) func(*journal.Txn, *record.Step) error {
	t.changes = append(t.changes, removal(ref))
	return func(tx *journal.Txn, s *record.Step) error {
		if err := t.same(tx.Tx); err != nil {
			return err
		}
		r, err := FindRule(tx.Tx, tx.ID, ref)
		if err != nil {
			return err
		}
		s.Rule, tx.OnContext = r, true
		return tx.PutRaw(base.RuleBucket, view.RuleKey(tx.ID, r.ID), nil)
	}
}

func removal(ref string) changeRules {
	return func(tx kv.Tx, id pool.ID) ([]RuleChange, error) {
		r, err := FindRule(tx, id, ref)
		if err != nil {
			return nil, err
		}
		return []RuleChange{{Remove: r.ID}}, nil
	}
}

// ReadyRule passes a rule's reason through the hook, and lets the store's Judge prepare it.
func ReadyRule(s *base.Store, r *record.Rule) error {
	if s.Judge == nil {
		return base.Invalid("a rule cannot be checked: open the store with Options.Judge")
	}
	if err := s.Texts("reason", &r.Reason); err != nil {
		return err
	}
	return s.Judge.Rule(r)
}

// putRule stores a rule. A default replaces the default of its scope. It is an ErrConflict if another rule has the id.
func putRule(tx kv.Tx, put func(bucket string, key, value []byte) error, r *record.Rule) error {
	key := view.RuleKey(r.Context, r.ID)
	if other, err := tx.Get(base.RuleBucket, key); err != nil || other != nil {
		return cmp.Or(err, base.Conflict("there is a rule %s already: give the new one another id, or none", r.ID))
	}
	if r.Default {
		all, err := view.RulesOf(tx, r.Context)
		if err != nil {
			return err
		}
		for _, old := range all {
			if !old.Default || old.Branch != r.Branch {
				continue
			}
			if err := put(base.RuleBucket, view.RuleKey(r.Context, old.ID), nil); err != nil {
				return err
			}
		}
	}
	raw, err := base.EncodeRecord(r)
	if err != nil {
		return err
	}
	return put(base.RuleBucket, key, raw)
}

// Try finds out what the changes of a context's rules break. If they only add rules that deny, broken examples are recorded and are no error.
func (t *TriedRules) Try(contextRef string) (err error) {
	t.checked = true
	var all []RuleChange
	var broken []record.Broken
	broken, t.stamp, err = TryRules(context.Background(), t.Store, func(tx kv.Tx) ([]RuleChange, error) {
		all, err = t.all(tx, contextRef)
		return all, err
	})
	if errors.Is(err, base.ErrNotFound) || errors.Is(err, base.ErrAmbiguous) {
		t.checked = false
		return nil // the transaction reports it
	}
	if err == nil {
		err = Unbroken(all, broken)
	}
	if err == nil {
		t.broken = broken
	}
	return err
}

func (t *TriedRules) all(tx kv.Tx, contextRef string) ([]RuleChange, error) {
	id, err := pool.ID{}, error(nil)
	if contextRef != storeRules {
		id, err = view.ResolveContext(t.Store, tx, contextRef)
	}
	var all []RuleChange
	for _, change := range t.changes {
		if err != nil {
			break
		}
		var some []RuleChange
		some, err = change(tx, id)
		all = append(all, some...)
	}
	return all, err
}

// storeRules stands for the rules of the store where otherwise a context is named.
const storeRules = "\x00store"

// same returns ErrConflict if somebody changed rules since they were tried. It checks once.
func (t *TriedRules) same(tx kv.Tx) error {
	if !t.checked {
		return nil
	}
	t.checked = false
	stamp, err := StampRules(tx)
	if err == nil && stamp != t.stamp {
		err = base.Conflict("somebody changed rules at the same time: try again")
	}
	return err
}

// AddRule adds a rule for all contexts.
func AddRule(ctx context.Context, s *base.Store, r record.Rule) (*record.Committed, error) {
	if r.ID == (pool.ID{}) {
		r.ID = pool.NewID()
	}
	if err := ReadyRule(s, &r); err != nil {
		return nil, err
	}
	r.Context, r.Branch, r.Message, r.Index, r.By, r.Created = pool.ID{}, pool.ID{}, pool.ID{}, 0, s.Maker(), s.Now()
	change := func(kv.Tx, pool.ID) ([]RuleChange, error) { return []RuleChange{{Add: &r}}, nil }
	return ruleOperation(ctx, s, "rules add", change, func(t *journal.StoreTxn) (*record.Rule, error) {
		return &r, putRule(t.Tx, t.PutRaw, &r)
	})
}

// RemoveRule removes a rule for all contexts.
func RemoveRule(ctx context.Context, s *base.Store, ref string) (*record.Committed, error) {
	return ruleOperation(ctx, s, "rules rm", removal(ref), func(t *journal.StoreTxn) (*record.Rule, error) {
		r, err := FindRule(t.Tx, pool.ID{}, ref)
		if err != nil {
			return nil, err
		}
		return r, t.PutRaw(base.RuleBucket, view.RuleKey(pool.ID{}, r.ID), nil)
	})
}

// ruleOperation changes a rule for all contexts; the result's step has it.
func ruleOperation(ctx context.Context, s *base.Store, what string, change changeRules, do func(*journal.StoreTxn) (*record.Rule, error)) (*record.Committed, error) {
	tried := &TriedRules{Store: s, changes: []changeRules{change}}
	if err := tried.Try(storeRules); err != nil {
		return nil, err
	}
	var r *record.Rule
	done, err := journal.StoreOperation(ctx, s, what, func(t *journal.StoreTxn) (err error) {
		if err := tried.same(t.Tx); err != nil {
			return err
		}
		r, err = do(t)
		return err
	})
	if err == nil {
		done.Last().Rule, done.Last().Broken = r, tried.broken
	}
	return done, err
}

// FindRule finds a rule of a context, or of the store for the zero id.
func FindRule(tx kv.Tx, ctx pool.ID, ref string) (*record.Rule, error) {
	all, err := view.RulesOf(tx, ctx)
	if err != nil {
		return nil, err
	}
	digits := view.IdDigits(ref)
	var found []*record.Rule
	var words []string
	for _, r := range all {
		if digits != "" && view.Matches(r.ID, digits) {
			found = append(found, r)
			words = append(words, hex.EncodeToString(r.ID[12:])+" ("+r.Effect+" "+r.Tool+")")
		}
	}
	switch len(found) {
	case 0:
		return nil, base.NotFound("rule", ref)
	case 1:
		return found[0], nil
	}
	return nil, base.Ambiguous("rule", ref, words, 0)
}

// DiffRule calls tell for each recorded call, of all contexts, that would be decided differently with one rule more or less. It writes nothing. add is a
// rule to add, prepared as by AddRule, which holds for its Context or, if that is zero, for all; nil to remove the rule with the id remove.
func DiffRule(ctx context.Context, s *base.Store, add *record.Rule, remove pool.ID, tell func(record.RuleDifference) error) error {
	changes := []RuleChange{{Remove: remove}}
	if add != nil {
		if err := ReadyRule(s, add); err != nil {
			return err
		}
		changes[0].Add = add
	}
	return DiffRules(ctx, s, func(kv.Tx) ([]RuleChange, error) { return changes, nil }, tell)
}

// RuleOf finds a rule of a context, or of the store for the zero id. Errors to test for: ErrNotFound, ErrAmbiguous.
func RuleOf(ctx context.Context, s *base.Store, context pool.ID, ref string) (r *record.Rule, err error) {
	err = s.DB.View(ctx, func(tx kv.Tx) error {
		r, err = FindRule(tx, context, ref)
		return err
	})
	return r, err
}
