package chatctx

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/chatctx/chatctx/chatctx/internal/journal"
	"github.com/chatctx/chatctx/chatctx/internal/record"
	"github.com/chatctx/chatctx/chatctx/internal/toolcall"
	"github.com/chatctx/chatctx/chatctx/internal/view"
	"github.com/chatctx/chatctx/chatctx/kv"
	"github.com/chatctx/chatctx/pool"
)

// Rule says what to do with waiting calls. A Judge applies it.
type Rule = record.Rule

// Condition is a condition on a call's arguments.
type Condition = record.Condition

// RuleScope says where a rule holds: for a call, else on a branch, else in the context.
type RuleScope struct {
	Branch bool    // on the batch's branch only
	Call   CallRef // for this call only
}

// AddRule adds a rule to the context, prepared by the store's Judge. The step has the rule as it was stored: with its maker, time and scope, and with an id
// if r has none. A default replaces the default of its scope. It is an ErrConflict if it breaks an example of a rule, except for a deny and a default:
// their step lists the broken examples.
func (b *Batch) AddRule(r Rule, scope RuleScope) {
	if r.ID == (ID{}) {
		r.ID = pool.NewID()
	}
	b.texts("reason", &r.Reason)
	made := &r
	at := b.changesRules(func(tx kv.Tx, id ID) ([]toolcall.RuleChange, error) {
		rule := *made
		if err := b.scoped(tx, id, &rule, scope); err != nil {
			return nil, err
		}
		return []toolcall.RuleChange{{Add: &rule}}, nil
	})
	b.prepare = append(b.prepare, func() error { return readyRule(b.store.at, made) })
	b.step("rules add", func(t *journal.Txn, s *Step) error {
		if err := at.same(t.Tx); err != nil {
			return err
		}
		rule := *made
		rule.By, rule.Created = t.Store.Maker(), t.Now
		if err := b.scoped(t.Tx, t.ID, &rule, scope); err != nil {
			return err
		}
		s.Rule, s.Broken = &rule, at.broken
		t.OnContext = true
		return putRule(t.Tx, t.PutRaw, &rule)
	})
}

// scoped sets where a rule holds.
func (b *Batch) scoped(tx kv.Tx, id ID, r *Rule, scope RuleScope) error {
	r.Context = id
	if !scope.Branch && scope.Call == "" {
		return nil
	}
	rec, _, err := record.GetContext(tx, id)
	if err != nil {
		return err
	}
	if err := b.store.at.Placed(id, rec); err != nil {
		return err
	}
	on, err := view.BranchOf(tx, id, rec, b.branch)
	if err != nil {
		return err
	}
	if scope.Branch {
		r.Branch = on.ID
	}
	if scope.Call == "" {
		return nil
	}
	at, err := toolcall.FindCall(view.Reader{Tx: tx, ID: id}, on, b.branch != "", scope.Call)
	if err == nil {
		r.Message, r.Index = at.Message.ID, at.Index+1
	}
	return err
}

// RemoveRule removes a rule of the context. It is an ErrNotFound if the reference (an id, or a unique beginning or ending of one) names none, and an
// ErrConflict if an example of another rule would break. The step has the rule.
func (b *Batch) RemoveRule(ref string) {
	at := b.changesRules(func(tx kv.Tx, id ID) ([]toolcall.RuleChange, error) { return removal(tx, id, ref) })
	b.step("rules rm", func(t *journal.Txn, s *Step) error {
		if err := at.same(t.Tx); err != nil {
			return err
		}
		r, err := findRule(t.Tx, t.ID, ref)
		if err != nil {
			return err
		}
		s.Rule, t.OnContext = r, true
		return t.PutRaw(record.RuleBucket, view.RuleKey(t.ID, r.ID), nil)
	})
}

func removal(tx kv.Tx, id ID, ref string) ([]toolcall.RuleChange, error) {
	r, err := findRule(tx, id, ref)
	if err != nil {
		return nil, err
	}
	return []toolcall.RuleChange{{Remove: r.ID}}, nil
}

// readyRule lets the store's Judge prepare a rule.
func readyRule(s *record.Store, r *Rule) error {
	if s.Judge == nil {
		return Invalid("a rule cannot be checked: open the store with Options.Judge")
	}
	return s.Judge.Rule(r)
}

// putRule stores a rule. A default replaces the default of its scope.
func putRule(tx kv.Tx, put func(bucket string, key, value []byte) error, r *Rule) error {
	if r.Default {
		all, err := view.RulesOf(tx, r.Context)
		if err != nil {
			return err
		}
		for _, old := range all {
			if !old.Default || old.Branch != r.Branch {
				continue
			}
			if err := put(record.RuleBucket, view.RuleKey(r.Context, old.ID), nil); err != nil {
				return err
			}
		}
	}
	raw, err := record.EncodeRecord(r)
	if err != nil {
		return err
	}
	return put(record.RuleBucket, view.RuleKey(r.Context, r.ID), raw)
}

// triedRules are changes of rules that are tried before the transaction that makes them.
type triedRules struct {
	store   *record.Store
	changes []func(kv.Tx, ID) ([]toolcall.RuleChange, error)
	stamp   pool.Hash
	broken  []BrokenExample
	checked bool
}

// BrokenExample is an example that the rules no longer satisfy.
type BrokenExample = record.Broken

// try finds out what the changes break. If they only add rules that deny, broken examples are recorded and are no error.
func (t *triedRules) try(s *record.Store, contextRef string) (err error) {
	t.checked = true
	var all []toolcall.RuleChange
	var broken []BrokenExample
	broken, t.stamp, err = toolcall.TryRules(context.Background(), s, func(tx kv.Tx) ([]toolcall.RuleChange, error) {
		all, err = t.all(tx, contextRef)
		return all, err
	})
	if errors.Is(err, ErrNotFound) || errors.Is(err, ErrAmbiguous) {
		t.checked = false
		return nil // the transaction reports it
	}
	if err == nil {
		err = toolcall.Unbroken(all, broken)
	}
	if err == nil {
		t.broken = broken
	}
	return err
}

func (t *triedRules) all(tx kv.Tx, contextRef string) ([]toolcall.RuleChange, error) {
	id, err := ID{}, error(nil)
	if contextRef != storeRules {
		id, err = view.ResolveContext(t.store, tx, contextRef)
	}
	var all []toolcall.RuleChange
	for _, change := range t.changes {
		if err != nil {
			break
		}
		var some []toolcall.RuleChange
		some, err = change(tx, id)
		all = append(all, some...)
	}
	return all, err
}

// storeRules stands for the rules of the store where otherwise a context is named.
const storeRules = "\x00store"

// same returns ErrConflict if somebody changed rules since they were tried. It checks once.
func (t *triedRules) same(tx kv.Tx) error {
	if !t.checked {
		return nil
	}
	t.checked = false
	stamp, err := toolcall.StampRules(tx)
	if err == nil && stamp != t.stamp {
		err = record.Conflict("somebody changed rules at the same time: try again")
	}
	return err
}

// changesRules records a change of rules, to be tried before the transaction together with the batch's other changes.
func (b *Batch) changesRules(change func(kv.Tx, ID) ([]toolcall.RuleChange, error)) *triedRules {
	if b.rules == nil {
		b.rules = &triedRules{store: b.store.at}
	}
	b.rules.changes = append(b.rules.changes, change)
	return b.rules
}

// AddRule adds a rule for all contexts, like Batch.AddRule.
func (s *Store) AddRule(ctx context.Context, r Rule) (*Committed, error) {
	if r.ID == (ID{}) {
		r.ID = pool.NewID()
	}
	if err := s.at.Texts("reason", &r.Reason); err != nil {
		return nil, err
	}
	if err := readyRule(s.at, &r); err != nil {
		return nil, err
	}
	r.Context, r.Branch, r.Message, r.Index, r.By, r.Created = ID{}, ID{}, ID{}, 0, s.at.Maker(), s.at.Now()
	change := func(kv.Tx, ID) ([]toolcall.RuleChange, error) { return []toolcall.RuleChange{{Add: &r}}, nil }
	return s.ruleOperation(ctx, "rules add", change, func(t *journal.StoreTxn) (*Rule, error) {
		return &r, putRule(t.Tx, t.PutRaw, &r)
	})
}

// RemoveRule removes a rule for all contexts, like Batch.RemoveRule.
func (s *Store) RemoveRule(ctx context.Context, ref string) (*Committed, error) {
	change := func(tx kv.Tx, id ID) ([]toolcall.RuleChange, error) { return removal(tx, id, ref) }
	return s.ruleOperation(ctx, "rules rm", change, func(t *journal.StoreTxn) (*Rule, error) {
		r, err := findRule(t.Tx, ID{}, ref)
		if err != nil {
			return nil, err
		}
		return r, t.PutRaw(record.RuleBucket, view.RuleKey(ID{}, r.ID), nil)
	})
}

// ruleOperation changes a rule for all contexts; the result's step has it.
func (s *Store) ruleOperation(ctx context.Context, what string, change func(kv.Tx, ID) ([]toolcall.RuleChange, error), do func(*journal.StoreTxn) (*Rule, error)) (*Committed, error) {
	tried := &triedRules{store: s.at, changes: []func(kv.Tx, ID) ([]toolcall.RuleChange, error){change}}
	if err := tried.try(s.at, storeRules); err != nil {
		return nil, err
	}
	var r *Rule
	done, err := journal.StoreOperation(ctx, s.at, what, func(t *journal.StoreTxn) (err error) {
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

// RuleDifference is a recorded call that the rules would decide differently after a change.
type RuleDifference = toolcall.Differs

// DiffRules calls tell for each recorded call, of all contexts, that would be decided differently with one rule more or less. It writes nothing. add is a
// rule to add, prepared as by AddRule, which holds for its Context or, if that is zero, for all; nil to remove the rule with the id remove.
func (s *Store) DiffRules(ctx context.Context, add *Rule, remove ID, tell func(RuleDifference) error) error {
	changes := []toolcall.RuleChange{{Remove: remove}}
	if add != nil {
		if err := readyRule(s.at, add); err != nil {
			return err
		}
		changes[0].Add = add
	}
	return toolcall.DiffRules(ctx, s.at, func(kv.Tx) ([]toolcall.RuleChange, error) { return changes, nil }, tell)
}

// FindRule finds a rule of a context, or of the store for the zero id. Errors to test for: ErrNotFound, ErrAmbiguous.
func (s *Store) FindRule(ctx context.Context, context ID, ref string) (r *Rule, err error) {
	err = s.at.DB.View(ctx, func(tx kv.Tx) error {
		r, err = findRule(tx, context, ref)
		return err
	})
	return r, err
}

// findRule finds a rule of a context, or of the store for the zero id.
func findRule(tx kv.Tx, ctx ID, ref string) (*Rule, error) {
	all, err := view.RulesOf(tx, ctx)
	if err != nil {
		return nil, err
	}
	digits := view.IdDigits(ref)
	var found []*Rule
	var words []string
	for _, r := range all {
		if digits != "" && view.Matches(r.ID, digits) {
			found = append(found, r)
			words = append(words, hex.EncodeToString(r.ID[12:])+" ("+r.Effect+" "+r.Tool+")")
		}
	}
	switch len(found) {
	case 0:
		return nil, NotFound("rule", ref)
	case 1:
		return found[0], nil
	}
	return nil, Ambiguous("rule", ref, words)
}

// Rules returns the rules that hold in a context: its own, those of its parent contexts, unless it has OwnRules, and those of the store. If a context is no
// task but only names a parent, as imports do, the rules of that parent that allow are left out. Expired rules are left out. The zero id means the store's
// rules alone.
func (s *Store) Rules(ctx context.Context, context ID) ([]*Rule, error) {
	var out []*Rule
	err := s.at.DB.View(ctx, func(tx kv.Tx) (err error) {
		out, err = view.RulesFor(tx, context, s.at.Now())
		return err
	})
	return out, err
}
